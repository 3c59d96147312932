use strict;
use warnings;
use Test::More;
use lib 't/lib';
use BadServer;
use RedisServer;
use Oribi::Redis;
use POSIX ();
use Time::HiRes ();

my $server = RedisServer->start or plan skip_all => 'redis-server is not installed';

for my $protocol (2, 3) {
    subtest "protocol $protocol" => sub {
        my $redis        = Oribi::Redis->new($server->place, protocol => $protocol);
        my $subscription = $redis->subscribe('a', 'b');
        is_deeply $subscription->next_event, ['subscribe', 'a', 1];
        is_deeply $subscription->next_event(5000), ['subscribe', 'b', 2];
        is $subscription->next_event(1), undef, 'nothing came';
        is $subscription->next(0), undef, 'nothing came';
        is $redis->command('PUBLISH', 'b', 'text'), 1, 'the client itself goes on';
        is_deeply $subscription->next, { channel => 'b', message => 'text' };
        $redis->command('PUBLISH', 'a', 'x' x 300_000);
        is length $subscription->next->{message}, 300_000, 'a long one';
        $redis->pipeline(map { ['PUBLISH', 'a', $_] } 1 .. 1000);
        is_deeply [map { $subscription->next(5000)->{message} } 1 .. 1000], [1 .. 1000], 'many';
        $subscription->psubscribe('p*');
        is_deeply $subscription->next_event, ['psubscribe', 'p*', 3];
        $redis->command('PUBLISH', 'pq', 'text');
        is_deeply $subscription->next, { pattern => 'p*', channel => 'pq', message => 'text' };
        $subscription->unsubscribe('a');
        is_deeply $subscription->next_event, ['unsubscribe', 'a', 2];

        my $ran = 0;
        local $SIG{ALRM} = sub { $ran++; die "alarm\n" };
        ok !eval { Time::HiRes::ualarm(20_000); $subscription->next; 1 };
        is $@, "alarm\n", 'a handler ends the wait';
        $redis->command('PUBLISH', 'b', 'after');
        is_deeply $subscription->next, { channel => 'b', message => 'after' }, '... and the subscription goes on';

        $redis->command('CLIENT', 'KILL', 'TYPE', 'pubsub');
        ok !eval { $subscription->next; 1 };
        isa_ok $@, 'Oribi::Redis::Error::Connection', 'the end of the connection';
        ok !eval { $subscription->subscribe('c'); 1 };
        isa_ok $@, 'Oribi::Redis::Error::Connection', '... ends the subscription';
    };
}

subtest 'another process' => sub {
    my $redis        = Oribi::Redis->new($server->place);
    my $subscription = $redis->subscribe('a');
    $subscription->next_event;
    $redis->command('PUBLISH', 'a', 'for the parent');
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        my $right = !eval { $subscription->next(1000); 1 } && ref $@ eq 'Oribi::Redis::Error::Connection';
        undef $subscription;
        POSIX::_exit($right ? 0 : 1);
    }
    waitpid $pid, 0;
    is $?, 0, 'does not take what is the parent\'s';
    is $subscription->next(5000)->{message}, 'for the parent';
};

subtest 'refused' => sub {
    my $bad = BadServer->start(BadServer::says("-NOPERM this user has no permissions\r\n"));
    my $subscription = Oribi::Redis->new(path => $bad->path, protocol => 2)->subscribe('a');
    ok !eval { $subscription->next; 1 };
    isa_ok $@, 'Oribi::Redis::Error::Command';
};

done_testing;
