package Oribi::Multipart::MultiPart;
use 5.016;
use strict;
use warnings;
use Oribi::Multipart ();
use Oribi::Multipart::Folder ();

our $VERSION = '0.100';

# Pointers into C: a new thread gets none of them.
sub Oribi::Multipart::Reader::CLONE_SKIP {1}

my @LIMITS = qw(parts_max files_max part_head_max memory_max);
my %DEFAULT;
@DEFAULT{@LIMITS} = Oribi::Multipart::_defaults();

sub new {
    my ($class, $env, $options) = @_;
    my %options = (%DEFAULT, %{ $options // {} });
    my $type = $env->{CONTENT_TYPE} // '';
    my $boundary = Oribi::Multipart::boundary($type);
    Oribi::Form::Error->throw("Invalid boundary in content_type: $type", 400) if !defined $boundary;
    my $files;    # which go with $env
    my $open = sub {
        my (undef, $fd) = @_;
        push @{ $env->{'oribi.multipart.files'} }, $files = Oribi::Multipart::Folder::Files->new if !$files;
        return $files->open($options{tempdir}, $fd);
    };
    my $reader = Oribi::Multipart::Reader::_new($boundary, @options{@LIMITS}, $open);
    return bless { reader => $reader, on_error => $options{on_error} }, $class;
}

sub _try {
    my ($self, $code) = @_;
    return if $self->{aborted};
    return $code->() if !$self->{on_error};
    return if eval { $code->(); 1 };
    my $error = $@;
    $self->{aborted} = 1;
    $self->{on_error}->(ref $error && $error->isa('Oribi::Form::Error') ? $error->message : $error);
    return;
}

sub add {
    my $self = $_[0];
    my $bytes = \$_[1];    # not copied: it may be the whole body
    $self->_try(sub { $self->{reader}->feed($$bytes) }) if defined $$bytes;
    return;
}

# The first bytes of a handle on a plain file; false when it is none.
sub add_file {
    my ($self, $input, $length) = @_;
    my $taken = 0;
    $self->_try(sub { $taken = $self->{reader}->feed_file($input, $length) });
    return $taken || $self->{aborted};
}

# The parts that an Oribi server has taken a body apart to; false when there are none any more.
sub add_parts {
    my ($self, $input) = @_;
    my $taken = 0;
    $self->_try(sub { $taken = $self->{reader}->feed_parts($input) });
    return $taken || $self->{aborted};
}

sub finalize {
    my ($self) = @_;
    $self->_try(sub { $self->{reader}->finish });
    return ($self->{reader}->params, $self->{reader}->uploads);
}

1;
