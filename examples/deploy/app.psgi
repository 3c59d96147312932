use strict;
use warnings;

# Something to deploy: a page, and the check that a load balancer asks. /ready turns red when a stop is announced
# (drain_delay), while requests are still welcome; workers that are only replaced, at a reload, stay green.
sub {
    my ($env) = @_;
    if ($env->{PATH_INFO} eq '/ready') {
        return Oribi::stopping()
          ? [503, ['Content-Type' => 'text/plain'], ["stopping\n"]]
          : [200, ['Content-Type' => 'text/plain'], ["ready\n"]];
    }
    return [200, ['Content-Type' => 'text/plain'], ["served by $$\n"]];
};
