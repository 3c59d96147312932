use strict;
use warnings;

# What oribi-psgi@example.service serves.
sub {
    return [200, ['Content-Type' => 'text/plain'], ["Oribi $Oribi::VERSION serves " . __FILE__ . "\n"]];
};
