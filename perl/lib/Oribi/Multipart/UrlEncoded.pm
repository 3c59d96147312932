package Oribi::Multipart::UrlEncoded;
use 5.016;
use strict;
use warnings;
use parent 'Oribi::Multipart::Whole';
use Oribi::Form ();

our $VERSION = '0.100';

sub finalize { return (Oribi::Form::parse_urlencoded_arrayref(${ $_[0]->body }), []) }

1;
