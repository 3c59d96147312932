package OribiTest;
use strict;
use warnings;
use Exporter 'import';
use File::Temp ();
use IO::Select;
use IO::Socket;
use Oribi ();
use Plack::Middleware::Lint;
use Test::More ();
use POSIX ();
use Time::HiRes ();

our @EXPORT = qw(serve request get wait_until);

# A worker in a child process, with the application wrapped in Lint, and a client that reads answers strictly. Nothing
# sleeps: what is waited for has a deadline.

# Seconds until a hang is a failure: on a machine with more to run than it has processors as many times as long.
my $DEADLINE = 30 * _patience();

sub _patience {
    open my $load, '<', '/proc/loadavg' or return 1;
    open my $info, '<', '/proc/cpuinfo' or return 1;
    my $times = (split ' ', <$load>)[0] / (grep({/^processor/} <$info>) || 1);
    return $times < 1 ? 1 : $times > 12 ? 12 : $times;
}

sub wait_until {
    my ($what, $code) = @_;
    my $end = Time::HiRes::time() + $DEADLINE;
    while (1) {
        my $value = $code->();
        return $value if $value;
        die "waited $DEADLINE s for $what\n" if Time::HiRes::time() > $end;
        select undef, undef, undef, 0.005;
    }
}

# serve($app, lint => 0, bind => ..., option => value ...)
sub serve {
    my ($app, %option) = @_;
    my $lint = delete $option{lint} // 1;
    my $dir = File::Temp->newdir;
    my $bind = delete $option{bind} || '127.0.0.1:0';
    my @bind = map { $_ eq 'unix' ? "unix://$dir/socket" : $_ } ref $bind ? @$bind : $bind;
    my $settings = Oribi::Settings->new;
    $settings->set_all(command => (map { (bind => $_) } @bind), access_log => 'off', %option)->finish;
    my $listeners = Oribi::Listeners->open($settings->core);
    my ($listener) = $listeners->list;
    $app = Plack::Middleware::Lint->wrap($app) if $lint;
    my $pid = fork // die "fork: $!";
    if ($pid == 0) {
        open STDERR, '>>', "$dir/log" or POSIX::_exit(9);
        STDERR->autoflush(1);
        Test::More->builder->no_ending(1);    # an application that exits runs the END blocks of this process
        my $worker = Oribi::Worker->_new($settings->core, $listeners, $app);
        $SIG{TERM} = sub { $SIG{TERM} = 'IGNORE'; $worker->stop };    # stop() asks until it is heard
        $worker->run;
        undef $worker;
        POSIX::_exit(0);
    }
    return bless { owner => $$, pid => $pid, dir => $dir, listener => $listener, listeners => $listeners }, __PACKAGE__;
}

sub pid { return $_[0]{pid} }

sub log_text {
    my ($self) = @_;
    open my $fh, '<', "$self->{dir}/log" or return '';
    local $/;
    return scalar(<$fh>) // '';
}

# To the first listener, or that of a number.
sub connect {
    my ($self, $number) = @_;
    my $listener = $number ? ($self->{listeners}->list)[$number] : $self->{listener};
    my $socket
        = length $listener->{port}
        ? _connect_tcp($listener->{host}, $listener->{port})
        : IO::Socket::UNIX->new(Peer => "$self->{dir}/socket");
    die "connect: $@ $!" unless $socket;
    return bless { socket => $socket, buffer => '' }, 'OribiTest::Client';
}

sub _connect_tcp {
    my ($host, $port) = @_;
    $host =~ s/\A\[(.*)\]\z/$1/;
    return IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port, Timeout => $DEADLINE) if $host !~ /:/;
    require IO::Socket::IP;
    return IO::Socket::IP->new(PeerHost => $host, PeerPort => $port, Timeout => $DEADLINE);
}

# One request on a connection of its own; `bytes` is the whole of it.
sub request {
    my ($self, $bytes) = @_;
    my $client = $self->connect;
    $client->send($bytes);
    return $client->response(head => scalar($bytes =~ /\AHEAD /));
}

