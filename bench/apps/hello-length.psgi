use strict;
use warnings;

# For servers that keep a connection only if the application says how long its answer is.
sub { [200, ['Content-Type' => 'text/plain', 'Content-Length' => 13], ['Hello, World!']] };
