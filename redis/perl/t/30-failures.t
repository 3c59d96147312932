use strict;
use warnings;
use Test::More;
use lib 't/lib';
use BadServer;
use Oribi::Redis;

# What servers and signals do to a command: an exception of the right class, and a next command that is right.

my $answer = BadServer::says("+right\r\n", "+right\r\n", "+right\r\n");

sub client {
    my ($server, %options) = @_;
    return Oribi::Redis->new($server->place, protocol => 2, reconnect_delay_ms => 1, read_timeout_ms => 5000, %options);
}

sub fails {
    my ($name, $class, $script, %options) = @_;
    subtest $name => sub {
        my $server = BadServer->start($script, $answer);
        my $redis  = client($server, %options);
        ok !eval { my $got = $redis->command('INCR', 'k'); diag explain $got; 1 }, 'dies';
        isa_ok $@, "Oribi::Redis::Error::$class" or diag $@;
        ok !$redis->is_connected, 'the connection is closed';
        is $redis->blocking(5000, 'INCR', 'k'), 'right', 'the next command is right';
    };
    return;
}

fails('no Redis', 'Protocol', BadServer::says("HTTP/1.1 400 Bad Request\r\n\r\n"));
fails('a bulk length of 2^62', 'Protocol', BadServer::says("\$4611686018427387904\r\n"));
fails('a negative length', 'Protocol', BadServer::says("\$-2\r\n"));
fails('an array of 2^62', 'Protocol', BadServer::says("*4611686018427387904\r\n"));
fails('nesting of 10,000', 'Protocol', BadServer::says("*1\r\n" x 10_000));
fails('a line without end', 'Protocol', BadServer::says('+' . 'x' x 200_000));
fails('a string without its end', 'Protocol', BadServer::says("\$3\r\nabcd\r\n"));
fails('a long string without its end', 'Protocol', BadServer::says("\$100000\r\n" . 'x' x 100_004));
fails('a map whose key is an array', 'Protocol', BadServer::says("%1\r\n*1\r\n:1\r\n:2\r\n"));
fails('no reply', 'Timeout', BadServer::says(''), read_timeout_ms => 50);
fails('half a reply', 'Timeout', BadServer::says("\$10\r\nhalf"), read_timeout_ms => 50);
fails('half a long reply', 'Timeout', BadServer::says("\$100000\r\n" . 'x' x 50_000), read_timeout_ms => 50);
fails('closed instead of a reply', 'Connection', BadServer::says_and_leaves(''));
fails('closed in a reply', 'Connection', BadServer::says_and_leaves("\$10\r\nhalf"));
fails('closed in a long reply', 'Connection', BadServer::says_and_leaves("\$100000\r\nhalf"));

subtest 'cut at every byte' => sub {
    my $reply = "*3\r\n\$3\r\nabc\r\n:12\r\n*1\r\n+ok\r\n";
    my @cuts  = 1 .. length($reply) - 1;
    my $server = BadServer->start((map { my $n = $_; BadServer::says_and_leaves(substr $reply, 0, $n) } @cuts), $answer);
    my $redis = client($server, reconnect_attempts => 0);
    my $right = 0;
    for my $n (@cuts) {
        $right++ if !eval { $redis->command('INCR', 'k'); 1 } && ref $@ eq 'Oribi::Redis::Error::Connection';
    }
    is $right, @cuts, 'each is a lost connection';
    is $redis->command('INCR', 'k'), 'right';
};

