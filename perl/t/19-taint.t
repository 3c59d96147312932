use strict;
use warnings;
use File::Temp ();
use IO::Socket::INET ();
use IPC::Open3 ();
use Test::More;

# Perl's taint mode: text from outside may go into every part of an answer. A program of its own, since a test that
# begins with -T can do little.

my $program = <<'PERL';
use strict;
use warnings;
use Oribi ();
my $outside = $ENV{OUTSIDE};
eval { kill 0, $$ . substr $outside, 0, 0; 1 } and die 'not tainted';    ## no critic: dies when it is
package Records { sub new { bless [$outside, " $outside"] } sub getline { shift @{ $_[0] } } sub close { } }
my %ROUTE = (
    body => sub { [200, [], ['from ', $outside]] },
    header => sub { [200, ['X-A' => $outside], ['x']] },
    status => sub { [200 + length(substr $outside, 0, 0), [], ['x']] },
    records => sub { [200, [], Records->new] },
    handle => sub { open my $fh, '<', \"line\n" or die; [200, [], $fh] },
    stream => sub { sub { my $w = $_[0]->([200, []]); $w->write($outside); $w->close } },
);
my $settings = Oribi::Settings->new;
$settings->set_all(command => bind => '127.0.0.1:0', access_log => 'off')->finish;
my $listeners = Oribi::Listeners->open($settings->core);
my ($listener) = $listeners->list;
my $worker = Oribi::Worker->_new($settings->core, $listeners, sub { $ROUTE{ substr $_[0]{PATH_INFO}, 1 }->() });
$SIG{TERM} = sub { $worker->stop };
syswrite STDOUT, "$listener->{port}\n";
$worker->run;
PERL

my $script = File::Temp->new(SUFFIX => '.pl');
print {$script} $program;
$script->flush;
my $log = File::Temp->new;
$ENV{OUTSIDE} = 'outside';
my $pid = IPC::Open3::open3(my $in, my $out, '>&' . fileno $log, $^X, '-T', (map {"-I$_"} grep { !ref } @INC), "$script");
my $port = <$out>;
ok $port, 'the worker is up' or diag do { local @ARGV = "$log"; local $/; <> };
$port //= 0;
chomp $port;

sub get {
    my ($path) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 30) or return "connect: $@";
    print {$socket} "GET $path HTTP/1.0\r\n\r\n";
    local $/;
    return scalar <$socket>;
}

my %want = (
    '/body' => qr/\AHTTP\/1\.1 200 .*\r\n\r\nfrom outside\z/s,
    '/header' => qr/\AHTTP\/1\.1 200 .*^X-A: outside\r\n.*\r\n\r\nx\z/ms,
    '/status' => qr/\AHTTP\/1\.1 200 .*\r\n\r\nx\z/s,
    '/records' => qr/\AHTTP\/1\.1 200 .*\r\n\r\noutside outside\z/s,
    '/handle' => qr/\AHTTP\/1\.1 200 .*\r\n\r\nline\n\z/s,
    '/stream' => qr/\AHTTP\/1\.1 200 .*\r\n\r\noutside\z/s,
);
for my $round (1, 2) {
    like get($_), $want{$_}, "$_, round $round" for sort keys %want;
}
kill TERM => $pid;
waitpid $pid, 0;
is $?, 0, 'the worker ends in order';
is do { local @ARGV = "$log"; local $/; <> } // '', '', 'and has said nothing';

done_testing;
