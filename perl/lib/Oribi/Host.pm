package Oribi::Host;
use strict;
use warnings;
use Oribi ();
use Oribi::App ();
use POSIX ();
use Scalar::Util ();

our $VERSION = '0.100';

# The process tree, driven by the core: this host forks, loads the application and runs hooks, and decides nothing.
# The order of calls is that of the core's host.h (serve) and mold.h (_run_mold, _run_worker).

# Returns the supervisor's exit code. Molds and workers end in here, so that they do not run what follows in the caller's program.
# `app` is a code reference or what Oribi::App loads.
sub serve {
    my ($settings, $app) = @_;
    my $core = $settings->core;
    my $listeners = Oribi::Listeners->open($core);
    my $self = bless { settings => $settings, app => $app, listeners => $listeners }, __PACKAGE__;
    _end(sub { $self->_run_mold(Oribi::Core::Mold->inherit($core, $listeners)) }) if Oribi::Core::Mold->inherited;
    my $host = Oribi::Core::Host->create($core, $listeners, _command_line());
    while (1) {
        $host->title;
        my ($action, @detail) = $host->take;
        if ($action eq 'none') {
            $host->wait;
        } elsif ($action eq 'fork_mold') {
            my $pid = fork;
            _end(sub { $self->_run_mold($host->enter_mold) }) if defined $pid && $pid == 0;
            $host->forked($pid);
        } elsif ($action eq 'hook') {
            $self->_run_supervisor_hook(@detail);
        } elsif ($action eq 'fork_daemon') {
            my $pid = fork;
            POSIX::_exit($host->daemon_wait($pid)) unless defined $pid && $pid == 0;
            $host->daemon_enter;
        } elsif ($action eq 'exit') {
            $host->destroy;
            return $detail[0];
        }
    }
}

