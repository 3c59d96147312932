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

HTTP::Parser::XS takes heads that other programs on the way may read in another way: lines that end with LF alone, folded
lines, white space before a colon, contradictory lengths and the like. These are -1 here; F<http-parser.md>
(L<Oribi/DOCUMENTS>) lists them, and what both take in another way.

=head1 SEE ALSO

L<Oribi>, L<Oribi::Form>, L<HTTP::Parser::XS>

=cut
