use strict;
use warnings;

# What the clients of load/load.c ask for while the server is restarted; restarts.ru is its twin.
my $GROW_BYTES = $ENV{E2E_GROW} || 0;
my @GROWN;
my $BIG = 'x' x 200_000;

sub {
    my ($env) = @_;
    push @GROWN, 'g' x $GROW_BYTES if $GROW_BYTES;
    my $path = $env->{PATH_INFO};
    my $body = 'Hello, World!';
    if ($path eq '/echo') {
        local $/;
        $body = readline $env->{'psgi.input'};
    } elsif ($path eq '/big') {
        $body = $BIG;
    } elsif ($path eq '/slow') {
        select undef, undef, undef, 0.02;
        $body = 'slow';
    }
    return [200, ['Content-Type' => 'text/plain', 'X-Worker' => $$], [$body]];
};
