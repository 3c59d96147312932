package Oribi::Prefork;
use 5.016;
use strict;
use warnings;
use Oribi ();
use Oribi::App ();
use Oribi::Host ();
use Oribi::Prefork::Worker ();
use File::Basename ();
use POSIX ();
use Time::HiRes ();

our $VERSION = '0.100';

# The server's supervisor for any worker loop. The core decides; this forks and calls back. Reading order: start, _fork_worker, _enter;
# _become_mold is the other way in, when a manager that reloads has started this program anew.

my @ACCESSORS = qw(trap_signals before_fork after_fork on_child_reap);
my %DEFAULT = (max_workers => 10, spawn_interval => 0, err_respawn_interval => 1);
my @OWN_SIGNALS = qw(TERM QUIT INT HUP USR1 TTIN TTOU);

for my $name (@ACCESSORS) {
    no strict 'refs';
    *$name = sub { my $self = shift; $self->{$name} = shift if @_; return $self->{$name} };
}

for my $name (keys %DEFAULT) {
    no strict 'refs';
    *$name = sub {
        my $self = shift;
        return $self->{given}{$name} unless @_;
        $self->_set($name, shift);
        $self->{host}->configure if $self->{host};
        return $self->{given}{$name};
    };
}

sub signal_received { my $self = shift; $self->{signal_received} = shift if @_; return $self->{signal_received} }
sub manager_pid { my $self = shift; $self->{manager_pid} = shift if @_; return $self->{manager_pid} }
sub worker { return $_[0]{worker} }

sub new {
    my ($class, @settings) = @_;
    my %settings = @settings == 1 ? %{ $settings[0] } : @settings;
    my $self = bless {
        options         => Oribi::Options->_new,
        given           => {%DEFAULT},
        trap_signals    => { TERM => 'TERM' },
        signal_received => '',
        program         => File::Basename::basename($0),
        titles          => 1,
    }, $class;
    $self->{options}->_prefork_defaults;
    for my $own (@ACCESSORS, qw(program titles)) {
        $self->{$own} = delete $settings{$own} if exists $settings{$own};
    }
    for my $name (sort keys %settings) {
        $self->_set($name, $settings{$name}) if defined $settings{$name};
    }
    return $self;
}

sub start {
    my ($self, $callback) = @_;
    die "cannot start workers within a worker\n" if $self->{worker};
    return if $self->{given}{max_workers} == 0;    # for debugging: the caller goes on as if it were a worker
    $self->_finish_options;
    return $self->_become_mold($callback) if Oribi::Core::Mold->inherited;
    $self->{signal_received} = '';
    $self->{host} ? $self->{host}->resume : $self->_create_host;
    while (1) {
        my ($action, @detail) = $self->{host}->take;
        if ($action eq 'none') {
            $self->{host}->title if $self->{titles};
            $self->{host}->wait;
        } elsif ($action eq 'fork_worker') {
            return if $self->_fork_worker($callback);
        } elsif ($self->_perform($action, @detail)) {
            return 1;
        }
    }
}

sub finish {
    my ($self, $code) = @_;
    die "finish is for workers, and this is the manager\n" unless $self->{worker};
    exit($code || 0);
}

sub signal_all_children {
    my ($self, $signal) = @_;
    return $self->{host} ? $self->{host}->signal_all($signal) : 0;
}

sub num_workers { return $_[0]{host} ? $_[0]{host}->workers : 0 }

sub wait_all_children {
    my ($self, $timeout) = @_;
    my $deadline = $timeout ? Time::HiRes::time() + $timeout : undef;
    while ($self->{host}) {
        my ($action, @detail) = $self->{host}->take;
        $self->_perform($action, @detail);
        next if $action ne 'none';
        my $left = defined $deadline ? $deadline - Time::HiRes::time() : -1;
        last if !$self->{host}->workers || (defined $deadline && $left <= 0);
        $self->{host}->wait_for($left);
    }
    my $count = $self->num_workers;
    $self->_close if !$count && $self->{signal_received} =~ /\A(?:TERM|QUIT|INT)\z/;
    return $count;
}

# --- settings ---

sub _set {
    my ($self, $name, $value) = @_;
    $self->{given}{$name} = $value if exists $DEFAULT{$name};
    return if $name eq 'max_workers' && $value eq '0';    # would mean: as many as there are CPUs
    return $self->{options}->_prefork_set($name, $value);
}

sub _finish_options {
    my ($self) = @_;
    return if $self->{finished}++;
    my $error = $self->{options}->_finish;
    die "$error\n" if defined $error;
    return;
}

