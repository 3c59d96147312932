# Forks at every place where the server runs code of the application, and the child comes back from there. children.ru
# is its twin.
use strict;
use warnings;

my $NOTES = "$ENV{E2E_DIR}/forks";
my @opened;

sub Forks::note { open my $fh, '>>', $NOTES or die "$NOTES: $!"; syswrite $fh, "@_\n" }

# The child does not end by itself, and opens files, which get the numbers of the server's sockets.
sub Forks::split_here {
    my ($where) = @_;
    local $SIG{CHLD} = 'DEFAULT';
    my $child = fork // die "fork: $!";
    return if $child;
    for my $i (1 .. 16) {
        open my $fh, '>', "$NOTES.$$.$i" or die $!;
        push @opened, $fh;
    }
    Forks::note(child => $where, $$);
}

# Programs end so.
END {
    my $status = $?;
    my $sum = 0;
    $sum += -s $_ for @opened;
    Forks::note(end => $$, $sum, $status) if @opened;
    $? = $status;
}

package Body {
    sub new { my ($class, $where) = @_; return bless { where => $where, records => ['one ', 'two'] }, $class }

    sub getline {
        my ($self) = @_;
        if (@{ $self->{records} } == 1) {
            Forks::split_here('each') if $self->{where} eq 'each';
            Forks::split_here('raise') if $self->{where} eq 'raise';
            die "child\n" if $self->{where} eq 'raise' && @opened;
        }
        return shift @{ $self->{records} };
    }

    sub close {
        my ($self) = @_;
        Forks::split_here('close') if $self->{where} eq 'close';
        Forks::note(closed => $$);
    }
    sub DESTROY { Forks::split_here('destroy') if $_[0]{where} eq 'destroy' && !@opened }
}

sub {
    my ($env) = @_;
    my $where = substr $env->{PATH_INFO}, 1;
    $SIG{URG} = sub { Forks::split_here('trap') if !@opened };
    return [200, [], ["$$"]] if $where eq 'pid';
    push @{ $env->{'psgix.cleanup.handlers'} }, sub { Forks::split_here('after') if $where eq 'after' },
        sub { Forks::note(finished => $$) };
    Forks::split_here('call') if $where eq 'call';
    my @head = (200, ['Content-Type' => 'text/plain']);
    return [@head, ['one two']] if $where =~ /\A(?:call|after)\z/;
    return [@head, Body->new($where)] if $where ne 'stream';
    return sub {
        my $writer = $_[0]->([@head]);
        $writer->write('one ');
        Forks::split_here('stream');
        $writer->write('two');
        $writer->close;
    };
};
