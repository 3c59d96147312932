# The JSON of BENCH_JSON from memory: what is measured is how a server compresses it. json.ru is its twin.
use strict;
use warnings;

my $body = do {
    open my $file, '<:raw', $ENV{BENCH_JSON} or die "$ENV{BENCH_JSON}: $!";
    local $/;
    <$file>;
};

sub { [200, ['Content-Type' => 'application/json'], [$body]] };
