# /sleep/MS: calls of a length that the load driver has drawn; placement.ru is its twin. The answer says how long the
# call really was.
use strict;
use warnings;
use Time::HiRes qw(clock_gettime sleep CLOCK_MONOTONIC);

sub {
    my ($env) = @_;
    my $started = clock_gettime(CLOCK_MONOTONIC);
    my ($ms) = $env->{PATH_INFO} =~ m{\A/sleep/([0-9.]+)\z};
    sleep(($ms || 0) / 1000);
    my $took_us = int((clock_gettime(CLOCK_MONOTONIC) - $started) * 1e6);
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => 4, 'X-Service-Us' => $took_us], ['done']];
};
