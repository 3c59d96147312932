package Oribi::Cookie;
use 5.016;
use strict;
use warnings;
use Exporter 'import';
use Oribi ();    # defines the functions, in C
use Oribi::Form::Error ();

our $VERSION = '0.100';
our @EXPORT_OK = qw(bake_cookie crush_cookie);

1;
__END__

=encoding utf-8

=head1 NAME

Oribi::Cookie - cookies, in C

=head1 SYNOPSIS

    use Oribi::Cookie qw(bake_cookie crush_cookie);

    my $cookies = crush_cookie($env->{HTTP_COOKIE});    # { name => value, ... }
    my $line = bake_cookie(session => { value => $id, path => '/', expires => '+1h', httponly => 1 });

=head1 DESCRIPTION

The functions of L<Cookie::Baker> 0.12. Nothing is exported unless it is asked for.

=head1 FUNCTIONS

=head2 crush_cookie($text)

A reference to a hash of the cookies in a Cookie field, as Cookie::Baker::XS reads them: C<;> separates, spaces around
names and values are dropped, then one pair of quotes around a value; names and values are percent-decoded, and the
first of several cookies with one name counts. More than 65,536 cookies or a mebibyte die with an L<Oribi::Form::Error>
of status 413.

=head2 bake_cookie($name, $value), bake_cookie($name, \%cookie)

The value of a Set-Cookie field. C<%cookie> has C<value> and any of C<domain>, C<path>, C<expires>, C<max-age>,
C<samesite> (lax, strict or none, in any case; others are ignored; none means C<secure> too), C<secure>, C<httponly>
and C<partitioned> (which means C<samesite> none). C<expires> is a number of seconds since the epoch, C<now>, a time
from now on (C<+10m>, C<-1d>: s m h d, M for 30 days, y for 365), or a date as it is to be written. Name and value are
percent-encoded and have to be bytes.

=head1 DIFFERENCES

C<bake_cookie> dies for a domain, path, expires or max-age with a semicolon or a control (line ends and NUL among them):
they would begin another attribute or another field. Cookie::Baker writes them as they are. It dies too for a date
outside the years 1000 to 9999. A C<max-age> of C<undef> is left out.

=head1 SEE ALSO

L<Oribi>, L<Oribi::Form>, L<Cookie::Baker>

=cut
