package Oribi::Multipart::MultiPart;
use 5.016;
use strict;
use warnings;
use File::Temp ();
use Oribi::Multipart ();

our $VERSION = '0.100';

# Pointers into C: a new thread gets none of them.
sub Oribi::Multipart::Reader::CLONE_SKIP {1}

my @LIMITS = qw(parts_max files_max part_head_max memory_max);
my %DEFAULT;
@DEFAULT{@LIMITS} = Oribi::Multipart::_defaults();

sub new {
    my ($class, $env, $options) = @_;
    my %options = (%DEFAULT, %{ $options // {} });
    my $boundary = Oribi::Multipart::boundary($env->{CONTENT_TYPE} // '');
    Oribi::Form::Error->throw('no boundary in the type of the body', 400) if !defined $boundary;
    my $dir;
    my $open = sub {
        $dir //= _dir($env, $options{tempdir});
        return File::Temp::tempfile('XXXXXXXXXX', DIR => "$dir", UNLINK => 0);
    };
    my $reader = Oribi::Multipart::Reader::_new($boundary, @options{@LIMITS}, $open);
    return bless { reader => $reader, on_error => $options{on_error} }, $class;
}

# Goes with $env, and takes its files with it.
sub _dir {
    my ($env, $parent) = @_;
    my $dir = File::Temp->newdir('oribi-XXXXXXXXXX', defined $parent ? (DIR => $parent) : (TMPDIR => 1), CLEANUP => 1);
    push @{ $env->{'oribi.multipart.tempdir'} }, $dir;
    return $dir;
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
    my ($self, $bytes) = @_;
    $self->_try(sub { $self->{reader}->feed($bytes) }) if defined $bytes;
    return;
}

sub finalize {
    my ($self) = @_;
    $self->_try(sub { $self->{reader}->finish });
    return ($self->{reader}->params, $self->{reader}->uploads);
}

1;
