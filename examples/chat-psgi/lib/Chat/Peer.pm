package Chat::Peer;
use strict;
use warnings;
use Chat::Room ();
use HTTP::Date ();

# One client with its socket. place: where it stands in the journal; without a journal it does not listen.
sub new {
    my ($class, %fields) = @_;
    return bless {%fields}, $class;
}

sub write { my ($self, $bytes) = @_; Chat::Room->send_all($self, $bytes) }

sub catch_up {
    my ($self) = @_;
    my $journal = $self->{journal} or return;
    return if $journal->size <= $self->{place};
    for my $found ($journal->after($self->{place})) {
        $self->{place} = $found->[0];
        $self->give(@$found);
    }
}

# Server-sent events: text in one direction, what the client sends is of no interest.
package Chat::Peer::Events;
our @ISA = ('Chat::Peer');

sub begin {
    my ($self) = @_;
    my $date = HTTP::Date::time2str();
    $self->write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nDate: $date\r\n"
            . "Connection: close\r\n\r\n: welcome\n\n");
}

sub give { my ($self, $id, $message) = @_; $self->write("id: $id\ndata: $message\n\n") }
sub ping { $_[0]->write(":\n\n") }
sub take { }
sub farewell { $_[0]{done} = 1 }

# A WebSocket; Protocol::WebSocket speaks the protocol.
package Chat::Peer::Socket;
our @ISA = ('Chat::Peer');

use constant MESSAGE_BYTES_MAX => 16_384;

# The handshake of a request, or nothing if it is none. HTTP/1.0 knows no upgrade (RFC 9110 7.8).
sub handshake {
    my ($class, $env) = @_;
    return if $env->{SERVER_PROTOCOL} ne 'HTTP/1.1' || ($env->{HTTP_SEC_WEBSOCKET_VERSION} || '') ne '13';
    require Protocol::WebSocket::Handshake::Server;
    my $handshake = Protocol::WebSocket::Handshake::Server->new_from_psgi($env);
    my $good = eval { $handshake->parse('') && $handshake->is_done };
    return $good ? $handshake : undef;
}

sub begin {
    my ($self) = @_;
    $self->{frames} = $self->{handshake}->build_frame(max_payload_size => MESSAGE_BYTES_MAX);
    $self->write($self->{handshake}->to_string);
    $self->take($self->{early}) if length $self->{early};
}

sub _frame {
    my ($self, $type, $bytes) = @_;
    return Protocol::WebSocket::Frame->new(buffer => $bytes, type => $type, masked => 0, max_payload_size => 0)->to_bytes;
}

# Bytes: text is UTF-8 already.
sub say { my ($self, $bytes, $type) = @_; $self->write($self->_frame($type || 'text', $bytes)) }
sub give { my ($self, undef, $message) = @_; $self->say($message) }
sub ping { $_[0]->write($_[0]->_frame('ping', '')) }
sub farewell { $_[0]->_close(1001, 'the server is leaving') }

# Ends with the other side's close, or without it after a while.
sub _close {
    my ($self, $code, $reason) = @_;
    $self->write($self->_frame('close', pack 'n a*', $code, $reason));
    $self->{closing} = time;
}

sub take {
    my ($self, $bytes) = @_;
    my $frames = $self->{frames};
    $frames->append($bytes);
    until ($self->{done}) {
        my $message = eval { $frames->next_bytes };
        return $self->{closing} || $self->_close(1009, 'too long') if $@;
        return if !defined $message;
        if ($frames->is_close) { $self->_answer_close($message) }
        elsif ($self->{closing}) { next }
        elsif ($frames->is_ping) { $self->write($self->_frame('pong', $message)) }
        elsif ($frames->is_text || $frames->is_binary) { $self->{on_message}->($self, $message, $frames->is_text ? 'text' : 'binary') }
    }
}

# A close is answered with its own code, RFC 6455 5.5.1.
sub _answer_close {
    my ($self, $message) = @_;
    $self->write($self->_frame('close', substr $message, 0, 2)) if !$self->{closing};
    $self->{done} = 1;
}

1;
