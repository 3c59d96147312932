package Oribi::Import::Lines;
use strict;
use warnings;
use File::Basename ();
use JSON::PP ();
use Oribi::Import::Shell ();
use Oribi::Import::Uwsgi ();
use Oribi::Import::Words ();

our $VERSION = '0.100';

# Lines that start servers: of a Procfile, of a unit of systemd, of supervisord, of a Dockerfile, of a script. The first
# one that starts a known server is taken; what stands around it stays in the new line.

my %SERVER = map { lc $_ => $_ } qw(Starlet Starman Gazelle Monoceros Twiggy plackup start_server uWSGI);
my %OF_RUBY = map { $_ => 1 } qw(puma pumactl unicorn pitchfork rainbows rackup rhebok);
my $KNOWN = 'Starman, plackup (Starlet, Starman, Gazelle, Monoceros, Twiggy), start_server, uWSGI';

# Words that have a server's name behind them without starting it.
my %OTHER = map { $_ => 1 } qw(echo kill pkill killall cpan cpanm cpm apt apt-get rm cp mv ln mkdir touch cat tail test printf chown chmod systemctl);

my %LETTER = (
    a => 'app', D => 'daemonize', E => 'env', I => 'include', L => 'loader', M => 'require', R => 'reload', e => 'eval',
    l => 'listen', o => 'host', p => 'port', r => 'reload', s => 'server', S => 'socket',
);

# Flags without a value that the tables do not know as such.
my %SWITCH = map { $_ => 1 } qw(enable_ssl preload_app debug -r --reload);