# [signal, what the workers get, seconds]
sub _traps {
    my ($self) = @_;
    my $traps = $self->{trap_signals};
    return [
        map {
            my ($send, $interval) = ref $traps->{$_} ? @{ $traps->{$_} } : $traps->{$_};
            [$_, $send // '', $interval // 0];
        } sort keys %$traps
    ];
}

# --- the manager ---

sub _create_host {
    my ($self) = @_;
    my @left = grep { my $handler = $SIG{$_}; defined $handler && length $handler && $handler ne 'DEFAULT' } @OWN_SIGNALS;
    $SIG{$_} = 'DEFAULT' for keys %{ $self->{trap_signals} };    ## no critic: for the process's life, as documented
    $self->{host} = Oribi::Core::Host->manage($self->{options}, $self->{program}, $self->_traps, \@left, Oribi::Host::_command_line());
    $self->{manager_pid} = $$;
    return;
}

sub _close {
    my ($self) = @_;
    my $host = delete $self->{host} or return;
    $host->destroy if $self->{manager_pid} == $$;
    return;
}

sub DESTROY {
    my ($self) = @_;
    local ($@, $!, $?);
    $self->_close;
    return;
}

# True when start is over.
sub _perform {
    my ($self, $action, @detail) = @_;
    if ($action eq 'hook') {
        my ($name, $pid, $status) = @detail;
        $self->_call(on_child_reap => $pid, $status) if $name eq 'on_worker_exit';
    } elsif ($action eq 'trapped') {
        $self->{signal_received} = $detail[0];
        return 1;
    } elsif ($action eq 'fork_daemon') {
        my $pid = fork;
        POSIX::_exit($self->{host}->daemon_wait($pid)) unless defined $pid && $pid == 0;
        $self->{host}->daemon_enter;
        $self->{manager_pid} = $$;
    } elsif ($action eq 'exit') {
        $self->_ended(@detail);
        return 1;
    }
    return 0;
}

# Everything has ended; what ended it takes its ordinary course now.
sub _ended {
    my ($self, $code, $signal) = @_;
    $self->_close;
    die "the workers cannot be started\n" if $code;
    $self->{signal_received} ||= $signal || 'INT';
    kill $signal => $$ if $signal;
    return;
}

# True in a worker that start returns in.
sub _fork_worker {
    my ($self, $callback) = @_;
    $self->_call('before_fork');
    $self->{host}->before_fork;
    my $pid = fork;
    return $self->_enter($self->{host}, $callback) if defined $pid && $pid == 0;
    $self->{host}->worker_forked($pid);
    $self->_call(after_fork => $pid) if defined $pid;
    return 0;
}

# What a callback dies with is logged, nothing more.
sub _call {
    my ($self, $name, @arguments) = @_;
    my $callback = $self->{$name} or return;
    local ($@, $!);
    eval { $callback->($self, @arguments); 1 } or Oribi::_log(3, "$name died: " . Oribi::App::first_line($@));
    return;
}

# --- a later generation ---

sub _become_mold {
    my ($self, $callback) = @_;
    my $mold = Oribi::Core::Mold->inherit_managed($self->{options}, $self->{program});
    $mold->ready;
    while (1) {
        $mold->title if $self->{titles};
        my $action = $mold->take;
        if ($action eq 'none') {
            $mold->wait;
        } elsif ($action eq 'spawn') {
            $self->_call('before_fork');
            next unless Oribi::Host::_fork_twice($mold, sub { $mold->intermediate($_[0]) });
            $self->_enter($mold, $callback);
            return;
        } else {
            $mold->destroy;
            POSIX::_exit(0);
        }
    }
}

# --- a worker ---

# Ends the process with what the callback comes to; returns true when there is none.
sub _enter {
    my ($self, $parent, $callback) = @_;
    delete $self->{host};
    my $seat = eval { $parent->enter_seat } or POSIX::_exit(1);    # the supervisor has been told why
    $SIG{CHLD} = 'DEFAULT';    ## no critic: a program of its own from here on
    srand;                     # else all workers would draw the same numbers
    $self->{worker} = Oribi::Prefork::Worker->new($seat, $self->{titles});
    return 1 unless $callback;
    if (!eval { $callback->($self->{worker}); 1 }) {
        my $error = $@;
        print STDERR ref $error ? Oribi::App::first_line($error) . "\n" : $error;
        exit 255;
    }
    exit 0;
}

1;
