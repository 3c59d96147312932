use strict;
use warnings;
use lib 't/lib';
use File::Temp ();
use OribiServer;
use OribiTest;
use Plack::Loader;
use Test::More;

# A worker that its application ends (psgix.harakiri.commit) answers the request it is in, and nothing else: what it
# holds goes to another, or to the one that replaces it.

my $dir = File::Temp->newdir;
my $app = "$dir/app.psgi";
open my $fh, '>', $app or die $!;
print {$fh} <<'PSGI';
    package Dies { use overload bool => sub { die "no truth\n" }, '""' => sub { 'text' } }
    package Says { use overload bool => sub { ${ $_[0] } }, '""' => sub { 'text' } }
    package Tied { sub TIESCALAR { bless [] } sub FETCH { die "not to be had\n" } sub STORE { } }
    my %commit = (
        plain => sub { },
        end => sub { 1 },
        dies => sub { bless [], 'Dies' },
        true => sub { my $value = 1; bless \$value, 'Says' },
        false => sub { my $value = 0; bless \$value, 'Says' },
        tied => sub { tie my $value, 'Tied'; \$value },
        late => sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { $_[0]{'psgix.harakiri.commit'} = 1 }; 0 },
        stream => sub { 1 },
        gate => sub { 1 },
    );
    sub {
        my ($env) = @_;
        my ($way) = $env->{PATH_INFO} =~ m{\A/(\w+)};
        $env->{'psgix.harakiri.commit'} = $commit{$way}->($env) unless $way eq 'tied';
        tie $env->{'psgix.harakiri.commit'}, 'Tied' if $way eq 'tied';
        if ($way eq 'gate') {
            open my $entered, '>', "$ENV{T_DIR}/entered" or die $!;
            select undef, undef, undef, 0.005 until -e "$ENV{T_DIR}/open";
        }
        my $body = '';
        $env->{'psgi.input'}->read($body, $env->{CONTENT_LENGTH}) if $env->{CONTENT_LENGTH};
        my $answer = "$$ $body";
        return [200, ['Content-Type' => 'text/plain'], [$answer]] unless $way eq 'stream';
        return sub {
            my $writer = $_[0]->([200, ['Content-Type' => 'text/plain']]);
            $writer->write($answer);
            $writer->close;
        };
    };
PSGI
close $fh;
$ENV{T_DIR} = "$dir";

sub wire { return join '', map {"GET /$_ HTTP/1.1\r\nHost: test\r\n\r\n"} @_ }

sub answers {
    my ($client, $count) = @_;
    return map { my $res = eval { $client->response } || { status => $@, body => '', fields => {} }; $res } 1 .. $count;
}

sub pids { my %seen = map { ($_->{body} =~ /\A(\d+)/)[0] // 'none' => 1 } @_; return scalar keys %seen }
sub bad { return grep { $_->{status} ne '200' || $_->{fields}{connection} } @_ }

for my $transport (qw(tcp unix)) {
    for my $workers (1, 3) {
        my $server = start_command($transport, '--workers', $workers, $app);
        subtest "$transport, $workers workers: pipelined" => sub {
            my $client = $server->connect;
            $client->send(wire(('end') x 23));
            my @answers = answers($client, 23);
            is pids(@answers), 23, 'each answer comes from a worker of its own';
            is bad(@answers), 0, 'and the connection is kept' or diag explain bad(@answers);
        };
        subtest "$transport, $workers workers: many clients" => sub {
            my @clients = map { $server->connect } 1 .. 12;
            for my $round (1 .. 2) {
                $_->send(wire('end')) for @clients;
                my @answers = map { answers($_, 1) } @clients;
                is pids(@answers), 12, "round $round: each answer comes from a worker of its own";
                is bad(@answers), 0, "round $round: all are kept";
            }
        };
        subtest "$transport, $workers workers: bodies of those who wait" => sub {
            my $first = $server->connect;
            my @others = map { $server->connect } 1 .. 4;
            $_->send(wire('plain')) for @others;
            is bad(map { answers($_, 1) } @others), 0;
            $first->send(wire('gate', 'end'));
            wait_until('the call', sub { -e "$dir/entered" });
            my $large = 'L' x 100_000;
            my $huge = 'H' x 300_000;
            $others[0]->send("POST /end HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nsized");
            $others[1]->send("POST /end HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nchun\r\n3;x=y\r\nked\r\n0\r\n\r\n" . wire('end'));
            $others[2]->send("POST /end HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n$large");
            $others[3]->send("POST /end HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 300000\r\n\r\n" . substr $huge, 0, 100_000);
            open my $open, '>', "$dir/open" or die $!;
            my @answers = answers($first, 2);
            $others[3]->send(substr $huge, 100_000);
            push @answers, map { answers($others[$_], $_ == 1 ? 2 : 1) } 0 .. 2;
            my ($interim) = eval { answers($others[3], 1) };
            is $interim->{status}, 100, 'asked for the rest once';
            push @answers, answers($others[3], 1);
            is pids(@answers), @answers, 'each answer comes from a worker of its own';
            is bad(@answers), 0, 'none is lost' or diag explain [map { +{ %$_, body => substr $_->{body}, 0, 20 } } bad(@answers)];
            is_deeply [map { ($_->{body} =~ /\A\d+ (.*)/)[0] } @answers], ['', '', 'sized', 'chunked', '', $large, $huge], 'whole';
            unlink "$dir/entered", "$dir/open";
        };
        is $server->stop, 0;
        unlike $server->log_text, qr/error|warn/, 'nothing to complain about';
    }
}

subtest 'what the value may be' => sub {
    my $server = start_command('tcp', $app);
    my $client = $server->connect;
    my $ask = sub { $client->send(wire($_[0])); my ($res) = answers($client, 1); return $res->{status} eq '200' ? int $res->{body} : $res->{status} };
    for my $case (['plain', 0], ['dies', 0], ['tied', 0], ['false', 0], ['true', 1], ['late', 1], ['stream', 1], ['end', 1]) {
        my ($way, $ends) = @$case;
        my $before = $ask->('plain');
        is $ask->($way), $before, "$way: answered";
        my $after = $ask->('plain');
        $ends ? isnt($after, $before, "$way: the worker has ended") : is($after, $before, "$way: the worker goes on");
    }
    is $server->stop, 0;
    my $log = $server->log_text;
    is scalar(() = $log =~ m{GET /dies: psgix\.harakiri\.commit cannot be asked, the worker goes on: no truth}g), 1;
    is scalar(() = $log =~ m{GET /tied: psgix\.harakiri\.commit cannot be asked, the worker goes on: not to be had}g), 1;
};

# As other servers are tested: through plackup's loader, a connection for each request.
subtest 'one request, one worker' => sub {
    plan skip_all => 'HTTP::Request::Common is not there, or what it needs' if !eval { require HTTP::Request::Common; require Plack::Test };
    local $Plack::Test::Impl = 'Server';
    local $ENV{PLACK_SERVER} = 'Oribi';
    my $count = sub {
        my ($commit) = @_;
        my %pids;
        Plack::Test::test_psgi(
            app => sub { $_[0]{'psgix.harakiri.commit'} = $_[0]{'psgix.harakiri'} if $commit; [200, ['Content-Type' => 'text/plain'], [$$]] },
            client => sub { my ($ask) = @_; $pids{ $ask->(HTTP::Request::Common::GET('/'))->content } = 1 for 1 .. 23 },
        );
        return scalar keys %pids;
    };
    cmp_ok $count->(0), '<=', 10, 'without it workers are used again';
    is $count->(1), 23, 'with it each is used once';
};

done_testing;
