use strict;
use warnings;
use File::Basename ();
use lib File::Basename::dirname(__FILE__) . '/lib';
use Plack::Builder;
use RedisStore;

# Counts the visits of each browser. One client for all workers: each opens a connection of its own.
my $redis = Oribi::Redis->new;

builder {
    enable 'Session', store => RedisStore->new(redis => $redis);
    sub {
        my ($env) = @_;
        my $visits = ++$env->{'psgix.session'}{visits};
        return [200, ['Content-Type' => 'text/plain'], ["visit $visits\n"]];
    };
};
