package Oribi;
use 5.016;
use strict;
use warnings;

our $VERSION = '0.1.0';

require XSLoader;
require IO::File;
require PerlIO::scalar;
XSLoader::load('Oribi', $VERSION);

# The text of an object that overloads "": called from C, inside an eval.
sub _text { return "$_[0]" }

1;

__END__

=head1 NAME

Oribi - application server for PSGI on a C core

=cut
