package Oribi::Multipart::OctetStream;
use 5.016;
use strict;
use warnings;

our $VERSION = '0.100';

sub new      { return bless {}, shift }
sub add      { return }
sub finalize { return ([], []) }

1;
