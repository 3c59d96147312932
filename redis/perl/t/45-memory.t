use strict;
use warnings;
use Test::More;
use lib 't/lib';
use BadServer;
use RedisServer;
use Oribi::Redis;
use Oribi::Redis::Jet qw(parse_message);
use Time::HiRes ();

# Whatever is done again and again leaves nothing behind: memory after many times is what it was after some.

plan skip_all => 'needs /proc' unless -r '/proc/self/status';
plan skip_all => 'a sanitizer keeps what was freed' if ($ENV{LD_PRELOAD} // '') =~ /asan/;
my $server = RedisServer->start or plan skip_all => 'redis-server is not installed';
my $redis  = Oribi::Redis->new($server->place);
my $chars  = Oribi::Redis->new($server->place, utf8 => 1);
my $jet    = Oribi::Redis::Jet->new(server => $server->path);
$redis->command('SET', 'k', 'v' x 100);
$redis->command('HSET', 'h', map {$_} 1 .. 100);
$redis->command('RPUSH', 'l', 1 .. 50);

sub memory_kb {
    open my $fh, '<', '/proc/self/status' or die "status: $!";
    my ($kb) = do { local $/; <$fh> } =~ /^VmData:\s+([0-9]+)/m;
    return $kb;
}

sub leaves_nothing {
    my ($name, $times, $code) = @_;
    $code->() for 1 .. $times;
    my $before = memory_kb();
    $code->() for 1 .. 4 * $times;
    cmp_ok memory_kb() - $before, '<', 300, $name;
    return;
}

my $bad = BadServer->start(BadServer::says("*3\r\n+a\r\n%1\r\n+k\r\n"));
my $wrong = BadServer->start(BadServer::says("*2\r\n\$3\r\nabc\r\n^\r\n"));
my $object = bless {}, 'Text';
{ package Text; use overload '""' => sub {'text'}; }

leaves_nothing('commands',           2000, sub { $redis->command('GET', 'k') });
leaves_nothing('hashes and lists',   500,  sub { $redis->pipeline(['HGETALL', 'h'], ['LRANGE', 'l', 0, -1]) });
leaves_nothing('errors',             1000, sub { eval { $redis->command('LPUSH', 'k', 1) } });
leaves_nothing('errors in pipelines', 500, sub { my @r = $redis->pipeline(['LPUSH', 'k', 1], 'PING') });
leaves_nothing('wrong arguments',    1000, sub { eval { $redis->command('SET', 'k', undef) }; eval { $redis->pipeline(['SET', 'k', []]) } });
leaves_nothing('overloaded ones',    1000, sub { $redis->command('ECHO', $object); $redis->pipeline(['ECHO', $object]) });
leaves_nothing('characters',         1000, sub { $chars->command('ECHO', "\x{263a}") });
leaves_nothing('without reply',      1000, sub { $redis->noreply(['SET', 'a', 1], ['LPUSH', 'a', 1]); my @e = $redis->settle });
leaves_nothing('long values',        50,   sub { $redis->command('SET', 'long', 'x' x 200_000); $redis->command('GET', 'long') });
leaves_nothing('clients',            200,  sub { Oribi::Redis->new($server->place, client_name => 'x')->command('PING') });
leaves_nothing('subscriptions',      200,  sub { my $s = $redis->subscribe('c'); $s->next_event });
leaves_nothing('transactions',       300,  sub { $redis->multi(watch => ['k'], sub { $_[0]->command('GET', 'k') }) });
leaves_nothing('iterators',          300,  sub { my @all = $redis->hscan('h')->all });
leaves_nothing('Jet',                1000, sub { my @r = $jet->command('LPUSH', 'k', 1); @r = $jet->pipeline(['GET', 'k'], ['LPUSH', 'k', 1]) });
leaves_nothing('parse_message',      1000, sub { parse_message("*2\r\n+a\r\n*1\r\n:1\r\n+b\r\n*3\r\n+c\r\n", \my @m); parse_message("+a\r\n^\r\n", \@m) });
my $broken = Oribi::Redis->new(path => $wrong->path, protocol => 2);
leaves_nothing('broken replies',     200,  sub { eval { $broken->command('GET', 'k') } });
my $slow = Oribi::Redis->new(path => $bad->path, protocol => 2, read_timeout_ms => 1);
leaves_nothing('half replies',       100,  sub { eval { $slow->command('GET', 'k') } });
local $SIG{ALRM} = sub { die "alarm\n" };
my $waiting = Oribi::Redis->new(path => $bad->path, protocol => 2, read_timeout_ms => 0);
leaves_nothing('exceptions in handlers', 50, sub { eval { Time::HiRes::ualarm(1500); $waiting->command('GET', 'k') }; Time::HiRes::ualarm(0) });

done_testing;
