use strict;
use warnings;

# Answers that are written while their call lasts; streams.ru is its twin.

my @TEXT = ('Content-Type' => 'text/plain');
my @EVENTS = ('Content-Type' => 'text/event-stream', 'Cache-Control' => 'no-store');
my @HUNDRED = map { sprintf "%-1023d\n", $_ } 0 .. 99;

# Stands still in the system until the test opens the pipe of this name, too.
sub wait_for {
    my ($name) = @_;
    open my $pipe, '<', "$ENV{E2E_DIR}/$name" or die "$name: $!\n";
    close $pipe;
}

sub hundred {
    my (@headers) = @_;
    return sub {
        my $writer = $_[0]->([200, \@headers]);
        $writer->write($_) for @HUNDRED;
        $writer->close;
    };
}

# Two pieces in a burst, then nothing until the client has both; twice.
sub confirmed {
    my ($respond) = @_;
    my $writer = $respond->([200, [@TEXT]]);
    for my $i (0, 1) {
        $writer->write("one $i\n");
        $writer->write("two $i\n");
        wait_for("pipe$i");
    }
    $writer->close;
}

# Server-sent events inside the call: until the test says so, or the client leaves, of which write() dies.
sub ticks {
    my ($respond) = @_;
    my $writer = $respond->([200, [@EVENTS]]);
    until (-e "$ENV{E2E_DIR}/ticks.end") {
        $writer->write("data: pid $$\n\n");
        select undef, undef, undef, 0.01;
    }
    $writer->close;
}

sub {
    my ($env) = @_;
    return \&ticks if $env->{PATH_INFO} eq '/ticks';
    return hundred(@TEXT) if $env->{PATH_INFO} eq '/hundred';
    return hundred(@EVENTS) if $env->{PATH_INFO} eq '/hundred-events';
    return \&confirmed if $env->{PATH_INFO} eq '/confirmed';
    return [200, [@TEXT], ['0123456789abcdef' x (256 * 1024)]] if $env->{PATH_INFO} eq '/big';
    return [200, [@TEXT], [$$]];
};
