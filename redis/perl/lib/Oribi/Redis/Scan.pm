package Oribi::Redis::Scan;
use strict;
use warnings;

our $VERSION = '0.100';

# An iterator over SCAN, SSCAN (one element at a time), HSCAN and ZSCAN (pairs). $width: 1 or 2.
sub new {
    my ($class, $client, $width, @words) = @_;
    my ($key) = $words[0] eq 'SCAN' ? () : splice @words, 1, 1;
    return bless { client => $client, width => $width, name => shift @words, key => $key, options => \@words, cursor => '0', items => [] }, $class;
}

sub next {    ## no critic (ProhibitBuiltinHomonyms)
    my ($self) = @_;
    my $items = $self->{items};
    while (!@$items) {
        return if $self->{done};
        my @key = defined $self->{key} ? $self->{key} : ();
        my ($cursor, $found) = @{ $self->{client}->command($self->{name}, @key, $self->{cursor}, @{ $self->{options} }) };
        $self->{done}   = $cursor eq '0';
        $self->{cursor} = $cursor;
        @$items = $self->{width} == 1 ? @$found : map { [@$found[2 * $_, 2 * $_ + 1]] } 0 .. @$found / 2 - 1;
    }
    my $item = shift @$items;
    return ref $item && wantarray ? @$item : $item;
}

sub all {
    my ($self) = @_;
    my @all;
    while (my @item = $self->next) { push @all, @item }
    return @all;
}

1;
