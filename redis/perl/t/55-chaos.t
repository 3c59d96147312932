use strict;
use warnings;
use Test::More;
use lib 't/lib';
use RedisServer;
use Oribi::Redis;
use POSIX ();
use Time::HiRes ();

# Commands whose replies are known beforehand, while alarms die in the middle of them, connections are killed, children
# are forked and the server is restarted: each reply that comes is the right one. ORIBI_SOAK_S: so many seconds;
# ORIBI_SEED: the same once more, as far as time allows.

my $server = RedisServer->start or plan skip_all => 'redis-server is not installed';
my $seed = defined $ENV{ORIBI_SEED} ? srand $ENV{ORIBI_SEED} : srand;
my $until = time + ($ENV{ORIBI_SOAK_S} // 4);
our $within = 0;    # an eval that catches it
local $SIG{ALRM} = sub { die "alarm\n" if $within };

my @clients = map { Oribi::Redis->new($server->place, protocol => $_, reconnect_delay_ms => 1, reconnect_attempts => 10, read_timeout_ms => 3000) } 2, 3;
push @clients, Oribi::Redis->new(host => '127.0.0.1', port => $server->port, reconnect_delay_ms => 1, reconnect_attempts => 10, read_timeout_ms => 3000);
my $killer = Oribi::Redis->new($server->place, reconnect_delay_ms => 10, reconnect_attempts => 10);
my ($tokens, $right, $wrong, %failed) = (0, 0, 0);

sub token { return join ':', $$, ++$tokens, 'x' x (rand() < 0.1 ? rand 100_000 : rand 100) }

sub compare {
    my ($got, $wanted) = @_;
    if ($got eq $wanted) { $right++ }
    else                 { $wrong++; diag 'seed ' . $seed . ': ' . substr($got, 0, 60) . ' instead of ' . substr $wanted, 0, 60 }
    return;
}

my @deeds = (
    (sub { my ($r) = @_; my $t = token(); compare($r->command('ECHO', $t), $t) }) x 4,
    (sub { my ($r) = @_; my @t = map { token() } 1 .. rand 50; my @got = $r->pipeline(map { ['ECHO', $_] } @t); compare($got[$_], $t[$_]) for 0 .. $#t }) x 2,
    (sub { my ($r) = @_; $r->noreply(map { ['ECHO', token()] } 1 .. rand 50) }) x 2,
    sub { my ($r) = @_; my ($count, @errors) = $r->settle },
    sub { my ($r) = @_; my @t = map { token() } 1 .. 3; my $got = $r->multi(sub { my ($q) = @_; $q->command('ECHO', $_) for @t }); compare($got->[$_], $t[$_]) for 0 .. 2 },
    sub { my ($r) = @_; my $t = token(); compare($r->command('EVAL', 'return {ARGV[1], {ARGV[1]}}', 0, $t)->[1][0], $t) },
    sub { my ($r) = @_; $r->blocking(1 + rand 5, 'BLPOP', 'nothing', 0) },
    sub { my ($r) = @_; $killer->command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes') },
    sub { my ($r) = @_; $r->close },
);

sub some {
    my ($times) = @_;
    for (1 .. $times) {
        my $client = $clients[rand @clients];
        my $deed   = $deeds[rand @deeds];
        eval {
            local $within = 1;
            Time::HiRes::ualarm(50 + rand 3000) if rand() < 0.3;
            $deed->($client);
            1;
        } or $failed{ ref $@ || $@ }++;
        Time::HiRes::ualarm(0);
    }
    return;
}

local $SIG{__WARN__} = sub { };    # of replies that were lost, when a child's clients go
my $children = 0;
my $bad      = 0;
my $restarted = 0;
while (time < $until) {
    some(200);
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        $tokens = $right = $wrong = 0;
        some(50);
        POSIX::_exit($wrong ? 1 : 0);
    }
    some(20);
    waitpid $pid, 0;
    $children++;
    $bad++ if $?;
    if (rand() < 0.05) { $server->stop('KILL'); $server->run; $restarted++ }
}
note "$right right, $children children, $restarted restarts, ", join ', ', map {"$failed{$_} $_"} sort keys %failed;
is $wrong, 0, 'no reply was another\'s';
is $bad,   0, '... in children, too';
cmp_ok $right, '>', 100, 'many replies came';
delete @failed{"alarm\n", map {"Oribi::Redis::Error::$_"} qw(Connection Timeout)};
is_deeply \%failed, {}, 'all failures are of the expected kinds';

done_testing;
