#!/usr/bin/env perl
use strict;
use warnings;
use File::Temp ();
use IO::Socket::INET ();

# Requests per second of servers in Perl alone, one worker each, in one run: bench/pure.pl [seconds] [rounds].
# Keep-alive over one connection, and a connection for each request over four. HTTP::Parser::XS runs without its part in
# C. Needs wrk, Plack, Starman, Starlet.

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
    my $said = `wrk -t1 -d${seconds}s @wrk http://127.0.0.1:$port/ 2>&1`;
    kill TERM => $pid;
    waitpid $pid, 0;
    return $said =~ /Requests\/sec:\s+([0-9.]+)/ ? $1 : 0;
}

my %way = ('keep-alive' => ['-c1'], 'connections' => ['-c4', "-H'Connection: close'"]);
my %rates;
for my $round (1 .. $rounds) {
    for my $way (sort keys %way) {
        push @{ $rates{$way}{$_} }, rate_of($_, @{ $way{$way} }) for sort keys %command;
    }
}
for my $way (sort keys %way) {
    for my $name (sort keys %command) {
        my @sorted = sort { $a <=> $b } @{ $rates{$way}{$name} };
        printf "%-12s %-20s %8.0f req/s\n", $way, $name, $sorted[$#sorted / 2];
    }
}
