package Oribi::Multipart::Whole;
use 5.016;
use strict;
use warnings;

our $VERSION = '0.100';

# What parsers have in common that want the whole body: `finalize` finds it in ${ $self->body }.
sub new { return bless { body => '' }, shift }

sub body {
    my ($self) = @_;
    return $self->{lying} // \$self->{body};
}

# All of the body, by reference: nothing is copied.
sub add_ref {
    my ($self, $bytes) = @_;
    $self->{lying} = $bytes;
    return;
}

sub add {
    my ($self, $bytes) = @_;
    $self->{body} .= $bytes if defined $bytes;
    return;
}

1;
