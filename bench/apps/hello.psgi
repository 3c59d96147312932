use strict;
use warnings;

sub { [200, ['Content-Type' => 'text/plain'], ['Hello, World!']] };