# What start_server does is the server's own business here: name => what becomes of it.
my %STARTER = (
    port => \&_starter_port, path => 'bind', pid_file => 'pid_file', dir => 'chdir', log_file => \&_starter_log, daemonize => 'daemonize',
    backlog => 'backlog',
    status_file => 'not there and not needed: `oribi-psgi ctl status` finds the server of its folder by itself',
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

# What a server does without a word, where Oribi does another thing.
my %DEFAULT = (
    Starman => [workers => 5, env => \q{$ENV{PLACK_ENV} || 'deployment'}], Starlet => [workers => 10], Gazelle => [workers => 10],
    Monoceros => [workers => 5], Twiggy => [workers => 1], plackup => [workers => 1],
);

sub new {
    my ($class, $path, $config) = @_;
    return bless { path => $path, config => $config, words => Oribi::Import::Words->new($path, $config), others => [] }, $class;
}

# What is made of a file's text: Oribi::Import::Words.
sub file {
    my ($self, $source) = @_;
    my $name = File::Basename::basename($self->{path});
    $self->{supervisord} = $source =~ /^\[program:/m;
    $self->{unit} = $name =~ /\.service\z/ || $source =~ /^ExecStart\s*=/m;
    $self->{docker} = $name =~ /\A(?:Dockerfile|Containerfile)|\.(?:dockerfile|containerfile)\z/i || $source =~ /^FROM \S/m && $source =~ /^(?:CMD|ENTRYPOINT) /m;
    $self->{kept} = $self->{unit} || $self->{supervisord} || $self->{docker} || $name =~ /\AProcfile|\.procfile\z/i;
    my $first;
    for my $line ($self->_lines($source)) {
        next if !$self->{server} && eval { $self->_take($line) || do { $first = $line->{text} unless defined $first; 0 } };
        die "$self->{path}: $@" if $@;
        push @{ $self->{others} }, $line;
    }
    die "$self->{path}: has no command\n" unless $self->{server} || defined $first;
    die "$self->{path}: starts no server that import knows, which are $KNOWN; its first command is " . substr($first, 0, 60) =~ tr/\n/ /r . "\n" unless $self->{server};
    $self->_steps;
    return $self->{words}->started($self->{server}, $self->_command);
}

# --- lines ---

# { name, text, list }: the name there (web, ExecStart, CMD or undefined), the command, and is it a list in JSON?
sub _lines {
    my ($self, $source) = @_;
    $source =~ s/\\\n\s*/ /g;
    my @lines = grep { /\S/ && !/\A[#;]/ } map { s/\A\s+|\s+\z//gr } split /\n/, $source;
    return map { /\AExecStart\s*=\s*[-@+!:]*(.+)/s ? { name => 'ExecStart', text => $1 } : () } @lines if $self->{unit};
    return map { /\Acommand\s*=\s*(.+)/s ? { name => 'command', text => $1 } : () } @lines if $self->{supervisord};
    return _docker_lines(@lines) if $self->{docker};
    return map { /\A([\w-]+):\s+(.*)\z/s ? { name => $1, text => $2 } : { text => $_ } } @lines;
}

# The last CMD and the last ENTRYPOINT count, and CMD may hold the flags of ENTRYPOINT's program.
sub _docker_lines {
    my %found = map { /\A(CMD|ENTRYPOINT)\s+(.+)\z/si ? (uc $1 => $2) : () } @_;
    my %line;
    for my $name (keys %found) {
        my $list = $found{$name} =~ /\A\[/ ? eval { JSON::PP::decode_json($found{$name}) } : undef;
        $line{$name} = { name => $name, list => $list, text => $list ? join ' ', map { Oribi::Import::Shell::quoted($_) } @$list : $found{$name} };
    }
    my ($entry, $command) = @line{qw(ENTRYPOINT CMD)};
    return grep {defined} $entry, $command unless $entry && $command && defined _place_of_program(@{ (Oribi::Import::Shell::words($entry->{text}))[0] });
    return { %$entry, text => "$entry->{text} $command->{text}", flags => 'CMD' };
}

sub _shown {
    my ($line) = @_;
    my $name = $line->{name};
    return $line->{text} unless defined $name;
    return $name . ($name =~ /\A(?:ExecStart|command)\z/ ? '=' : $name =~ /\A[A-Z]+\z/ ? ' ' : ': ') . $line->{text};
}

# Which of the words is the server's program?
sub _place_of_program {
    my (@words) = @_;
    return if !@words || $OTHER{ File::Basename::basename($words[0]) };
    for my $place (0 .. $#words) {
        my $program = File::Basename::basename(Oribi::Import::Shell::plain($words[$place]));
        next unless $SERVER{$program} || $OF_RUBY{$program};
        return $place unless $place && $words[ $place - 1 ] =~ /\A-[^-]/ && $words[ $place - 1 ] !~ /\A-(?:S|[IM].+)\z/;
    }
    return;
}

# sh -c '...'
sub _inside_of_shell {
    my ($text) = @_;
    my ($words) = Oribi::Import::Shell::words($text);
    shift @$words if @$words && $words->[0] eq 'exec';
    return $text unless @$words > 2 && $words->[0] =~ m{(?:\A|/)(?:ba|da|z|a)?sh\z} && $words->[1] =~ /\A-\w*c\z/;
    for my $part (Oribi::Import::Shell::commands(Oribi::Import::Shell::plain($words->[2]))) {
        return $part->[0] if defined _place_of_program(@{ (Oribi::Import::Shell::words($part->[0]))[0] });
    }
    return $text;
}

# True when the line starts a server, whose flags have been taken then.
sub _take {
    my ($self, $line) = @_;
    my @parts = Oribi::Import::Shell::commands($line->{text});
    for my $place (0 .. $#parts) {
        my ($words, $behind) = Oribi::Import::Shell::words(_inside_of_shell($parts[$place][0]));
        my $at = _place_of_program(@$words);
        next unless defined $at;
        my @before = splice @$words, 0, $at;
        my $word = shift @$words;
        my $program = File::Basename::basename(Oribi::Import::Shell::plain($word));
        die "$program serves Ruby: oribi import $self->{path} reads it\n" if $OF_RUBY{$program};
        @$self{qw(line parts place before behind server)} = ($line, \@parts, $place, $self->_without_perl(@before), $behind, $SERVER{$program});
        $self->{folder} = File::Basename::dirname(Oribi::Import::Shell::plain($word));
        $self->_served($program, @$words);
        return 1;
    }
    return 0;
}

sub _served {
    my ($self, $program, @words) = @_;
    if ($program eq 'uwsgi') {
        $self->{app} = Oribi::Import::Uwsgi->new($self->{path}, $self->{config}, $self->{words})->flags(@words);
        return;
    }
    @words = $self->_starter(@words) if $program eq 'start_server';
    $self->_flags(@words);
    $self->_defaults;
    return;
}

# Words in front of the program, as an array reference, without perl -Ilib -MModule -S, whose flags are settings here.
sub _without_perl {
    my ($self, @words) = @_;
    my ($at) = grep { $words[$_] =~ m{(?:\A|/)perl[\d.]*\z} } 0 .. $#words;
    return \@words unless defined $at;
    my @flags = splice @words, $at;
    shift @flags;
    while (@flags) {
        my $word = shift @flags;
        my ($letter, $value) = $word =~ /\A-([IM])(.*)\z/s or next;
        $value = shift @flags unless length $value;
        $self->{words}->from_shell("$word of perl", $LETTER{$letter}, $value);
    }
    return \@words;
}

# --- flags ---

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
        if (!defined $value && !$STARTER_SWITCH{$name}) { $self->{words}->leave($was, 'it has no value') }
        elsif (ref $what) { $what->($self, $value, "$was of start_server") }
        elsif (!defined $what || $what =~ / /) { $self->{words}->leave($was, defined $what ? $what : 'not an option of start_server that import knows') }
        else { $self->_setting("$was of start_server", $what, $value) }
    }
    shift @words if @words && $words[0] eq '--';
    my $at = _place_of_program(@words);
    my $program = defined $at ? File::Basename::basename(Oribi::Import::Shell::plain($words[$at])) : @words ? $words[0] : 'nothing';
    die "start_server starts $program, which is no server that import knows ($KNOWN); if it is a script, import that\n" unless $SERVER{$program} && $program !~ /start_server|uwsgi/;
    my @before = splice @words, 0, $at;
    shift @words;
    push @{ $self->{before} }, @{ $self->_without_perl(@before) };
    $self->{server} = "start_server, $SERVER{$program}";
    $self->{started} = $SERVER{$program};
    return @words;
}

# "5000", "host:5000", and either with a descriptor's number behind it.
sub _starter_port {
    my ($self, $value, $was) = @_;
    $value =~ s/=\d+\z//;
    $value = "0.0.0.0:$value" unless $value =~ s/\$\{[^}]*\}//gr =~ /:/;
    return $self->_setting($was, bind => $value);
}

sub _starter_log {
    my ($self, $value, $was) = @_;
    return $self->{words}->leave($was, 'error_log takes a file; a pipe is the service manager\'s') if Oribi::Import::Shell::plain($value) =~ /\A\s*\|/;
    return $self->_setting($was, error_log => $value);
}

sub _flags {
    my ($self, @words) = @_;
    my @places;
    while (@words) {
        my $word = shift @words;
        if ($word !~ /\A-./) { push @places, $word; next }
        my ($name, $value) = _name_and_value($word);
        my $takes = !$SWITCH{$name} && !$SWITCH{$word} && Oribi::Import::Words::takes_value($name);
        $value = shift @words if !defined $value && $takes && @words && $words[0] !~ /\A-\D/;
        $self->_flag($word, $name, $value);
    }
    return unless @places;
    $self->{app} = pop @places;
    $self->{words}->leave($_, 'the shell makes more words of it: write them in Oribi\'s names on the new line') for grep {/\$/} @places;
    return;
}

# "--name=value", "-p3000", "-p"; and "-name=value", as plackup takes it.
sub _name_and_value {
    my ($word) = @_;
    $word = "-$word" if $word =~ /\A-([A-Za-z][\w-]{2,})=/ && Oribi::Import::Words::here($1);
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
        my $server = $SERVER{ lc Oribi::Import::Shell::plain($value) };
        die "$value is no server that import knows, which are $KNOWN\n" unless $server || $value =~ /\A(?:Oribi|HTTP::Server::PSGI|Standalone)\z/;
        $server ||= 'plackup';
        $self->{by_plackup} = 1;
        $self->{server} = $self->{started} ? "start_server, $server" : $server;
        $self->{started} = $server if $self->{started};
        return;
    }
    return $words->leave($was, 'not there and not needed: workers that end are replaced at once, err_respawn_interval paces those that fail')
        if $name eq 'interval';
    return $self->_setting($was, $name, $value);
}

sub _setting {
    my ($self, $was, $name, $value) = @_;
    return $self->{words}->leave($was, 'what starts it keeps it in the foreground') if $name eq 'daemonize' && $self->{kept};
    return $self->{words}->leave($was, 'a specifier of systemd, which only systemd fills in') if $self->{unit} && defined $value && $value =~ /%[a-zA-Z]/;
    return $self->{words}->from_shell($was, $name, $value);
}

sub _defaults {
    my ($self) = @_;
    my $words = $self->{words};
    my $server = $self->{started} || $self->{server};
    if (!$self->{started} && !$words->has('bind')) {
        $words->setting("default of $server", port => 5000) unless $words->has('port');
        $words->setting("default of $server", host => '0.0.0.0') unless $words->has('host');
    }
    my @default = @{ $DEFAULT{$server} || [] };
    while (my ($name, $value) = splice @default, 0, 2) {
        next if $name eq 'env' && $self->{by_plackup};    # whose default is ours
        $words->setting("default of $server", $name, $value) unless $words->has($name);
    }
    return;
}

# --- the new line ---

sub _command {
    my ($self) = @_;
    my $program = $self->{folder} eq '.' ? 'oribi-psgi' : "$self->{folder}/oribi-psgi";
    my @config = $self->{config} eq 'config/oribi.pl' ? () : ('--config', $self->{config});
    my $fresh = join ' ', @{ $self->{before} }, $program, @config, grep({defined} $self->{app}), @{ $self->{behind} };
    my @texts = map { $_->[0] } @{ $self->{parts} };
    my $text = $texts[ $self->{place} ];
    my $inside = _inside_of_shell($text);
    my ($start, $end) = $text =~ /\A(\s*).*?(\s*)\z/s;
    if ($inside ne $text) {
        ($inside) = $inside =~ /\A\s*(.*?)\s*\z/s;
        my $at = index $text, $inside;
        $fresh = $at < 0 ? $fresh : substr($text, 0, $at) . $fresh . substr $text, $at + length $inside;
        ($start, $end) = ('', '');
    }
    $texts[ $self->{place} ] = "$start$fresh$end";
    my $whole = join '', map { $texts[$_] . $self->{parts}[$_][1] } 0 .. $#texts;
    $whole =~ s/\A\s+|\s+\z//g;
    return _shown({ %{ $self->{line} }, text => $whole }) unless $self->{line}{list};
    my @list = map { Oribi::Import::Shell::plain($_) } @{ (Oribi::Import::Shell::words($whole))[0] };
    return "$self->{line}{name} [" . join(', ', map { JSON::PP->new->allow_nonref->encode($_) } @list) . ']';
}

sub _steps {
    my ($self) = @_;
    my $words = $self->{words};
    $words->step('In the unit: Type=notify, ExecReload=/bin/kill -HUP $MAINPID, KillMode=mixed; without PIDFile and ExecStop.') if $self->{unit};
    $words->step("$self->{line}{flags} has only its flags, and may go.") if $self->{line}{flags};
    $words->step('Left as it is: ' . substr _shown($_), 0, 90) for @{ $self->{others} };
    return;
}

1;

__END__

=head1 NAME

Oribi::Import::Lines - command lines of PSGI servers

=head1 DESCRIPTION

Part of L<Oribi>; see C<oribi-psgi import> in L<oribi-psgi>.

=cut
