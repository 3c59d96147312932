use strict;
use warnings;
use utf8;
use Test::More;
use lib 't/lib';
use RedisServer;
use Oribi::Redis;

my $server = RedisServer->start or plan skip_all => 'redis-server is not installed';

for my $how (['unix', path => $server->path], ['tcp', host => '127.0.0.1', port => $server->port], ['url', url => 'redis://127.0.0.1:' . $server->port]) {
    my ($name, @place) = @$how;
    my $redis = Oribi::Redis->new(@place);
    is $redis->command('SET', 'k', 'v'), 'OK', "$name: a status";
    is $redis->command('GET', 'k'), 'v', "$name: a string";
}
is(Oribi::Redis->new('unix://' . $server->path)->command('GET', 'k'), 'v', 'one argument is a URL');
is(Oribi::Redis->new({ path => $server->path })->command('GET', 'k'), 'v', 'options as a hash');
{
    local $ENV{REDIS_URL} = 'unix://' . $server->path;
    is(Oribi::Redis->new->command('GET', 'k'), 'v', 'REDIS_URL');
}

my $redis = Oribi::Redis->new($server->place, client_name => 'me', db => 1);
is $redis->command('GET', 'k'), undef, 'another database, nothing';
is $redis->command('CLIENT', 'GETNAME'), 'me', 'the name of the client';
is $redis->command('INCRBY', 'n', -3), -3, 'an integer';
is $redis->command('SET', 'empty', ''), 'OK';
is $redis->command('GET', 'empty'), '', 'an empty string';
is_deeply $redis->command('MGET', 'n', 'nothing'), ['-3', undef], 'an array with nothing in it';
$redis->command('HSET', 'h', 'a', 1, 'b', 2);
is_deeply $redis->command('HGETALL', 'h'), { a => 1, b => 2 }, 'a map is a hash';
is_deeply(Oribi::Redis->new($server->place, db => 1, protocol => 2)->command('HGETALL', 'h'), ['a', 1, 'b', 2], '... with protocol 2 an array');
$redis->command('SADD', 's', 'x');
is_deeply $redis->command('SMEMBERS', 's'), ['x'], 'a set is an array';
$redis->command('ZADD', 'z', 1.5, 'm', 'inf', 'i');
is $redis->command('ZSCORE', 'z', 'm'), 1.5, 'a double';
is $redis->command('ZSCORE', 'z', 'i'), 9**9**9, 'infinity';
is_deeply $redis->command('ZRANGE', 'z', 0, 0, 'WITHSCORES'), [['m', 1.5]], 'nested arrays';
is_deeply $redis->command('EVAL', 'return {1, {2, {"three"}}, {err = "no"}}', 0)->[1], [2, ['three']], 'nested arrays of a script';
is ref $redis->command('EVAL', 'return {{err = "no"}}', 0)->[0], 'Oribi::Redis::Error::Command', 'an error within a reply stays in its place';
is $redis->command('EVAL', 'redis.setresp(3) return true', 0), 1, 'true';
is $redis->command('EVAL', 'redis.setresp(3) return {big_number = "123456789012345678901234567890"}', 0), '123456789012345678901234567890', 'a big number';
like $redis->command('INFO', 'server'), qr/redis_version/, 'a verbatim string';

subtest 'errors' => sub {
    $redis->command('SET', 'text', 'v');
    ok !eval { $redis->command('LPUSH', 'text', 1) };
    isa_ok $@, 'Oribi::Redis::Error::Command';
    isa_ok $@, 'Oribi::Redis::Error';
    is $@->code, 'WRONGTYPE';
    like "$@", qr/\AWRONGTYPE Operation/;
    is $redis->command('GET', 'text'), 'v', 'the next command is right';
};

subtest 'pipelines' => sub {
    my @replies = $redis->pipeline(['SET', 'p', 1], 'PING', ['LPUSH', 'p', 1], ['INCR', 'p']);
    is_deeply [@replies[0, 1, 3]], ['OK', 'PONG', 2];
    is $replies[2]->code, 'WRONGTYPE', 'an error in its place';
    is_deeply [$redis->pipeline], [], 'none';
    my @many = $redis->pipeline(map { ['ECHO', $_] } 1 .. 5000);
    is_deeply \@many, [1 .. 5000], 'many';
    my $big = 'x' x 300_000;
    is_deeply [map {length} $redis->pipeline(map { (['SET', "big$_", $big], ['GET', "big$_"]) } 1 .. 40)], [(2, 300_000) x 40],
        'more both ways than sockets hold';
};

