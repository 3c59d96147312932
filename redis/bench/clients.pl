#!/usr/bin/env perl
use 5.016;
use strict;
use warnings;
use File::Basename ();
use File::Temp     ();
use Time::HiRes    ();

# Oribi::Redis beside Redis::Fast and a bare loop in C over hiredis, against a redis-server of its own, on a unix
# socket and TCP: redis/bench/clients.pl [--rounds N] [--only PATTERN]. In each round all contestants do the same work
# one after the other, first one and then another of them beginning. Prints requests per second, CPU of the client's
# process for each, and the ratio of the two: the median of the rounds' ratios, with the least and the greatest
# quarter beside it.
my $here;
BEGIN { $here = File::Basename::dirname(__FILE__) }
use lib "$here/../perl/t/lib", "$here/../perl/blib/lib", "$here/../perl/blib/arch";
use Oribi::Redis;
use RedisServer;

my ($rounds, $only) = (15, '.');
while (defined(my $word = shift @ARGV)) {
    if    ($word eq '--rounds') { $rounds = shift @ARGV }
    elsif ($word eq '--only')   { $only   = shift @ARGV }
    else                        { die "usage: redis/bench/clients.pl [--rounds N] [--only PATTERN]\n" }
}
eval { require Redis::Fast; 1 } or die "Redis::Fast is not installed (script/setup bench)\n";

my $server = RedisServer->start or die "redis-server is not installed (script/setup bench)\n";
my $dir    = File::Temp->newdir;
my $bare   = system("cc -O2 -o $dir/bare $here/bare.c -lhiredis 2>$dir/log") == 0 ? "$dir/bare" : undef;
print "hiredis is not installed: no bare loop\n" if !$bare;

# [name, commands in a turn, turns, { contestant => code for a turn }, what is compared with what]
sub subjects {
    my ($ours, $fast) = @_;
    my @hundred = map { ['GET', 'key'] } 1 .. 100;
    my @writes  = map { ['INCR', 'n'] } 1 .. 100;
    return (
        ['get', 1, 5000, ours => sub { my $v = $ours->command('GET', 'key') }, fast => sub { my $v = $fast->get('key') }],
        ['pipeline of 100 GETs', 100, 200, ours => sub { my @v = $ours->pipeline(@hundred) },
            fast => sub { my @v; $fast->get('key', sub { push @v, $_[0] }) for 1 .. 100; $fast->wait_all_responses }],
        ['100 INCRs without reply, beside our pipeline', 100, 200, ours => sub { $ours->noreply(@writes) }, pipeline => sub { my @v = $ours->pipeline(@writes) }],
        ['list of 1,000', 1, 500, ours => sub { my $v = $ours->command('LRANGE', 'list', 0, -1) }, fast => sub { my $v = [$fast->lrange('list', 0, -1)] }],
        ['hash of 500 pairs', 1, 500, ours => sub { my $v = $ours->command('HGETALL', 'hash') }, fast => sub { my $v = {$fast->hgetall('hash')} }],
        ['get 1 MiB', 1, 100, ours => sub { my $v = $ours->command('GET', 'large') }, fast => sub { my $v = $fast->get('large') }],
        ['set 1 MiB', 1, 100, ours => sub { $ours->command('SET', 'other', $main::LARGE) }, fast => sub { $fast->set('other', $main::LARGE) }],
    );
}

our $LARGE = 'x' x (1 << 20);

sub cpu { return Time::HiRes::clock() }

# Seconds and seconds of CPU of so many turns, and of what comes behind them.
sub measured {
    my ($code, $turns, $behind) = @_;
    my ($wall, $cpu) = (Time::HiRes::time(), cpu());
    $code->() for 1 .. $turns;
    $behind->() if $behind;
    return [Time::HiRes::time() - $wall, cpu() - $cpu];
}

sub quantile { my ($part, @values) = @_; @values = sort { $a <=> $b } @values; return $values[$part * $#values] }

sub told {
    my ($name, $commands, $turns, $first, $second, $taken) = @_;
    my $count = $commands * $turns;
    my @rate  = map { my $who = $_; $count / quantile(0.5, map { $_->[0] } @{ $taken->{$who} }) } $first, $second;
    my @cpu   = map { my $who = $_; quantile(0.5, map { $_->[1] } @{ $taken->{$who} }) / $count * 1e6 } $first, $second;
    my @ratio = map { $taken->{$second}[$_][0] / $taken->{$first}[$_][0] } 0 .. $#{ $taken->{$first} };
    my @less  = map { $taken->{$second}[$_][1] / $taken->{$first}[$_][1] } 0 .. $#{ $taken->{$first} };
    printf "| %s | %.0f | %.0f (%s) | **%.2f** (%.2f to %.2f) | %.2f | %.2f | %.2f |\n", $name, @rate, $second,
        quantile(0.5, @ratio), quantile(0.25, @ratio), quantile(0.75, @ratio), @cpu, quantile(0.5, @less);
    return;
}

print "| | Oribi::Redis /s | beside it /s | ratio | CPU us | CPU us | ratio |\n| --- | --: | --: | --: | --: | --: | --: |\n";
for my $place (['unix', $server->path, [path => $server->path], [sock => $server->path]],
    ['tcp', $server->port, [host => '127.0.0.1', port => $server->port], [server => '127.0.0.1:' . $server->port]]) {
    my ($place_name, $address, $ours_at, $fast_at) = @$place;
    my $ours = Oribi::Redis->new(@$ours_at, protocol => 2, read_timeout_ms => 30_000);
    my $fast = Redis::Fast->new(@$fast_at, reconnect => 1, every => 1000);
    $ours->pipeline(['FLUSHALL'], ['SET', 'key', 'v' x 10], ['RPUSH', 'list', map {"item $_"} 1 .. 1000],
        ['HSET', 'hash', map { ("f$_", "value $_") } 1 .. 500], ['SET', 'large', $LARGE]);
    for my $subject (subjects($ours, $fast)) {
        my ($name, $commands, $turns, $first, $first_code, $second, $second_code) = @$subject;
        next if "$place_name $name" !~ /$only/;
        my %taken;
        for my $round (0 .. $rounds) {
            for my $one ($round % 2 ? ([$first, $first_code], [$second, $second_code]) : ([$second, $second_code], [$first, $first_code])) {
                my $seconds = measured($one->[1], $turns, sub { $ours->settle });    # replies that were not read
                push @{ $taken{ $one->[0] } }, $seconds if $round;    # the first one warms up
            }
            push @{ $taken{bare} }, [split / /, `$bare $address key $turns`] if $bare && $round && $name eq 'get';
        }
        told("$place_name: $name", $commands, $turns, $first, $second, \%taken);
        told("$place_name: $name, beside C", $commands, $turns, $first, 'bare', \%taken) if $taken{bare};
    }
}
my $any  = Oribi::Redis->new;
my $call = measured(sub { my $v = $any->is_connected }, 1_000_000);
printf "a call of an empty method of C: %.2f us\n", $call->[0];
