use strict;
use warnings;
use Test::More;
use lib 't/lib';
use BadServer;
use RedisServer;
use Oribi::Redis;

my $server = RedisServer->start or plan skip_all => 'redis-server is not installed';
my $redis  = Oribi::Redis->new($server->place);

is $redis->noreply('SET', 'a', 1), 1, 'one command';
is $redis->noreply(['SET', 'b', 2], ['INCR', 'b'], 'PING'), 3, 'several';
is $redis->noreply, 0, 'none';
is $redis->command('GET', 'b'), 3, 'the reply of a command is its own';
is $redis->settle, 4, 'replies are counted';
is $redis->settle, 0, '... once';

$redis->noreply('LPUSH', 'a', 1);
is_deeply [$redis->pipeline(['GET', 'a'], ['GET', 'b'])], [1, 3];
my ($count, @errors) = $redis->settle;
is $count, 1;
is @errors, 1;
is $errors[0]->code, 'WRONGTYPE', 'the error is told';
is_deeply [$redis->settle], [0], '... once';

$redis->noreply(['LPUSH', 'a', 1], ['SET', 'c', 1]);
ok !eval { my $n = $redis->settle; 1 }, 'a number alone would hide errors';
is((($redis->settle)[1])->code, 'WRONGTYPE', '... which are still there');

$redis->noreply(map { ['LPUSH', 'a', 1] } 1 .. 50);
($count, @errors) = $redis->settle;
is $count, 50;
like $errors[-1], qr/\A[0-9]+ more commands/, 'more than are kept';
is $#errors, 16;

$redis->noreply(map { ['SET', "k$_", 'x' x 100] } 1 .. 1000) for 1 .. 30;
is $redis->command('GET', 'k1000'), 'x' x 100, 'more than may be unread';
is $redis->settle, 30_000;

my $big = 'x' x 200_000;
$redis->noreply(['SET', 'big', $big], (['GET', 'big']) x 50);
is $redis->command('ECHO', 'here'), 'here', 'long replies of nobody';
is $redis->settle, 51;

for my $wrong (['SUBSCRIBE', 'x'], ['CLIENT', 'REPLY', 'OFF'], ['SELECT', 2], ['SET', 'k', undef]) {
    ok !eval { $redis->noreply(@$wrong); 1 };
    isa_ok $@, 'Oribi::Redis::Error::Usage';
}
is $redis->command('ECHO', 'next'), 'next';

subtest 'a connection that ends' => sub {
    my $bad = BadServer->start(
        sub { my ($client) = @_; sysread $client, my $request, 65536; syswrite $client, "+OK\r\n" },
        BadServer::says("+right\r\n", "+right\r\n"),
    );
    my $own = Oribi::Redis->new(path => $bad->path, protocol => 2, reconnect_delay_ms => 1);
    $own->noreply(['SET', 'a', 1], ['SET', 'b', 1], ['SET', 'c', 1]);
    1 while eval { $own->command('INCR', 'k') ne 'right' };
    my ($n, @told) = $own->settle;
    ok @told, 'replies that were lost are told';
    like $told[-1], qr/lost/;
    isa_ok $told[-1], 'Oribi::Redis::Error::Connection';
};

subtest 'errors that nobody asks for' => sub {
    my @warned;
    local $SIG{__WARN__} = sub { push @warned, @_ };
    my $own = Oribi::Redis->new($server->place);
    $own->noreply('LPUSH', 'a', 1);
    $own->command('PING');
    undef $own;
    like $warned[0], qr/1 failed.*WRONGTYPE/, 'a warning at the end';
    $own = Oribi::Redis->new($server->place);
    $own->noreply('SET', 'a', 1);
    $own->settle;
    undef $own;
    is @warned, 1, 'none where all is well';
};

done_testing;
