use strict;
use warnings;

# A WebSocket by AnyEvent::WebSocket::Client (stranger.rb has the commands).
use AnyEvent;
use AnyEvent::Handle;
use AnyEvent::WebSocket::Client;
use AnyEvent::WebSocket::Message;
use JSON::PP;
use MIME::Base64;

$| = 1;
my $json = JSON::PP->new->utf8;
my $end  = AE::cv;
my $socket;
sub tell_test { print $json->encode([@_]), "\n" }

my %commands = (
    open => sub {
        my ($url, $protocols) = @_;
        my $client = AnyEvent::WebSocket::Client->new(ssl_ca_file => $ENV{CA}, (@$protocols ? (subprotocol => $protocols) : ()), max_payload_size => 1 << 22);
        $client->connect($url)->cb(
            sub {
                $socket = eval { $_[0]->recv };
                return tell_test('refused', undef) if !$socket;
                $socket->on(each_message => sub { $_[1]->is_text ? tell_test('text', $_[1]->decoded_body) : tell_test('binary', encode_base64($_[1]->body, '')) });
                $socket->on(finish       => sub { tell_test('closed', 0 + ($_[0]->close_code // 1005), $_[0]->close_reason // '') });
                tell_test('open', $socket->subprotocol);
            }
        );
    },
    text   => sub { $socket->send($_[0]) },
    binary => sub { $socket->send(AnyEvent::WebSocket::Message->new(body => decode_base64($_[0]), opcode => 2)) },
    close  => sub { $socket->close(@_) },
);

my $input = AnyEvent::Handle->new(
    fh       => \*STDIN,
    rbuf_max => undef,
    on_error => sub { exit },
    on_read  => sub {
        $_[0]->push_read(line => sub { my ($name, @words) = @{ $json->decode($_[1]) }; $commands{$name}->(@words) });
    },
);
$end->recv;
