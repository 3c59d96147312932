package Oribi::Supervisor;
use strict;
use warnings;
use IO::Handle ();
use Oribi ();
use Oribi::App ();
use Oribi::Deadline ();
use POSIX ();

our $VERSION = '0.100';

# The processes of a server, driven by the core: it says what comes next, this does what only Perl can, and a fork goes
# on here in both processes. The order of calls is that of the core's process.h.

# Returns the supervisor's exit code. Molds and workers end in here, so that they do not run what follows in the
# caller's program. `app` is a code reference or what Oribi::App loads; `command` is what command_line() gave before
# the caller has changed @ARGV.
sub serve {
    my ($settings, $app, @command) = @_;
    my $core = $settings->core;
    STDOUT->autoflush(1);    # what a server prints is read while it runs
    Oribi::App::find($settings, $app) if $settings->is_on('dev');
    my $listeners = Oribi::Listeners->open($core);
    my $process = Oribi::Core::Process->create($core, 'oribi-psgi', $listeners, undef, @_ > 2 ? @command : command_line());
    my $self = bless { settings => $settings, source => $app, listeners => $listeners, process => $process }, __PACKAGE__;
    my $code = eval { $self->_drive };
    my $error = $@;
    if ($process->role eq 'supervisor' || $process->single) {
        die $error unless defined $code;
        $process->destroy;
        _sweep_uploads() if eval { require Oribi::Multipart::Folder };    # of workers that were killed on the way out
        return $code;
    }
    Oribi::_log(3, Oribi::App::first_line($error)) unless defined $code;
    exit(defined $code ? $code : 1);    # END blocks included
}

