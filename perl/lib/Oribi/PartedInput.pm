package Oribi::PartedInput;
use 5.016;
use strict;
use warnings;

our $VERSION = '0.100';

# psgi.input of a form that the server has taken apart (multipart_stream): a tied handle, made by the extension. The
# first who reads has the body put together in a file, and all that follows is done to that file's handle. Who never
# reads, since Oribi::Multipart takes the parts, pays for nothing.

my $EBADF = 9;

sub _handle {
    my ($self) = @_;
    return $self->{handle} if $self->{handle};
    my $fd = $self->_join;    # undef when the request is over
    if ($self->{closed} || !defined $fd || !open $self->{handle}, '<&=', $fd) {
        $! = $EBADF if !$!;
        return;
    }
    return $self->{handle};
}

sub READ {
    my ($self, undef, $length, $offset) = @_;
    my $handle = $self->_handle or return;
    return read $handle, $_[1], $length, $offset // 0;
}

sub READLINE {
    my ($self) = @_;
    my $handle = $self->_handle or return;
    return readline $handle;    # in the caller's context
}

sub GETC   { my $handle = $_[0]->_handle or return; return getc $handle }
sub EOF    { my $handle = $_[0]->_handle or return 1; return eof $handle }
sub SEEK   { my ($self, $at, $whence) = @_; my $handle = $self->_handle or return; return seek $handle, $at, $whence }
sub TELL   { my $handle = $_[0]{handle} or return 0; return tell $handle }
sub FILENO { my $handle = $_[0]->_handle or return; return fileno $handle }

sub BINMODE {
    my ($self, @layers) = @_;
    my $handle = $self->_handle or return;
    return @layers ? binmode $handle, $layers[0] : binmode $handle;
}

sub CLOSE {
    my ($self) = @_;
    my $handle = delete $self->{handle};
    return if $self->{closed}++;
    return $handle ? close $handle : 1;
}

1;

__END__

=encoding utf8

=head1 NAME

Oribi::PartedInput - psgi.input of a form that was taken apart

=head1 DESCRIPTION

With the option C<multipart_stream>, C<psgi.input> of a long form is a handle that is tied to this class. It reads the
whole body: C<read>, C<readline>, C<seek>, C<eof> and the others do what they do with any handle, and with its methods.
The first of them has the body put together in a file, which L<Oribi::Multipart> and L<Oribi::Plack> do not need. What
looks at a handle behind Perl's back (C<stat>, C<-s>) sees nothing. When the request is over, a handle that was never
read from is closed; so it is in a child that the application forks.

=cut
