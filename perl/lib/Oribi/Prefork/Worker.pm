package Oribi::Prefork::Worker;
use strict;
use warnings;
use IO::Handle ();
use IO::Select ();
use Time::HiRes ();

our $VERSION = '0.100';

# What a worker's loop asks and tells.

sub new {
    my ($class, $process, $titles) = @_;
    my $self = bless { process => $process, titles => $titles }, $class;
    $self->_show_title;
    return $self;
}

sub index { return $_[0]{process}->index }
sub generation { return $_[0]{process}->generation }
sub stopping { return $_[0]{process}->jobs_stopping ? 1 : 0 }

sub fd {
    my ($self) = @_;
    $self->{process}->jobs_watch_signals;
    return $self->{process}->jobs_wake_fd;
}

sub io {
    my ($self) = @_;
    return $self->{io} //= IO::Handle->new_from_fd($self->fd, 'r');
}

sub wait {
    my ($self, $seconds) = @_;
    my $deadline = defined $seconds ? Time::HiRes::time() + $seconds : undef;
    my $select = IO::Select->new($self->fd);
    $self->_show_title(1);
    while (!$self->stopping) {
        my $left = defined $deadline ? $deadline - Time::HiRes::time() : undef;
        return 0 if defined $left && $left <= 0;
        $select->can_read($left);
    }
    return 1;
}

# The end of the job is told whichever way it is left; what it returns in list or scalar context is returned.
sub job {
    my ($self, @arguments) = @_;
    my $code = pop @arguments;
    my $guard = Oribi::Prefork::Job->new($self, $arguments[0] // '');
    return $code->();
}

sub _show_title {
    my ($self, $rest) = @_;
    Oribi::show_title($self->{process}->jobs_title($rest ? 1 : 0)) if $self->{titles};
    return;
}

package Oribi::Prefork::Job;
our $VERSION = '0.100';

sub new {
    my ($class, $worker, $text) = @_;
    $worker->{process}->jobs_begin($text);
    $worker->_show_title;
    return bless { worker => $worker, pid => $$ }, $class;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{pid} != $$;    # a child that the job forked
    $self->{worker}{process}->jobs_end;
    $self->{worker}->_show_title;
    return;
}

1;

__END__

=head1 NAME

Oribi::Prefork::Worker - what a worker's loop asks and tells

=head1 DESCRIPTION

Given to the callback of C<start>; see L<Oribi::Prefork/WORKERS>.

=cut
