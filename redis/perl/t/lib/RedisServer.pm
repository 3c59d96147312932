package RedisServer;
use strict;
use warnings;
use File::Temp ();
use IO::Socket::UNIX;
use POSIX ();
use Socket ();
use Time::HiRes qw(sleep time);

# A redis-server of the test's own, on a unix socket and a port of 127.0.0.1, which ends with the test. Without
# redis-server there is none, and start() gives undef.
sub start {
    my ($class, %config) = @_;
    my ($program) = grep {-x} map {"$_/redis-server"} split(/:/, $ENV{PATH}), '/usr/sbin';
    return if !$program;
    my $dir  = File::Temp->newdir('oribi-redis-XXXXXX', TMPDIR => 1);
    my $port = free_port();
    my $self = bless { dir => $dir, path => "$dir/socket", port => $port, owner => $$, program => $program, config => \%config }, $class;
    $self->run;
    return $self;
}

# A port that nobody else gets while this process lives: on Linux a socket that is bound and does not listen keeps it
# from bind(2) to port 0 and from connect(2), and lets redis-server bind it, which sets SO_REUSEADDR.
# Elsewhere that fails, and the port is only free.
my @reserved;

sub free_port {
    socket my $socket, Socket::AF_INET(), Socket::SOCK_STREAM(), 0 or die "socket: $!";
    setsockopt $socket, Socket::SOL_SOCKET(), Socket::SO_REUSEADDR(), 1 or die "setsockopt: $!";
    bind $socket, Socket::pack_sockaddr_in(0, Socket::INADDR_LOOPBACK()) or die "bind: $!";
    push @reserved, $socket if $^O eq 'linux';
    return (Socket::unpack_sockaddr_in(getsockname $socket))[0];
}

sub run {
    my ($self) = @_;
    my %config = (port => $self->{port}, bind => '127.0.0.1', unixsocket => $self->{path}, dir => "$self->{dir}", save => '', %{ $self->{config} });
    $self->{pid} = fork // die "fork: $!";
    if (!$self->{pid}) {
        delete $ENV{LD_PRELOAD};    # a sanitizer's, which is for perl alone
        open STDOUT, '>', "$self->{dir}/log";
        open STDERR, '>&', \*STDOUT;
        exec $self->{program}, map { ("--$_", $config{$_}) } sort keys %config or POSIX::_exit(127);
    }
    my $until = time + 120;
    until (IO::Socket::UNIX->new(Peer => $self->{path})) {
        my $has_ended = waitpid($self->{pid}, POSIX::WNOHANG()) == $self->{pid};
        delete $self->{pid} if $has_ended;
        die 'redis-server does not answer: ' . do { open my $log, '<', "$self->{dir}/log"; local $/; <$log> } if $has_ended || time > $until;
        sleep 0.02;
    }
    return;
}

sub path { return $_[0]{path} }

# Where it is, for Oribi::Redis->new, with limits for a machine with much else to do: usual is a second.
sub place { return (path => $_[0]{path}, map { ("${_}_timeout_ms" => 30_000) } qw(connect read write)) }
sub port { return $_[0]{port} }
sub pid  { return $_[0]{pid} }

sub stop {
    my ($self, $signal) = @_;
    return if !$self->{pid} || $self->{owner} != $$;
    kill $signal // 'TERM', $self->{pid};
    waitpid $self->{pid}, 0;
    delete $self->{pid};
    return;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!, $@);
    $self->stop('KILL');
    return;
}

1;
