use strict;
use warnings;
use lib 't/lib';
use File::Temp ();
use IO::Select;
use OribiServer;
use OribiTest;
use Test::More;

# Oribi::Pure over sockets: what PSGI promises an application, and what HTTP promises a client. Its parser and writer
# have the cases of spec/ in 61-pure-spec.t.

my $dir = File::Temp->newdir;
open my $big, '>', "$dir/big" or die $!;
print {$big} map {"line $_\n"} 1 .. 100_000;
close $big or die $!;

package Lines;
my $closed = 0;
sub new { my ($class, @lines) = @_; return bless [@lines], $class }
sub getline { my $line = shift @{ $_[0] }; return ref $line ? $line->() : $line }
sub close { $closed++; return 1 }

package Named;
sub path { "$dir/big" }
sub getline { die "the file is read" }

package main;

my $kept;

my %route = (
    '/' => sub { [200, ['Content-Type' => 'text/plain'], ['hello ', 'world']] },
    '/part' => sub { [200, [], ['x' x 16_000]] },
    '/pid' => sub { [200, [], [$$]] },
    '/echo' => sub { local $/; my $in = $_[0]{'psgi.input'}; [200, [], [scalar <$in>]] },
    '/slurp' => sub { my ($env) = @_; my $all = join '', readline $env->{'psgi.input'}; seek $env->{'psgi.input'}, 0, 0; $env->{'psgi.input'}->read(my $again, 1 << 24); [200, [], [length($all) . ' ' . ($all eq $again ? 'same' : 'other')]] },
    '/keys' => sub { my ($env) = @_; [200, [], [join ' ', map { $_ . '=' . ($env->{$_} // '') } qw(REQUEST_METHOD PATH_INFO QUERY_STRING REQUEST_URI SCRIPT_NAME SERVER_NAME SERVER_PROTOCOL REMOTE_ADDR psgi.url_scheme)]] },
    '/lines' => sub { [200, [], Lines->new("one\n", "two\n", "three\n")] },
    '/numbers' => sub { my $n = 0; [200, [], Lines->new(map { sub { my $text = ''; $text .= sprintf "%015d\n", $n++ for 1 .. 500; $text } } 1 .. 1000)] },
    '/closed' => sub { [200, [], [$closed]] },
    '/file' => sub { open my $fh, '<', "$dir/big" or die $!; [200, [], $fh] },
    '/half' => sub { open my $fh, '<', "$dir/big" or die $!; readline $fh; [200, [], $fh] },
    '/named' => sub { [200, [], bless {}, 'Named'] },
    '/looks' => sub { my $is_there = defined $_[0]{'psgix.io'}; [200, [], [$is_there ? 'yes' : 'no']] },
    '/keeps' => sub { $kept = $_[0]{'psgix.io'}; [200, [], ['x']] },
    '/none' => sub { [204, [], []] },
    '/as-get' => sub { $_[0]{REQUEST_METHOD} = 'GET'; [200, [], ['got']] },
    '/dies' => sub { die "told to\n" },
    '/dies-in-body' => sub { [200, [], Lines->new("one\n", sub { die "told to\n" })] },
    '/bad-header' => sub { [200, ["X-A" => "1\r\nX-B: 2"], ['x']] },
    '/wide' => sub { [200, [], ["\x{3042}"]] },
    '/nothing' => sub { undef },
    '/short' => sub { [200, ['Content-Length' => 10], ['12345']] },
    '/long' => sub { [200, ['Content-Length' => 3], ['12345']] },
    '/exit' => sub { exit 3 },
    '/framed' => sub { [200, ['Transfer-Encoding' => 'chunked'], Lines->new("5\r\nhel", "lo\r\n0\r\n\r\n")] },
    '/delayed' => sub { sub { $_[0]->([200, [], ['later']]) } },
    '/stream' => sub { sub { my $writer = $_[0]->([200, ['Content-Type' => 'text/plain']]); $writer->write("part $_\n") for 1 .. 3; $writer->close } },
    '/unclosed' => sub { sub { my $writer = $_[0]->([200, []]); $writer->write('part'); return } },
    '/never' => sub { sub { return } },
    '/flood' => sub { sub { my $writer = $_[0]->([200, []]); $writer->write('x' x 65536) for 1 .. 160; $writer->close } },
    '/endless' => sub { sub { my $writer = $_[0]->([200, []]); $writer->write('x' x 65536) while 1 } },
    '/io' => sub { my ($env) = @_; sub { my $io = $env->{'psgix.io'}; $io->blocking(1); print {$io} "mine\n"; $io->flush } },
    '/slow' => sub { select undef, undef, undef, 0.3; [200, [], Lines->new('x', 'y')] },
    '/writes' => sub { my ($env) = @_; sub { my $io = $env->{'psgix.io'}; for (1 .. 3) { select undef, undef, undef, 0.1; syswrite $io, "mine\n" } } },
    '/cleanup' => sub { my ($env) = @_; push @{ $env->{'psgix.cleanup.handlers'} }, sub { open my $fh, '>', "$dir/cleaned"; print {$fh} 'yes' }; [200, [], ['x']] },
    '/harakiri' => sub { my ($env) = @_; $env->{'psgix.harakiri.commit'} = 1; [200, [], [$$]] },
    '/trailers' => sub { [200, [], [join ',', map {"$_=$_[0]{'oribi.trailers'}{$_}"} sort keys %{ $_[0]{'oribi.trailers'} || {} }]] },
    '/forks' => sub { my $pid = fork; if (!$pid) { return [200, [], ['child']] } waitpid $pid, 0; [200, [], ['parent']] },
);
my $app = sub { my ($env) = @_; my $code = $route{ $env->{PATH_INFO} } or return [404, [], ['no']]; return $code->($env) };

sub post { my ($target, $body, @fields) = @_; return "POST $target HTTP/1.1\r\nHost: a\r\n" . join('', map {"$_\r\n"} @fields) . 'Content-Length: ' . length($body) . "\r\n\r\n$body" }

for my $transport (qw(tcp unix)) {
    subtest "answers over $transport" => sub {
        my $server = start_pure($transport, $app, body_memory_max => '64K');
        my $one = $server->connect;
        my $get = sub { my ($target, %option) = @_; $one->send(($option{head} ? 'HEAD' : 'GET') . " $target HTTP/1.1\r\nHost: a\r\n\r\n"); return $one->response(%option) };
        is $get->('/')->{body}, 'hello world', 'a list';
        is_deeply $get->('/', head => 1)->{fields}{'content-length'}, [11], 'HEAD has the length';
        is $get->('/lines')->{body}, "one\ntwo\nthree\n", 'an object with getline';
        is $get->('/closed')->{body}, 1, 'and it was closed';
        my $file = $get->('/file');
        is length $file->{body}, -s "$dir/big", 'a file';
        is_deeply $file->{fields}{'content-length'}, [-s "$dir/big"], 'its length';
        is length $get->('/half')->{body}, (-s "$dir/big") - 7, 'a file that was read before';
        is length $get->('/named')->{body}, -s "$dir/big", 'a file by its name';
        is $get->('/looks')->{body}, 'yes', 'a look at the socket changes nothing';
        is_deeply $server->get('/keeps')->{fields}{connection}, ['close'], 'keeping it ends the connection';
        is $get->('/as-get', head => 1)->{status}, 200, 'HEAD, which the application takes for GET';
        is $get->('/none')->{status}, 204;
        is $get->('/framed')->{body}, 'hello', 'a body in chunks of the application';
        is $get->('/delayed')->{body}, 'later', 'delayed';
        my $stream = $get->('/stream');
        is $stream->{body}, "part 1\npart 2\npart 3\n", 'a stream';
        is_deeply $stream->{fields}{'transfer-encoding'}, ['chunked'];
        is length $get->('/flood')->{body}, 160 * 65536, 'a stream of 10 MiB';
        is $get->('/long')->{body}, '123', 'a body that is longer than its length is cut';
        is $get->('/keys?a=%20b')->{body},
            'REQUEST_METHOD=GET PATH_INFO=/keys QUERY_STRING=a=%20b REQUEST_URI=/keys?a=%20b SCRIPT_NAME= SERVER_NAME=a SERVER_PROTOCOL=HTTP/1.1'
            . ' REMOTE_ADDR=' . ($transport eq 'tcp' ? '127.0.0.1' : '') . ' psgi.url_scheme=http', 'the environment';
        my $worker = $get->('/pid')->{body};
        for my $target (qw(/slow /writes)) {
            my $gone = $server->connect;
            $gone->send("GET $target HTTP/1.1\r\nHost: a\r\n\r\n");
            setsockopt $gone->{socket}, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack 'ii', 1, 0;
            $gone->close;
            is $get->('/pid')->{body}, $worker, "a client that goes during $target ends nothing";
        }
        is $get->('/cleanup')->{status}, 200;
        wait_until('the cleanup handler', sub { -s "$dir/cleaned" });
        unlink "$dir/cleaned";
        is $get->('/')->{status}, 200, 'and all of that on one connection';

        is $server->get($_)->{status}, 500, $_ for qw(/dies /bad-header /wide /nothing /never);
        ok !$server->get($_)->{complete}, "$_ is not taken for whole" for qw(/dies-in-body /short /unclosed);
        is $server->get('/forks')->{body}, 'parent', 'a child that comes back has no connection';
        my $client = $server->connect;
        $client->send("GET /io HTTP/1.1\r\nHost: a\r\n\r\n");
        is $client->take(5), "mine\n", 'psgix.io';
        ok $client->at_end, 'closes with its last handle';
        $client = $server->connect;
        $client->send("GET /stream HTTP/1.0\r\n\r\n");
        is $client->response->{body}, "part 1\npart 2\npart 3\n", 'a stream ends with the connection in HTTP/1.0';
        $client = $server->connect;
        $client->send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" x 2);
        is_deeply $client->response->{fields}{connection}, ['keep-alive'], 'HTTP/1.0 keeps a connection when asked' for 1 .. 2;

        is $server->request(post('/echo', 'a=b'))->{body}, 'a=b', 'a body';
        is $server->request(post('/slurp', ''))->{body}, '0 same', 'no body ends at once';
        is $server->request(post('/slurp', 'x' x 60_000))->{body}, '60000 same', 'in memory';
        is $server->request(post('/slurp', "line\n" x 100_000))->{body}, '500000 same', 'in a file';
        my $chunked = "POST /%s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" . "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nX-Sum: 7\r\n\r\n";
        is $server->request(sprintf $chunked, 'echo')->{body}, 'hello world', 'chunked';
        is $server->request(sprintf $chunked, 'trailers')->{body}, 'x-sum=7', 'trailers';
        my $waits = $server->connect;
        $waits->send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
        is $waits->response->{status}, 100, '100 Continue';
        $waits->send('abc');
        is $waits->response->{body}, 'abc', 'then the answer';
        my $many = $server->connect;
        $many->send(join '', map {"GET /keys?$_ HTTP/1.1\r\nHost: a\r\n\r\n"} 1 .. 50);
        like $many->response->{body}, qr/QUERY_STRING=$_ /, "pipelined $_" for 1 .. 50;
        my $mixed = $server->connect;
        $mixed->send(("GET / HTTP/1.1\r\nHost: a\r\n\r\n" x 3) . "GET / HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n" . "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        is $mixed->response->{status}, 200, 'answers before a bad request' for 1 .. 3;
        is $mixed->response->{status}, 400, 'which is refused';
        ok $mixed->at_end, 'and ends the connection';

        my $pid = $server->get('/harakiri')->{body};
        wait_until('another worker', sub { (eval { $server->get('/pid')->{body} } || $pid) != $pid });
        is eval { $server->get('/exit')->{status} }, 500, 'exit in the application';
        wait_until('another worker', sub { eval { $server->get('/')->{status} } });
        is $server->stop, 0, 'the server ends in good order';
    };
}

subtest 'limits at the most and one more' => sub {
    my %limit = (target_bytes_max => 64, head_bytes_max => 1024, fields_max => 3, body_bytes_max => 1000, keepalive_requests_max => 3);
    my $server = start_pure(tcp => $app, %limit);
    my $status = sub { my $res = eval { $server->request($_[0]) }; return $res ? $res->{status} : 'nothing' };
    my $target = '/?' . 'q' x 62;
    is $status->("GET $target HTTP/1.1\r\nHost: a\r\n\r\n"), 200, 'target';
    is $status->("GET ${target}q HTTP/1.1\r\nHost: a\r\n\r\n"), 414;
    my $rest = 1024 - length "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n";
    is $status->("GET / HTTP/1.1\r\nHost: a\r\nX: " . 'x' x $rest . "\r\n\r\n"), 200, 'head';
    is $status->("GET / HTTP/1.1\r\nHost: a\r\nX: " . 'x' x ($rest + 1) . "\r\n\r\n"), 431;
    is $status->("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\n\r\n"), 200, 'fields';
    is $status->("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n"), 431;
    is $status->(post('/echo', 'x' x 1000)), 200, 'body';
    is $status->(post('/echo', 'x' x 1001)), 413;
    my $chunked = sub { "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" . sprintf("%x\r\n", $_[0]) . 'x' x $_[0] . "\r\n0\r\n\r\n" };
    is $status->($chunked->(1000)), 200, 'body in chunks';
    is $status->($chunked->(1001)), 413;
    my $client = $server->connect;
    $client->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n" x 4);
    is_deeply [map { $client->response->{fields}{connection} } 1 .. 3], [undef, undef, ['close']], 'requests of a connection';
    ok $client->at_end;
    $server->stop;
};

subtest 'times' => sub {
    my $server = start_pure(tcp => $app, head_timeout => '200ms', body_timeout => '200ms', idle_timeout => '2s', write_timeout => '300ms', response_memory_max => '64K');
    my $idle = $server->connect;
    my $head = $server->connect;
    my $body = $server->connect;
    my $reads_nothing = $server->connect;
    $head->send("GET / HTTP/1.1\r\n");
    $body->send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    is $head->response->{status}, 408, 'a head that does not end';
    is $body->response->{status}, 408, 'a body that does not end';
    ok $idle->at_end, 'an idle connection closes without a word';
    $reads_nothing->close;
    $reads_nothing = $server->connect;
    $reads_nothing->send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
    is $server->get('/')->{status}, 200, 'a client that reads nothing loses its connection, and the worker goes on';
    $server->stop;
};

subtest '100 Continue behind answers that fill the socket' => sub {
    my $server = start_pure(unix => $app, body_timeout => '60s');
    for my $count (1 .. 24) {
        my $client = $server->connect;
        $client->send(("GET /part HTTP/1.1\r\nHost: a\r\n\r\n" x $count) . "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
        $server->get('/') for 1 .. 2;    # by then the server has taken all of them
        my @statuses = map { $client->response->{status} } 1 .. $count;
        is $client->response->{status}, 100, "behind $count answers" or last;
        $client->send('abc');
        is $client->response->{body}, 'abc' or last;
    }
    $server->stop;
};

subtest 'what does not fit in memory keeps its order' => sub {
    my $server = start_pure(tcp => $app, response_memory_max => '64K');
    my $client = $server->connect;
    $client->send("GET /numbers HTTP/1.1\r\nHost: a\r\n\r\n" x 2);
    for (1 .. 2) {
        my $body = $client->response->{body};
        is length $body, 16 * 500_000, 'all of it';
        my @lines = unpack '(A16)*', $body;
        is_deeply [grep { $lines[$_] != $_ } 0 .. $#lines], [], 'line by line';
    }
    $server->stop;
};

subtest 'connections_max' => sub {
    my $server = start_pure(tcp => $app, connections_max => 2, idle_timeout => '60s');
    my @idle = map { my $client = $server->connect; $client->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"); $client->response; $client } 1 .. 2;
    select undef, undef, undef, 0.2;    # a connection that has just rested is left alone for 0.1 s: nothing tells of that
    is $server->get('/')->{status}, 200, 'a further one';
    ok $idle[0]->at_end, 'replaces the longest idle one';
    local $SIG{ALRM} = sub { die "they wait although there is room\n" };
    alarm 600;
    my @many = map { my $client = $server->connect; $client->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"); $client } 1 .. 200;
    is scalar(grep { my $status = $_->response->{status}; $_->close; $status == 200 } @many), 200, 'many wait for room, and no longer';
    alarm 0;
    $server->stop;
};

subtest '1,000 slow clients' => sub {
    my $server = start_pure(tcp => $app, head_timeout => '60s');
    my @slow = map { my $client = $server->connect; $client->send("GET /?$_ HTTP/1.1\r\nHo"); $client } 1 .. 1000;
    is $server->get('/')->{status}, 200, 'one is served beside them' for 1 .. 20;
    my $same = $server->get('/pid')->{body};
    $_->send("st: a\r\n\r\n") for @slow;
    is scalar(grep { $_->response->{status} == 200 } @slow), 1000, 'and all of them, once their requests are complete';
    is $server->get('/pid')->{body}, $same, 'by the same process';
    $server->stop;
};

SKIP: {
    chomp(my $strace = `which strace 2>/dev/null`);
    skip 'no strace' if $strace eq '' || system("$strace -o /dev/null true 2>/dev/null");
    subtest 'system calls of a request on a kept connection' => sub {
        my $port = free_port();
        my ($page) = grep {-e} 'lib/Oribi/Pure.pm', '../perl/lib/Oribi/Pure.pm';
        open my $out, '>', "$dir/hello.psgi" or die $!;
        print {$out} q[sub { [200, [], ['hello']] }];
        close $out or die $!;
        my $pid = fork // die $!;
        exec $strace, '-o', "$dir/calls", $^X, $page, '--single', '--quiet', '--access-log', 'off', '--bind', "127.0.0.1:$port", "$dir/hello.psgi" if !$pid;
        my $get = "GET %s HTTP/1.1\r\nHost: a\r\n\r\n";
        my $client = wait_until('the server', sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) });
        my $count = 50;
        for my $target ('/', '/', '/first', ('/') x $count, '/last') {
            syswrite $client, sprintf $get, $target;
            my $answer = '';
            while ($answer !~ /hello\z/) { sysread $client, $answer, 4096, length $answer or die 'the server has gone' }
        }
        my ($server) = `cat /proc/$pid/task/$pid/children` =~ /([0-9]+)/;
        kill TERM => $server;
        waitpid $pid, 0;
        my ($between) = slurp("$dir/calls") =~ m{"GET /first[^\n]*\n(.*?)\n[^\n]*"GET /last}s;
        my %calls;
        $calls{ $_ =~ /p?select/ ? 'select' : $_ }++ for $between =~ /^(\w+)\(/mg;
        cmp_ok delete $calls{select}, '>=', $count, 'it waits for each, and again after a second without any';
        # malloc may take room for the buffer of a read and later give a part back (mallopt(3), M_TRIM_THRESHOLD)
        cmp_ok delete $calls{brk} // 0, '<=', 2, 'memory grows and shrinks at most once for all of them';
        is_deeply \%calls, { recvfrom => $count, sendto => $count + 1, getpid => $count + 1 }, 'reads once, writes once, asks once whether it is still the same process';
    };
}

done_testing;
