package Oribi::Multipart;
use 5.016;
use strict;
use warnings;
use Carp ();
use Oribi ();
use Oribi::Form::Error ();

our $VERSION = '0.100';
our $BUFFER_LENGTH = 65536;

my $EMPTY_READS_MAX = 2000;
my %CLASS;    # loaded ones

sub new {
    my ($class, %args) = @_;
    return bless { types => [], buffer_length => $args{buffer_length} || $BUFFER_LENGTH }, $class;
}

sub register {
    my ($self, $type, $class, $options) = @_;
    _load($class);
    push @{ $self->{types} }, [$type, $class, $options];
    return $self;
}

sub _load {
    my ($class) = @_;
    $CLASS{$class} //= do {
        my $path = $class =~ s{::}{/}gr . '.pm';
        require $path unless $class->can('new');
        1;
    };
    return $class;
}

sub _parser {
    my ($self, $env) = @_;
    my $type = $env->{CONTENT_TYPE} // '';
    for my $registered (@{ $self->{types} }) {
        return $registered->[1]->new($env, $registered->[2]) if index($type, $registered->[0]) == 0;
    }
    return _load('Oribi::Multipart::OctetStream')->new;
}

sub parse {
    my ($self, $env) = @_;
    my $parser = $self->_parser($env);
    my $input = $env->{'psgi.input'} or return ([], []);
    my $copy;
    if ($env->{'psgix.input.buffered'}) {
        return $parser->finalize if _take_where_it_lies($parser, $input, $env->{CONTENT_LENGTH});
        $input->seek(0, 0);
    } else {
        require Stream::Buffered;
        $copy = Stream::Buffered->new($env->{CONTENT_LENGTH});
    }
    my $take = sub {
        $parser->add($_[0]);
        $copy->print($_[0]) if $copy;
    };
    if ($env->{CONTENT_LENGTH}) {
        $self->_read_length($input, $env->{CONTENT_LENGTH}, $take);
    } elsif (lc($env->{HTTP_TRANSFER_ENCODING} // '') eq 'chunked') {
        $env->{CONTENT_LENGTH} = $self->_read_chunked($input, $take);
        delete $env->{HTTP_TRANSFER_ENCODING};
    }
    if ($copy) {
        $env->{'psgix.input.buffered'} = 1;
        $env->{'psgi.input'} = $copy->rewind;
    } else {
        $input->seek(0, 0);
    }
    return $parser->finalize;
}

# The body of an Oribi server, not through its handle, which stands at its beginning then: bytes in the server's memory
# are not copied, a file is read in C.
sub _take_where_it_lies {
    my ($parser, $input, $length) = @_;
    return 0 if !$length || ref $input ne 'GLOB';
    if (my $parts = tied *$input) {
        return ref $parts eq 'Oribi::PartedInput' && $parser->can('add_parts') && $parser->add_parts($parts);
    }
    my $bytes = _lying($input);
    if ($bytes && length $$bytes == $length) {
        if   ($parser->can('add_ref')) { $parser->add_ref($bytes) }
        else                           { $parser->add($$bytes) }
    } elsif (!$parser->can('add_file') || !$parser->add_file($input, $length)) {
        return 0;
    }
    seek $input, 0, 0;
    return 1;
}

sub _read_length {
    my ($self, $input, $left, $take) = @_;
    my $empty = 0;
    while ($left > 0) {
        my $read = $input->read(my $piece, $left < $self->{buffer_length} ? $left : $self->{buffer_length});
        if (!$read || !length $piece) {
            Carp::croak("Bad Content-Length: maybe client disconnect? ($left bytes remaining)") if ++$empty > $EMPTY_READS_MAX;
            next;
        }
        $left -= length $piece;
        $take->($piece);
    }
    return;
}

# A server that has not taken the framing off (RFC 9112 7.1); Oribi has.
sub _read_chunked {
    my ($self, $input, $take) = @_;
    my ($buffer, $length, $empty) = ('', 0, 0);
    my $more = sub {
        my $read = $input->read(my $piece, $self->{buffer_length});
        my $some = $read && length $piece;
        Carp::croak('Malformed chunked request') if !$some && ++$empty > $EMPTY_READS_MAX || length $buffer > 2 * $self->{buffer_length};
        $buffer .= $piece if $some;
    };
    while (1) {
        $more->() until $buffer =~ /\n/;
        $buffer =~ s/\A([0-9a-fA-F]{1,15})(?:[ \t]*;[^\r\n]*)?\r\n// or Carp::croak('Malformed chunked request');
        my $left = hex $1 or return $length;
        $length += $left;
        while ($left > 0) {
            $more->() if $buffer eq '';
            my $piece = substr $buffer, 0, $left, '';
            $left -= length $piece;
            $take->($piece) if length $piece;
        }
        $more->() until length $buffer >= 2;
        $buffer =~ s/\A\r\n// or Carp::croak('Malformed chunked request');
    }
}

1;

__END__

=encoding utf8

=head1 NAME

Oribi::Multipart - bodies of requests: fields and uploads

=head1 SYNOPSIS

  use Oribi::Multipart;

  my $parser = Oribi::Multipart->new;
  $parser->register('application/x-www-form-urlencoded', 'Oribi::Multipart::UrlEncoded');
  $parser->register('multipart/form-data', 'Oribi::Multipart::MultiPart');
  $parser->register('application/json',    'Oribi::Multipart::JSON');

  my ($params, $uploads) = $parser->parse($env);
  # ['title', 'Holidays', ...], ['photo', { filename => 'beach.jpg', tempname => '/tmp/…', size => 10485760, ... }]

=head1 DESCRIPTION

The interface of L<HTTP::Entity::Parser> over Oribi's parser in C. A program that uses that module changes the name.

Names and values are bytes, as they came. A field without a value is the empty string. A file field in which no file
was chosen is left out.

=head1 METHODS

=head2 new(buffer_length => 65536)

=head2 register($type, $class, \%options)

The first C<$type> that the request's Content-Type begins with decides. Bodies of other types are read and dropped.

=over

=item Oribi::Multipart::MultiPart

multipart/form-data (RFC 7578). Options: C<parts_max> (4096), C<files_max> (128), C<part_head_max> (16384 bytes),
C<memory_max> (16 MiB: all fields that are no files), C<tempdir>, and C<on_error>, which is called with a message in the
place of an exception; what was read until then is the result.

=item Oribi::Multipart::UrlEncoded

application/x-www-form-urlencoded, by L<Oribi::Form>.

=item Oribi::Multipart::JSON

A JSON object: its members are the fields. Needs L<JSON::MaybeXS>.

=item Oribi::Multipart::OctetStream

Nothing.

=back

A class of one's own has C<new($env, \%options)>, C<add($bytes)> and C<finalize>, which gives two references to arrays.

=head2 parse($env)

Reads C<psgi.input> and leaves it at its beginning; one that cannot be rewound is replaced by a copy, and
C<psgix.input.buffered> set. Gives two references to arrays: names and values, names and hashes with C<name>,
C<filename>, C<size>, C<tempname>, C<headers> (a flat list). Files are removed with C<$env>, unless the program has moved
them; what a process leaves that is killed, the next one removes (L<Oribi::Multipart::Folder>).

Dies with an L<Oribi::Form::Error> when the body is not what its type says or larger than a maximum.

=head1 DIFFERENCES TO HTTP::Entity::Parser

Taken here: a body without the line end behind its closing delimiter, with an epilogue (RFC 2046 5.1.1), with blanks
behind a delimiter or at the end of a disposition. Refused here: a delimiter that goes on with something else, a control
byte or a name that is no token in a part's head, two Content-Dispositions in it.

A delimiter is one at the beginning of a line only, also in a preamble. A folded line goes on with the field before it,
also with a colon in it. Blanks at the end of a part's field are no part of its value. A boundary is 70 bytes at most.
Parts, files, heads and fields in memory have maxima. Errors are objects.

=cut
