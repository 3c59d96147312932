#!/usr/bin/env perl
use strict;
use warnings;
use File::Temp ();
use IO::Socket::INET ();

# Requests per second of servers in Perl alone, one worker each, in one run: bench/pure.pl [seconds] [rounds].
# Keep-alive over one connection, and a connection for each request over four. HTTP::Parser::XS runs without its part in
# C. Beside the rate stands the processor's time of the server's processes for each request, which tells more on a
# machine that others use too. Needs Linux, wrk, Plack, Starman, Starlet.

my ($seconds, $rounds) = (@ARGV, 3, 3);
my $root = $0 =~ s{[^/]*\z}{}r . '..';
my $dir = File::Temp->newdir;
open my $app, '>', "$dir/app.psgi" or die $!;
print {$app} q[sub { [200, ['Content-Type' => 'text/plain', 'Content-Length' => 13], ["Hello, World!"]] }];
close $app or die $!;
@ENV{qw(PERL_HTTP_PARSER_XS PERL_ONLY PLACK_ENV)} = ('pp', 1, 'deployment');

my %command = (
    'Oribi::Pure' => [$^X, "$root/perl/lib/Oribi/Pure.pm", qw(--workers 1 --access-log off --quiet --port)],
    'HTTP::Server::PSGI' => [qw(plackup -E deployment -s HTTP::Server::PSGI --host 127.0.0.1 --port)],
    'Starlet' => [qw(plackup -E deployment -s Starlet --max-workers=1 --max-keepalive-reqs=1000000000 --max-reqs-per-child=1000000000 --host 127.0.0.1 --port)],
    'Starman' => [qw(plackup -E deployment -s Starman --workers 1 --max-requests 1000000000 --disable-proctitle --host 127.0.0.1 --port)],
);

# Microseconds that a process and its children have run.
sub time_of {
    my ($pid) = @_;
    my ($time, @children) = map { open my $in, '<', "/proc/$pid/$_" or return 0; split ' ', readline($in) // '' } 'schedstat', "task/$pid/children";
    splice @children, 0, 2;    # the rest of schedstat
    my $sum = $time / 1000;
    $sum += time_of($_) for @children;
    return $sum;
}

# Requests per second, and microseconds of the processor for each.
sub rate_of {
    my ($name, @wrk) = @_;
    my $probe = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die $!;
    my $port = $probe->sockport;
    close $probe;
    my $pid = fork // die $!;
    if (!$pid) {
        open STDERR, '>', "$dir/log";
        exec @{ $command{$name} }, $port, "$dir/app.psgi";
    }
    for (1 .. 200) {
        last if IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port);
        select undef, undef, undef, 0.05;
    }
    my $before = time_of($pid);
    my $said = `wrk -t1 -d${seconds}s @wrk http://127.0.0.1:$port/ 2>&1`;
    my $time = time_of($pid) - $before;
    kill TERM => $pid;
    waitpid $pid, 0;
    my ($rate) = $said =~ /Requests\/sec:\s+([0-9.]+)/ or die "$name: $said";
    my ($count) = $said =~ /([0-9]+) requests in/;
    return { rate => $rate, time => $time / $count };
}

my %way = ('keep-alive' => ['-c1'], 'connections' => ['-c4', "-H'Connection: close'"]);
my %rates;
for my $round (1 .. $rounds) {
    for my $way (sort keys %way) {
        push @{ $rates{$way}{$_} }, rate_of($_, @{ $way{$way} }) for sort keys %command;
    }
}
sub median { my @sorted = sort { $a <=> $b } @_; return $sorted[$#sorted / 2] }

# Medians; and how many times as good Oribi::Pure was in each round: the median, the lowest and the highest.
for my $way (sort keys %way) {
    my $ours = $rates{$way}{'Oribi::Pure'};
    for my $name (sort keys %command) {
        my $theirs = $rates{$way}{$name};
        my %ratios = (
            rate => [sort { $a <=> $b } map { $ours->[$_]{rate} / $theirs->[$_]{rate} } 0 .. $#$theirs],
            time => [sort { $a <=> $b } map { $theirs->[$_]{time} / $ours->[$_]{time} } 0 .. $#$theirs],
        );
        my @shown = map { my $key = $_; median(map { $_->{$key} } @$theirs), @{ $ratios{$key} }[$#$theirs / 2, 0, -1] } qw(rate time);
        printf "%-12s %-18s %6.0f req/s x %.2f (%.2f to %.2f) %5.0f us x %.2f (%.2f to %.2f)\n", $way, $name, @shown;
    }
}
