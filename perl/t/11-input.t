use strict;
use warnings;
use lib 't/lib';
use OribiTest;
use Test::More;

# psgi.input: a real handle that ends at the body's end, can seek, and is everybody's own.

my @TEXT = ('Content-Type' => 'text/plain');

sub post {
    my ($path, $body, @fields) = @_;
    return "POST $path HTTP/1.1\r\nHost: a\r\nContent-Length: " . length($body) . "\r\n" . join('', map {"$_\r\n"} @fields) . "\r\n$body";
}

my %ROUTE = (
    '/slurp' => sub { local $/; my $input = $_[0]{'psgi.input'}; my $body = <$input>; defined $body ? $body : 'undef' },
    '/lines' => sub { my $input = $_[0]{'psgi.input'}; join '|', map { s/\n//r } <$input> },
    '/read' => sub {
        my ($env) = @_;
        my ($body, $count) = ('', 0);
        while (my $n = $env->{'psgi.input'}->read($body, 1000, length $body)) { $count++ }
        return "$count " . length $body;
    },
    '/seek' => sub {
        my $input = $_[0]{'psgi.input'};
        local $/;
        my $first = <$input> // '';
        my $at_end = tell $input;
        seek $input, 1, 0 or die "seek: $!";
        my $second = <$input> // '';
        return "$at_end " . (substr($first, 1) eq $second ? 'same' : 'different');
    },
    '/eof' => sub { my $input = $_[0]{'psgi.input'}; eof($input) ? 'at end' : 'more' },
    '/close' => sub { close $_[0]{'psgi.input'}; 'closed' },
    '/layer' => sub { binmode $_[0]{'psgi.input'}, ':encoding(UTF-16)'; 'layered' },
    '/bless' => sub { bless $_[0]{'psgi.input'}, 'Some::Class'; 'blessed' },
    '/layers' => sub { join ',', grep { !/\A(?:scalar|unix|perlio)\z/ } PerlIO::get_layers($_[0]{'psgi.input'}) },
    '/ref' => sub { ref $_[0]{'psgi.input'} },
    '/fileno' => sub { fileno($_[0]{'psgi.input'}) >= 0 ? 'file' : 'memory' },
    '/length' => sub { defined $_[0]{CONTENT_LENGTH} ? $_[0]{CONTENT_LENGTH} : 'none' },
    '/te' => sub { defined $_[0]{HTTP_TRANSFER_ENCODING} ? 'there' : 'gone' },
);
my $app = sub { my ($env) = @_; return [200, [@TEXT], [$ROUTE{ $env->{PATH_INFO} }->($env)]] };

my $server = serve($app, body_memory_max => '64K');

subtest 'without a body' => sub {
    is get($server, '/slurp')->{body}, '', "reading to the end ends at once, round $_" for 1 .. 3;
    is get($server, '/eof')->{body}, 'at end';
    is get($server, '/read')->{body}, '0 0';
    is get($server, '/length')->{body}, 'none';
};

subtest 'a small body, in memory' => sub {
    is request($server, post('/slurp', "one\ntwo\n"))->{body}, "one\ntwo\n";
    is request($server, post('/lines', "one\ntwo\nthree"))->{body}, 'one|two|three';
    is request($server, post('/seek', 'abcdef'))->{body}, '6 same';
    is request($server, post('/fileno', 'abcdef'))->{body}, 'memory';
    is request($server, post('/read', 'x' x 2500))->{body}, '3 2500';
};

subtest 'a long body, in a file' => sub {
    my $long = join '', map {"$_\n"} 1 .. 20_000;
    ok request($server, post('/slurp', $long))->{body} eq $long, 'the same bytes';
    is request($server, post('/seek', $long))->{body}, length($long) . ' same';
    is request($server, post('/fileno', $long))->{body}, 'file';
    is request($server, post('/slurp', 'y' x 65536))->{body}, 'y' x 65536, 'at the limit';
    is request($server, post('/fileno', 'y' x 65536))->{body}, 'memory';
    is request($server, post('/fileno', 'y' x 65537))->{body}, 'file', 'one more is a file';
};

subtest 'a chunked body' => sub {
    my $chunked = sub { "POST $_[0] HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" };
    is request($server, $chunked->('/slurp'))->{body}, 'abcde';
    is request($server, $chunked->('/length'))->{body}, '5', 'CONTENT_LENGTH is what was decoded';
    is request($server, $chunked->('/te'))->{body}, 'gone';
};

subtest 'reading to the end on a connection that is kept' => sub {
    my $client = $server->connect;
    for my $round (1 .. 20) {
        my $body = 'round ' x $round;
        $client->send(post('/slurp', $body) . "GET /slurp HTTP/1.1\r\nHost: a\r\n\r\n");
        is $client->response->{body}, $body;
        is $client->response->{body}, '', 'the next request does not see it';
    }
};

subtest 'what one request did to the empty handle is not seen by the next' => sub {
    my $client = $server->connect;
    for my $spoil (qw(/close /layer /bless)) {
        $client->send("GET $spoil HTTP/1.1\r\nHost: a\r\n\r\n");
        is $client->response->{status}, 200, $spoil;
        $client->send("GET $_ HTTP/1.1\r\nHost: a\r\n\r\n") for qw(/slurp /layers /ref);
        is $client->response->{body}, '', 'nothing to read';
        is $client->response->{body}, '';
        is $client->response->{body}, 'GLOB';
    }
};

subtest 'a handle that outlives its request' => sub {
    my @kept;
    my $keeper = serve(
        sub {
            my ($env) = @_;
            push @kept, $env->{'psgi.input'};
            my @texts = map { seek $_, 0, 0; local $/; my $text = <$_>; length($text // '') } @kept;
            return [200, [@TEXT], ["@texts"]];
        },
        body_memory_max => '1K'
    );
    is get($keeper, '/')->{body}, '0';
    is request($keeper, post('/', 'abc'))->{body}, '0 3';
    is request($keeper, post('/', 'z' x 5000))->{body}, '0 3 5000';
    is get($keeper, '/')->{body}, '0 3 5000 0';
};

done_testing;