sub get {
    my ($self, $target, @fields) = @_;
    return request($self, "GET $target HTTP/1.1\r\nHost: test\r\n" . join('', map {"$_\r\n"} @fields) . "\r\n");
}

# Ends the worker; returns its wait status.
sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return $self->{status};
    kill TERM => $pid;
    my $ended = eval {
        wait_until('the worker to end', sub {
            # A handler in Perl may run late when its signal comes just before a blocking call. A supervisor takes a
            # second one for an order.
            kill TERM => $pid if $self->{listeners};
            return waitpid($pid, POSIX::WNOHANG()) == $pid;
        });
    };
    $self->{status} = $?;
    return $self->{status} if $ended;
    kill KILL => $pid;
    waitpid $pid, 0;
    return $self->{status} = 'killed';
}

# True once the worker has ended by itself.
sub ended {
    my ($self) = @_;
    return 0 unless waitpid($self->{pid}, POSIX::WNOHANG()) == $self->{pid};
    $self->{status} = $?;
    delete $self->{pid};
    return 1;
}

sub DESTROY { local ($?, $@, $!); $_[0]->stop if $_[0]{owner} == $$ }

package OribiTest::Client;

sub send {
    my ($self, $bytes) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $sent = 0;
    while ($sent < length $bytes) {
        my $n = syswrite $self->{socket}, $bytes, length($bytes) - $sent, $sent;
        return 0 unless defined $n;
        $sent += $n;
    }
    return 1;
}

# More bytes, or false at the end of the connection.
sub fill {
    my ($self) = @_;
    die "no bytes for $DEADLINE s\n" unless IO::Select->new($self->{socket})->can_read($DEADLINE);
    my $n = sysread $self->{socket}, $self->{buffer}, 65536, length $self->{buffer};
    return $n;
}

sub take {
    my ($self, $count) = @_;
    while (length $self->{buffer} < $count) {
        $self->fill or die "connection ended in the middle\n";
    }
    return substr $self->{buffer}, 0, $count, '';
}

sub take_line {
    my ($self) = @_;
    until ($self->{buffer} =~ /\r\n/) {
        $self->fill or die "connection ended in the middle\n";
    }
    $self->{buffer} =~ s/\A(.*?)\r\n//s;
    return $1;
}

# { status, message, fields => {name => [values]}, order => [names], body, complete }; dies if there is none.
sub response {
    my ($self, %option) = @_;
    my $line = $self->take_line;
    my ($status, $message) = $line =~ m{\AHTTP/1\.1 (\d{3}) (.*)\z} or die "no status line: $line\n";
    my $res = { status => $status, message => $message, fields => {}, order => [] };
    while (length(my $field = $self->take_line)) {
        my ($name, $value) = split /: /, $field, 2;
        push @{ $res->{fields}{ lc $name } }, $value;
        push @{ $res->{order} }, $name;
    }
    $res->{body} = '';
    return $res if $status < 200;
    $res->{complete} = eval { $self->body($res, %option); 1 } || 0;
    return $res;
}

sub body {
    my ($self, $res, %option) = @_;
    return if $option{head} || $res->{status} == 204 || $res->{status} == 304;
    my $fields = $res->{fields};
    if ($fields->{'transfer-encoding'}) {
        while (my $size = hex $self->take_line) {
            $res->{body} .= $self->take($size);
            $self->take_line eq '' or die "chunk without an end\n";
        }
        $self->take_line eq '' or die "trailers\n";
    } elsif ($fields->{'content-length'}) {
        my $left = $fields->{'content-length'}[0];
        while ($left > 0) {
            $self->fill or die "connection ended in the middle\n" unless length $self->{buffer};
            my $part = substr $self->{buffer}, 0, $left, '';
            $res->{body} .= $part;
            $left -= length $part;
        }
    } else {
        1 while $self->fill;
        $res->{body} = $self->{buffer};
        $self->{buffer} = '';
    }
}

# True if the server closes without another byte.
sub at_end {
    my ($self) = @_;
    return length $self->{buffer} == 0 && !$self->fill;
}

sub close { close $_[0]{socket} }

1;
