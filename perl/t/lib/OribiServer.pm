package OribiServer;
use strict;
use warnings;
use Exporter 'import';
use File::Temp ();
use OribiTest qw(wait_until);
use POSIX ();
use Socket ();

our @EXPORT = qw(start_handler start_pure start_command free_port run_command slurp);

# Whole servers: supervisor, mold, workers. Ended by the pid of their supervisor.

sub slurp { my ($file) = @_; open my $fh, '<', $file or return ''; local $/; return scalar(<$fh>) // '' }

# A port that nobody else gets while this process lives: on Linux a socket that is bound and does not listen keeps it
# from bind(2) to port 0 and from connect(2), and lets a server that sets SO_REUSEADDR bind it.
# Elsewhere that fails, and the port is only free.
my @reserved;

sub free_port {
    socket my $socket, Socket::AF_INET(), Socket::SOCK_STREAM(), 0 or die "socket: $!";
    setsockopt $socket, Socket::SOL_SOCKET(), Socket::SO_REUSEADDR(), 1 or die "setsockopt: $!";
    bind $socket, Socket::pack_sockaddr_in(0, Socket::INADDR_LOOPBACK()) or die "bind: $!";
    push @reserved, $socket if $^O eq 'linux';
    return (Socket::unpack_sockaddr_in(getsockname $socket))[0];
}

sub _spawn {
    my ($dir, $code) = @_;
    my $pid = fork // die "fork: $!";
    return $pid if $pid;
    open STDERR, '>>', "$dir/log" or POSIX::_exit(9);
    open STDOUT, '>>', "$dir/out" or POSIX::_exit(9);
    Test::More->builder->no_ending(1);
    POSIX::setpgid(0, 0);
    my $exit = eval { $code->() };
    print STDERR $@ if $@;
    POSIX::_exit(defined $exit ? $exit : 1);
}

sub _object {
    my ($dir, $transport, $port, $pid) = @_;
    my $self = bless {
        owner => $$, pid => $pid, dir => $dir, transport => $transport,
        listener => $transport eq 'unix' ? { port => '' } : { host => '127.0.0.1', port => $port },
    }, 'OribiTest';
    wait_until('the server to listen; it wrote: ' . slurp("$dir/log"), sub {
        die 'the server ended: ' . slurp("$dir/log") if waitpid($pid, POSIX::WNOHANG()) == $pid;
        return eval { $self->connect; 1 };
    });
    return $self;
}

# plackup's way: start_handler($transport, $app, %options)
sub start_handler {
    my ($transport, $app, %options) = @_;
    require Plack::Loader;
    my $dir = File::Temp->newdir;
    my $port = free_port();
    my $listen = $transport eq 'unix' ? "$dir/socket" : "127.0.0.1:$port";
    my $pid = _spawn($dir, sub { Plack::Loader->load('Oribi', listen => [$listen], access_log => 'off', workers => 1, %options)->run($app); 0 });
    return _object($dir, $transport, $port, $pid);
}

# start_pure($transport, $app, %options): the server in Perl alone.
sub start_pure {
    my ($transport, $app, %options) = @_;
    require Oribi::Pure;
    my $dir = File::Temp->newdir;
    my $port = free_port();
    my $bind = $transport eq 'unix' ? "unix://$dir/socket" : "127.0.0.1:$port";
    my $pid = _spawn($dir, sub { Oribi::Pure->new(bind => $bind, access_log => 'off', workers => 1, %options)->run($app); 0 });
    return _object($dir, $transport, $port, $pid);
}

my $COMMAND = -e 'blib/script/oribi-psgi' ? 'blib/script/oribi-psgi' : 'bin/oribi-psgi';
my @PERL = ($^X, map {"-I$_"} @INC);

# start_command($transport, @arguments)
sub start_command {
    my ($transport, @arguments) = @_;
    my $dir = File::Temp->newdir;
    my $port = free_port();
    my $bind = $transport eq 'unix' ? "unix://$dir/socket" : "127.0.0.1:$port";
    my $pid = _spawn($dir, sub { exec @PERL, $COMMAND, '--bind', $bind, '--workers', 1, '--access-log', 'off', @arguments });
    return _object($dir, $transport, $port, $pid);
}

# Runs a command line to its end: (exit code, standard output, standard error).
sub run_command {
    my (@arguments) = @_;
    my $dir = File::Temp->newdir;
    my $pid = _spawn($dir, sub { exec @PERL, $COMMAND, @arguments });
    my $status;
    my $ended = eval { wait_until('the command to end', sub { waitpid($pid, POSIX::WNOHANG()) == $pid && defined($status = $?) }) };
    if (!$ended) {
        kill TERM => $pid;
        waitpid $pid, 0;
        $status = -1;
    }
    return ($status >> 8, slurp("$dir/out"), slurp("$dir/log"));
}

1;