# How to start this program again, when the kernel does not know it any more: an assignment to $0 is written over its record, and plackup makes
# one while it loads the application. Switches of perl itself are lost then; those of the program are all in @ARGV. Empty: ask the kernel.
sub _command_line {
    my @words;
    if (open my $fh, '<', '/proc/self/cmdline') {
        local $/;
        @words = split /\0/, scalar(readline $fh), -1;
        pop @words;
    }
    my @last = @words >= @ARGV ? @words[@words - @ARGV .. $#words] : ();
    return if @words >= @ARGV + 2 && "@last" eq "@ARGV" && grep { $_ eq $0 || $0 eq '-e' } @words;
    return -f $0 ? ($^X, $0, @ARGV) : ();
}

# Ends a process of ours with the exit code that `role` returns, END blocks included. It must not die into the caller's program either.
sub _end {
    my ($role) = @_;
    my $code = eval { $role->() };
    Oribi::_log(3, Oribi::App::first_line($@)) unless defined $code;
    exit(defined $code ? $code : 1);
}

sub _run_supervisor_hook {
    my ($self, $name, $pid, $status, $reason) = @_;
    return $self->{settings}->run_hook($name, $pid, $status, $reason) if $name eq 'on_worker_exit';
    return $self->{settings}->run_hook($name) unless $name eq 'server_ready';
    my ($first) = $self->{listeners}->list;
    my %ready = (
        host            => $first ? $first->{host} : undef,
        port            => $first ? defined $first->{path} ? $first->{path} : $first->{port} : undef,
        proto           => 'http',
        server_software => 'Oribi',
    );
    return $self->{settings}->run_hook(server_ready => \%ready);
}

# Loading an application may change signal handlers; ours are put back. Returns the code, or nothing with the reason in $$why.
sub _load {
    my ($self, $why) = @_;
    my $handlers = Oribi::_signals_keep();
    my $app = eval { Oribi::App::load($self->{settings}, $self->{app}) };
    $$why = $@ unless $app;
    Oribi::_signals_restore($handlers);
    return $app;
}

sub _run_mold {
    my ($self, $mold) = @_;
    my $app;
    my $settings = $self->{settings};
    if ($settings->is_on('preload') && !$settings->{psgi_app_builder}) {
        my $why;
        $app = $self->_load(\$why);
        if (!$app || !$self->_warm_up($mold, $app, \$why)) {
            $mold->failed($why);
            return 1;
        }
    }
    $mold->ready;
    return $self->_serve_mold($mold, $app);
}

# The requests of `warmup` go through a worker of this process, and what they leave behind is shared by those to come.
sub _warm_up {
    my ($self, $mold, $app, $why) = @_;
    return 1 unless length $self->{settings}->get('warmup');
    my $done = eval {
        my $worker = $mold->warm_up($app);
        $worker->run;
        $worker->warmed_up;
        1;
    };
    $$why = $@ unless $done;
    return $done;
}

sub _serve_mold {
    my ($self, $mold, $app) = @_;
    my $settings = $self->{settings};
    while (1) {
        $mold->title;
        my $action = $mold->take;
        if ($action eq 'none') {
            $mold->wait;
        } elsif ($action eq 'spawn') {
            $settings->run_hook('before_fork');
            return $self->_run_worker($mold, $app) if _fork_twice($mold, sub { $mold->intermediate($_[0]) });
        } elsif ($action eq 'exit') {
            $mold->destroy;
            return 0;
        }
    }
}

# True in the grandchild. The process between ends at once, without END blocks or destructors, after `report` was called with the other's pid.
sub _fork_twice {
    my ($core, $report) = @_;
    $core->before_fork;
    my $pid = fork;
    if (defined $pid && $pid == 0) {
        $pid = fork;
        return 1 if defined $pid && $pid == 0;
        $report->($pid);
        POSIX::_exit(0);
    }
    $core->after_fork($pid);
    return 0;
}

# The core raises the signal when a call has run for longer than call_timeout; Perl runs the handler between two operations. Where the signal
# has waited until the call was over, nothing happens.
sub _watch_calls {
    my ($worker) = @_;
    Scalar::Util::weaken($worker);
    $SIG{ Oribi::_deadline_signal() } = sub {
        return unless $worker && $worker->_overdue;
        die Oribi::CallTimeout->new unless _at_prompt();
        $worker->_begin_anew;
    };
    return;
}

# True when a developer has stopped the call, in perl's debugger or another that reads what is typed.
sub _at_prompt {
    for (my $i = 1; my $package = caller $i; $i++) {
        return 1 if $package =~ /\A(?:DB|Reply|Devel::REPL|Carp::REPL|Enbugger|Pry)\b/;
    }
    return 0;
}

sub _run_worker {
    my ($self, $mold, $app) = @_;
    my $settings = $self->{settings};
    my $seat = $mold->enter_seat;
    my @place = ($seat->index, $seat->generation);
    srand;    # else all workers would draw the same numbers
    $settings->run_hook(after_fork => @place);
    my $why;
    $app = $self->_load(\$why) unless $app;
    my $worker = $app && eval { $seat->worker($app) };
    if (!$worker) {
        $seat->failed($why || $@);
        POSIX::_exit(1);
    }
    _watch_calls($worker);
    $seat->ready($worker);
    local $Oribi::seat = $seat;
    $settings->run_hook(after_worker_ready => @place);
    while ($worker->run) {    # in between, a mold is to be made of this worker, which goes on until it is replaced
        $settings->run_hook(before_refork => @place);
        next unless _fork_twice($seat, sub { });
        $Oribi::seat = undef;
        my $new = $seat->promote;
        return $new ? $self->_serve_mold($new, $app) : 1;
    }
    $settings->run_hook(before_worker_exit => $self, $app, @place);
    $Oribi::seat = undef;
    $seat->leave($worker);
    undef $worker;
    return 0;
}

1;

__END__

=head1 NAME

Oribi::Host - supervisor, mold and workers

=head1 DESCRIPTION

Part of L<Oribi>. Three kinds of processes make a server: the I<supervisor>, which holds the sockets and runs no application; one I<mold> for each
generation of the code, which has loaded the application; and the I<workers>, forked from the mold, which share its memory until they write to it.

=cut