subtest 'in pieces of a byte' => sub {
    my $reply  = "*3\r\n\$3\r\nabc\r\n:12\r\n*1\r\n+ok\r\n";
    my $server = BadServer->start(sub {
        my ($client) = @_;
        sysread $client, my $request, 65536;
        for my $byte (split //, $reply) { syswrite $client, $byte; select undef, undef, undef, 0.001 }
        1 while sysread $client, my $rest, 65536;
    });
    is_deeply(client($server)->command('GET', 'k'), ['abc', 12, ['ok']]);
};

subtest 'a reply that nobody asked for' => sub {
    my $server = BadServer->start(BadServer::says("+mine\r\n+whose\r\n"), $answer);
    my $redis  = client($server);
    is $redis->command('INCR', 'k'), 'mine';
    ok !eval { $redis->command('INCR', 'k'); 1 };
    isa_ok $@, 'Oribi::Redis::Error::Protocol';
    is $redis->command('INCR', 'k'), 'right';
};

subtest 'a push in the middle' => sub {
    my $push   = ">2\r\n+invalidate\r\n*1\r\n+k\r\n";
    my $server = BadServer->start(BadServer::says("$push+one\r\n$push+two\r\n$push", "+three\r\n"));
    my $redis  = client($server);
    is_deeply [$redis->pipeline(['GET', 1], ['GET', 2])], ['one', 'two'];
    is $redis->command('GET', 3), 'three';
};

subtest 'an exception in a signal handler' => sub {
    for my $text ('', "\$10\r\nha", "\$100000\r\nha", "*2\r\n+a\r\n") {
        # The server raises it, as it knows that the request has come.
        my $server = BadServer->start(sub {
            my ($client) = @_;
            sysread $client, my $request, 65536;
            syswrite $client, $text if length $text;
            select undef, undef, undef, 0.02;
            kill 'ALRM', getppid;
            1 while sysread $client, my $rest, 65536;
        }, $answer);
        my $redis  = client($server, read_timeout_ms => 0);
        local $SIG{ALRM} = sub { die "alarm\n" };
        ok !eval { $redis->command('GET', 'k'); 1 };
        is $@, "alarm\n";
        ok !$redis->is_connected, 'the connection is closed';
        is $redis->command('GET', 'k'), 'right', 'the late reply is nobody\'s';
    }
};

subtest 'a signal handler that returns' => sub {
    my $server = BadServer->start(sub {
        my ($client) = @_;
        sysread $client, my $request, 65536;
        kill 'USR1', getppid;
        select undef, undef, undef, 0.02;
        syswrite $client, "+patience\r\n";
        1 while sysread $client, my $rest, 65536;
    });
    my $redis = client($server);
    my ($ran, $inner) = (0);
    local $SIG{USR1} = sub { $ran++; eval { $redis->command('GET', 'inner') }; $inner = $@ };
    is $redis->command('GET', 'k'), 'patience';
    is $ran, 1, 'the handler ran';
    isa_ok $inner, 'Oribi::Redis::Error::Usage', 'the client is not for handlers';
};

subtest 'the client is dropped in a handler' => sub {
    my $server = BadServer->start(BadServer::says(''));
    my $redis  = client($server, read_timeout_ms => 0);
    local $SIG{ALRM} = sub { undef $redis; die "alarm\n" };
    require Time::HiRes;
    ok !eval { Time::HiRes::ualarm(30_000); $redis->command('GET', 'k'); 1 };
    is $@, "alarm\n";
    is $redis, undef;
};

subtest 'what is sent again' => sub {
    my $count = sub {
        my (%options) = @_;
        my $command = delete $options{command};
        my $server  = BadServer->start(BadServer::says_and_leaves(''), BadServer::says_and_leaves(''), $answer);
        my $redis   = client($server, %options);
        return eval { $redis->command(@$command) } // ref $@;
    };
    is $count->(command => ['GET', 'k']), 'right', 'what only reads';
    is $count->(command => ['get', 'k']), 'right', '... in any case';
    is $count->(command => ['GET', 'k'], reconnect_attempts => 1), 'Oribi::Redis::Error::Connection', 'as often as the options say';
    is $count->(command => ['GET', 'k'], reconnect_attempts => 0), 'Oribi::Redis::Error::Connection', 'not at all';
    is $count->(command => ['GET', 'k'], resend => 'never'), 'Oribi::Redis::Error::Connection', 'never';
    is $count->(command => ['INCR', 'k']), 'Oribi::Redis::Error::Connection', 'not what may have been carried out';
    is $count->(command => ['INCR', 'k'], resend => 'always'), 'right', 'unless the user says so';
    is $count->(command => ['INCR', 'x' x 100_000], resend => 'always'), 'right', 'a long one';

    my $server = BadServer->start(BadServer::says_and_leaves(''), $answer);
    my $redis  = client($server);
    is_deeply [eval { $redis->pipeline(['GET', 1], ['INCR', 1]) }], [], 'a pipeline with one that writes';
    $server = BadServer->start(BadServer::says_and_leaves("+a\r\n"), BadServer::says("+b\r\n+c\r\n"));
    is_deeply [client($server)->pipeline(['GET', 1], ['GET', 2])], ['b', 'c'], 'a pipeline that only reads, from its beginning';
};

subtest 'a transaction ends with its connection' => sub {
    my $server = BadServer->start(BadServer::says_and_leaves("+OK\r\n"), $answer);
    my $redis  = client($server, resend => 'always');
    is $redis->command('WATCH', 'k'), 'OK';
    ok !eval { $redis->command('GET', 'k'); 1 };
    isa_ok $@, 'Oribi::Redis::Error::Connection';
    is $redis->command('GET', 'k'), 'right';
};

subtest 'errors of the server' => sub {
    my @said = ("LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.",
        "OOM command not allowed when used memory > 'maxmemory'.", "NOPERM this user has no permissions to run the 'get' command");
    my $server = BadServer->start(BadServer::says((map {"-$_\r\n"} @said), "!8\r\nERR a\r\nb\r\n", "+right\r\n"));
    my $redis  = client($server);
    for my $text (@said) {
        ok !eval { $redis->command('GET', 'k'); 1 };
        isa_ok $@, 'Oribi::Redis::Error::Command';
        is $@->message, $text;
        is $@->code, (split / /, $text)[0];
    }
    ok !eval { $redis->command('GET', 'k'); 1 };
    is $@->message, "ERR a\r\nb", 'a bulk error';
    is $redis->command('GET', 'k'), 'right', 'all on one connection';
};

subtest 'no server' => sub {
    my $server = BadServer->start($answer);
    my $path = $server->path;
    $server->stop;
    my $redis = Oribi::Redis->new(path => $path, reconnect_delay_ms => 1);
    ok !eval { $redis->command('GET', 'k'); 1 };
    isa_ok $@, 'Oribi::Redis::Error::Connection';
    ok !eval { Oribi::Redis->new(url => 'redis://nowhere.invalid', reconnect_attempts => 0)->command('PING'); 1 };
    isa_ok $@, 'Oribi::Redis::Error::Connection';
};

subtest 'a server that refuses the greeting' => sub {
    my $server = BadServer->start(BadServer::says("-WRONGPASS invalid username-password pair or user is disabled.\r\n"));
    my $redis = Oribi::Redis->new($server->place, password => 'x', reconnect_attempts => 0);
    ok !eval { $redis->command('GET', 'k'); 1 };
    isa_ok $@, 'Oribi::Redis::Error::Connection';
    like $@, qr/refuses the connection: WRONGPASS/;
};

subtest 'a server without HELLO' => sub {
    for my $line ("ERR unknown command 'HELLO'", 'NOPROTO unsupported protocol version') {
        my $server = BadServer->start(BadServer::says("-$line\r\n"));
        my $redis = Oribi::Redis->new($server->place, reconnect_attempts => 0);
        ok !eval { $redis->command('GET', 'k'); 1 };
        like $@, qr/refuses the connection: \Q$line\E; servers before Redis 6 want protocol => 2/;
    }
};

subtest 'a limit of its own' => sub {
    my $server = BadServer->start(BadServer::says(''), $answer);
    my $redis  = client($server, read_timeout_ms => 0);
    ok !eval { $redis->blocking(30, 'BLPOP', 'k', 0); 1 };
    isa_ok $@, 'Oribi::Redis::Error::Timeout';
    is $redis->blocking(0, 'BLPOP', 'k', 0), 'right', 'without a limit';
};

done_testing;