subtest 'large values' => sub {
    for my $size (16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 32 * 1024 - 1, 32 * 1024, 65_536, 1 << 20, (1 << 20) + 1, 20 << 20) {
        my $value = join '', map { chr $_ % 251 } 1 .. 1000;
        $value = substr $value x (1 + $size / 1000), 0, $size;
        is $redis->command('SET', 'large', $value), 'OK';
        ok $redis->command('GET', 'large') eq $value, "$size bytes";
    }
    my $array = $redis->command('MGET', ('large') x 3);
    is_deeply [map {length} @$array], [(20 << 20) x 3], 'in an array';
    $redis->command('SET', $_ x 100_000, $_) for 'a', 'b';
    is_deeply [sort map { substr $_, 0, 1 } grep { length == 100_000 } @{ $redis->command('KEYS', '*') }], ['a', 'b'], 'as keys';
};

subtest 'transactions' => sub {
    $redis->command('SET', 't', 1);
    is_deeply $redis->multi(sub { $_[0]->command('INCR', 't')->command('INCR', 't') }), [2, 3];
    is $redis->multi(watch => ['t'], sub { Oribi::Redis->new($server->place, db => 1)->command('SET', 't', 9); $_[0]->command('INCR', 't') }),
        undef, 'a watched key has changed';
    is $redis->command('GET', 't'), 9;
    is_deeply $redis->multi(watch => ['t'], sub { my ($queue, $own) = @_; $queue->command('SET', 't', 1 + $own->command('GET', 't')) }), ['OK'];
    is $redis->command('GET', 't'), 10;
    ok !eval { $redis->multi(sub { $_[0]->command('NOSUCH') }) };
    like $@, qr/unknown command/, 'what is wrong with a queued command';
    ok !eval { $redis->multi(watch => ['t'], sub { die "own\n" }) };
    is $@, "own\n";
    is_deeply $redis->multi(sub { }), [], 'nothing';
    is_deeply $redis->multi(sub { $_[0]->command('LPUSH', 't', 1)->command('GET', 't') })->[1], 10, 'an error of one does not keep the others';
};

subtest 'iterators' => sub {
    $redis->command('FLUSHDB');
    $redis->pipeline(map { ['SET', "scan:$_", $_] } 1 .. 500);
    my %seen;
    my $scan = $redis->scan(match => 'scan:*', count => 50);
    while (defined(my $key = $scan->next)) { $seen{$key}++ }
    is keys %seen, 500;
    $redis->command('HSET', 'h', map { ("f$_", $_) } 1 .. 300);
    my %hash;
    my $fields = $redis->hscan('h');
    while (my ($field, $value) = $fields->next) { $hash{$field} = $value }
    is_deeply \%hash, { map { ("f$_", $_) } 1 .. 300 };
    $redis->command('SADD', 's', 1 .. 300);
    is_deeply [sort { $a <=> $b } $redis->sscan('s')->all], [1 .. 300];
    $redis->command('ZADD', 'z', 1, 'a');
    is_deeply [$redis->zscan('z')->all], ['a', 1];
};

subtest 'scripts' => sub {
    my $script = $redis->script('return {KEYS[1], ARGV[1]}');
    is_deeply $script->call(['k'], 'a'), ['k', 'a'], 'not known to the server yet';
    is_deeply $script->call(['k'], 'b'), ['k', 'b'], 'known';
    is_deeply $redis->command('SCRIPT', 'EXISTS', $script->sha), [1];
    $redis->command('SCRIPT', 'FLUSH');
    is_deeply $script->call(['k'], 'c'), ['k', 'c'], 'forgotten';
    ok !eval { $redis->script('return redis.call("nosuch")')->call };
    isa_ok $@, 'Oribi::Redis::Error::Command';
};

subtest 'what changes the connection comes again on the next' => sub {
    my $own = Oribi::Redis->new($server->place);
    $own->command('SELECT', 3);
    $own->command('SET', 'where', 'three');
    $own->close;
    is $own->command('GET', 'where'), 'three', 'SELECT';
    $own->command('HELLO', 2);
    $own->close;
    is ref $own->command('CONFIG', 'GET', 'port'), 'ARRAY', 'HELLO';
    is ref $own->hello(3), 'HASH', 'hello';
    ok !eval { $own->pipeline(['SELECT', 1]) };
    like $@, qr/by command/;
    for my $command (['SUBSCRIBE', 'x'], ['monitor'], ['CLIENT', 'REPLY', 'OFF'], ['client', 'reply', 'skip']) {
        ok !eval { $own->command(@$command) }, "@$command";
        isa_ok $@, 'Oribi::Redis::Error::Usage';
    }
    is $own->command('GET', 'where'), 'three', 'the next command is right';
};

done_testing;
