use strict;
use warnings;
use Test::More;
use lib 't/lib';
use RedisServer;

# The example in the checkout; the distribution does not have it.
my $example = '../../examples/sessions-psgi';
plan skip_all => 'the example is in the repository alone' if !-d $example;
eval { require Plack::Test; require Plack::Middleware::Session; require HTTP::Request::Common; 1 } or plan skip_all => 'Plack::Middleware::Session is not installed';
my $server = RedisServer->start or plan skip_all => 'redis-server is not installed';
$ENV{REDIS_URL} = 'unix://' . $server->path;
require Plack::Util;
my $app = Plack::Util::load_psgi("$example/app.psgi");

Plack::Test::test_psgi($app, sub {
    my ($ask)  = @_;
    my $first  = $ask->(HTTP::Request::Common::GET('/'));
    my ($cookie) = $first->header('Set-Cookie') =~ /\A([^;]+)/;
    is $first->content, "visit 1\n";
    is $ask->(HTTP::Request::Common::GET('/', Cookie => $cookie))->content, "visit 2\n";
    is $ask->(HTTP::Request::Common::GET('/'))->content, "visit 1\n", 'another browser';
    $server->stop('KILL');
    $server->run;
    is $ask->(HTTP::Request::Common::GET('/', Cookie => $cookie))->content, "visit 1\n", 'Redis has forgotten, and was restarted';
});

done_testing;
