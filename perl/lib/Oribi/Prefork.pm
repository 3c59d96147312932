package Oribi::Prefork;
use 5.016;
use strict;
use warnings;
use Oribi ();
use Oribi::App ();
use Oribi::Prefork::Worker ();
use Oribi::Supervisor ();
use File::Basename ();
use POSIX ();

our $VERSION = '0.100';

# The server's supervisor for any worker loop. The core decides; this forks and calls back. Reading order: start,
# _drive, _enter. Where a manager that reloads has started this program anew, start is the loop of its next mold.

my @ACCESSORS = qw(trap_signals before_fork after_fork on_child_reap);
my %DEFAULT = (max_workers => 10, spawn_interval => 0, err_respawn_interval => 1);
my %INNER = map { $_ => 1 } qw(options given signal_received process manager_pid worker finished);
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
        $self->{process}->configure if $self->{process};
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
    $self->{signal_received} = '';
    $self->{process} ? $self->{process}->resume : $self->_create;
    return $self->_drive($callback);
}

sub finish {
    my ($self, $code) = @_;
    die "finish is for workers, and this is the manager\n" unless $self->{worker};
    exit($code || 0);
}

sub signal_all_children {
    my ($self, $signal) = @_;
    return $self->{process} ? $self->{process}->signal_all($signal) : 0;
}

sub num_workers { return $_[0]{process} ? $_[0]{process}->workers : 0 }

sub wait_all_children {
    my ($self, $timeout) = @_;
    if ($self->{process}) {
        $self->{process}->await_workers(POSIX::ceil(($timeout || 0) * 1000));
        $self->_drive;
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
    return if $self->{options}->_prefork_set($name, $value);
    $self->{$name} = $value unless $INNER{$name};    # as Parallel::Prefork keeps what it does not know, for the program or a subclass
    Oribi::_log(2, "Oribi::Prefork: no option is called $name: it is kept and changes nothing");
    return;
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

sub _create {
    my ($self) = @_;
    my $mold = Oribi::Core::Process->next_mold;
    my @left = grep { my $handler = $SIG{$_}; defined $handler && length $handler && $handler ne 'DEFAULT' } @OWN_SIGNALS;
    $mold or $SIG{$_} = 'DEFAULT' for keys %{ $self->{trap_signals} };    ## no critic: for the process's life, as documented
    $self->{process} = Oribi::Core::Process->create($self->{options}, $self->{program}, undef, [$self->_traps, \@left],
        Oribi::Supervisor::command_line());
    $self->{manager_pid} = $$ unless $mold;
    return;
}

sub _close {
    my ($self) = @_;
    my $process = delete $self->{process} or return;
    $process->destroy if ($self->{manager_pid} // 0) == $$;
    return;
}

sub DESTROY {
    my ($self) = @_;
    local ($@, $!, $?);
    $self->_close;
    return;
}

# Until a signal is trapped, or everything has ended: true. In a worker without a callback: nothing.
sub _drive {
    my ($self, $callback) = @_;
    while (1) {
        my ($step, @detail) = $self->{process}->take;
        if ($step eq 'wait') {
            Oribi::show_title($self->{process}->title) if $self->{titles};
            $self->{process}->wait;
        } elsif ($step eq 'fork') {
            $self->_fork(@detail);
        } elsif ($step eq 'hook') {
            $self->_run_hook(@detail);
        } elsif ($step eq 'run') {
            return $self->_enter($callback);
        } else {
            $self->{signal_received} = $detail[0] if $step eq 'trapped';
            $self->_ended(@detail) if $step eq 'exit';
            return 1;
        }
    }
}

# The child goes on in the program's own frames, where start may return.
sub _fork {
    my ($self, $kind) = @_;
    my $pid = fork;
    my $role = $self->{process}->forked($pid // -$!);
    $self->{manager_pid} = $$ if $kind eq 'daemon' && $role eq 'supervisor';
    return;
}

sub _run_hook {
    my ($self, $name, $fatal, @arguments) = @_;
    return $self->_call($name, @arguments) if $name eq 'before_fork' || $name eq 'after_fork';
    return $self->_call(on_child_reap => @arguments[0, 1]) if $name eq 'on_worker_exit';
    return;
}

# Everything has ended; what ended it takes its ordinary course now.
sub _ended {
    my ($self, $code, $at_once, $signal) = @_;
    POSIX::_exit($code) if $at_once;
    $self->_close;
    die "the workers cannot be started\n" if $code;
    $self->{signal_received} ||= $signal || 'INT';
    kill $signal => $$ if $signal;
    return;
}

# What a callback dies with is logged, nothing more.
sub _call {
    my ($self, $name, @arguments) = @_;
    my $callback = $self->{$name} or return;
    local ($@, $!);
    eval { $callback->($self, @arguments); 1 } or Oribi::_log(3, "$name died: " . Oribi::App::first_line($@));
    return;
}

# --- a worker ---

# Ends the process with what the callback comes to; returns when there is none.
sub _enter {
    my ($self, $callback) = @_;
    $SIG{CHLD} = 'DEFAULT';    ## no critic: a program of its own from here on
    srand;                     # else all workers would draw the same numbers
    $self->{worker} = Oribi::Prefork::Worker->new(delete $self->{process}, $self->{titles});
    return unless $callback;
    if (!eval { $callback->($self->{worker}); 1 }) {
        my $error = $@;
        print STDERR ref $error ? Oribi::App::first_line($error) . "\n" : $error;
        exit 255;
    }
    exit 0;
}

1;
