use strict;
use warnings;
use Config;
use Test::More;
use lib 't/lib';
use RedisServer;
use Oribi::Redis;
use POSIX ();

my $server = RedisServer->start or plan skip_all => 'redis-server is not installed';

# What the code returns in a child, as text.
sub in_child {
    my ($code) = @_;
    pipe my $read, my $write or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        my $said = eval { $code->() } // "died: $@";
        syswrite $write, $said;
        POSIX::_exit(0);
    }
    close $write;
    my $said = do { local $/; <$read> };
    waitpid $pid, 0;
    return $said;
}

my $redis = Oribi::Redis->new($server->place);
my $mine  = $redis->command('CLIENT', 'ID');

subtest 'a child opens its own' => sub {
    my $ids = in_child(sub { join ' ', map { $redis->command('CLIENT', 'ID') } 1 .. 2 });
    my ($first, $second) = split / /, $ids;
    isnt $first, $mine, 'another connection';
    is $first, $second, '... and it stays';
    is $redis->command('CLIENT', 'ID'), $mine, "the parent's goes on";
};

subtest 'the end of a child leaves the connection alone' => sub {
    is in_child(sub { undef $redis; 'gone' }), 'gone';
    is $redis->command('CLIENT', 'ID'), $mine;
    is in_child(sub { $redis->close; 'closed' }), 'closed';
    is $redis->command('CLIENT', 'ID'), $mine;
    my $pid = fork // die "fork: $!";
    exit 0 if !$pid;    # with global destruction
    waitpid $pid, 0;
    is $redis->command('CLIENT', 'ID'), $mine;
};

subtest 'replies of commands without reply are the parent\'s' => sub {
    $redis->command('SET', 'text', 1);
    $redis->noreply(['LPUSH', 'text', 1], ['SET', 'a', 1]);
    is in_child(sub { $redis->command('ECHO', 'child') . ' ' . join ',', $redis->settle }), 'child 0';
    my ($count, @errors) = $redis->settle;
    is $count, 2;
    is $errors[0]->code, 'WRONGTYPE';
};

subtest 'many children at once' => sub {
    my @pids = map {
        my $n = $_;
        my $pid = fork // die "fork: $!";
        if (!$pid) {
            my $right = 0;
            for my $round (1 .. 200) { $right++ if $redis->command('ECHO', "$n:$round") eq "$n:$round" }
            POSIX::_exit($right == 200 ? 0 : 1);
        }
        $pid;
    } 1 .. 4;
    my $right = 0;
    for my $round (1 .. 200) { $right++ if $redis->command('ECHO', "p:$round") eq "p:$round" }
    is $right, 200, 'the parent';
    for my $pid (@pids) { waitpid $pid, 0; is $?, 0, 'a child' }
};

subtest 'a transaction is not the child\'s' => sub {
    $redis->command('WATCH', 'a');
    like in_child(sub { $redis->command('MULTI') }), qr/connection of the transaction is lost/;
    is $redis->command('UNWATCH'), 'OK';
};

subtest 'a server that was restarted' => sub {
    $server->stop('KILL');
    ok !eval { $redis->command('PING'); 1 };
    $server->run;
    is $redis->command('PING'), 'PONG';
    $server->stop('KILL');
    $server->run;
    is $redis->command('SET', 'a', 1), 'OK', 'its end is seen before the command is sent';
};

SKIP: {
    skip 'perl has no threads', 1 if !$Config{useithreads};
    require threads;
    subtest 'threads' => sub {
        my $id     = $redis->command('CLIENT', 'ID');
        my @others = map { threads->create(sub { join ' ', map { $redis->command('CLIENT', 'ID') } 1 .. 2 }) } 1 .. 3;
        my %seen   = ($id => 1);
        for my $thread (@others) {
            my ($first, $second) = split / /, $thread->join;
            is $first, $second;
            $seen{$first}++;
        }
        is keys %seen, 4, 'each has a connection';
        is $redis->command('CLIENT', 'ID'), $id;
    };
}

subtest 'taint' => sub {
    my $said = do {
        local $ENV{PERL5LIB} = join ':', @INC;
        open my $out, '-|', $^X, '-T', (map {"-I$_"} grep { !ref } @INC), '-MScalar::Util=tainted', '-MOribi::Redis', '-e',
            'my $r = Oribi::Redis->new(path => shift); $r->command("SET", "k", "v");
             print join ",", map { tainted($_) ? 1 : 0 } $r->command("GET", "k"), @{$r->command("MGET", "k")}, $r->command("DBSIZE")',
            $server->path or die;
        local $/;
        <$out>;
    };
    is $said, '1,1,1', 'replies are tainted';
};

done_testing;
