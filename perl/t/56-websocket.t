use strict;
use warnings;
use Test::More;
use Oribi::WebSocket;

# Oribi::WebSocket without a server: which handlers are taken. What needs a frontend is in e2e/websocket_test.rb.

{ package Room; sub on_message { } }

sub handshake { bless { env => {}, offered => 'chat, other' }, 'Oribi::WebSocket::Handshake' }

sub refusal {
    my (@arguments) = @_;
    eval { handshake()->accept(@arguments); 1 } and return 'nothing';
    return $@;
}

is_deeply [handshake()->protocols], ['chat', 'other'], 'protocols';
like refusal(bless {}, 'Room'), qr/is an object \(Room\): no object lives between two messages/, 'an object';
like refusal(), qr/the name of a package/, 'no handler';
like refusal('Nothing::Here'), qr/the package Nothing::Here has none of on_open, on_message, on_close/, 'an empty package';
like refusal('Room', chanels => []), qr/accept knows no chanels/, 'an option that is none';
like refusal('Room'), qr/the call of this WebSocket has ended/, 'outside of a call';

my $socket = bless { id => 'id', saved => '', kept => '' }, 'Oribi::WebSocket';
is_deeply [$socket->id, $socket->protocol, $socket->state, $socket->env], ['id', undef, {}, {}], 'an empty socket';
eval { $socket->send("\x{20ac}", binary => 1) };
like $@, qr/a wide character/, 'a binary message of characters';
eval { $socket->send(undef) };
like $@, qr/an undefined value/, 'nothing to send';

for my $call ([send => 'x'], [subscribe => 'c'], [publish => 'c', 'x']) {
    my ($name, @arguments) = @$call;
    eval { $socket->$name(@arguments, othr => 1) };
    like $@, qr/^Oribi: $name knows no othr at \Q$0\E/, "$name with an option that is none";
}

is `$^X @{[map { "-I$_" } @INC]} -e 'use Oribi::Test' 2>&1`, '', 'Oribi::Test loads without a warning';

done_testing;
