use strict;
use warnings;

# A WebSocket by Mojo::UserAgent (stranger.rb has the commands).
use Mojo::IOLoop;
use Mojo::IOLoop::Stream;
use Mojo::JSON qw(decode_json encode_json);
use Mojo::UserAgent;
use Mojo::Util qw(b64_decode b64_encode);

$| = 1;
my ($socket, $input);
sub tell_test { print encode_json([@_]), "\n" }

my $agent = Mojo::UserAgent->new->ca($ENV{CA})->inactivity_timeout(0);
my %commands = (
    open => sub {
        my ($url, $protocols) = @_;
        $agent->websocket(
            $url, $protocols,
            sub {
                my ($ua, $tx) = @_;
                return tell_test('refused', 0 + ($tx->res->code // 0)) unless $tx->is_websocket;
                $socket = $tx->max_websocket_size(1 << 22);
                $tx->on(text   => sub { tell_test('text',   Mojo::Util::decode('UTF-8', $_[1])) });
                $tx->on(binary => sub { tell_test('binary', b64_encode($_[1], '')) });
                $tx->on(frame  => sub { tell_test('pong',   $_[1][5]) if $_[1][4] == 10 });
                $tx->on(finish => sub { tell_test('closed', $_[1], $_[2] // '') });
                tell_test('open', $tx->protocol);
            }
        );
    },
    text      => sub { $socket->send($_[0]) },
    binary    => sub { $socket->send({ binary => b64_decode($_[0]) }) },
    fragments => sub {
        my @parts = @{ $_[0] };
        $socket->send([$_ == $#parts ? 1 : 0, 0, 0, 0, $_ ? 0 : 1, $parts[$_]]) for 0 .. $#parts;
    },
    ping  => sub { $socket->send([1, 0, 0, 0, 9, $_[0]]) },
    close => sub { $socket->finish(@_) },
);

my $stream = Mojo::IOLoop::Stream->new(\*STDIN)->timeout(0);
$stream->on(
    read => sub {
        $input .= $_[1];
        while ($input =~ s/\A(.*)\n//) {
            my ($name, @words) = @{ decode_json($1) };
            $commands{$name}->(@words);
        }
    }
);
$stream->on(close => sub { exit });
Mojo::IOLoop->stream($stream);
Mojo::IOLoop->start;