sub _drive {
    my ($self) = @_;
    my $process = $self->{process};
    while (1) {
        my ($step, @detail) = $process->take;
        if ($step eq 'wait') {
            Oribi::show_title($process->title);
            $process->wait;
        } elsif ($step eq 'fork') {
            my $pid = fork;
            my $role = $process->forked($pid // -$!);
            $self->_enter($role) if defined $pid && $pid == 0;
        } elsif ($step eq 'hook') {
            $self->_run_hook(@detail);
        } elsif ($step eq 'load') {
            $self->_attempt(sub { $self->_load });
        } elsif ($step eq 'open') {
            $self->_attempt(sub { $self->_open });
        } elsif ($step eq 'run') {
            $self->{worker}->run;
        } elsif ($step eq 'exit') {
            my ($code, $at_once) = @detail;
            POSIX::_exit($code) if $at_once;
            $Oribi::process = undef;
            delete $self->{worker};
            _flush() if $process->single;
            return $code;
        }
    }
}

# What the application has printed goes before a new program, too.
sub _flush {
    $_->flush for *STDOUT{IO}, *STDERR{IO};
    return;
}

# In a child: what its role needs before anything of the program's runs in it.
sub _enter {
    my ($self, $role) = @_;
    _share_debugger() if defined &DB::DB;
    srand if $role eq 'worker';                    # else all workers would draw the same numbers
    _sweep_uploads() if $role eq 'worker';         # of a killed one, whose place it takes
    $Oribi::process = undef if $role eq 'mold';    # it was a worker perhaps
    return;
}

# Under perl -d the supervisor waits in C, so a child may have its terminal, without perl5db's warning about two that
# read from it; and a child ends without a prompt.
sub _share_debugger {
    no warnings 'once';
    $DB::fork_TTY //= POSIX::ttyname(0) // '/dev/tty';
    $DB::inhibit_exit = 0;
    return;
}

sub _sweep_uploads {
    Oribi::Multipart::Folder::sweep() if $INC{'Oribi/Multipart/Folder.pm'};    # where uploads are parsed
    return;
}

# What keeps a mold or a worker from serving is told to the operator.
sub _attempt {
    my ($self, $code) = @_;
    eval { $code->(); 1 } or $self->{process}->failed($@);
    return;
}

# How to start this program again, when the kernel does not know it any more: an assignment to $0 is written over its
# record, and plackup makes one while it loads the application. The switches of the program are all in @ARGV; of perl's
# own, what they did is still known of -I, -T and -w. Empty: ask the kernel.
sub command_line {
    my @words = Oribi::_command_line();
    my @last = @words >= @ARGV ? @words[@words - @ARGV .. $#words] : ();
    return if @words >= @ARGV + 2 && "@last" eq "@ARGV" && grep { $_ eq $0 || $0 eq '-e' } @words;
    return -f $0 ? ($^X, _switches(), $0, @ARGV) : ();
}

# lib.pm keeps @INC as it was before the first `use lib`: there the folders of -I stand before all others.
sub _switches {
    require Config;
    my @first = grep { defined && length } split(/\Q$Config::Config{path_sep}\E/, $ENV{PERL5LIB} // ''), @Config::Config{qw(sitearchexp sitelibexp)};
    my %others = map { $_ => 1 } @first, '/etc/perl';
    my @switches = ($^W ? '-w' : (), ${^TAINT} == 1 ? '-T' : ());
    for my $folder (@lib::ORIG_INC ? @lib::ORIG_INC : @INC) {
        last if ref $folder || $others{$folder};
        push @switches, "-I$folder";
    }
    return @switches;
}

sub _run_hook {
    my ($self, $name, $fatal, @arguments) = @_;
    @arguments = $self->_ready_arguments if $name eq 'server_ready';
    unshift @arguments, $self, $self->{app} if $name eq 'before_worker_exit';
    return $self->_attempt(sub { $self->{settings}->call_hook($name, @arguments) }) if $fatal;
    return $self->{settings}->run_hook($name, @arguments);
}

sub _ready_arguments {
    my ($self) = @_;
    my ($first) = $self->{listeners}->list;
    return {
        host            => $first ? $first->{host} : undef,
        port            => $first ? defined $first->{path} ? $first->{path} : $first->{port} : undef,
        proto           => 'http',
        server_software => 'Oribi',
    };
}

# Loading an application may change signal handlers; ours are put back. The requests of `warmup` go through a worker of
# the mold, and what they leave behind is shared by those to come.
sub _load {
    my ($self) = @_;
    my ($settings, $process) = @$self{qw(settings process)};
    my $handlers = Oribi::_signals_keep();
    my $mold = $process->role eq 'mold';
    my $watch = $mold ? $process->loading_begin : 0;
    my $app = eval { $self->_load_application };
    my $error = $@;
    $process->loading_end($watch);
    Oribi::_signals_restore($handlers, $process->single);    # elsewhere CHLD is the application's
    die $error unless $app;
    $self->{app} = $app;
    $process->loaded_with($self->{broken} ? 'with an error, which every request gets' : frameworks()) if $mold;
    return if !$mold || !length $settings->get('warmup');
    my $worker = $process->open($app);
    $worker->run;
    $worker->warmed_up;
    return;
}

# In development the supervisor is told which files that took, and what keeps the application from loading is a page.
sub _load_application {
    my ($self) = @_;
    my ($settings, $process) = @$self{qw(settings process)};
    return Oribi::App::load($settings, $self->{source}) if !$settings->is_on('dev');
    require Oribi::LoadedFiles;
    my $file = ref $self->{source} || length $settings->get('eval') ? undef : $self->{source} // $settings->core->app // 'app.psgi';
    my $files = Oribi::LoadedFiles->new(sub { $process->files($_[0]) }, $file, $settings->get('config') || 'config/oribi.pl');
    my $app = eval { Oribi::App::load($settings, $self->{source}) };
    my $error = $@;
    $files->tell_all($app ? undef : $error);
    return $files->around($app) if $app;
    Oribi::_log(3, ($file // 'the application') . ' does not load, and answers with this until a file changes: ' . Oribi::App::first_line($error));
    $self->{broken} = 1;
    require Oribi::Development;
    return Oribi::Development::load_failure($error, $file);
}

# "plack 1.0048, dancer2 0.400000": what of frameworks the application has loaded.
sub frameworks {
    my @loaded = grep { $INC{"$_.pm"} } qw(Plack Dancer2 Dancer Mojolicious Catalyst Kelp Amon2);
    return join ', ', map { lc() . ' ' . ($_->VERSION // '(no version)') } @loaded;
}

# Calls that fail are answered with pages. The folders of the application are this one and that of its file.
sub _show_failures {
    my ($self) = @_;
    require Oribi::Development;
    $self->{worker}->_show_failures(Oribi::Development::for_calls($self->{settings}->core->app));
    return;
}

sub _open {
    my ($self) = @_;
    $self->{worker} = $self->{process}->open($self->{app});
    Oribi::Deadline::watch($self->{worker});
    $self->_show_failures if $self->{settings}->is_on('dev') || $self->{settings}->get('env') eq 'development';
    $Oribi::process = $self->{process};    # Oribi::stopping asks it
    return;
}

1;

__END__

=head1 NAME

Oribi::Supervisor - supervisor, mold and workers

=head1 DESCRIPTION

Part of L<Oribi>. Three kinds of processes make a server: the I<supervisor>, which holds the sockets and runs no application; one I<mold> for each
generation of the code, which has loaded the application; and the I<workers>, forked from the mold, which share its memory until they write to it.

=cut
