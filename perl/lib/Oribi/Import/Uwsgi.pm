package Oribi::Import::Uwsgi;
use strict;
use warnings;
use Oribi::Import::Words ();

our $VERSION = '0.100';

# Options of uWSGI, of an ini file or a command line. Names come from the core's tables; here are those whose values
# have another unit or form, or whose meaning is another one.

my $MEGABYTES = sub { my ($value) = @_; return $value =~ /\A\d+\z/ ? "${value}M" : $value };

my %OWN = (
    socket => 'it speaks the uwsgi protocol; Oribi speaks HTTP: bind PATH here, and proxy_pass http://unix:PATH in nginx',
    uwsgi_socket => 'it speaks the uwsgi protocol; Oribi speaks HTTP: bind PATH here, and proxy_pass http://unix:PATH in nginx',
    chmod_socket => 'an address takes its rights as in bind /run/app.sock?umask=007',
    env => 'let the service set the environment; env is the name of the environment here',
    log_format => 'access_log_format has directives in the manner of Apache and nginx',
    plugins => 'there are none: oribi-psgi serves PSGI',
    plugin => 'there are none: oribi-psgi serves PSGI',
    keepalive => 'there is no such option; a connection is kept for idle_timeout',
    listen => ['backlog'],
    reload_on_rss => ['memory_max', $MEGABYTES],
    reload_on_as => ['memory_max', $MEGABYTES],
    evil_reload_on_rss => ['memory_max', $MEGABYTES],
    static_map => ['static'],
);

# An option without which the rest does what it does.
my %TRUE = map { $_ => 1 } qw(true 1 yes on);

sub new {
    my ($class, $path, $words) = @_;
    return bless { path => $path, words => $words || Oribi::Import::Words->new($path) }, $class;
}

sub text {
    my ($self, $source) = @_;
    my ($section, $found, $number) = ('', 0, 0);
    for my $line (split /\n/, $source) {
        $number++;
        next if $line =~ /\A\s*(?:[#;].*)?\z/;
        if ($line =~ /\A\s*\[([^\]]*)\]\s*\z/) { $section = $1; $found ||= $section eq 'uwsgi'; next }
        die "$self->{path}:$number: neither a section nor a line as in name = value\n" unless $line =~ /\A\s*([\w.-]+)\s*=\s*(.*?)\s*\z/;
        $self->_option($1, $2, "$1 = $2") if $section eq 'uwsgi';
    }
    die "$self->{path}: has no section [uwsgi]\n" unless $found;
    die "$self->{path}: uWSGI serves something else than PSGI with it\n" if $self->{other};
    return $self->{words}->print('uWSGI', join ' ', 'oribi-psgi --config FILE', grep {defined} $self->{app});
}

# A command line. Returns the application, if it has one.
sub flags {
    my ($self, @words) = @_;
    while (@words) {
        my $word = shift @words;
        $word =~ /\A--([\w-]+)(?:=(.*))?\z/s or next;
        my ($name, $value) = ($1, $2);
        $value = shift @words if !defined $value && @words && $words[0] !~ /\A-/;
        if ($name eq 'ini' && defined $value) { $self->{words}->remark("Its configuration file is another matter: oribi-psgi import $value"); next }
        $self->_option($name, defined $value ? $value : 'true', join ' ', "--$name", grep {defined} $value);
    }
    return $self->{app};
}

sub _option {
    my ($self, $name, $value, $was) = @_;
    my $words = $self->{words};
    $name =~ tr/-/_/;
    return $self->{app} = $value if $name eq 'psgi' && $value !~ /%/;
    $self->{other} = 1 if $name =~ /\A(?:rack|module|wsgi_file|wsgi)\z/;
    return $words->leave($was, 'a placeholder of uWSGI, which only uWSGI fills in') if $value =~ /\%[a-zA-Z(]/ && $name ne 'log_format';
    return $self->_daemonize($value, $was) if $name eq 'daemonize';
    return $words->setting($was, access_log => 'off') if $name eq 'disable_logging' && $TRUE{$value};
    return $words->setting($was, preload => 'off') if $name =~ /\Alazy(?:_apps)?\z/ && $TRUE{$value};
    my $own = $OWN{$name};
    return $words->leave($was, $own) if defined $own && !ref $own;
    my ($here, $convert) = $own ? @$own : ($name);
    $value = $convert->($value) if $convert;
    return $words->setting($was, $here, $words->value_of($value));
}

# With the file of the log.
sub _daemonize {
    my ($self, $file, $was) = @_;
    $self->{words}->setting($was, daemonize => 'on');
    $self->{words}->setting($was, error_log => $file);
    return;
}

1;

__END__

=head1 NAME

Oribi::Import::Uwsgi - options of uWSGI

=head1 DESCRIPTION

Part of L<Oribi>; see C<oribi-psgi import> in L<oribi-psgi>.

=cut
