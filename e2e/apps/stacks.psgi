# Calls that stand somewhere until GATE (a file) is there, and count what was cut short meanwhile; stacks.ru is its
# twin.
use strict;
use warnings;
use IO::Socket::UNIX;
use Time::HiRes ();

my $PIECE = 0.3;

sub clock { return Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) }
sub is_open { return -e $ENV{GATE} }

# So many waits have ended too soon.
sub in_pieces {
    my ($wait) = @_;
    my $short = 0;
    until (is_open()) {
        my $before = clock();
        $wait->();
        $short++ if clock() - $before < $PIECE;
    }
    return "$short cut short";
}

my $TEXT = 'x' x 20;
sub spin { 1 until -e $ENV{GATE}; return '' }
sub match { 1 until $TEXT =~ /^(x+x+)+\1y/ || -e $ENV{GATE}; return '' }
sub digest { 1 until !crypt('password', '$6$rounds=20000$salt$') || -e $ENV{GATE}; return '' }
sub nap { return in_pieces(\&nap_once) }
sub nap_once { Time::HiRes::sleep($PIECE); return }
sub choose { return in_pieces(\&choose_once) }
sub choose_once { return select undef, undef, undef, $PIECE }

sub receive {
    my $socket = IO::Socket::UNIX->new(Peer => $ENV{PEER}) or die "cannot connect: $!";
    my $buffer;
    my $n = sysread $socket, $buffer, 16;
    return defined $n ? $buffer : "failed: $!";
}

my %CALL = (spin => \&spin, match => \&match, digest => \&digest, nap => \&nap, choose => \&choose, receive => \&receive);

sub {
    my ($env) = @_;
    my $name = substr $env->{PATH_INFO}, 1;
    my @text = ('Content-Type' => 'text/plain');
    if ($name eq 'stream') {
        return sub {
            my ($respond) = @_;
            my $writer = $respond->([200, [@text]]);
            $writer->write('begun ');
            nap();
            $writer->write('ended');
            $writer->close;
        };
    }
    return [200, [@text], [$CALL{$name} ? 'done ' . $CALL{$name}->() : 'here']];
};
