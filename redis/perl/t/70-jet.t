use strict;
use warnings;
use utf8;
use Test::More;
use lib 't/lib';
use BadServer;
use RedisServer;
use Oribi::Redis::Jet qw(parse_message parse_message_utf8);

subtest 'parse_message' => sub {
    my @cases = (
        ["+OK\r\n", 5, ['OK']],
        ["-boofy\r\n", 8, [undef, 'boofy']],
        [":12\r\n", 5, [12]],
        ["\$5\r\nboofy\r\n", 11, ['boofy']],
        ["\$0\r\n\r\n", 6, ['']],
        ["\$-1\r\n", 5, [undef]],
        ["*-1\r\n", 5, [undef]],
        ["*0\r\n", 4, [[]]],
        ["*2\r\n\$3\r\nset\r\n\$6\r\nfoofoo\r\n*1\r\n\$4\r\nping\r\n", 39, [['set', 'foofoo']], [['ping']]],
        ["*2\r\n:1\r\n*1\r\n\$-1\r\n", 17, [[1, [undef]]]],
        ['', 0],
        ["+OK\r\n+O", 5, ['OK']],
        ["*2\r\n+a\r\n", 0],
        ["\$5\r\nboo", 0],
    );
    for my $case (@cases) {
        my ($bytes, $used, @wanted) = @$case;
        my @messages;
        (my $name = $bytes) =~ s/\r\n/|/g;
        is parse_message($bytes, \@messages), $used, "'$name'";
        is_deeply \@messages, \@wanted;
    }
    is parse_message("^OK\r\n", []), undef, 'no reply';
    my @messages;
    is parse_message("+a\r\n^OK\r\n", \@messages), undef;
    is_deeply \@messages, [['a']], 'what came before';
    my $long = "\$100000\r\n" . 'x' x 100_000 . "\r\n";
    @messages = ();
    is parse_message($long, \@messages), length $long;
    is length $messages[0][0], 100_000;
    @messages = ();
    is parse_message(substr($long, 0, 60_000), \@messages), 0, 'a long one, cut';
    is_deeply \@messages, [];
    is parse_message_utf8("\$3\r\n\xe2\x98\xba\r\n", \@messages), 9;
    is_deeply \@messages, [["\x{263a}"]];
};

my $server = RedisServer->start or plan skip_all => 'redis-server is not installed';

for my $place ($server->path, '127.0.0.1:' . $server->port, 'localhost:' . $server->port) {
    my $jet = Oribi::Redis::Jet->new({ server => $place });
    is $jet->command(qw(set foo foovalue)), 'OK', $place;
    is $jet->command(qw(set bar barvalue)), 'OK';
    is_deeply [$jet->command(qw(get foo))], ['foovalue'];
    is_deeply [$jet->command(qw(get foo bar))], [undef, q{ERR wrong number of arguments for 'get' command}];
    is scalar($jet->command(qw(get foo bar))), undef;
    is_deeply $jet->command(qw(mget foo bar baz)), ['foovalue', 'barvalue', undef];
    is_deeply [$jet->pipeline(qw(ping ping))], [['PONG'], ['PONG']];
    is_deeply [$jet->pipeline([qw(get foo)], 'ping', [qw(get bar baz)])],
        [['foovalue'], ['PONG'], [undef, q{ERR wrong number of arguments for 'get' command}]];
    is_deeply [$jet->pipeline(['multi'], ['incr', 'n'], ['exec'])]->[0], ['OK'];
    is $jet->command('set', 'big', 'x' x (1 << 20)), 'OK';
    is length $jet->command('get', 'big'), 1 << 20;
    is $jet->command('set', 'x' x (1 << 20), 1), 'OK', 'a key of 1 MiB';
    is scalar(my @hundred = $jet->pipeline(map { ['set', "k$_", 'x' x 10_000] } 1 .. 100)), 100;
}

subtest 'utf8' => sub {
    my $chars = Oribi::Redis::Jet->new(server => $server->path, utf8 => 1);
    my $bytes = Oribi::Redis::Jet->new(server => $server->path);
    $chars->command('set', 'foo', "\xE5");
    $chars->command('set', 'bar', "\x{263A}");
    is_deeply [$chars->pipeline(['get', 'foo'], ['get', 'bar'])], [["\xE5"], ["\x{263A}"]];
    $bytes->command('set', 'foo', "\xE5");
    $bytes->command('set', 'bar', "\x{263A}");
    is_deeply [$bytes->pipeline(['get', 'foo'], ['get', 'bar'])], [["\xE5"], ["\xE2\x98\xBA"]], 'characters are sent as UTF-8 all the same';
    my $large = 'あいう' x 30_000;
    $chars->command('set', 'large', $large);
    ok $chars->command('get', 'large') eq $large;
};

subtest 'noreply' => sub {
    my $jet = Oribi::Redis::Jet->new(server => $server->path, noreply => 1);
    is $jet->command('set', 'silent', 1), '0 but true';
    is_deeply [$jet->pipeline(['incr', 'silent'], 'ping')], [['0 but true'], ['0 but true']];
    undef $jet;
    is(Oribi::Redis::Jet->new(server => $server->path)->command('get', 'silent'), 2);
};

subtest 'failures are values' => sub {
    # four connections: what is no reply, an early end, silence, and answers
    my $bad = BadServer->start(BadServer::says("+OK\r\n+OK\r\n^OK\r\n+OK\r\n"), BadServer::says_and_leaves("+OK\r\n+OK\r\n"), BadServer::says(''), BadServer::says("+OK\r\n"));
    my $jet = Oribi::Redis::Jet->new(server => $bad->path, io_timeout => 5);
    is_deeply [$jet->pipeline(qw(ping ping ping ping))], [['OK'], ['OK'], ([undef, 'failed to parse message: corrupted message found']) x 2];
    my @replies = $jet->pipeline(qw(ping ping ping ping));
    is_deeply [@replies[0, 1]], [['OK'], ['OK']];
    like $_->[1], qr/\Afailed to read message:/ for @replies[2, 3];
    my $quick = Oribi::Redis::Jet->new(server => $bad->path, io_timeout => 0.05);
    like +($quick->command('ping'))[1], qr/\Afailed to read message:/, 'half a second is half a second';
    is $jet->command('ping'), 'OK', 'the next one is right';
    $bad->stop;
    like +($quick->command('ping'))[1], qr/\Afailed/ for 1 .. 2;
    like +($quick->pipeline('ping', 'ping'))[1][1], qr/\Afailed to connect server:/;
};

subtest 'options' => sub {
    for my $name (qw(utf8 connect_timeout io_timeout noreply reconnect_attempts reconnect_delay)) {
        ok !eval { Oribi::Redis::Jet->new(server => 'localhost:6379', $name => -1) };
        like $@, qr/\A$name must be larger than zero/;
    }
};

done_testing;
