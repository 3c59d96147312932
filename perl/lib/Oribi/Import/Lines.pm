package Oribi::Import::Lines;
use strict;
use warnings;
use File::Basename ();
use Oribi::Import::Uwsgi ();
use Oribi::Import::Words ();
use Text::ParseWords ();

our $VERSION = '0.100';

# Lines that start servers: of a Procfile, of a unit of systemd, of a script. The first one with a server is taken.

my %SERVER = map { lc $_ => $_ } qw(Starlet Starman Gazelle Monoceros Twiggy plackup start_server uWSGI);
my %OF_RUBY = map { $_ => 1 } qw(puma unicorn pitchfork rackup rhebok);
my %PREFIX = map { $_ => 1 } qw(exec env carton bundle sudo nice);

# With the user that they change to, or another word of their own.
my %PREFIX_WITH_WORD = map { $_ => 1 } qw(setuidgid chpst su-exec gosu);

my %LETTER = (
    a => 'app', D => 'daemonize', E => 'env', I => 'include', L => 'loader', M => 'require', R => 'reload', e => 'eval',
    l => 'listen', o => 'host', p => 'port', r => 'reload', s => 'server', S => 'socket',
);

# Flags without a value that the tables do not know as such.
my %SWITCH = map { $_ => 1 } qw(enable_ssl preload_app debug -r --reload);

# What start_server does is the server's own business here: name => what becomes of it.
my %STARTER = (
    port => \&_starter_port, path => sub { $_[0]{words}->setting("--path $_[1] of start_server", bind => $_[1]) },
    pid_file => 'pid_file', dir => 'chdir', log_file => \&_starter_log, daemonize => 'daemonize', backlog => 'backlog',
    status_file => 'control PATH makes the socket that `ctl` talks to',
    interval => 'not there and not needed: a reload waits until the new workers serve',
    signal_on_hup => 'not there and not needed: HUP is a reload in which requests that have begun are finished',
    signal_on_term => 'not there and not needed: TERM is a graceful stop',
    kill_old_delay => 'not there and not needed: old workers go when the new ones serve',
    envdir => 'not there: let the service set the environment, as in envdir DIR oribi-psgi',
    enable_auto_restart => 'there is age_max, by which workers are replaced one by one',
    auto_restart_interval => 'there is age_max, by which workers are replaced one by one',
    restart => 'a reload is `oribi-psgi ctl reload`, or HUP', stop => 'a stop is `oribi-psgi ctl stop`, or TERM',
);
my %STARTER_SWITCH = map { $_ => 1 } qw(daemonize enable_auto_restart restart stop);

sub new {
    my ($class, $path) = @_;
    return bless { path => $path, words => Oribi::Import::Words->new($path) }, $class;
}

sub text {
    my ($self, $source) = @_;
    for my $entry ($self->_commands($source)) {
        my ($name, $line) = @$entry;
        next if !$self->{server} && $self->_command($line);
        $self->{words}->remark('Left where it is: ' . join ': ', grep {defined} $name, $line) unless $name && $name eq '';
    }
    die "$self->{path}: has no command of plackup, Starman, Starlet, start_server or uWSGI\n" unless $self->{server};
    return $self->{words}->print($self->{server}, join ' ', 'oribi-psgi --config FILE', grep {defined} $self->{app});
}

