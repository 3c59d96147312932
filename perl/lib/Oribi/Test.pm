package Oribi::Test;
use 5.016;
use strict;
use warnings;
use Carp ();
use Cwd ();
use File::Basename ();
use File::Spec ();
use File::Temp ();
use IO::Socket::INET ();
use POSIX ();
use Time::HiRes ();

our $VERSION = '0.100';

my $TRIES = 3;    # the port may be taken meanwhile

sub serve {
    my ($class, $app, %how) = @_;
    my $self = bless { timeout => $how{timeout} // 10, owner => $$, dir => File::Temp::tempdir('oribi-test-XXXXXX', TMPDIR => 1, CLEANUP => 1) }, $class;
    for my $try (1 .. $TRIES) {
        $self->_start(Cwd::abs_path($app // 'app.psgi'), @{ $how{options} // [] });
        return $self if $self->_is_up;
        Carp::croak("Oribi::Test: the server did not start:\n" . $self->log) if $try == $TRIES || $self->log !~ /in use/;
    }
    return;
}

sub port { $_[0]{port} }
sub pid  { $_[0]{pid} }
sub url  {"http://127.0.0.1:$_[0]{port}"}

sub log {
    my ($self) = @_;
    open my $file, '<:raw', "$self->{dir}/log" or return '';
    local $/;
    return scalar(<$file>) // '';
}

sub websocket {
    my ($self, $path, %how) = @_;
    return Oribi::Test::WebSocket->new("ws://127.0.0.1:$self->{port}" . ($path // '/'), timeout => $self->{timeout}, %how);
}

sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    my $deadline = Time::HiRes::time() + $self->{timeout};
    local ($?, $!);
    Oribi::Test::WebSocket->_leave($self->{port});
    kill TERM => $pid;
    while (waitpid($pid, POSIX::WNOHANG()) == 0) {
        kill KILL => $pid if Time::HiRes::time() > $deadline;
        Time::HiRes::sleep(0.01);
    }
    return;
}

sub DESTROY {
    my ($self) = @_;
    local $@;
    $self->stop if $self->{owner} == $$;
    return;
}

# The program beside this module, or the one that is installed with it.
sub _program {
    my $lib = File::Basename::dirname(File::Basename::dirname(Cwd::abs_path(__FILE__)));
    for my $folder ("$lib/../bin", "$lib/../../bin") {
        return "$folder/oribi-psgi" if -e "$folder/oribi-psgi";
    }
    for my $folder (File::Spec->path) {
        return "$folder/oribi-psgi" if -x "$folder/oribi-psgi";
    }
    Carp::croak('Oribi::Test: there is no program oribi-psgi');
}

# The configuration file is the application's, whose server may run meanwhile: files and addresses are the test's.
sub _apart {
    my ($dir) = @_;
    return (
        '--control', "$dir/control", '--status', "$dir/status", '--pid-file', "$dir/pid",
        qw(--workers 1 --no-dev --no-daemonize --no-quiet --error-log - --frontend-drain 0)
    );
}

sub _start {
    my ($self, $app, @options) = @_;
    my $free = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or Carp::croak("Oribi::Test: no port is free: $@");
    $self->{port} = $free->sockport;
    close $free;
    my @words = (
        $^X, (map {"-I$_"} grep { !ref } @INC), _program(), '--bind', "tcp://127.0.0.1:$self->{port}?frontend=on",
        _apart($self->{dir}), @options, $app
    );
    my $pid = fork // Carp::croak("Oribi::Test: $!");
    if ($pid == 0) {
        open STDOUT, '>>', "$self->{dir}/log" or POSIX::_exit(1);
        open STDERR, '>&', \*STDOUT           or POSIX::_exit(1);
        chdir File::Basename::dirname($app)   or POSIX::_exit(1);
        exec { $words[0] } @words or POSIX::_exit(1);
    }
    $self->{pid} = $pid;
    return;
}

sub _is_up {
    my ($self) = @_;
    my $deadline = Time::HiRes::time() + $self->{timeout};
    until ($self->log =~ /listening on/) {
        if (waitpid($self->{pid}, POSIX::WNOHANG()) != 0) {
            delete $self->{pid};
            return 0;
        }
        Carp::croak("Oribi::Test: the server is not up after $self->{timeout} s:\n" . $self->log) if Time::HiRes::time() > $deadline;
        Time::HiRes::sleep(0.01);
    }
    return 1;
}

package Oribi::Test::WebSocket {
    use Digest::SHA  ();
    use Errno        ();
    use IO::Select   ();
    use MIME::Base64 ();
    use Scalar::Util ();

    our $VERSION = '0.100';

    my $GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';    # RFC 6455 1.3
    my %OPCODE = (text => 1, binary => 2, close => 8, ping => 9, pong => 10);
    my $MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
    my $GOING_AWAY = 1001;
    my %all;    # those that live, by their addresses

    sub new {
        my ($class, $url, %how) = @_;
        my ($tls, $host, $port, $path) = $url =~ m{\Aws(s)?://([^/:]+)(?::([0-9]+))?(/.*)?\z}s
            or Carp::croak("Oribi::Test: no URL of a WebSocket: $url");
        $port //= $tls ? 443 : 80;
        my $self = bless { timeout => $how{timeout} // 10, bytes => '', message => '', port => $port }, $class;
        $self->{io} = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port, Proto => 'tcp', Timeout => $self->{timeout})
            or Carp::croak("Oribi::Test: no connection to $url: $@");
        $self->_start_tls($host) if $tls;
        $self->{io}->blocking(0);
        $self->_handshake("$host:$port", $path // '/', $how{protocols} // [], $how{headers} // []);
        Scalar::Util::weaken($all{ Scalar::Util::refaddr($self) } = $self);
        return $self;
    }

    sub DESTROY { delete $all{ Scalar::Util::refaddr($_[0]) }; return }

    # Closes those of the server at this port, and waits for nothing: nobody reads their Close frames while it stops,
    # for which it would wait. What was sent can still be received.
    sub _leave {
        my ($class, $port) = @_;
        for my $self (grep { $_ && $_->{port} == $port && $_->is_open && !$_->{closing} } values %all) {
            $self->{closing} = 1;
            local $self->{timeout} = 0;
            local $@;
            eval { $self->_write($OPCODE{close}, pack 'n', $GOING_AWAY) };    # else it is in a call
        }
        return;
    }

    # The certificate is not verified: that of a test is its own authority.
    sub _start_tls {
        my ($self, $host) = @_;
        eval { require IO::Socket::SSL } or Carp::croak('Oribi::Test: wss:// needs IO::Socket::SSL');
        my %how = (SSL_verify_mode => 0, SSL_hostname => $host, Timeout => $self->{timeout});
        IO::Socket::SSL->start_SSL($self->{io}, %how) or Carp::croak("Oribi::Test: no TLS: $IO::Socket::SSL::SSL_ERROR");
        return;
    }

    sub protocol     { $_[0]{headers}{'sec-websocket-protocol'} }
    sub headers      { $_[0]{headers} }
    sub status       { $_[0]{status} }
    sub is_open      { $_[0]{status} == 101 && !defined $_[0]{close_code} }
    sub close_code   { $_[0]{close_code} }
    sub close_reason { $_[0]{close_reason} }

    sub send {
        my ($self, $data, %how) = @_;
        my $bytes = "$data";
        if   ($how{binary}) { utf8::downgrade($bytes, 1) or Carp::croak('Oribi::Test: a binary message with a wide character') }
        else                { utf8::encode($bytes) }
        $self->_write($how{binary} ? $OPCODE{binary} : $OPCODE{text}, $bytes) or Carp::croak("Oribi::Test: the message cannot be sent: $!");
        return $self;
    }

    # In list context also whether it is binary.
    sub receive {
        my ($self, %how) = @_;
        my $deadline = Time::HiRes::time() + ($how{timeout} // $self->{timeout});
        my @message;
        @message = $self->_take_frame($deadline) until @message || defined $self->{close_code};
        return wantarray ? @message : $message[0];
    }

    sub close {
        my ($self, $code, $reason, %how) = @_;
        my $deadline = Time::HiRes::time() + ($how{timeout} // $self->{timeout});
        if (!defined $self->{close_code}) {
            my $bytes = $reason // '';
            utf8::encode($bytes);
            $self->_write($OPCODE{close}, pack('n', $code // 1000) . $bytes);
            $self->{closing} = 1;
        }
        $self->_take_frame($deadline) until defined $self->{close_code};
        close $self->{io};
        return $self;
    }

    sub cut { CORE::close($_[0]{io}); return }

    sub _handshake {
        my ($self, $host, $path, $protocols, $headers) = @_;
        my $key = MIME::Base64::encode_base64(join('', map { chr int rand 256 } 1 .. 16), '');
        my @fields = (Host => $host, Connection => 'Upgrade', Upgrade => 'websocket', 'Sec-WebSocket-Version' => 13, 'Sec-WebSocket-Key' => $key);
        push @fields, 'Sec-WebSocket-Protocol' => join ', ', @$protocols if @$protocols;
        push @fields, ref $headers eq 'HASH' ? %$headers : @$headers;
        my $head = "GET $path HTTP/1.1\r\n";
        while (my ($name, $value) = splice @fields, 0, 2) { $head .= "$name: $value\r\n" }
        $self->_push("$head\r\n");
        my $deadline = Time::HiRes::time() + $self->{timeout};
        my $end;
        while (($end = index $self->{bytes}, "\r\n\r\n") < 0) {
            $self->_more($deadline) or Carp::croak('Oribi::Test: the connection ended in the handshake');
        }
        my ($first, @lines) = split /\r\n/, substr $self->{bytes}, 0, $end + 4, '';
        $self->{status} = substr $first, 9, 3;
        $self->{headers} = { map { my ($name, $value) = split /:\s*/, $_, 2; (lc $name => $value) } @lines };
        my $wanted = MIME::Base64::encode_base64(Digest::SHA::sha1($key . $GUID), '');
        Carp::croak('Oribi::Test: a wrong Sec-WebSocket-Accept') if $self->{status} == 101 && ($self->{headers}{'sec-websocket-accept'} // '') ne $wanted;
        return;
    }

    # The message that ends with the next frame, if one does. Pings are answered.
    sub _take_frame {
        my ($self, $deadline) = @_;
        my ($first, $payload) = $self->_whole_frame($deadline);
        return $self->_closed(1006, '') if !defined $payload;
        my $opcode = $first & 15;
        if ($opcode == $OPCODE{ping}) {
            $self->_write($OPCODE{pong}, $payload) if !$self->{closing};
        } elsif ($opcode == $OPCODE{close}) {
            $self->_write($OPCODE{close}, substr $payload, 0, 2) if !$self->{closing};
            my ($code, $reason) = unpack 'na*', $payload;
            utf8::decode($reason) if defined $reason;
            $self->_closed($code // 1005, $reason // '');
        } elsif ($opcode <= $OPCODE{binary}) {
            $self->{binary} = $opcode == $OPCODE{binary} if $opcode;
            $self->{message} .= $payload;
            return if !($first & 128);
            my $message = $self->{message};
            $self->{message} = '';
            utf8::decode($message) if !$self->{binary};
            return ($message, $self->{binary} ? 1 : 0);
        }
        return;
    }

    # The first byte and the payload; nothing: the connection has ended before. What has come of a frame when the time
    # is over is there for the next wait.
    sub _whole_frame {
        my ($self, $deadline) = @_;
        $self->_await(2, $deadline) or return;
        my ($first, $length) = unpack 'CC', $self->{bytes};
        $length &= 127;
        my $head = $length == 126 ? 4 : $length == 127 ? 10 : 2;
        $self->_await($head, $deadline) or return;
        $length = unpack $head == 4 ? 'x2n' : 'x2Q>', $self->{bytes} if $head > 2;
        Carp::croak("Oribi::Test: a message of $length bytes") if $length > $MESSAGE_BYTES_MAX;
        $self->_await($head + $length, $deadline) or return;
        substr $self->{bytes}, 0, $head, '';
        return ($first, substr $self->{bytes}, 0, $length, '');
    }

    sub _closed {
        my ($self, $code, $reason) = @_;
        @$self{qw(close_code close_reason)} = ($code, $reason);
        return;
    }

    sub _write {
        my ($self, $opcode, $data) = @_;
        my $n = length $data;
        my $mask = pack 'N', int rand 2**32;
        my $head = $n < 126 ? pack('CC', 128 | $opcode, 128 | $n) : $n < 65_536 ? pack('CCn', 128 | $opcode, 254, $n) : pack('CCQ>', 128 | $opcode, 255, $n);
        return $self->_push($head . $mask . ($data ^ substr($mask x ($n / 4 + 1), 0, $n)));
    }

    # False: the connection has ended.
    sub _push {
        my ($self, $bytes) = @_;
        my $deadline = Time::HiRes::time() + $self->{timeout};
        return 0 if !defined fileno $self->{io};
        local $SIG{PIPE} = 'IGNORE';
        while (length $bytes) {
            my $n = syswrite $self->{io}, $bytes;
            if (defined $n) {
                substr $bytes, 0, $n, '';
                next;
            }
            return 0 if !$!{EAGAIN} && !$!{EINTR};
            my $left = $deadline - Time::HiRes::time();
            Carp::croak('Oribi::Test: timeout: the server does not read') if $left <= 0;
            IO::Select->new($self->{io})->can_write($left);
        }
        return 1;
    }

    # False: the connection has ended before.
    sub _await {
        my ($self, $n, $deadline) = @_;
        while (length $self->{bytes} < $n) { $self->_more($deadline) or return 0 }
        return 1;
    }

    sub _more {
        my ($self, $deadline) = @_;
        while (1) {
            my $n = sysread $self->{io}, $self->{bytes}, 65_536, length $self->{bytes};
            return $n if defined $n;
            return 0  if !$!{EAGAIN} && !$!{EINTR};
            my $left = $deadline - Time::HiRes::time();
            Carp::croak('Oribi::Test: timeout: nothing has come from the server') if $left <= 0;
            IO::Select->new($self->{io})->can_read($left);
        }
    }
}

1;

__END__

=encoding utf8

=head1 NAME

Oribi::Test - a server and a client of WebSockets for tests of applications

=head1 SYNOPSIS

  use Test::More;
  use Oribi::Test;

  my $server = Oribi::Test->serve('app.psgi');
  my $ws = $server->websocket('/chat', protocols => ['chat'], headers => { Cookie => 'user=ann' });
  ok $ws->is_open;
  $ws->send('hello');
  is $ws->receive, 'hello';
  $ws->close(1000, 'bye');
  is $ws->close_code, 1000;
  done_testing;

=head1 THE SERVER

C<< Oribi::Test->serve($file, options => [...], timeout => 10) >> starts one with one worker and a frontend at a free port of
127.0.0.1, and waits until it serves; C<options> are words of the command line. F<config/oribi.pl> beside the application
counts, but for address, number of workers, error log, pid file, C<control> and C<status>. It dies with the server's log
where it does not start. C<port>, C<pid>, C<url>, C<log> tell about it, C<stop> ends it, as does the end of the object.

=head1 THE CLIENT

C<< $server->websocket($path) >>, or C<< Oribi::Test::WebSocket->new('ws://host:port/path') >> for a server that runs (C<wss://>
needs L<IO::Socket::SSL> and verifies no certificate). Options: C<protocols>, C<headers> and C<timeout>, seconds for each wait;
beyond them it dies.

=over

=item status, is_open, protocol, headers

Of the handshake: 101, or what the server has refused with; whether it is open; the protocol; fields by their names in lower
case.

=item send($text), send($bytes, binary => 1)

=item receive(timeout => 2)

The next message, undefined once the socket is closed; in list context also whether it is binary. Text is characters.

=item close($code, $reason)

Closes, and waits for the server to do so. What comes before is lost.

=item close_code, close_reason

Of the server's Close frame; undefined before it. 1006: the connection ended without one.

=item cut

Ends the connection without a Close frame.

=back

=cut
