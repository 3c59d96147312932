package Oribi::Multipart::UrlEncoded;
use 5.016;
use strict;
use warnings;
use Oribi::Form ();

our $VERSION = '0.100';

sub new { return bless { body => '' }, shift }

sub add {
    my ($self, $bytes) = @_;
    $self->{body} .= $bytes if defined $bytes;
    return;
}

sub finalize { return (Oribi::Form::parse_urlencoded_arrayref($_[0]{body}), []) }

1;
