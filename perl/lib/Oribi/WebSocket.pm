package Oribi::WebSocket;
use 5.016;
use strict;
use warnings;
use Carp ();
use Oribi ();    # defines send, _act and Handshake::_accept, in C

our $VERSION = '0.100';

my %EVENTS = (o => 'on_open', t => 'on_message', b => 'on_message', c => 'on_close');
my @CALLBACKS = qw(on_open on_message on_close);

sub _json {
    require JSON::PP;
    state $json = JSON::PP->new->utf8->canonical->allow_nonref(0);
    return $json;
}

# What _json can read again; the core looks for characters that are none.
sub _encode {
    my ($hash) = @_;
    my $text = _json()->encode($hash);
    return $text unless $text =~ /[:,\[]-?(?:inf|nan)/i;    # in a string, or a number that is none
    eval { _json()->decode($text); 1 } or Carp::croak('Oribi: infinity, or what is not a number, is nothing that JSON can hold');
    return $text;
}

# Called by the worker for what it does not do by itself. False: there is no such handler.
sub _serve {
    my ($socket, $handler, $event, $data, $code) = @_;
    my ($class, $given) = ($handler, $socket);    # a method may assign to its arguments
    return 0 unless grep { $handler->can($_) } @CALLBACKS;
    my $name = $EVENTS{$event};
    return 1 unless $handler->can($name);
    if    ($event eq 'o') { $class->on_open($given) }
    elsif ($event eq 'c') { $class->on_close($given, $code, $data) }
    else                  { $class->on_message($given, $data, $event eq 'b') }
    $socket->_keep_state;
    return 1;
}

# The worker gives the record of the call: core/include/oribi/http/socket_call.h.
sub _part {
    my ($self, $name) = @_;
    @$self{qw(id protocol saved kept)} = (unpack 'a n n/a n/a n/a n/a n/a', $self->{record})[2, 4, 5, 6] unless exists $self->{id};
    return $self->{$name};
}

sub id       { $_[0]->_part('id') }
sub protocol { my $protocol = $_[0]->_part('protocol'); return length $protocol ? $protocol : undef }

sub _bytes {
    my ($data, $binary) = @_;
    Carp::croak('Oribi: send of an undefined value') unless defined $data;
    my $bytes = "$data";
    if ($binary) {
        utf8::downgrade($bytes, 1) or Carp::croak('Oribi: a binary message with a wide character: encode text before it is sent as such');
    }
    else {
        utf8::encode($bytes);
    }
    return $bytes;
}

sub _channel {
    my ($channel) = @_;
    Carp::croak('Oribi: the name of a channel is undefined') unless defined $channel;
    return _bytes($channel);
}

sub _know {
    my ($name, $how, @known) = @_;
    my %unknown = %$how;
    delete @unknown{@known};
    Carp::croak("Oribi: $name knows no " . join ', ', sort keys %unknown) if %unknown;
    return;
}

# Called by send, in C, for what is not sent as it is.
sub _send_converted {
    my ($self, $data, %how) = @_;
    _know('send', \%how, 'binary');
    _act($self, $how{binary} ? 'b' : 't', 0, _bytes($data, $how{binary}));
    return;
}

sub subscribe {
    my ($self, $channel, %how) = @_;
    _know('subscribe', \%how, 'since');
    _act_on_channel($self, 'S', _channel($channel), undef, _bytes($how{since} // ''), 0);
    return;
}

sub unsubscribe {
    my ($self, $channel) = @_;
    _act_on_channel($self, 'U', _channel($channel), undef, undef, 0);
    return;
}

sub publish {
    my ($self, $channel, $data, %how) = @_;
    _know('publish', \%how, 'event', 'binary');
    _act_on_channel($self, 'P', _channel($channel), defined $how{event} ? _bytes($how{event}) : undef, _bytes($data, $how{binary}), $how{binary} ? 1 : 0);
    return;
}

sub close {
    my ($self, $code, $reason) = @_;
    _act($self, 'c', $code // 1000, _bytes($reason // ''));
    return;
}

sub state {
    my ($self, $state) = @_;
    $self->{state} = $state if @_ > 1;
    return $self->{state} //= length $self->_part('saved') ? _json()->decode($self->{saved}) : {};
}

sub env {
    my ($self) = @_;
    return $self->{env} //= length $self->_part('kept') ? _json()->decode($self->{kept}) : {};
}

sub _keep_state {
    my ($self) = @_;
    return unless $self->{state};
    my $json = %{ $self->{state} } ? _encode($self->{state}) : '';
    _act($self, 's', 0, $json) if $json ne $self->_part('saved');
    return;
}

package Oribi::WebSocket::Handshake;
our $VERSION = '0.100';

sub protocols { grep { length } split /\s*,\s*/, $_[0]{offered} }

sub accept {
    my ($self, $handler, %how) = @_;
    my ($protocol, $state, $headers, $keep, $channels, $ids) = delete @how{qw(protocol state headers keep channels ids)};
    Carp::croak('Oribi: accept knows no ' . join ', ', sort keys %how) if %how;
    Carp::croak('Oribi: the handler of a WebSocket is an object (' . ref($handler) . '): no object lives between two messages; '
            . 'give the name of a package, and keep values in state')
        if ref $handler;
    Carp::croak('Oribi: the handler of a WebSocket is the name of a package') unless defined $handler && length $handler;
    Carp::croak("Oribi: the package $handler has none of " . join ', ', @CALLBACKS) unless grep { $handler->can($_) } @CALLBACKS;
    my %kept = map { $_ => "$self->{env}{$_}" } grep { defined $self->{env}{$_} && !ref $self->{env}{$_} } @{ $keep || [] };
    my %since = ref $channels eq 'HASH' ? %$channels : ();
    my @channels = ref $channels eq 'HASH' ? sort keys %since : @{ $channels || [] };
    Carp::croak('Oribi: channels since a position: accept needs ids => 1') if !$ids && grep { length($_ // '') } values %since;
    my $wants = ($handler->can('on_open') ? 1 : 0) | ($handler->can('on_close') ? 2 : 0) | ($ids ? 4 : 0);
    $self->_accept(
        $handler, $protocol,
        $state && %$state ? Oribi::WebSocket::_encode($state) : undef,
        %kept             ? Oribi::WebSocket::_encode(\%kept) : undef, $wants,
        map { (Oribi::WebSocket::_channel($_), Oribi::WebSocket::_bytes($since{$_} // '')) } @channels
    );
    return [101, $headers || [], []];
}

1;
__END__

=encoding utf-8

=head1 NAME

Oribi::WebSocket - a WebSocket, as a handler gets it

=head1 SYNOPSIS

    my $app = sub {
        my $env = shift;
        my $ws = $env->{'oribi.websocket'} or return [426, [], []];
        return $ws->accept('Room', state => { user => 'ann' });
    };

    package Room;
    sub on_open    { my ($class, $ws) = @_; $ws->send('hello') }
    sub on_message { my ($class, $ws, $data, $binary) = @_; $ws->send($ws->state->{user} . ": $data") }
    sub on_close   { my ($class, $ws, $code, $reason) = @_ }

=head1 DESCRIPTION

The frontend holds the connection (C<tls://>, or C<?frontend=on> in C<bind>); the application is called once for each
message, in any worker, with a new object each time. Between two calls only C<state> stays. A reload closes nothing.

=head1 THE HANDSHAKE

C<< $env->{'oribi.websocket'} >> is there where the request asks for a WebSocket.

=head2 $handshake->protocols

The protocols that the client offers, preferred first.

=head2 $handshake->accept($handler, %options)

Accepts the WebSocket and gives the answer for the server. C<$handler> is the name of a package that has one or more of
C<on_open>, C<on_message>, C<on_close>. Options: C<protocol>, one of the protocols that the client offers; C<state>, a
reference to a hash; C<headers>, a reference to an array of further headers; C<keep>, a reference to an array of keys of
the environment that C<env> has later; C<channels>, a reference to an array of channels whose messages the client gets,
or to a hash with the position since which it has missed some; C<ids>, true: the client gets messages of channels as
JSON, each with its position. Dies where no frontend holds the client. Any other answer refuses the WebSocket.

=head1 METHODS

What is sent and closed happens when the call has returned. A call that dies closes the socket with 1011.

=head2 $ws->send($text), $ws->send($bytes, binary => 1)

Sends a message. Text is characters.

=head2 $ws->close($code, $reason)

Closes the socket: 1000 unless a code is given; 1000 to 1003, 1007 to 1014, 3000 to 4999.

=head2 $ws->state

What the socket remembers from call to call: a reference to a hash that JSON can hold, 4 KiB as JSON. Change it.

=head2 $ws->subscribe($channel, since => $position), $ws->unsubscribe($channel)

Begins and ends to send the messages of a channel to this socket. C<since> needs a socket that was accepted with C<ids>.

=head2 $ws->publish($channel, $text, event => $name), $ws->publish($channel, $bytes, binary => 1)

Sends a message to all who have subscribed to the channel.

=head2 $ws->id, $ws->protocol, $ws->env

The socket's id; the accepted protocol; the values that C<keep> has named.

=head1 SEE ALSO

L<Oribi>, F<doc/websocket.md>

=cut
