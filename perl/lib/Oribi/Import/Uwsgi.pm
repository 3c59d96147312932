package Oribi::Import::Uwsgi;
use strict;
use warnings;
use File::Basename ();
use Oribi::Import::Shell ();
use Oribi::Import::Words ();

our $VERSION = '0.100';

# Options of uWSGI, of an ini file or a command line. Names come from the core's tables; here are those whose values
# have another unit or form, or whose meaning is another one.

my $MEGABYTES = sub { my ($value) = @_; return $value =~ /\A\d+\z/ ? "${value}M" : $value };

my $PROTOCOL = 'it speaks the uwsgi protocol, and Oribi HTTP: bind takes the address, and nginx needs proxy_pass http://unix:PATH';

my %LETTER = (s => 'socket', p => 'processes', M => 'master', C => 'chmod-socket', d => 'daemonize', T => 'enable-threads', t => 'harakiri', R => 'max-requests', l => 'listen');

my %OWN = (
    socket => $PROTOCOL,
    uwsgi_socket => $PROTOCOL,
    chmod_socket => 'an address takes its rights as a umask, as above or in bind /run/app.sock?umask=007',
    env => 'let the service set the environment; env is the name of the environment here',
    log_format => 'access_log_format has directives in the manner of Apache and nginx',
    plugins => 'there are none: oribi-psgi serves PSGI',
    plugin => 'there are none: oribi-psgi serves PSGI',
    perl_exec => 'the configuration file is Perl: do "FILE"; stands before its hash, or in the application',
    perl_arg => 'there is none: what the application needs stands in the environment',
    log_x_forwarded_for => 'trusted_proxies names the proxies whose X-Forwarded-For is the client in the access log',
    harakiri_verbose => 'slow_log TIME logs where a long call stands; a call that is given up is always logged so',
    no_orphans => 'not there and not needed: workers end with their supervisor',
    offload_threads => 'not there and not needed: files are sent without a worker',
    max_fd => 'the service sets it, as in LimitNOFILE=65536',
    limit_as => 'memory_max replaces workers that grow; a hard limit is the service\'s, as in MemoryMax=1G',
    chown_socket => 'user and group say whose the socket is',
    memory_report => '`oribi-psgi ctl status` shows the memory of every process',
    idle => 'not there: the server stays',
    cheap => 'not there: all workers are there from the start',
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
    my ($class, $path, $config, $words) = @_;
    return bless { path => $path, words => $words || Oribi::Import::Words->new($path, $config), options => [] }, $class;
}

# What is made of an ini file's text: Oribi::Import::Words.
sub file {
    my ($self, $source) = @_;
    $self->_read($self->{path}, $source);
    $self->_take;
    return $self->{words}->started('uWSGI', join ' ', 'oribi-psgi', grep {defined} $self->{app});
}

