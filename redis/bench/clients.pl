#!/usr/bin/env perl
use 5.016;
use strict;
use warnings;
use Config         ();
use DynaLoader     ();
use File::Basename ();
use File::Temp     ();
use JSON::PP       ();
use List::Util     ();
use Time::HiRes    ();

# Oribi::Redis beside Redis::Fast and a loop in C over hiredis:
#   redis/bench/clients.pl SUBJECT PATH|PORT [--rounds N] [--seconds S]
# against the redis-server at that unix socket or port of 127.0.0.1, which is emptied. In each round all contestants do
# the same number of commands, as many as the first of them does in S seconds (0.1); another one begins each round. What
# they get is compared first. Prints a line of JSON for each contestant: wall-clock and own processor time of a command
# in microseconds, one figure a round. bench/run --only redis calls this.
my $here;
BEGIN { $here = File::Basename::dirname(__FILE__) }
use lib "$here/../perl/blib/lib", "$here/../perl/blib/arch";
use Oribi::Redis;

my ($rounds, $seconds, @words) = (15, 0.1);
while (defined(my $word = shift @ARGV)) {
    if    ($word eq '--rounds')  { $rounds  = shift @ARGV }
    elsif ($word eq '--seconds') { $seconds = shift @ARGV }
    else                         { push @words, $word }
}
my ($subject, $address) = @words;
die "usage: redis/bench/clients.pl SUBJECT PATH|PORT [--rounds N] [--seconds S]\n" if @words != 2;

my $is_path = $address =~ m{/};
my $ours    = Oribi::Redis->new($is_path ? (path => $address) : (host => '127.0.0.1', port => $address), read_timeout_ms => 30_000);
my $fast    = eval { require Redis::Fast; Redis::Fast->new($is_path ? (sock => $address) : (server => "127.0.0.1:$address"), reconnect => 1, every => 1000) };
my $large   = 'x' x (1 << 20);
my $dir     = File::Temp->newdir;
my @hundred = map { ['GET', 'key'] } 1 .. 100;
my @writes  = map { ['INCR', 'n'] } 1 .. 100;
my %made    = (
    list => ['RPUSH', 'list', map {"item $_"} 1 .. 1000],
    hash => ['HSET', 'hash', map { ("f$_", "value $_") } 1 .. 500],
    '1m' => ['SET', 'large', $large],
);
$ours->pipeline(['FLUSHALL'], ['SET', 'key', 'v' x 20], $made{$subject} // ['PING']);

# subject => [commands of a turn, contestant => a turn, ...], the first contestant is the measure.
my ($own, $other) = ('Oribi::Redis (Perl)', 'Redis::Fast');
my %subjects = (
    get      => [1,   $own => sub { my $v = $ours->command('GET', 'key') }, $other => sub { my $v = $fast->get('key') }],
    pipeline => [100, $own => sub { [$ours->pipeline(@hundred)] },          $other => \&pipeline_of_fast],
    noreply  => [100, $own => sub { $ours->noreply(@writes); undef },       'Oribi::Redis (Perl), pipeline' => sub { my @v = $ours->pipeline(@writes); undef }],
    list => [1, $own => sub { my $v = $ours->command('LRANGE', 'list', 0, -1) }, $other => sub { my $v = [$fast->lrange('list', 0, -1)] }],
    hash => [1, $own => sub { my $v = $ours->command('HGETALL', 'hash') }, $other => sub { my $v = {$fast->hgetall('hash')} }],
    '1m' => [1, $own => sub { my $v = $ours->command('GET', 'large') }, $other => sub { my $v = $fast->get('large') }],
);

sub pipeline_of_fast {
    my @got;
    $fast->get('key', sub { push @got, $_[0] }) for 1 .. 100;
    $fast->wait_all_responses;
    return \@got;
}

# Seconds and own seconds of processor of so many turns and of what comes behind them.
sub measured {
    my ($code, $turns) = @_;
    my ($wall, $cpu) = (Time::HiRes::time(), Time::HiRes::clock());
    $code->() for 1 .. $turns;
    $ours->settle;    # replies that were not read
    return [Time::HiRes::time() - $wall, Time::HiRes::clock() - $cpu];
}

sub compiled {
    my (@words) = @_;
    return system("@words 2>$dir/log >&2") == 0;
}

# GETs in C, in seconds and seconds of processor; nil where hiredis is missing.
sub bare {
    return if !compiled("cc -O2 -o $dir/bare $here/bare.c -lhiredis");
    return sub { my ($count) = @_; [split / /, `$dir/bare $address key $count`] };
}

# Calls of a method of C that does nothing, with the same words.
sub nothing {
    my $flags = "$Config::Config{ccflags} $Config::Config{cccdlflags} -I$Config::Config{archlibexp}/CORE";
    compiled("cc -O2 -shared $flags -o $dir/nothing.so $here/nothing.c") or return;
    my $library = DynaLoader::dl_load_file("$dir/nothing.so", 0) or return;
    DynaLoader::dl_install_xsub('Bench::Nothing::boot', DynaLoader::dl_find_symbol($library, 'boot_bench_nothing'))->();
    my $any = bless {}, 'Bench::Nothing';
    return sub { my ($count) = @_; measured(sub { my $v = $any->command('GET', 'key') }, $count) };
}

my $known = $subjects{$subject} or die "clients.pl: no subject '$subject' (@{[sort keys %subjects]})\n";
my ($commands, @pairs) = @$known;
my (@names, %code);
while (my ($name, $code) = splice @pairs, 0, 2) {
    next if $name eq $other && !$fast;
    push @names, $name;
    $code{$name} = sub { measured($code, $_[0]) };
    my $same = JSON::PP->new->canonical->allow_nonref;
    my ($is, $must) = map { $same->encode($_->() // 'nothing') } $code, $known->[2];
    die "clients.pl: $name gives something else than $names[0]\n" if $is ne $must;
}
if ($subject eq 'get') {
    $code{'hiredis in C'} = bare()    or warn "clients.pl: hiredis is missing (script/setup bench)\n";
    $code{nothing}        = nothing() or warn "clients.pl: no empty call of C\n";
    push @names, grep { $code{$_} } 'hiredis in C', 'nothing';
}

# A turn takes what it takes in the second of two tries: the first one warms up.
$code{$own}->(10) for 1 .. 2;
my $turns = 10;
$turns *= 2 while $code{$own}->($turns)[0] < $seconds / 2 && $turns < 1 << 24;
my %taken;
for my $round (1 .. $rounds) {
    push @names, shift @names;
    push @{ $taken{$_} }, $code{$_}->($turns) for @names;
}
sub row {
    my ($name, @found) = @_;
    my $us = sub { my ($i) = @_; [map { $_->[$i] / $turns / $commands * 1e6 } @found] };
    say JSON::PP->new->canonical->encode({ server => $name, wall_us => $us->(0), cpu_us => $us->(1) });
    return;
}
row($_, @{ $taken{$_} }) for grep { $_ ne 'nothing' } sort @names;
if ($taken{'hiredis in C'} && $taken{nothing}) {
    my @sums = map { my $i = $_; [map { $taken{'hiredis in C'}[$i][$_] + $taken{nothing}[$i][$_] } 0, 1] } 0 .. $rounds - 1;
    row('hiredis in C, and an empty call of Perl', @sums);
}
