use strict;
use warnings;
use lib 't/lib';
use Test::More;

BEGIN {
    eval { require Plack::Test::Suite; require HTTP::Response; 1 } or plan skip_all => 'Plack::Test::Suite wants Test::TCP, File::ShareDir and LWP';
}
use OribiServer;
use OribiTest;
use Plack::Middleware::Lint;
use Plack::Test::Suite;

# Plack's own suite through Plack::Handler::Oribi: over TCP and a unix socket, as an HTTP/1.1 client that keeps its
# connection, one that does not, and as an HTTP/1.0 client.

my $app = Plack::Middleware::Lint->wrap(Plack::Test::Suite->test_app_handler);

sub bytes_of {
    my ($req, $version, $persistent) = @_;
    my $uri = $req->uri;
    # a unix socket has no port to tell
    $req->header(Host => $uri->host . ':' . $uri->port) if $version eq '1.1' || $uri->port == 80;
    $req->header(Connection => 'close') if $version eq '1.1' && !$persistent;
    $req->content_length(length $req->content) if length $req->content;
    return join '', $req->method, ' ', $uri->path_query, " HTTP/$version\r\n", $req->headers->as_string("\r\n"), "\r\n", $req->content;
}

sub response_of {
    my ($raw, $req) = @_;
    my @fields = map { my $name = $_; map { $name => $_ } @{ $raw->{fields}{$name} } } keys %{ $raw->{fields} };
    my $res = HTTP::Response->new($raw->{status}, $raw->{message}, [@fields], $raw->{body});
    $res->request($req);
    return $res;
}

for my $transport (qw(tcp unix)) {
    my $server = start_handler($transport, $app, workers => 2);
    for my $client ([ '1.1', 1 ], [ '1.1', 0 ], [ '1.0', 0 ]) {
        my ($version, $persistent) = @$client;
        subtest "$transport, HTTP/$version" . ($persistent ? ', one connection' : '') => sub {
            my $connection;
            for my $i (0 .. $#Plack::Test::Suite::TEST) {
                my ($name, $test) = @{ $Plack::Test::Suite::TEST[$i] };
                note $name;
                $test->(sub {
                    my ($req) = @_;
                    $req->uri->port($server->{listener}{port} || 80);
                    $req->header('X-Plack-Test' => $i);
                    $connection = $server->connect unless $persistent && $connection;
                    $connection->send(bytes_of($req, $version, $persistent));
                    my $raw = $connection->response(head => scalar($req->method eq 'HEAD'));
                    ok $raw->{complete}, "$name: complete";
                    $connection = undef if $raw->{fields}{connection};
                    return response_of($raw, $req);
                });
            }
        };
    }
    is $server->stop, 0, "$transport: the server ends in good order";
}

done_testing;
