use strict;
use warnings;
use lib 't/lib';
use OribiTest;
use Test::More;

# What stands in the environment of a request.

my @TEXT = ('Content-Type' => 'text/plain');

sub dump_app {
    my ($env) = @_;
    my @lines = map { "$_=" . (defined $env->{$_} ? ref $env->{$_} || $env->{$_} : 'undef') } sort keys %$env;
    return [200, [@TEXT], [join "\n", @lines]];
}

sub env_of {
    my ($res) = @_;
    return { map { split /=/, $_, 2 } split /\n/, $res->{body} };
}

subtest 'request line and fields' => sub {
    my $server = serve(\&dump_app);
    my $env = env_of(get($server, '/a%20b//c?q=%20&r', 'X-One: 1', 'X-One: 2', 'Cookie: a=1', 'Cookie: b=2', 'Content-Type: t/x', 'X_Bad: 1'));
    is $env->{REQUEST_METHOD}, 'GET';
    is $env->{PATH_INFO}, '/a b//c', 'the path is decoded once';
    is $env->{REQUEST_URI}, '/a%20b//c?q=%20&r', 'the target is raw';
    is $env->{QUERY_STRING}, 'q=%20&r', 'the query is raw';
    is $env->{SCRIPT_NAME}, '';
    is $env->{SERVER_PROTOCOL}, 'HTTP/1.1';
    is $env->{SERVER_NAME}, 'test';
    is $env->{SERVER_PORT}, $server->{listener}{port};
    is $env->{REMOTE_ADDR}, '127.0.0.1';
    like $env->{REMOTE_PORT}, qr/\A[1-9]\d+\z/;
    is $env->{HTTP_X_ONE}, '1, 2', 'repeated fields are joined';
    is $env->{HTTP_COOKIE}, 'a=1; b=2', 'cookies are joined by their own rule';
    is $env->{CONTENT_TYPE}, 't/x';
    ok !exists $env->{HTTP_CONTENT_TYPE}, 'CGI names for what CGI names';
    ok !exists $env->{HTTP_X_BAD}, 'a field with an underscore does not pass for another';
    is $env->{'psgi.url_scheme'}, 'http';
    is $env->{"psgi.$_"}, 1, "psgi.$_" for qw(streaming);
    is $env->{"psgi.$_"}, 0, "psgi.$_" for qw(multithread run_once nonblocking);
    is $env->{"psgix.$_"}, 1, "psgix.$_" for qw(input.buffered harakiri cleanup);
    is $env->{'psgi.version'}, 'ARRAY';
    is $env->{'psgix.cleanup.handlers'}, 'ARRAY';
    is $env->{'psgix.informational'}, 'CODE';
    like $env->{'psgix.io'}, qr/\AIO::Socket::INET/;
    is $env->{'psgi.errors'}, 'GLOB';
};

subtest 'paths' => sub {
    my $server = serve(sub { my ($env) = @_; [200, [@TEXT], [join '|', @$env{qw(PATH_INFO REQUEST_URI QUERY_STRING)}]] });
    my %want = (
        '/%2525' => '/%25|/%2525|',
        '/%e3%81%82' => "/\xe3\x81\x82|/%e3%81%82|",
        '/a+b' => '/a+b|/a+b|',
        '/a%00b' => "/a\0b|/a%00b|",
        '/?' => '/|/?|',
        '//x/../y' => '//x/../y|//x/../y|',
        'http://test/p%41?q' => '/pA|/p%41?q|q',
        'http://test' => '/|/|',
        'http://test?q' => '/|/?q|q',
    );
    is get($server, $_)->{body}, $want{$_}, $_ for sort keys %want;
    for my $bad (qw(/%zz /% /%2 /a%2gb)) {
        my $res = get($server, $bad);
        is $res->{status}, 400, "$bad is refused";
    }
};

