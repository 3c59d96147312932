use strict;
use warnings;
use Test::More;
use lib 't/lib';
use BadServer;
use RedisServer;
use Oribi::Redis;
use POSIX ();
use Time::HiRes ();

subtest 'Sentinels that do not help' => sub {
    my $none = BadServer->start(BadServer::says("*-1\r\n*0\r\n"));
    my $mute = BadServer->start(BadServer::says_and_leaves(''));
    my $redis = Oribi::Redis->new(sentinels => [$none->path, $mute->path], service => 'main', reconnect_attempts => 0);
    ok !eval { $redis->command('PING'); 1 };
    isa_ok $@, 'Oribi::Redis::Error::Connection';
    like $@, qr/no Sentinel knows the master of main: .*knows no master of that name; .*closed/;
    my $silent = BadServer->start(BadServer::says(''));
    local $SIG{ALRM} = sub { die "alarm\n" };
    my $waiting = Oribi::Redis->new(sentinels => [$silent->path], service => 'main');
    ok !eval { Time::HiRes::ualarm(30_000); $waiting->command('PING'); 1 };
    is $@, "alarm\n", 'an exception in a signal handler passes';
    for my $wrong ([sentinels => 'x', service => 'main'], [sentinels => [], service => 'main'], [sentinels => ['x']], [sentinels => ['x:0'], service => 'main'],
        [sentinels => [map { "x:$_" } 1 .. 33], service => 'main'], [sentinels => ['x'], service => 'x' x 256]) {
        ok !eval { Oribi::Redis->new(@$wrong); 1 };
        isa_ok $@, 'Oribi::Redis::Error::Usage';
    }
};

my $master = RedisServer->start or plan skip_all => 'redis-server is not installed';
my $replica = RedisServer->start(replicaof => '127.0.0.1 ' . $master->port, 'repl-diskless-sync-delay' => 0);
my $path    = File::Temp->newdir('oribi-redis-XXXXXX', TMPDIR => 1);
my $port    = RedisServer::free_port();
open my $config, '>', "$path/sentinel" or die "sentinel: $!";
print {$config} join "\n", "port $port", "dir $path", "logfile $path/log", 'sentinel monitor main 127.0.0.1 ' . $master->port . ' 1',
    'sentinel down-after-milliseconds main 600000', 'sentinel failover-timeout main 3000', '';
close $config or die "sentinel: $!";
my $sentinel = fork // die "fork: $!";
if (!$sentinel) {
    delete $ENV{LD_PRELOAD};
    exec $master->{program}, "$path/sentinel", '--sentinel' or POSIX::_exit(127);
}
END { if ($sentinel) { local $?; kill 'KILL', $sentinel; waitpid $sentinel, 0 } }

sub until_true {
    my ($code) = @_;
    my $until = time + 120;
    until (eval { $code->() }) {
        return 0 if time > $until;
        Time::HiRes::sleep(0.02);
    }
    return 1;
}

my $asked = Oribi::Redis->new(host => '127.0.0.1', port => $port, protocol => 2);
ok until_true(sub { my %of = @{ $asked->command('SENTINEL', 'MASTER', 'main') }; $of{'num-slaves'} == 1 }), 'the Sentinel knows both';
ok until_true(sub { Oribi::Redis->new($replica->place)->command('INFO', 'replication') =~ /master_link_status:up/ }), 'the replica follows';

my $redis = Oribi::Redis->new(sentinels => ['127.0.0.1:1', "127.0.0.1:$port"], service => 'main', reconnect_attempts => 20);
is $redis->command('SET', 'k', 'v'), 'OK';
is((Oribi::Redis->new($master->place)->command('GET', 'k')), 'v', 'on the master');
ok until_true(sub { (Oribi::Redis->new($replica->place)->command('GET', 'k') // '') eq 'v' });

# Until now a slow machine must not make it seem down.
is $asked->command('SENTINEL', 'SET', 'main', 'down-after-milliseconds', 300), 'OK';
$master->stop('KILL');
ok until_true(sub { $redis->command('SET', 'after', 1) eq 'OK' }), 'the new master takes writes';
is $redis->command('GET', 'k'), 'v', '... and has what the first one had';
is((Oribi::Redis->new($replica->place)->command('GET', 'after')), 1);

Oribi::Redis->new($replica->place)->command('REPLICAOF', '127.0.0.1', $master->port);
ok !eval { $redis->command('SET', 'k', 'w'); 1 };
is $@->code, 'READONLY';
ok !$redis->is_connected, 'a master that is none any more is left';

done_testing;
