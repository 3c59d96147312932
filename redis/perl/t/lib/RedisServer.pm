package RedisServer;
use strict;
use warnings;
use File::Temp ();
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
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

sub free_port {
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 1) or die "no port: $!";
    return $socket->sockport;
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
    my $until = time + 20;
    until (IO::Socket::UNIX->new(Peer => $self->{path})) {
        die 'redis-server does not answer: ' . do { open my $log, '<', "$self->{dir}/log"; local $/; <$log> } if time > $until;
        sleep 0.02;
    }
    return;
}

sub path { return $_[0]{path} }
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
