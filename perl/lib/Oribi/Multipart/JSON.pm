package Oribi::Multipart::JSON;
use 5.016;
use strict;
use warnings;
use parent 'Oribi::Multipart::Whole';
use Encode ();
use JSON::MaybeXS ();
use Oribi::Form::Error ();

our $VERSION = '0.100';

sub finalize {
    my ($self) = @_;
    my $value = eval { JSON::MaybeXS::decode_json(${ $self->body }) };
    Oribi::Form::Error->throw('the body is no JSON: ' . ($@ =~ s/ at \S+ line \d+\.?\n\z//r), 400) if $@;
    return ([], []) if ref $value ne 'HASH';
    return ([map { (_bytes($_), _bytes($value->{$_})) } keys %$value], []);
}

# Text as UTF-8, at any depth.
sub _bytes {
    my ($value) = @_;
    return [map { _bytes($_) } @$value] if ref $value eq 'ARRAY';
    return { map { (_bytes($_), _bytes($value->{$_})) } keys %$value } if ref $value eq 'HASH';
    return defined $value ? Encode::encode_utf8($value) : undef;
}

1;
