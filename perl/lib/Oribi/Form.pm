package Oribi::Form;
use 5.016;
use strict;
use warnings;
use Exporter 'import';
use Oribi ();    # defines the functions, in C
use Oribi::Form::Error ();

our $VERSION = '0.100';
our @EXPORT_OK = qw(parse_urlencoded parse_urlencoded_arrayref build_urlencoded build_urlencoded_utf8);

1;
__END__

=encoding utf-8

=head1 NAME

Oribi::Form - forms and query strings, in C

=head1 SYNOPSIS

    use Oribi::Form qw(parse_urlencoded build_urlencoded);

    my @pairs = parse_urlencoded($env->{QUERY_STRING});    # name, value, name, value, ...
    my $query = build_urlencoded(name => 'J. Doe', tag => ['a', 'b']);    # name=J.+Doe&tag=a&tag=b

=head1 DESCRIPTION

The functions of L<WWW::Form::UrlEncoded>, with the results of its XS version: only the import is another one. Nothing
is exported unless it is asked for. The module is a library: it needs no server to run.

=head1 FUNCTIONS

=head2 parse_urlencoded($text)

All names and values of a form or a query string, as a list. C<&> and C<;> separate pairs, one space in front of a pair
is dropped, C<+> is a space, a C<%> without two hexadecimal digits stays, and a pair without C<=> has the value C<''>.
C<undef> has no pairs. The results are bytes: decode them.

=head2 parse_urlencoded_arrayref($text)

The same, as a reference to an array.

=head2 build_urlencoded(@pairs), build_urlencoded(\@pairs), build_urlencoded(\%pairs)

The way back. Each may have the delimiter behind the pairs, C<&> unless given. A value that is a reference to an array
stands for as many pairs. Letters, digits and C<< - . _ ~ ! ' ( ) * >> stay, a space becomes C<+>, every other byte
C<%XX>.

=head2 build_urlencoded_utf8

The same, of characters: names, values and the delimiter are encoded as UTF-8 first.

=head1 LIMITS

A form may have 65,536 pairs, a name 1 MiB and the whole 64 MiB. More of them die with an L<Oribi::Form::Error>, whose
C<status> is 413 and whose C<message> says what there was too much of. WWW::Form::UrlEncoded has no limits.

=head1 DIFFERENCES

WWW::Form::UrlEncoded::XS 0.28 forgets the delimiter behind an C<undef> in a value that is a reference to an array:
C<< build_urlencoded(a => ['x', undef, 'y']) >> is C<a=x&a=a=y> there and C<a=x&a=&a=y> here.

=head1 SEE ALSO

L<Oribi>, L<Oribi::Cookie>, L<WWW::Form::UrlEncoded>

=cut
