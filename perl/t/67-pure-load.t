use strict;
use warnings;
use lib 't/lib';
use File::Temp ();
use OribiServer;
use OribiTest;
use POSIX ();
use Test::More;

# What Oribi::Pure promises under load: whatever ends a worker, a request that was sent on a connection which the server
# has not said to close is answered.

my $CLIENTS = 6;
my $dir = File::Temp->newdir;
open my $out, '>', "$dir/app.psgi" or die $!;
print {$out} q[my $loaded = time; sub { my ($env) = @_; select undef, undef, undef, $1 if $env->{PATH_INFO} =~ m{/([0-9.]+)}; [200, [], [$$]] }];
close $out or die $!;

# Clients that keep their connections, in processes of their own. Each writes a line for each answer: the pid in it, or
# `lost`. They end at the end of $hold, or after $each requests.
sub clients {
    my ($server, $each, $path) = @_;
    pipe my $lines, my $written or die $!;
    pipe my $held, my $hold or die $!;
    my @pids;
    for my $number (1 .. $CLIENTS) {
        my $pid = fork // die $!;
        push @pids, $pid and next if $pid;
        Test::More->builder->no_ending(1);
        close $hold;
        my ($client, $count) = (undef, 0);
        until ($each && $count++ == $each || !$each && is_at_end($held)) {
            $client ||= wait_until('a connection', sub { eval { $server->connect } });
            $client->send("GET $path HTTP/1.1\r\nHost: a\r\n\r\n");
            my $res = eval { $client->response };
            my $said = $res && $res->{status} == 200 && $res->{complete} ? $res->{body} : 'lost';
            syswrite $written, "$said\n";
            undef $client if $said eq 'lost' || grep { $_ eq 'close' } @{ $res->{fields}{connection} || [] };
        }
        POSIX::_exit(0);
    }
    close $held;
    close $written;
    return { pids => \@pids, lines => $lines, hold => $hold };
}

sub is_at_end { my $set = ''; vec($set, fileno $_[0], 1) = 1; return select $set, undef, undef, 0 }

# Ends the clients; what they have written.
sub said_by {
    my ($clients) = @_;
    close delete $clients->{hold};
    my @said = map { s/\n\z//r } readline $clients->{lines};
    waitpid $_, 0 for @{ $clients->{pids} };
    return @said;
}

sub start { return start_command('tcp', '--pure', '--no-dev', @_, "$dir/app.psgi") }

subtest 'requests_max is exact, and loses nothing' => sub {
    my $server = start('--workers', 2, '--requests-max', 7);
    my @said = said_by(clients($server, 40, '/'));
    is scalar(@said), 40 * $CLIENTS;
    is scalar(grep { $_ eq 'lost' } @said), 0, 'none is lost';
    my %count;
    $count{$_}++ for @said;
    is_deeply [grep { $_ > 7 } values %count], [], 'no worker has answered more';
    is $server->stop, 0;
};

subtest 'idle connections do not keep a worker that is to end' => sub {
    my $server = start('--requests-max', 4);
    my @idle = map { my $client = $server->connect; $client->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"); $client->response; $client } 1 .. 2;
    is $server->get('/')->{status}, 200, "another client, request $_" for 1 .. 8;
    ok $_->at_end, 'an idle one is closed' for @idle;
    is $server->stop, 0;
};

my %END = (
    'reload by HUP' => 'HUP', 'a further worker, one less' => 'TTIN TTOU', 'a worker that is told to end' => 'worker',
);
for my $name (sort keys %END) {
    subtest "$name loses nothing" => sub {
        my $server = start('--workers', 2);
        my $clients = clients($server, 0, '/0.002');
        my (%seen, $last);
        for my $round (1 .. 8) {
            my ($signal, @more) = split ' ', $END{$name};
            for (1 .. 40) { chomp(my $pid = readline $clients->{lines}); $seen{ $last = $pid }++ }
            if ($signal eq 'worker') { kill TERM => $last if $last ne 'lost' }
            else { kill $_ => $server->pid for $signal, @more }
        }
        my @said = said_by($clients);
        is scalar(grep { $_ eq 'lost' } @said, keys %seen), 0, 'of ' . (320 + @said) . ' requests';
        is $server->stop, 0;
        unlike $server->log_text, qr/signal 9|shutdown_timeout/, 'no worker was killed';
    };
}

for my $signal (qw(TERM QUIT)) {
    subtest "$signal loses nothing that was begun" => sub {
        my $server = start('--workers', 2);
        my @busy = map { my $client = $server->connect; $client->send("GET /0.05 HTTP/1.1\r\nHost: a\r\n\r\n"); $client } 1 .. $CLIENTS;
        my $kept = $server->connect;
        $kept->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        $kept->response;
        kill $signal => $server->pid;
        $kept->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        is $_->response->{status}, 200, 'an answer' for @busy, $kept;
        wait_until('the server to end', sub { $server->ended });
        is $server->{status}, 0;
    };
}

subtest 'a stop that comes while a worker begins' => sub {
    for my $round (1 .. 15) {
        my $server = start('--workers', 3, '--shutdown-timeout', '60s', $round % 2 ? '--no-preload' : ());
        kill $round % 3 ? ('HUP') : (TTIN => $server->pid), $server->pid;
        select undef, undef, undef, 0.01 * ($round % 7);    # any moment will do
        kill TERM => $server->pid;
        wait_until('the server to end', sub { $server->ended });
        is $server->{status}, 0, "round $round";
    }
};

done_testing;
