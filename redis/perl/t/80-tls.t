use strict;
use warnings;
use Test::More;
use lib 't/lib';
use BadServer;
use RedisServer;
use Oribi::Redis;
use POSIX ();

eval { require IO::Socket::SSL::Utils; 1 } or plan skip_all => 'IO::Socket::SSL is not installed';
my $dir = File::Temp->newdir('oribi-redis-XXXXXX', TMPDIR => 1);
my ($authority, $authority_key) = IO::Socket::SSL::Utils::CERT_create(CA => 1, subject => { commonName => 'test' });
my ($cert, $key) = IO::Socket::SSL::Utils::CERT_create(
    subject => { commonName => 'localhost' }, subjectAltNames => [[DNS => 'localhost']], issuer => [$authority, $authority_key]
);
IO::Socket::SSL::Utils::PEM_cert2file($authority, "$dir/ca");
IO::Socket::SSL::Utils::PEM_cert2file($cert, "$dir/cert");
IO::Socket::SSL::Utils::PEM_key2file($key, "$dir/key");

my $port   = RedisServer::free_port();
my $server = eval {
    RedisServer->start('tls-port' => $port, 'tls-cert-file' => "$dir/cert", 'tls-key-file' => "$dir/key", 'tls-ca-cert-file' => "$dir/ca", 'tls-auth-clients' => 'no');
} or plan skip_all => 'redis-server is not installed, or has no TLS';

my $redis = Oribi::Redis->new(host => 'localhost', port => $port, tls => { SSL_ca_file => "$dir/ca" }, read_timeout_ms => 5000);
is $redis->command('SET', 'k', 'v'), 'OK';
is $redis->command('GET', 'k'), 'v';
my $id = $redis->command('CLIENT', 'ID');
for my $size (16_383, 16_384, 100_000, 3 << 20) {
    is $redis->command('SET', 'large', 'x' x $size), 'OK';
    is length $redis->command('GET', 'large'), $size, "$size bytes";
}
is_deeply [$redis->pipeline(map { ['ECHO', $_] } 1 .. 1000)], [1 .. 1000];
$redis->noreply(['SET', 'a', 1], ['SET', 'b', 1]);
is $redis->settle, 2;
is $redis->command('CLIENT', 'ID'), $id, 'all on one connection';

my $pid = fork // die "fork: $!";
if (!$pid) {
    my $own = $redis->command('CLIENT', 'ID');
    undef $redis;
    POSIX::_exit($own == $id ? 1 : 0);
}
waitpid $pid, 0;
is $?, 0, 'a child has its own';
is $redis->command('CLIENT', 'ID'), $id, "... and leaves the parent's alone";

{
    local $SIG{ALRM} = sub { die "alarm\n" };
    require Time::HiRes;
    ok !eval { Time::HiRes::ualarm(50_000); $redis->blocking(0, 'BLPOP', 'nothing', 0); 1 };
    is $@, "alarm\n";
    is $redis->command('GET', 'k'), 'v', 'the next command is right';
    ok !eval { $redis->blocking(50, 'BLPOP', 'nothing', 0); 1 };
    isa_ok $@, 'Oribi::Redis::Error::Timeout';
}

{
    my $mute = BadServer->start(sub { my ($client) = @_; 1 while sysread $client, my $bytes, 65536 });
    my $waiting = Oribi::Redis->new(path => $mute->path, tls => 1, connect_timeout_ms => 10_000);
    local $SIG{ALRM} = sub { die "alarm\n" };
    ok !eval { Time::HiRes::ualarm(50_000); $waiting->command('PING'); 1 };
    is $@, "alarm\n", 'an exception in the middle of a handshake';
    my $short = Oribi::Redis->new(path => $mute->path, tls => 1, connect_timeout_ms => 50, reconnect_attempts => 0);
    ok !eval { $short->command('PING'); 1 };
    isa_ok $@, 'Oribi::Redis::Error', 'a handshake that does not end';
}

my $subscription = $redis->subscribe('channel');
is_deeply $subscription->next_event(5000), ['subscribe', 'channel', 1];
$redis->command('PUBLISH', 'channel', 'text');
is $subscription->next(5000)->{message}, 'text', 'a subscription';

for my $wrong ([host => '127.0.0.1', tls => { SSL_ca_file => "$dir/ca" }], [host => 'localhost', tls => 1], [url => "rediss://localhost:$port"]) {
    my $other = Oribi::Redis->new(port => $port, reconnect_attempts => 0, @$wrong);
    ok !eval { $other->command('PING'); 1 }, 'another name, or nobody\'s certificate';
    isa_ok $@, 'Oribi::Redis::Error::Connection';
    like $@, qr/TLS: /;
}
my $plain = Oribi::Redis->new(host => 'localhost', port => $port, reconnect_attempts => 0);
ok !eval { $plain->command('PING'); 1 }, 'without TLS';
my $strange = Oribi::Redis->new(host => 'localhost', port => $server->port, tls => 1, reconnect_attempts => 0);
ok !eval { $strange->command('PING'); 1 }, 'TLS to a plain port';
isa_ok $@, 'Oribi::Redis::Error::Connection';

done_testing;