sub _read {
    my ($self, $path, $source) = @_;
    my ($section, $found, $number, $condition) = ('', 0, 0, undef);
    for my $line ($self->_without_explanations(split /\n/, $source)) {
        $number++;
        if ($line =~ /\A\s*[#;]+\s?(.*?)\s*\z/) { push @{ $self->{options} }, $1 if $section eq 'uwsgi' || !$found; next }
        next if $line =~ /\A\s*\z/;
        if ($line =~ /\A\s*\[([^\]]*)\]\s*\z/) { $section = $1; $found ||= $section eq 'uwsgi'; next }
        die "$path:$number: neither a section nor a line as in name = value\n" unless $line =~ /\A\s*([\w.-]+)\s*=\s*(.*?)\s*\z/;
        next if $section ne 'uwsgi';
        my ($name, $value) = ($1, $2);
        $condition = "$name = $value" if $name =~ /\A(?:if-|for\b|for-)/;
        push @{ $self->{options} }, [$name, $value, "$name = $value", $condition];
        $condition = undef if $name =~ /\Aend(?:if|for)\z/;
    }
    die "$path: has no section [uwsgi]\n" unless $found;
    return;
}

# Paragraphs of comments that name uWSGI explain uWSGI: in the new file they would be false. Their lines become empty.
sub _without_explanations {
    my ($self, @lines) = @_;
    my @paragraph;
    for my $at (0 .. @lines) {
        my $is_comment = $at < @lines && $lines[$at] =~ /\A\s*[#;]/;
        push @paragraph, $at if $is_comment;
        next if !@paragraph || $is_comment && $lines[$at] =~ /\A\s*[#;]+\s*\S/;
        if (join("\n", @lines[@paragraph]) =~ m{(?<![\w./-])uwsgi(?![\w-]|[./]\w)}i) {
            $self->{words}->left_out($paragraph[0] + 1);
            @lines[@paragraph] = ('') x @paragraph;
        }
        @paragraph = ();
    }
    return @lines;
}

# A command line; an ini file that it names is read with it. Returns the application, if it has one.
sub flags {
    my ($self, @words) = @_;
    while (@words) {
        my $word = shift @words;
        if ($word =~ /\.ini\z/ && $word !~ /\A-/) { $self->_named($word); next }
        my ($name, $value) = $word =~ /\A--([\w-]+)(?:=(.*))?\z/s;
        ($name, $value) = ($LETTER{$1}, length $2 ? $2 : undef) if !defined $name && $word =~ /\A-(\w)(.*)\z/s && $LETTER{$1};
        next unless defined $name;
        $value = shift @words if !defined $value && @words && $words[0] !~ /\A-/;
        $value = Oribi::Import::Shell::plain($value) if defined $value;
        if ($name eq 'ini' && defined $value) { $self->_named($value); next }
        push @{ $self->{options} }, [$name, defined $value ? $value : 'true', join ' ', $word, grep { defined && index($word, "=$_") < 0 } $value];
    }
    $self->_take;
    return $self->{app};
}

sub _named {
    my ($self, $file) = @_;
    my ($found) = grep {-f} $file, File::Basename::dirname($self->{path}) . "/$file";
    if (!defined $found) {
        $self->{words}->remark("Its configuration file is not here; import it by itself: oribi-psgi import $file");
        return;
    }
    $self->_read(Oribi::Import::read_file($found));
    $self->{words}->step("Read with it: $found");
    return;
}

sub _take {
    my ($self) = @_;
    my @options = grep {ref} @{ $self->{options} };    # the others are comments
    my %value = map { ($_->[0] =~ tr/-/_/r) => $_->[1] } @options;
    $self->{speaks_http} = grep { defined $value{$_} } qw(http http_socket);
    $self->{mode} = $value{chmod_socket};
    ref $_ ? $self->_option(@$_) : $self->{words}->said($_) for @{ $self->{options} };
    die "$self->{path}: uWSGI serves something else than PSGI with it\n" if $self->{other};
    $self->{words}->setting('default of uWSGI', workers => 1) unless grep { $_->[0] =~ /\A(?:workers|processes|p)\z/ } @options;
    return;
}

# A unix socket, with its rights.
sub _address {
    my ($self, $value, $was, $note) = @_;
    my $words = $self->{words};
    my $mode = $value =~ m{/} ? $self->{mode} : undef;
    my $umask = !defined $mode ? '' : sprintf '?umask=%03o', 0777 & ~oct($mode =~ /\A[0-7]{3,4}\z/ ? $mode : '666');
    return $words->setting($was, bind => $words->value_of("$value$umask"), $note);
}

sub _option {
    my ($self, $name, $value, $was, $condition) = @_;
    my $words = $self->{words};
    $name =~ tr/-/_/;
    return $words->leave($was, "import does not decide \"$condition\": the configuration file is Perl, and may ask %ENV") if defined $condition;
    return $self->{app} = $value if $name eq 'psgi' && $value !~ /%/;
    $self->{other} = 1 if $name =~ /\A(?:rack|module|wsgi_file|wsgi)\z/;
    return $words->leave($was, 'a placeholder of uWSGI, which only uWSGI fills in') if $value =~ /\%[a-zA-Z(]/ && $name ne 'log_format';
    return $self->_daemonize($value, $was) if $name eq 'daemonize';
    return $self->_address($value, $was, 'HTTP here, not the uwsgi protocol: nginx needs proxy_pass in the place of uwsgi_pass')
        if $name =~ /\A(?:uwsgi_)?socket\z/ && !$self->{speaks_http};
    return $self->_address($value, $was) if $name eq 'http_socket';
    return $words->setting($was, access_log => 'off') if $name eq 'disable_logging' && $TRUE{$value};
    return $words->setting($was, preload => 'off') if $name =~ /\Alazy(?:_apps)?\z/ && $TRUE{$value};
    return $words->leave($was, 'restart_file is one file, named above') if $name =~ /\Atouch_(?:chain_|workers_)?reload\z/ && $self->{touched}++;
    my $own = $OWN{$name};
    return $words->leave($was, $own) if defined $own && !ref $own;
    my ($here, $convert) = $own ? @$own : ($name);
    $value = $convert->($value) if $convert;
    $value = $words->value_of($value);
    return $words->setting($was, $here, $value);
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
