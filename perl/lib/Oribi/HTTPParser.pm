package Oribi::HTTPParser;
use 5.016;
use strict;
use warnings;
use Exporter 'import';
use Oribi ();    # defines the functions, in C
use constant {
    HEADERS_NONE        => 0,
    HEADERS_AS_HASHREF  => 1,
    HEADERS_AS_ARRAYREF => 2,
};

our $VERSION = '0.100';
our @EXPORT_OK = qw(parse_http_request parse_http_response HEADERS_NONE HEADERS_AS_HASHREF HEADERS_AS_ARRAYREF);
our %EXPORT_TAGS = (all => \@EXPORT_OK);

1;
__END__

=encoding utf-8

=head1 NAME

Oribi::HTTPParser - heads of HTTP requests and responses, in C

=head1 SYNOPSIS

    use Oribi::HTTPParser qw(:all);

    my $length = parse_http_request($buffer, \my %env);
    if ($length == -2) { ... }       # incomplete: read more
    elsif ($length == -1) { ... }    # broken, whatever comes behind it
    else { ... }                     # %env is a PSGI environment's part of the request; the body is behind $length bytes

    my %wanted = ('content-length' => undef);
    ($length, my ($minor, $status, $message, $headers)) = parse_http_response($buffer, HEADERS_AS_ARRAYREF, \%wanted);

=head1 DESCRIPTION

The functions of L<HTTP::Parser::XS> 0.17 over the parser of the Oribi server: only the import is another one. It is as
strict as the server, see L</DIFFERENCES>. Nothing is exported unless it is asked for, all of it by C<:all>. The module
is a library: it needs no server to run.

=head1 FUNCTIONS

=head2 parse_http_request($string, \%env)

Returns the length of the head, -1 when the string is no request, or -2 when it ends too early. With a length, C<%env>
has C<REQUEST_METHOD>, C<REQUEST_URI> (the target as it came), C<SCRIPT_NAME> (empty), C<PATH_INFO> (decoded),
C<QUERY_STRING>, C<SERVER_PROTOCOL>, C<CONTENT_TYPE>, C<CONTENT_LENGTH> and C<HTTP_*>; what else it had stays. Without
one it is not touched. Dies when the second argument is no reference to a hash.

=head2 parse_http_response($string, $header_format, \%special_headers)

Returns the length of the head, the minor version, the status, its message and the headers; or -1 or -2 alone. The
headers are C<undef> for C<HEADERS_NONE>, a reference to a hash for C<HEADERS_AS_HASHREF> (a name that comes again has a
reference to an array), or to an array of names and values for C<HEADERS_AS_ARRAYREF>. Names are in lower case.
C<%special_headers> may be left out; of its keys, which are names in lower case, those that the response has get their
values, the last of several.

=head1 LIMITS

A head may have 128 fields and a mebibyte, the name of a field 1024 bytes. More of them is -1.

=head1 DIFFERENCES

HTTP::Parser::XS takes heads that other programs on the way may read in another way. These are -1 here.

In requests: a line that ends with LF alone; a folded line; a method that is no token, has more than 32 bytes or is
PROXY; more than one space in the request line; a target that is neither a path nor an http URI, C<*> (but for OPTIONS) or the
authority of CONNECT; a control, a space, C<"> C<#> C<< < >> or C<< > >> in it, so no fragment; white space in front of
a colon; a name that is no token; a control in a value; HTTP/1.1 without Host, with an invalid one or with two; a second
Content-Length, Transfer-Encoding or Content-Type, and a second Authorization or Expect with another value; a
Content-Length that is no number; Transfer-Encoding with Content-Length, in HTTP/1.0, or of anything but C<chunked>; an
Expect of anything but C<100-continue>; a name that is Content-Length, Transfer-Encoding or Host but for underscores; a
path with a C<%> without two hexadecimal digits, which both refuse.

In responses: a line that ends with LF alone; a folded line; a status of other than three digits from 100 on; anything but
one space around it; a control in the message; white space in front of a colon; a name that is no token, or too long (it
is skipped there); a control in a value; a Content-Length that is no number; a second Content-Length or
Transfer-Encoding, or both of them; Transfer-Encoding in HTTP/1.0.

What is taken by both differs so:

=over

=item *

White space behind a value is dropped. Values of Cookie that comes again are joined by C<; >, others by C<, > as there.

=item *

Fields with C<_> in the name, and Proxy, X-Sendfile-Type and X-Accel-Mapping, which no client is to set, are left out of
an environment.

=item *

C<PATH_INFO> of C<http://example.com/a?b> is C</a>, and C<HTTP_HOST> is C<example.com>, whatever Host says. A C<%00> in a
path becomes a NUL, behind which the rest stands. For CONNECT C<PATH_INFO> is empty.

=item *

HTTP/1.2 to HTTP/1.9 are C<HTTP/1.1>, as RFC 9110 wants it. Up to two empty lines in front of a request are skipped.

=item *

Entries that C<%env> has already are replaced; there a header is appended. With -1 C<%env> stays as it was; there a bad
escape empties it.

=item *

A string of characters is read as its bytes. With characters over 255 it is -1.

=back

=head1 SEE ALSO

L<Oribi>, L<Oribi::Form>, L<HTTP::Parser::XS>

=cut