# [name or undef, command] of each line; a unit's other lines, and comments, say nothing to a server.
sub _commands {
    my ($self, $source) = @_;
    $source =~ s/\\\n\s*/ /g;
    my @lines = grep { /\S/ && !/\A[#;]/ } map { s/\A\s+|\s+\z//gr } split /\n/, $source;
    return map { /\AExecStart\s*=\s*[-@+!:]*(.*)/s ? [undef, $1] : () } @lines if $source =~ /^ExecStart\s*=/m;
    return map { /\A([\w-]+):\s+(.*)\z/s ? [$1, $2] : [undef, $_] } @lines;
}

sub _split {
    my ($self, $line) = @_;
    die "$self->{path}: what the shell would run (`...`, \$(...)) cannot be read: " . substr($line, 0, 60) . "\n" if $line =~ /`|\$\(/;
    my @words = Text::ParseWords::shellwords($line);
    die "$self->{path}: a quote that is not closed: " . substr($line, 0, 60) . "\n" unless @words;
    my ($stop) = grep {/\A(?:\|\|?|&&?|;|\d?>>?.*|<.*)\z/} @words;
    die "$self->{path}: import reads one command a line, and this has \"$stop\"\n" if defined $stop;
    return @words;
}

# True when the line is a server's, whose flags have been taken then.
sub _command {
    my ($self, $line) = @_;
    my @words = $self->_split($line);
    my @remarks;
    while (@words) {
        my $first = File::Basename::basename($words[0]);
        if ($first =~ /\A[A-Za-z_]\w*=/) { push @remarks, "Set in the environment: $words[0]" }
        elsif ($PREFIX_WITH_WORD{$first}) { push @remarks, "The user of $first is left to it: $words[1]" if defined $words[1]; shift @words }
        elsif ($first =~ /\Aperl/) { shift @words; $self->_perl_flags(\@words); next }
        elsif (!$PREFIX{$first}) { last }
        shift @words;
    }
    return 0 unless @words;
    my $program = File::Basename::basename(shift @words);
    die "$self->{path}: $program serves Ruby: oribi import $self->{path} reads it\n" if $OF_RUBY{$program};
    return 0 unless $SERVER{$program};
    $self->{server} = $SERVER{$program};
    $self->{words}->remark($_) for @remarks;
    if ($program eq 'uwsgi') {
        $self->{app} = Oribi::Import::Uwsgi->new($self->{path}, $self->{words})->flags(@words);
        return 1;
    }
    @words = $self->_starter(@words) if $program eq 'start_server';
    $self->_flags(@words);
    $self->_defaults;
    return 1;
}

# perl -Ilib -MModule plackup
sub _perl_flags {
    my ($self, $words) = @_;
    while (@$words && $words->[0] =~ /\A-([IM])(.*)\z/s) {
        my ($letter, $value) = ($1, $2);
        my $words_were = shift @$words;
        $value = shift @$words unless length $value;
        $self->{words}->setting("$words_were of perl", $LETTER{$letter}, $value);
    }
    shift @$words while @$words && $words->[0] =~ /\A-[wS]\z/;
    return;
}

# Flags of start_server up to "--", then the server that it starts.
sub _starter {
    my ($self, @words) = @_;
    while (@words && $words[0] ne '--' && $words[0] =~ /\A--([\w-]+)(?:=(.*))?\z/s) {
        my ($flag, $value) = ($1, $2);
        shift @words;
        (my $name = $flag) =~ tr/-/_/;
        $value = shift @words if !defined $value && !$STARTER_SWITCH{$name};
        my $was = join ' ', "--$flag", grep {defined} $value;
        my $what = $STARTER{$name};
        if (ref $what) { $what->($self, $value, $was) }
        elsif (!defined $what || $what =~ / /) { $self->{words}->leave($was, defined $what ? $what : 'not an option of start_server that import knows') }
        else { $self->{words}->setting("$was of start_server", $what, $self->{words}->value_of($value)) }
    }
    shift @words if @words && $words[0] eq '--';
    shift @words while @words && ($PREFIX{ $words[0] } || $words[0] =~ /\A[A-Za-z_]\w*=/);
    if (@words && File::Basename::basename($words[0]) =~ /\Aperl/) {
        shift @words;
        $self->_perl_flags(\@words);
    }
    my $program = @words ? File::Basename::basename(shift @words) : '';
    die "$self->{path}: start_server starts " . (length $program ? $program : 'nothing') . ", which is no server that import knows\n"
        unless $SERVER{$program} && $program !~ /start_server|uwsgi/;
    $self->{server} = "start_server, $SERVER{$program}";
    $self->{started} = 1;
    return @words;
}

# "5000", "host:5000", and either with a descriptor's number behind it.
sub _starter_port {
    my ($self, $value, $was) = @_;
    $value =~ s/=\d+\z//;
    $value = "0.0.0.0:$value" unless $value =~ s/\$\{[^}]*\}//gr =~ /:/;
    return $self->{words}->setting("$was of start_server", bind => $self->{words}->value_of($value));
}

sub _starter_log {
    my ($self, $value, $was) = @_;
    return $self->{words}->leave($was, 'error_log takes a file; a pipe is the service manager\'s') if $value =~ /\A\s*\|/;
    return $self->{words}->setting("$was of start_server", error_log => $self->{words}->value_of($value));
}

sub _flags {
    my ($self, @words) = @_;
    while (@words) {
        my $word = shift @words;
        if ($word !~ /\A-./) { $self->{app} = $word; next }
        my ($name, $value) = _name_and_value($word);
        my $takes = !$SWITCH{$name} && !$SWITCH{$word} && Oribi::Import::Words::takes_value($name);
        $value = shift @words if !defined $value && $takes && @words && $words[0] !~ /\A-\D/;
        $self->_flag($word, $name, $value);
    }
    return;
}

# "--name=value", "-p3000", "-p".
sub _name_and_value {
    my ($word) = @_;
    return (($1 =~ tr/-/_/r), $2) if $word =~ /\A--([\w-]+)(?:=(.*))?\z/s;
    my ($letter, $rest) = $word =~ /\A-(.)(.*)\z/s;
    return ($LETTER{$letter} || $letter, length $rest ? $rest : undef);
}

sub _flag {
    my ($self, $word, $name, $value) = @_;
    my $words = $self->{words};
    my $was = join ' ', $word, grep { defined && index($word, "=$_") < 0 && $word ne "-" . substr($word, 1, 1) . $_ } $value;
    if ($name eq 'app') { $self->{app} = $value; return }
    if ($name eq 'server' && defined $value) {
        $self->{server} = $self->{started} ? "start_server, $value" : $value;
        return;
    }
    return $words->leave($was, 'not there and not needed: workers that end are replaced at once, err_respawn_interval paces those that fail')
        if $name eq 'spawn_interval' || $name eq 'interval';
    return $words->setting($was, $name, $words->value_of($value));
}

# What the server does without a word, where Oribi does another thing.
sub _defaults {
    my ($self) = @_;
    my $words = $self->{words};
    if ($self->{server} !~ /start_server/ && !$words->has('bind')) {
        $words->setting("default of $self->{server}", port => 5000) unless $words->has('port');
        $words->setting("default of $self->{server}", host => '0.0.0.0') unless $words->has('host');
    }
    $words->setting('default of Starman', env => \q{$ENV{PLACK_ENV} || 'deployment'}) if $self->{server} =~ /Starman\z/ && !$words->has('env');
    return;
}

1;

__END__

=head1 NAME

Oribi::Import::Lines - command lines of PSGI servers

=head1 DESCRIPTION

Part of L<Oribi>; see C<oribi-psgi import> in L<oribi-psgi>.

=cut
