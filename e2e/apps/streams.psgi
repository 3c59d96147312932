use strict;
use warnings;

# Answers that are written while their call lasts; streams.ru is its twin.

my @TEXT = ('Content-Type' => 'text/plain');

# Server-sent events inside the call: until the test says so, or the client leaves, of which write() dies.
sub ticks {
    my ($respond) = @_;
    my $writer = $respond->([200, ['Content-Type' => 'text/event-stream', 'Cache-Control' => 'no-store']]);
    until (-e "$ENV{E2E_DIR}/ticks.end") {
        $writer->write("data: pid $$\n\n");
        select undef, undef, undef, 0.01;
    }
    $writer->close;
}

sub {
    my ($env) = @_;
    return \&ticks if $env->{PATH_INFO} eq '/ticks';
    return [200, [@TEXT], ['0123456789abcdef' x (256 * 1024)]] if $env->{PATH_INFO} eq '/big';
    return [200, [@TEXT], [$$]];
};
