package Chat::Room;
use strict;
use warnings;
use POSIX ();

# Connections that a worker gives away, each to a process of its own. A worker makes one call at a time, so it must not
# stay with a client that does; a process costs some pages, since everything that was loaded is shared, and nothing in
# it needs to be non-blocking but the reading.
#
#   worker ── fork ── fork ──► peer: select on the socket, look at the journal, until one side ends
#      └── pipe: its end tells the peer that the worker has gone

use constant {
    LOOK_SECONDS => 0.1,     # at the journal
    PING_SECONDS => 20,      # shows who has gone without a word
    CLOSE_SECONDS => 2,      # for the other side's good-bye
    WRITE_SECONDS => 10,     # a client that takes nothing for so long is let go
    READ_BYTES => 16_384,
};

my ($worker, $life, $ear);    # the pid that made the pipe, which a child of this process makes anew; its ends

sub _life_line {
    return if $worker && $worker == $$;
    pipe $ear, $life or die "pipe: $!\n";
    $worker = $$;
}

# Runs the peer in a new process and returns at once. Twice forked, it is nobody's child here: the server reaps it.
sub give_away {
    my ($class, $peer) = @_;
    _life_line();
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid) {
        waitpid $pid, 0;
        return;
    }
    POSIX::_exit(0) if fork // 1;
    close $life;
    $0 = 'chat peer';
    $SIG{$_} = 'DEFAULT' for qw(TERM INT QUIT HUP USR1 USR2 CHLD);
    $SIG{PIPE} = 'IGNORE';
    eval { $peer->begin; _serve($peer); 1 } or warn 'chat: ' . ($@ || 'unknown');
    POSIX::_exit(0);    # and not exit: the worker's END blocks are not ours
}

sub _serve {
    my ($peer) = @_;
    my $pinged = time;
    until ($peer->{done} || $peer->{closing} && time - $peer->{closing} > CLOSE_SECONDS) {
        my ($ready, $told) = _wait($peer->{io}, !$peer->{closing});
        $peer->farewell if $told;
        _read($peer) if $ready;
        next if $peer->{closing};
        $peer->catch_up;
        next if $peer->{done} || time - $pinged < PING_SECONDS;
        $peer->ping;
        $pinged = time;
    }
}

# (the socket can be read, the worker has gone)
sub _wait {
    my ($io, $listens) = @_;
    my $bits = '';
    vec($bits, fileno $io, 1) = 1;
    vec($bits, fileno $ear, 1) = $listens ? 1 : 0;
    return (0, 0) if select($bits, undef, undef, LOOK_SECONDS) <= 0;
    return (vec($bits, fileno $io, 1), vec($bits, fileno $ear, 1));
}

sub _read {
    my ($peer) = @_;
    my $count = sysread $peer->{io}, my ($bytes), READ_BYTES;
    return $peer->take($bytes) if $count;
    $peer->{done} = 1 if defined $count || !$!{EAGAIN};
}

# All of it, or the end of this peer.
sub send_all {
    my ($class, $peer, $bytes) = @_;
    my $deadline = time + WRITE_SECONDS;
    while (length $bytes && !$peer->{done}) {
        my $sent = syswrite $peer->{io}, $bytes;
        if ($sent) {
            substr $bytes, 0, $sent, '';
        }
        elsif (!$!{EAGAIN} || time > $deadline) {
            $peer->{done} = 1;
        }
        else {
            vec(my $bits = '', fileno $peer->{io}, 1) = 1;
            select undef, $bits, undef, 1;
        }
    }
}

1;
