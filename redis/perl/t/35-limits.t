use strict;
use warnings;
use Test::More;
use lib 't/lib';
use BadServer;
use Oribi::Redis;
use Time::HiRes ();

# Every maximum, and one beyond; and what announcements of great things cost.

sub reply_to {
    my ($text) = @_;
    my $server = BadServer->start(sub {
        my ($client) = @_;
        sysread $client, my $request, 65536;
        for (my $at = 0; $at < length $text;) { $at += syswrite($client, $text, 65536, $at) // return }
    });
    my $redis = Oribi::Redis->new($server->place, protocol => 2, reconnect_attempts => 0);
    return eval { [$redis->command('GET', 'k')] } // $@;
}

sub memory_kb {
    my ($name) = @_;
    open my $fh, '<', '/proc/self/status' or die "status: $!";
    my ($kb) = do { local $/; <$fh> } =~ /^$name:\s+([0-9]+)/m;
    return $kb;
}

my $line = 'x' x 65_536;
is_deeply reply_to("+$line\r\n"), [$line], 'a line of 64 KiB';
isa_ok reply_to("+x$line\r\n"), 'Oribi::Redis::Error::Protocol', 'a byte more';

my $deep = reply_to("*1\r\n" x 128 . ":1\r\n");
my $levels = 0;
for ($deep = $deep->[0]; ref $deep; $deep = $deep->[0]) { $levels++ }
is $levels, 128, '128 arrays within arrays';
isa_ok reply_to("*1\r\n" x 129 . ":1\r\n"), 'Oribi::Redis::Error::Protocol', 'one more';

isa_ok reply_to("\$536870913\r\n"), 'Oribi::Redis::Error::Protocol', 'a string of 512 MiB and a byte';
isa_ok reply_to("*2147483648\r\n"), 'Oribi::Redis::Error::Protocol', 'an array of 2^31';

my $has_proc = -r '/proc/self/status';
my $before   = $has_proc && memory_kb('VmSize');
isa_ok reply_to("\$536870912\r\nabc"),     'Oribi::Redis::Error::Connection', 'a string of 512 MiB that does not come';
isa_ok reply_to("*2147483647\r\n:1\r\n"),  'Oribi::Redis::Error::Connection', 'an array of 2^31 - 1 that does not come';
isa_ok reply_to("%2147483647\r\n:1\r\n"),  'Oribi::Redis::Error::Connection', 'a map';
isa_ok reply_to("*2147483647\r\n" x 128),  'Oribi::Redis::Error::Connection', 'arrays within arrays';
cmp_ok memory_kb('VmPeak') - $before, '<', 64 * 1024, 'what is announced takes no memory' if $has_proc;

subtest 'arguments' => sub {
    my $server = BadServer->start(sub { my ($client) = @_; my $all = 0; while (my $n = sysread $client, my $part, 1 << 20) { $all += $n; last if $part =~ /end\r\n\z/ } syswrite $client, ":$all\r\n"; 1 while sysread $client, my $rest, 100 });
    my $redis = Oribi::Redis->new($server->place, protocol => 2, read_timeout_ms => 60_000);
    ok $redis->command(('a') x (1_048_575), 'end'), '1,048,576 of them';
    ok !eval { $redis->command(('a') x (1_048_576), 'end'); 1 };
    isa_ok $@, 'Oribi::Redis::Error::Usage', 'one more';
    ok !eval { $redis->pipeline([('a') x (1_048_576), 'end']); 1 };
    isa_ok $@, 'Oribi::Redis::Error::Usage', 'one more, in a pipeline';
};

subtest 'a queue that is full' => sub {
    my $dir    = File::Temp->newdir;
    my $listen = IO::Socket::UNIX->new(Local => "$dir/socket", Listen => 0) or die "listen: $!";
    my @waiting = map { my $s; socket($s, Socket::AF_UNIX(), Socket::SOCK_STREAM(), 0); $s->blocking(0); connect $s, Socket::pack_sockaddr_un("$dir/socket"); $s } 1 .. 3;
    my $redis = Oribi::Redis->new(path => "$dir/socket", connect_timeout_ms => 50, reconnect_attempts => 0);
    ok !eval { $redis->command('PING'); 1 };
    isa_ok $@, 'Oribi::Redis::Error::Timeout';
};

subtest 'a server that takes nothing' => sub {
    my $dir    = File::Temp->newdir;
    my $listen = IO::Socket::UNIX->new(Local => "$dir/socket", Listen => 5) or die "listen: $!";
    my $redis  = Oribi::Redis->new(path => "$dir/socket", protocol => 2, write_timeout_ms => 50, reconnect_attempts => 0);
    ok !eval { $redis->command('SET', 'k', 'x' x 10_000_000); 1 };
    isa_ok $@, 'Oribi::Redis::Error::Timeout';
    ok !$redis->is_connected;
    local $SIG{ALRM} = sub { die "alarm\n" };
    my $patient = Oribi::Redis->new(path => "$dir/socket", protocol => 2, write_timeout_ms => 0);
    ok !eval { Time::HiRes::ualarm(30_000); $patient->command('SET', 'k', 'x' x 10_000_000); 1 };
    is $@, "alarm\n", 'an exception in a handler while sending';
    ok !$patient->is_connected;
};

done_testing;
