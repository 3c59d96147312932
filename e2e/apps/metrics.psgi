# Changes metrics of its own wherever an application can; metrics.ru is its twin.
use strict;
use warnings;
use Oribi::Metrics;
use POSIX ();

my $answers = Oribi::Metrics->counter('shop_answers_total', 'Answers', labels => ['path']);
my $times   = Oribi::Metrics->histogram('shop_times_seconds', 'Times', buckets => [0.1, 1]);
my $held    = Oribi::Metrics->gauge('shop_held', 'Held by workers', aggregate => 'sum');
my $users   = Oribi::Metrics->gauge('shop_users', 'Users "now"');
my $bound   = $answers->with(path => '/');
Oribi::Metrics->counter('shop_loads', 'Loads')->increment(by => 0.5);

sub {
    my ($env) = @_;
    my $path = $env->{PATH_INFO};
    if ($path eq '/hold') {
        $held->set(2);
        $held->increment;
    } elsif ($path eq '/fork') {
        my $child = fork // die "fork: $!\n";
        if (!$child) { $bound->increment for 1 .. 5; POSIX::_exit(0) }
        waitpid $child, 0;
    } elsif ($path eq '/lazy') {
        my $lazy = Oribi::Metrics->counter('shop_lazy', 'Declared in a call', labels => ['n']);
        $lazy->increment(labels => { n => "$_\"\\\n\xff" }) for 0 .. $env->{QUERY_STRING} - 1;
    } elsif ($path eq '/otherwise') {
        eval { Oribi::Metrics->gauge('shop_answers', 'Otherwise') } or return [200, [], [$@]];
    } elsif ($path eq '/') {
        $bound->increment;
        $times->observe(0.5);
        $users->increment;
    } else {
        $answers->increment(labels => { path => $path });
    }
    return [200, [], [$$]];
};
