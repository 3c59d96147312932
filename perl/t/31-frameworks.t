use strict;
use warnings;
use lib 't/lib';
use OribiTest;
use Plack::Middleware::Lint;
use Plack::Request;
use Test::More;

# Frameworks: hello and an upload, each more than once on one connection.

sub multipart {
    my ($content) = @_;
    my $boundary = 'xYzZy';
    my $body = join "\r\n", "--$boundary", 'Content-Disposition: form-data; name="nick"', '', 'me', "--$boundary",
        'Content-Disposition: form-data; name="file"; filename="a.bin"', 'Content-Type: application/octet-stream', '', $content, "--$boundary--", '';
    return "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=$boundary\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
}

sub check {
    my ($name, $app) = @_;
    subtest $name => sub {
        my $server = serve($app);
        my $client = $server->connect;
        for my $size (10, 200_000, 0, 10) {
            my $content = join '', map { chr($_ % 256) } 1 .. $size;
            $client->send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
            my $res = $client->response;
            is $res->{body}, 'Hello, world';
            ok !$res->{fields}{connection}, 'the connection stays';
            $client->send(multipart($content));
            is $client->response->{body}, "me a.bin $size " . unpack('%32C*', $content), "upload of $size bytes";
        }
        $client->close;
        is get($server, '/none')->{status}, 404;
        is get($server, '/die')->{status}, 500;
        is get($server, '/hello')->{body}, 'Hello, world';
        is $server->stop, 0;
    };
}

check 'Plack::Request' => sub {
    my ($env) = @_;
    my $req = Plack::Request->new($env);
    return [200, ['Content-Type' => 'text/plain'], ['Hello, world']] if $req->path eq '/hello';
    return [404, ['Content-Type' => 'text/plain'], ['none']] if $req->path eq '/none';
    die "on purpose\n" if $req->path eq '/die';
    my $upload = $req->upload('file');
    open my $fh, '<:raw', $upload->path or die $!;
    my $content = do { local $/; <$fh> } // '';
    my $text = join ' ', $req->parameters->{nick}, $upload->filename, length $content, unpack '%32C*', $content;
    return [200, ['Content-Type' => 'text/plain'], [$text]];
};

SKIP: {
    skip 'Dancer2 is not installed', 1 unless eval { require Dancer2; 1 };
    check 'Dancer2' => eval <<'CODE' || die $@;
        package OribiTest::Dancer;
        use Dancer2;
        set logger => 'null';
        set content_type => 'text/plain';
        get '/hello' => sub { 'Hello, world' };
        get '/die' => sub { die "on purpose\n" };
        post '/upload' => sub {
            my $upload = upload('file');
            my $content = $upload->content // '';
            return join ' ', body_parameters->get('nick'), $upload->filename, length $content, unpack '%32C*', $content;
        };
        __PACKAGE__->to_app;
CODE
}

SKIP: {
    skip 'Mojolicious is not installed', 1 unless eval { require Mojolicious; 1 };
    check 'Mojolicious' => eval <<'CODE' || die $@;
        package OribiTest::Mojo;
        use Mojolicious::Lite -signatures;
        app->log->level('fatal');
        get '/hello' => sub ($c) { $c->render(text => 'Hello, world') };
        get '/die' => sub ($c) { die "on purpose\n" };
        post '/upload' => sub ($c) {
            my $upload = $c->param('file');
            my $content = $upload->slurp;
            $c->render(text => join ' ', $c->param('nick'), $upload->filename, length $content, unpack '%32C*', $content);
        };
        app->start('psgi');
CODE
}

SKIP: {
    skip 'Mojolicious is not installed', 1 unless eval { require Mojolicious; 1 };
    subtest 'Mojolicious frames its own chunks' => sub {
        my $server = serve(eval <<'CODE' || die($@), lint => 0);
            package OribiTest::MojoChunks;
            use Mojolicious::Lite -signatures;
            app->log->level('fatal');
            get '/chunks' => sub ($c) { $c->write_chunk('one' => sub ($c, @) { $c->write_chunk(' two' => sub ($c, @) { $c->finish }) }) };
            get '/write' => sub ($c) { $c->res->headers->content_length(7); $c->write('one' => sub ($c, @) { $c->write(' two') }) };
            app->start('psgi');
CODE
        my $client = $server->connect;
        for my $round (1, 2) {
            $client->send("GET /chunks HTTP/1.1\r\nHost: a\r\n\r\n");
            my $res = $client->response;
            is $res->{body}, 'one two', 'the content, without the sizes';
            is_deeply $res->{fields}{'transfer-encoding'}, ['chunked'];
            $client->send("GET /write HTTP/1.1\r\nHost: a\r\n\r\n");
            is $client->response->{body}, 'one two';
        }
        is request($server, "GET /chunks HTTP/1.0\r\n\r\n")->{body}, 'one two', 'to HTTP/1.0';
        is $server->stop, 0;
    };
}

# Both read HTTPS, and not the scheme.
SKIP: {
    skip 'Mojolicious or CGI.pm is not installed', 1 unless eval { require Mojolicious; require CGI; 1 };
    subtest 'https at a trusted proxy is https to Mojolicious and CGI.pm' => sub {
        my $mojo = eval <<'CODE' || die $@;
            package OribiTest::MojoSecure;
            use Mojolicious::Lite -signatures;
            app->log->level('fatal');
            get '/mojo' => sub ($c) { $c->render(text => join ' ', $c->req->is_secure ? 'secure' : 'plain', $c->url_for('/to')->to_abs) };
            app->start('psgi');
CODE
        my $cgi = sub {
            my ($env) = @_;
            local @ENV{ keys %$env } = values %$env;
            delete local $ENV{HTTPS} unless exists $env->{HTTPS};
            return [200, ['Content-Type' => 'text/plain'], [CGI->new('')->url(-base => 1)]];
        };
        my $server = serve(sub { $_[0]{PATH_INFO} eq '/mojo' ? $mojo->($_[0]) : $cgi->($_[0]) }, trusted_proxies => '127.0.0.1');
        my $client = $server->connect;
        my $ask = sub {
            $client->send("GET $_[0] HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-Proto: $_[1]\r\n\r\n");
            return $client->response->{body};
        };
        for my $round (1, 2) {
            is $ask->('/mojo', 'https'), 'secure https://shop.example/to';
            is $ask->('/cgi',  'https'), 'https://shop.example';
            is $ask->('/mojo', 'http'),  'plain http://shop.example/to';
            is $ask->('/cgi',  'http'),  'http://shop.example';
        }
        is $server->stop, 0;
    };
}

done_testing;
