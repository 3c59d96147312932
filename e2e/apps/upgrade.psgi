# Connections that the application takes over, for upgrade_test.rb: echoes over WebSockets, and event streams without
# events. Each connection has a process of its own.
use strict;
use warnings;

# A worker makes one call at a time, so it must not stay with a client that does.
#
#   worker ── fork ── fork ──► peer: select on the socket until one side ends
#      └── pipe: its end tells the peer that the worker has gone
package Taken;
use POSIX ();

use constant {
    CLOSE_SECONDS => 2,      # for the other side's good-bye
    WRITE_SECONDS => 10,     # a client that takes nothing for so long is let go
    READ_BYTES => 16_384,
};

my ($worker, $life, $ear);    # the pid that made the pipe, which a child of this process makes anew; its ends

sub life_line {
    return if $worker && $worker == $$;
    pipe $ear, $life or die "pipe: $!\n";
    $worker = $$;
}

# Runs the peer in a new process and returns at once. Twice forked, it is nobody's child here: the server reaps it.
sub give_away {
    my ($peer) = @_;
    life_line();
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid) {
        waitpid $pid, 0;
        return;
    }
    POSIX::_exit(0) if fork // 1;
    close $life;
    $0 = 'upgrade peer';
    $SIG{$_} = 'DEFAULT' for qw(TERM INT QUIT HUP USR1 USR2 CHLD);
    $SIG{PIPE} = 'IGNORE';
    eval { $peer->begin; serve($peer); 1 } or warn 'upgrade: ' . ($@ || 'unknown');
    POSIX::_exit(0);    # and not exit: the worker's END blocks are not ours
}

sub serve {
    my ($peer) = @_;
    until ($peer->{done} || $peer->{closing} && time - $peer->{closing} > CLOSE_SECONDS) {
        my ($ready, $told) = wait_for($peer->{io}, !$peer->{closing});
        $peer->farewell if $told;
        read_from($peer) if $ready;
    }
}

# (the socket can be read, the worker has gone)
sub wait_for {
    my ($io, $listens) = @_;
    my $bits = '';
    vec($bits, fileno $io, 1) = 1;
    vec($bits, fileno $ear, 1) = $listens ? 1 : 0;
    return (0, 0) if select($bits, undef, undef, $listens ? undef : 0.1) <= 0;
    return (vec($bits, fileno $io, 1), vec($bits, fileno $ear, 1));
}

sub read_from {
    my ($peer) = @_;
    my $count = sysread $peer->{io}, my ($bytes), READ_BYTES;
    return $peer->take($bytes) if $count;
    $peer->{done} = 1 if defined $count || !$!{EAGAIN};
}

# All of it, or the end of this peer.
sub send_all {
    my ($peer, $bytes) = @_;
    my $deadline = time + WRITE_SECONDS;
    while (length $bytes && !$peer->{done}) {
        my $sent = syswrite $peer->{io}, $bytes;
        if ($sent) {
            substr $bytes, 0, $sent, '';
        }
        elsif (!$!{EAGAIN} || time > $deadline) {
            $peer->{done} = 1;
        }
        else {
            vec(my $bits = '', fileno $peer->{io}, 1) = 1;
            select undef, $bits, undef, 1;
        }
    }
}

package Events;
use HTTP::Date ();

sub begin {
    my ($self) = @_;
    my $date = HTTP::Date::time2str();
    Taken::send_all($self, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nDate: $date\r\n"
            . "Connection: close\r\n\r\n: welcome\n\n");
}

sub take { }
sub farewell { $_[0]{done} = 1 }

# Protocol::WebSocket speaks the protocol.
package Echo;

use constant MESSAGE_BYTES_MAX => 16_384;

# The handshake of a request, or nothing if it is none. HTTP/1.0 knows no upgrade (RFC 9110 7.8).
sub handshake {
    my ($env) = @_;
    return if $env->{SERVER_PROTOCOL} ne 'HTTP/1.1' || ($env->{HTTP_SEC_WEBSOCKET_VERSION} || '') ne '13';
    require Protocol::WebSocket::Handshake::Server;
    my $handshake = Protocol::WebSocket::Handshake::Server->new_from_psgi($env);
    my $good = eval { $handshake->parse('') && $handshake->is_done };
    return $good ? $handshake : undef;
}

sub begin {
    my ($self) = @_;
    $self->{frames} = $self->{handshake}->build_frame(max_payload_size => MESSAGE_BYTES_MAX);
    Taken::send_all($self, $self->{handshake}->to_string);
    $self->take($self->{early}) if length $self->{early};
}

sub say {
    my ($self, $type, $bytes) = @_;
    Taken::send_all($self, Protocol::WebSocket::Frame->new(buffer => $bytes, type => $type, masked => 0, max_payload_size => 0)->to_bytes);
}

sub farewell { $_[0]->finish(1001, 'the server is leaving') }

# Ends with the other side's close, or without it after a while.
sub finish {
    my ($self, $code, $reason) = @_;
    $self->say(close => pack 'n a*', $code, $reason);
    $self->{closing} = time;
}

sub take {
    my ($self, $bytes) = @_;
    my $frames = $self->{frames};
    $frames->append($bytes);
    until ($self->{done}) {
        my $message = eval { $frames->next_bytes };
        return $self->{closing} || $self->finish(1009, 'too long') if $@;
        return if !defined $message;
        if ($frames->is_close) { $self->answer_close($message) }
        elsif ($self->{closing}) { next }
        elsif ($frames->is_ping) { $self->say(pong => $message) }
        elsif ($frames->is_text || $frames->is_binary) { $self->say($frames->is_text ? 'text' : 'binary', $message) }
    }
}

# A close is answered with its own code, RFC 6455 5.5.1.
sub answer_close {
    my ($self, $message) = @_;
    $self->say(close => substr $message, 0, 2) if !$self->{closing};
    $self->{done} = 1;
}

package main;

sub text { my ($status, $words, @headers) = @_; return [$status, ['Content-Type' => 'text/plain', @headers], ["$words\n"]] }

# Browsers let any site open a WebSocket to any other, and tell where it came from.
sub own_origin {
    my ($env) = @_;
    my $origin = $env->{HTTP_ORIGIN};
    return 1 if !defined $origin;
    $origin =~ s{\A\w+://}{};
    return $origin eq $env->{HTTP_HOST};
}

# Returning from a delayed response without calling its responder leaves psgix.io to the application.
sub given_away {
    my ($env, $make) = @_;
    return sub { Taken::give_away($make->($env->{'psgix.io'})) };
}

sub echo {
    my ($env) = @_;
    my $handshake = Echo::handshake($env)
        or return text(426, 'a WebSocket, please', Upgrade => 'websocket', Connection => 'upgrade', 'Sec-WebSocket-Version' => 13);
    return text(403, 'from another site') if !own_origin($env);
    # Clients must wait for the 101, but one that has not is understood too.
    my $early = defined $env->{'oribi.unread'} ? $env->{'oribi.unread'} : '';
    return given_away($env, sub { bless {io => $_[0], handshake => $handshake, early => $early}, 'Echo' });
}

sub {
    my ($env) = @_;
    return echo($env) if $env->{PATH_INFO} eq '/echo';
    return given_away($env, sub { bless {io => $_[0]}, 'Events' }) if $env->{PATH_INFO} eq '/events';
    return text(200, 'an ordinary answer');
};
