use strict;
use warnings;
use lib 't/lib';
use Test::More;

BEGIN {
    eval { require Plack::Test::Suite; 1 } or plan skip_all => 'Plack::Test::Suite wants Test::TCP, File::ShareDir and LWP';
}
use Plack::Loader;
use Plack::Test::Suite;

# Plack's own suite through Plack::Handler::Oribi::Pure, as plackup would run it.

Plack::Test::Suite->run_server_tests(sub {
    my ($port, $app) = @_;
    Test::More->builder->no_ending(1);
    Plack::Loader->load('Oribi::Pure', host => '127.0.0.1', port => $port, workers => 1, access_log => 'off', quiet => 1)->run($app);
    require POSIX;
    POSIX::_exit(0);
});

done_testing;
