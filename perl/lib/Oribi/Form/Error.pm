package Oribi::Form::Error;
use 5.016;
use strict;
use warnings;
use Carp ();
use overload '""' => sub { $_[0]->text }, 'bool' => sub {1}, fallback => 1;

our $VERSION = '0.100';

sub throw {
    my ($class, $message, $status) = @_;
    local $Carp::CarpLevel = 1;
    my ($file, $line) = (Carp::longmess('') =~ / at (\S+) line (\d+)/);
    die bless { message => $message, status => $status // 400, place => "at $file line $line" }, $class;
}

sub message { return $_[0]{message} }
sub status  { return $_[0]{status} }
sub text    { return "$_[0]{message} $_[0]{place}.\n" }

1;

__END__

=encoding utf8

=head1 NAME

Oribi::Form::Error - a form, a cookie or a body that is none

=head1 SYNOPSIS

  my ($params, $uploads) = eval { $parser->parse($env) };
  if (ref $@ && $@->isa('Oribi::Form::Error')) {
      return [$@->status, ['Content-Type' => 'text/plain'], [$@->message]];
  }

=head1 METHODS

=over

=item message

What is wrong, in one line without a line number. As a string the object has the place behind it, as C<die> does.

=item status

What answers such a request: 400, or 413 for more than a maximum. An Oribi server does so when the application lets the
exception through.

=item throw($message, $status)

Dies with an object of this class.

=back

=cut
