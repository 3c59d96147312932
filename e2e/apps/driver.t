use strict;
use warnings;
use utf8;
use Test::More;
use File::Basename ();
use File::Temp ();
use Oribi::Test;

# A test of an application, as its developer would write it; drivers_test.rb runs it.
my $server = Oribi::Test->serve(File::Basename::dirname(__FILE__) . '/websocket.psgi');
like $server->log, qr/listening on/, 'the log';

my $ws = $server->websocket('/chat');
ok $ws->is_open, 'open';
for my $text ('', 'hello', "\x{1F600}", 'x' x 126, 'x' x 65_535, 'x' x 65_536, 'x' x 900_000) {
    ok $ws->send($text)->receive eq $text, 'a text of ' . length $text;
}
my $bytes = join '', map {chr} 0 .. 255;
is_deeply [$ws->send($bytes, binary => 1)->receive], [$bytes, 1], 'a binary message';
is_deeply [$ws->send('a')->receive], ['a', 0], 'a text';
ok !eval { $ws->receive(timeout => 0.05); 1 } && $@ =~ /timeout/, 'nothing in time';
is $ws->close->close_code, 1000, 'closed';
is $ws->receive, undef, 'nothing more';
ok !$ws->is_open, 'not open';
ok !eval { $ws->send('closed'); 1 }, 'nothing can be sent';

my $greeted = $server->websocket('/greets?x=1', protocols => ['chat', 'other'], headers => { Cookie => 'a=b' });
is_deeply [$greeted->protocol, $greeted->headers->{'x-room'}], ['chat', 7], 'the handshake';
like $greeted->receive, qr/\Aopen "?chat"? 127\.0\.0\.1\z/, 'a greeting';
$greeted->send('close 4321');
is $greeted->receive, undef, 'closed by the server';
is_deeply [$greeted->close_code, $greeted->close_reason], [4321, 'as you wish'], 'its code and reason';

is $server->websocket('/refused')->status, 403, 'refused';
my $dies = $server->websocket('/chat');
is $dies->send('die')->receive, undef, 'a handler that dies';
is $dies->close_code, 1011, 'its code';
$server->websocket('/chat')->cut;
is(Oribi::Test::WebSocket->new('ws://127.0.0.1:' . $server->port . '/chat', timeout => 5)->send('ws')->receive, 'ws', 'a server that runs');

SKIP: {
    skip 'IO::Socket::SSL is not installed', 1 if !eval { require IO::Socket::SSL };
    my $free = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1);
    my $port = $free->sockport;
    close $free;
    my $tls = "tls://127.0.0.1:$port?certificate=$ENV{E2E_DIR}/site.pem&key=$ENV{E2E_DIR}/site.key";
    my $secure = Oribi::Test->serve(File::Basename::dirname(__FILE__) . '/websocket.psgi', options => ['--bind', $tls]);
    my $long = 's' x 900_000;
    is(Oribi::Test::WebSocket->new("wss://127.0.0.1:$port/chat")->send($long)->receive, $long, 'TLS');
}

# The rest of a frame may come when the wait for it is over.
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1);
pipe my $waits, my $goes_on;
my $fake = fork // die "fork: $!";
if (!$fake) {
    my $io = $listener->accept;
    my $head = do { local $/ = "\r\n\r\n"; <$io> };
    my ($key) = $head =~ /^Sec-WebSocket-Key: (\S+)/m;
    my $accept = MIME::Base64::encode_base64(Digest::SHA::sha1($key . '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'), '');
    syswrite $io, "HTTP/1.1 101 x\r\nSec-WebSocket-Accept: $accept\r\n\r\n\x81\x7e\0";
    sysread $waits, my $byte, 1;
    syswrite $io, "\xc8" . 'x' x 200;
    close $io;
    POSIX::_exit(0);
}
my $half = Oribi::Test::WebSocket->new('ws://127.0.0.1:' . $listener->sockport . '/', timeout => 5);
ok !eval { $half->receive(timeout => 0.05); 1 } && $@ =~ /timeout/, 'half a frame';
syswrite $goes_on, 'x';
is $half->receive, 'x' x 200, 'the rest of it';
is_deeply [$half->receive, $half->close_code], [1006], 'the end';
waitpid $fake, 0;

my $broken = File::Temp->new(SUFFIX => '.psgi');
print {$broken} "die 'never';";
$broken->flush;
ok !eval { Oribi::Test->serve("$broken"); 1 } && $@ =~ /never/, 'a server that does not start';

# Clients that do not read their Close frames hold no test; one that does read gets what was sent before.
{
    my $dir = File::Temp->newdir;
    local $ENV{E2E_DIR} = "$dir";
    my $stops   = Oribi::Test->serve(File::Basename::dirname(__FILE__) . '/websocket.psgi');
    my @sockets = ((map { $stops->websocket('/chat') } 1 .. 3), Oribi::Test::WebSocket->new('ws://127.0.0.1:' . $stops->port . '/chat'));
    is $_->send('count')->receive, 1, 'a socket of a server that stops' for @sockets;
    $sockets[0]->send('last');
    IO::Select->new($sockets[0]{io})->can_read(5);
    my $began = Time::HiRes::time();
    $stops->stop;
    cmp_ok Time::HiRes::time() - $began, '<', 3, 'a stop with open sockets';
    is_deeply [scalar($sockets[0]->receive), scalar($sockets[0]->receive), $sockets[0]->close_code], ['last', undef, 1001], 'what came before, and the end';
    open my $closed, '<', "$dir/closed" or die "$!";
    is_deeply [map { / (.*) / } <$closed>], [(1001) x 4], 'on_close';
}

my $pid = $server->pid;
undef $server;
ok !kill(0, $pid), 'the server ends with its object';
done_testing;
