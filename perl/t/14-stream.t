use strict;
use warnings;
use lib 't/lib';
use OribiTest;
use Plack::Util ();
use Test::More;

# Delayed responses, the writer, psgix.io and psgix.informational.

my @TEXT = ('Content-Type' => 'text/plain');
my ($died, $kept, @kept) = ('');

my %ROUTE = (
    delayed => sub { sub { $_[0]->([200, [@TEXT], ['later']]) } },
    handle => sub { sub { open my $fh, '<', $0 or die; $_[0]->([200, [@TEXT], $fh]) } },
    object => sub { bless sub { $_[0]->([200, [@TEXT], ['object']]) }, 'Some::Code' },
    stream => sub { sub { my $w = $_[0]->([200, [@TEXT]]); $w->write("part $_ ") for 1 .. 3; $w->close } },
    sized => sub { sub { my $w = $_[0]->([200, [@TEXT, 'Content-Length' => 4]]); $w->write('ab'); $w->write('cd'); $w->close } },
    odd_writes => sub { sub { my $w = $_[0]->([200, [@TEXT]]); $w->write($_) for '', undef, 0, 'x'; $w->close; $w->close } },
    empty => sub { sub { $_[0]->([200, [@TEXT]])->close } },
    unclosed => sub { sub { $_[0]->([200, [@TEXT]])->write('open end') } },
    kept => sub { sub { ($kept = $_[0]->([200, [@TEXT]]))->write('so far') } },
    halved => sub { sub { my $n = 0; eval { $_[0]->([200, [@TEXT], Plack::Util::inline_object(getline => sub { $n++ ? die : 'a half' }, close => sub { })]) } } },
    chatty => sub { sub { my $w = $_[0]->([200, [@TEXT]]); $w->write('x' x 10_000) for 1 .. 500; $w->close } },
    never => sub { sub { } },
    twice => sub { sub { my $r = shift; $r->([200, [@TEXT], ['first']]); eval { $r->([200, [], ['second']]) }; $died = $@ } },
    bad => sub { sub { $_[0]->([200]) } },
    bad_array => sub { sub { $_[0]->('text') } },
    bad_headers => sub { sub { $_[0]->([200, ['X-A']])->write('x') } },
    dies_before => sub { sub { die "before\n" } },
    dies_after => sub { sub { my $w = $_[0]->([200, [@TEXT]]); $w->write('some'); die "after\n" } },
    dies_at_end => sub { sub { my $w = $_[0]->([200, [@TEXT]]); $w->write('all'); $w->close; die "at the end\n" } },
    wide => sub { sub { my $w = $_[0]->([200, [@TEXT]]); $w->write("\x{3042}") } },
    keep => sub { sub { @kept = ($_[0], $_[0]->([200, [@TEXT]])); $kept[1]->write('kept'); $kept[1]->close } },
    use_kept => sub {
        my @errors = map { my $code = $_; eval { $code->(); 1 } ? 'fine' : $@ } sub { $kept[0]->([200, [], []]) }, sub { $kept[1]->write('x') },
            sub { $kept[1]->close };
        s/ at .*//s for @errors;
        [200, [@TEXT], [join '|', @errors]];
    },
    endless => sub { sub { my $w = $_[0]->([200, [@TEXT]]); eval { $w->write('x' x 65536) while 1 }; $died = $@ } },
    endless_uncaught => sub { sub { my $w = $_[0]->([200, [@TEXT]]); $w->write('x' x 65536) while 1 } },
    closed_by_signal => sub {
        sub {
            my $w = $_[0]->([200, [@TEXT]]);
            local $SIG{ALRM} = sub { Time::HiRes::ualarm(0); $w->close };
            Time::HiRes::ualarm(50_000, 50_000);    # again and again: one may come just before the waiting
            $died = eval { $w->write('x' x 65536) while 1 } ? '' : $@;
        }
    },
    died => sub { [200, [@TEXT], [$died]] },

    # psgix.io
    io_looked => sub { my ($env) = @_; [200, [@TEXT], [$env->{'psgix.io'}->sockport ? 'looked' : '']] },
    io_copy => sub { my ($env) = @_; my %copy = %$env; [200, [@TEXT], ['copied']] },
    io_taken => sub {
        my ($env) = @_;
        return sub { my $io = $env->{'psgix.io'}; $io->blocking(1); syswrite $io, "raw bytes"; close $io };
    },
    io_read => sub {
        my ($env) = @_;
        return sub { my $io = $env->{'psgix.io'}; $io->blocking(1); read $io, my ($in), 9; syswrite $io, "$in|$env->{'oribi.unread'}" };
    },
    io_kept => sub {
        my ($env) = @_;
        return sub { push @kept, $env->{'psgix.io'}; syswrite $kept[-1], "kept " };
    },
    io_kept_more => sub { my $io = pop @kept; syswrite $io, "and on"; close $io; [200, [@TEXT], ['written']] },
    io_blocking => sub { my ($env) = @_; $env->{'psgix.io'}->blocking(1); [200, [@TEXT], ['x' x 3_000_000]] },
    io_delayed => sub {
        my ($env) = @_;
        return sub { $env->{'psgix.io'}->blocking(1); $_[0]->([200, [@TEXT], ['delayed']]) };
    },
    io_streamed => sub {
        my ($env) = @_;
        return sub { my $w = $_[0]->([200, [@TEXT]]); $env->{'psgix.io'}->blocking(1) if $env->{'psgix.io'}; $w->write('streamed'); $w->close };
    },
    io_local => sub { my ($env) = @_; local $env->{'psgix.io'}; [200, [@TEXT], [defined $env->{'psgix.io'} ? 'defined' : 'undef']] },
    io_assigned => sub { my ($env) = @_; $env->{'psgix.io'} = 'mine'; [200, [@TEXT], [$env->{'psgix.io'}]] },
    io_late => sub { my ($env) = @_; push @kept, $env; [200, [@TEXT], ['x']] },
    io_after => sub { my $env = pop @kept; [200, [@TEXT], [defined $env->{'psgix.io'} ? 'defined' : 'undef']] },

    # psgix.informational
    hint => sub { my ($env) = @_; $env->{'psgix.informational'}->(103, [Link => '</a>', Link => '</b>']); [200, [@TEXT], ['x']] },
    hint_bad => sub {
        my ($env) = @_;
        my @errors = map { my $args = $_; eval { $env->{'psgix.informational'}->(@$args); 1 } ? 'fine' : $@ =~ s/ at .*//sr }
            [103, ['X-A']], [103, ['X-A' => "a\r\nb"]], [200, []], [103], ['x', []], [103, {}];
        [200, [@TEXT], [join "\n", @errors]];
    },
    hint_late => sub {
        my ($env) = @_;
        my $inform = $env->{'psgix.informational'};
        return sub { my $w = $_[0]->([200, [@TEXT]]); $inform->(103, [Link => '</a>']); $w->write('x'); $w->close; push @kept, $inform };
    },
    hint_stale => sub { (pop @kept)->(103, [Link => '</stale>']); [200, [@TEXT], ['x']] },
);
my $server = serve(sub { my ($env) = @_; $ROUTE{ substr $env->{PATH_INFO}, 1 }->($env) }, lint => 0);

sub body { return get($server, "/$_[0]")->{body} }

subtest 'delayed' => sub {
    my $res = get($server, '/delayed');
    is $res->{body}, 'later';
    is_deeply $res->{fields}{'content-length'}, [5];
    open my $fh, '<', $0 or die;
    is body('handle'), do { local $/; <$fh> };
    is body('object'), 'object';
};

subtest 'writer' => sub {
    my $res = get($server, '/stream');
    is $res->{body}, 'part 1 part 2 part 3 ';
    is_deeply $res->{fields}{'transfer-encoding'}, ['chunked'];
    $res = get($server, '/sized');
    is $res->{body}, 'abcd';
    is_deeply $res->{fields}{'content-length'}, [4];
    is body('odd_writes'), '0x', 'empty writes end nothing';
    is body('empty'), '';
    $res = get($server, '/unclosed');
    is $res->{body}, 'open end';
    ok $res->{complete}, 'a writer that was not closed is closed';
    ok !get($server, '/kept')->{complete}, 'unless it was kept: that is not the whole answer';
    ok !get($server, '/halved')->{complete}, 'nor is a body that died, though the application did not';
    wait_until 'its line in the log', sub { $server->log_text =~ m{/kept.*the writer was kept and not closed} };
    is request($server, "HEAD /kept HTTP/1.1\r\nHost: a\r\n\r\n")->{status}, 200;
    is length body('chatty'), 5_000_000;
    is request($server, "GET /stream HTTP/1.0\r\n\r\n")->{body}, 'part 1 part 2 part 3 ';
    is request($server, "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n")->{status}, 200;
};

subtest 'a handler that closes the writer while it waits for the client' => sub {
    my $slow = $server->connect;
    $slow->send("GET /closed_by_signal HTTP/1.1\r\nHost: a\r\n\r\n");
    like body('died'), qr/write to a closed writer/;
    my $res = $slow->response;
    ok $res->{complete} && $res->{body} =~ /\Ax+\z/, 'what was written arrives';
};

subtest 'what goes wrong' => sub {
    my %want = (
        never => [500, 1, qr/the delayed response returned without calling its responder/],
        bad => [500, 1, qr/the response has 1 elements/],
        bad_array => [500, 1, qr/the responder wants an array reference/],
        bad_headers => [500, 1, qr/odd number of elements/],
        dies_before => [500, 1, qr/the application died: before/],
        dies_after => [200, 0, qr/the application died: after/],
        dies_at_end => [200, 1, qr/the application died: at the end/],
        wide => [500, 1, qr/wide character in write 0/],
    );
    for my $route (sort keys %want) {
        my ($status, $complete, $words) = @{ $want{$route} };
        my $mark = length $server->log_text;
        my $res = get($server, "/$route");
        is $res->{status}, $status, $route;
        is $res->{complete}, $complete, "$route: " . ($complete ? 'complete' : 'cut');
        # the answer may be there before it
        ok wait_until("the log to say $words", sub { substr($server->log_text, $mark) =~ $words });
    }
    is body('twice'), 'first';
    like body('died'), qr/the responder was called twice|request has ended/;
    is body('keep'), 'kept';
    like body('use_kept'), qr/\AOribi: this responder's request has ended\|Oribi: write to a closed writer\|fine\z/;
};

subtest 'a client that leaves ends an endless stream' => sub {
    my $mark = length $server->log_text;
    for my $route (qw(endless endless_uncaught)) {
        my $client = $server->connect;
        $client->send("GET /$route HTTP/1.1\r\nHost: a\r\n\r\n");
        $client->fill;
        $client->close;
    }
    is body('died'), "Oribi: the client closed the connection at $0 line " . (body('died') =~ /line (\d+)/)[0] . ".\n";
    is substr($server->log_text, $mark), '', 'and is nobody\'s mistake';
};

subtest 'psgix.io' => sub {
    my $client = $server->connect;
    $client->send("GET /io_copy HTTP/1.1\r\nHost: a\r\n\r\nGET /io_looked HTTP/1.1\r\nHost: a\r\n\r\n");
    is $client->response->{body}, 'copied', 'copying an environment takes nothing';
    my $res = $client->response;
    is $res->{body}, 'looked', 'looking at the socket leaves the answer to us';
    is_deeply $res->{fields}{connection}, ['close'], 'but not the connection';
    $client = $server->connect;
    $client->send("GET /io_taken HTTP/1.1\r\nHost: a\r\n\r\n");
    1 while $client->fill;
    is $client->{buffer}, 'raw bytes', 'the application has the socket to itself';
    $client = $server->connect;
    $client->send("GET /io_read HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nin advanc");
    1 while $client->fill;
    is $client->{buffer}, 'in advanc|in advanc', 'what was read behind the request is not lost';
    $client = $server->connect;
    $client->send("GET /io_kept HTTP/1.1\r\nHost: a\r\n\r\n");
    $client->take(5);
    is body('io_kept_more'), 'written';
    1 while $client->fill;
    is $client->{buffer}, 'and on', 'for as long as it wants';
    is length body('io_blocking'), 3_000_000, 'a socket that was made blocking does not block us';
    for my $how (qw(delayed streamed)) {
        $client = $server->connect;
        $client->send("GET /io_$how HTTP/1.1\r\nHost: a\r\n\r\n");
        $res = $client->response;
        is $res->{body}, $how;
        is_deeply $res->{fields}{connection}, $how eq 'delayed' ? ['close'] : undef, "$how: as with an ordinary answer";
        is body('empty'), '', 'and the worker waits for nobody';
    }
    is body('io_local'), 'undef';
    is body('io_assigned'), 'mine';
    is body('io_late'), 'x';
    is body('io_after'), 'undef', 'after its request there is none';
};

subtest 'psgix.informational' => sub {
    my $client = $server->connect;
    $client->send("GET /hint HTTP/1.1\r\nHost: a\r\n\r\n");
    my $res = $client->response;
    is $res->{status}, 103;
    is_deeply $res->{fields}{link}, ['</a>', '</b>'];
    is $client->response->{status}, 200;
    is request($server, "GET /hint HTTP/1.0\r\n\r\n")->{status}, 200, 'not to HTTP/1.0';
    my @errors = split /\n/, body('hint_bad');
    is @errors, 6;
    like $_, qr/\A(?:Oribi: psgix\.informational|Usage)/ for @errors;
    is body('hint_late'), 'x', 'too late is too late';
    is body('hint_stale'), 'x', 'another request\'s hints are not ours';
};

is $server->stop, 0;
done_testing;