subtest 'OPTIONS *' => sub {
    my $server = serve(sub { my ($env) = @_; [200, [@TEXT], [join '|', @$env{qw(PATH_INFO REQUEST_URI)}]] }, lint => 0);
    is request($server, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")->{body}, '*|*';
};

subtest 'unix socket' => sub {
    my $server = serve(\&dump_app, bind => 'unix');
    my $env = env_of(get($server, '/'));
    is_deeply [grep {/\AREMOTE_/} keys %$env], [], 'a client without an address has none in the environment';
    is $env->{SERVER_NAME}, 'test';
    is $env->{SERVER_PORT}, '80';
    like $env->{'psgix.io'}, qr/\AIO::Socket::UNIX/;
    is env_of(request($server, "GET / HTTP/1.1\r\nHost: test:8080\r\n\r\n"))->{SERVER_PORT}, 8080;
};

# Keys that hang on an option, in environments that are copied, used again (as they were left) and made anew.
subtest 'request ids' => sub {
    for my $on (0, 1) {
        my $last;
        my $app = sub { my ($env) = @_; my $same = $last; $last = $env if $env->{PATH_INFO} eq '/keep'; [200, [@TEXT], [join '|', map { $_ // '' } @$env{qw(oribi.request_id HTTP_X_REQUEST_ID PATH_INFO)}]] };
        my $server = serve($app, lint => 0, $on ? (request_id => 'on') : ());
        my $client = $server->connect;
        my %met;
        for my $path ('/a', '/b', '/keep', '/c', '/keep', '/d') {
            $client->send("GET $path HTTP/1.1\r\nHost: test\r\n\r\n");
            my ($id, $field, $seen) = split /\|/, $client->response->{body}, -1;
            is $seen, $path;
            is $field, $id;
            $on ? like $id, qr/\A[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\z/ : is $id, '';
            ok !$on || !$met{$id}++;
        }
    }
};

# The templates of environments with and without an address: each shape is met three times, so that it is made, copied
# and met again.
subtest 'unix socket behind a trusted proxy' => sub {
    my $server = serve(\&dump_app, bind => 'unix', trusted_proxies => 'unix');
    my %head = (
        ''  => [],
        "X-Forwarded-For: 192.0.2.7\r\n" => [REMOTE_ADDR => '192.0.2.7', REMOTE_PORT => 0],
        "X-Forwarded-For: no address\r\n" => [],
        "Accept: a\r\nCookie: b\r\nX-Forwarded-For: ::1\r\nUser-Agent: c\r\nOrigin: d\r\nAccept-Language: e\r\n" => [REMOTE_ADDR => '::1', REMOTE_PORT => 0],
    );
    my $client = $server->connect;
    for my $round (1 .. 3) {
        for my $fields (sort keys %head) {
            for (1 .. 3) {
                $client->send("GET /x HTTP/1.1\r\nHost: test\r\n$fields\r\n");
                my $env = env_of($client->response);
                is_deeply {map { $_ => $env->{$_} } grep {/\AREMOTE_/} keys %$env}, { @{ $head{$fields} } }, "round $round: $fields";
                is $env->{PATH_INFO}, '/x';
                is $env->{HTTP_USER_AGENT}, 'c' if $fields =~ /User-Agent/;
            }
        }
    }
};

# Some clients of a worker have addresses, others none.
subtest 'both listeners' => sub {
    my $server = serve(\&dump_app, bind => ['tcp://127.0.0.1:0', 'unix']);
    my ($tcp, $unix) = map { $server->connect($_) } 0, 1;
    for (1 .. 4) {
        for my $client ($tcp, $unix) {
            $client->send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
            my $env = env_of($client->response);
            is $env->{REMOTE_ADDR}, $client == $tcp ? '127.0.0.1' : undef;
            is exists $env->{REMOTE_PORT}, $client == $tcp;
            is $env->{SERVER_NAME}, 'test';
        }
    }
};

subtest 'IPv6' => sub {
    my $server = eval { serve(\&dump_app, bind => 'tcp://[::1]:0') } or plan skip_all => 'no IPv6 here';
    my $env = env_of(get($server, '/'));
    is $env->{REMOTE_ADDR}, '::1';
    like $env->{REMOTE_PORT}, qr/\A\d+\z/;
    is env_of(request($server, "GET / HTTP/1.0\r\n\r\n"))->{SERVER_NAME}, '[::1]', 'the listener names the server when the client does not';
};

subtest 'HTTP/1.0 without Host' => sub {
    my $server = serve(\&dump_app);
    my $env = env_of(request($server, "GET / HTTP/1.0\r\n\r\n"));
    is $env->{SERVER_PROTOCOL}, 'HTTP/1.0';
    is $env->{SERVER_NAME}, '127.0.0.1';
    ok !exists $env->{HTTP_HOST};
};

subtest 'an application may write to everything, and the next request sees none of it' => sub {
    my $spoil = sub {
        my ($env) = @_;
        if ($env->{PATH_INFO} eq '/spoil') {
            for my $key (keys %$env) {
                next if $key =~ /\Apsgi\.(?:input|errors)\z/;
                if (ref $env->{$key}) { $env->{$key} = 'spoilt' }
                else { $env->{$key} .= 'spoilt' }
            }
            push @{ $env->{'psgi.other'} }, 1;
            delete $env->{SCRIPT_NAME};
        }
        return dump_app($env);
    };
    my $server = serve($spoil);
    my $client = $server->connect;
    my @seen;
    for my $path (qw(/ /spoil / /)) {
        $client->send("GET $path HTTP/1.1\r\nHost: a\r\nX-A: b\r\n\r\n");
        push @seen, $client->response->{body};
    }
    like $seen[1], qr/HTTP_X_A=bspoilt/;
    is $seen[2], $seen[0];
    is $seen[3], $seen[0];
};

# Environments are copied by shape, the order of known fields; each of these is met often enough to be kept, and never
# mixed up.
subtest 'shapes' => sub {
    my $server = serve(\&dump_app);
    my @known = qw(Accept Accept-Charset Accept-Encoding Accept-Language Authorization Cache-Control Cookie DNT Forwarded If-Match
        If-Modified-Since If-None-Match If-Range If-Unmodified-Since Origin Pragma Priority Range Referer Sec-Ch-Ua Sec-Ch-Ua-Mobile
        Sec-Ch-Ua-Platform Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User TE Upgrade-Insecure-Requests User-Agent Via X-Csrf-Token
        X-Forwarded-For X-Real-Ip X-Requested-With X-Request-Id);
    my @most   = @known[0 .. 30]; # with Host as many as a shape may have
    my @shapes = ([], [@known[0 .. 3]], [@known[0 .. 4]], [@known[0 .. 12]], [reverse @known[0 .. 12]], \@most, [@known[0 .. 31]], \@known,
        [reverse @known]);
    push @shapes, [@known[$_, $_ + 1, $_ + 2]] for 0 .. 29;
    my ($client, $turn, @wrong) = ($server->connect, 0);
    $client->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    my $own = keys %{ env_of($client->response) };    # with Host and no other field
    for my $round (1 .. 4) {
        for my $names (@shapes, @shapes[map { ($_, $_) } 0 .. 8]) {
            $turn++;
            my %want = map { ('HTTP_' . (uc $_) =~ tr/-/_/r => "$turn $_") } @$names, 'X-Other';
            $client->send("GET /$turn HTTP/1.1\r\nHost: a\r\nX-Other: $turn X-Other\r\n" . join('', map { "$_: $turn $_\r\n" } @$names) . "\r\n");
            my $env = env_of($client->response);
            my %got = map { ($_ => $env->{$_}) } grep { /\AHTTP_/ && $_ ne 'HTTP_HOST' } keys %$env;
            push @wrong, "$round: @$names" unless $env->{PATH_INFO} eq "/$turn" && $env->{HTTP_HOST} eq 'a' && keys %$env == $own + keys %want
                && keys %got == keys %want && !grep { ($got{$_} // '') ne $want{$_} } keys %want;
        }
    }
    is_deeply \@wrong, [];
};

subtest 'what was lent and kept is not lent again' => sub {
    my @kept;
    my $server = serve(
        sub {
            my ($env) = @_;
            push @kept, $env->{'psgix.cleanup.handlers'} if $env->{PATH_INFO} eq '/keep';
            my $count = @{ $env->{'psgix.cleanup.handlers'} };
            push @$_, sub {1} for @kept;
            return [200, [@TEXT], ["$count " . (grep { $_ == $env->{'psgix.cleanup.handlers'} } @kept)]];
        }
    );
    is get($server, '/keep')->{body}, '0 1';
    is get($server, '/')->{body}, '0 0';
    is get($server, '/keep')->{body}, '0 1';
    is get($server, '/')->{body}, '0 0';
};

done_testing;
