package BadServer;
use strict;
use warnings;
use File::Temp ();
use IO::Socket::UNIX;
use POSIX ();

# A server that does what a script says: code for each connection, in order, the last one for all that follow. It is
# called with the client's socket, which is closed behind it. Requests of each connection are counted by their lines
# that begin with '*'.
sub start {
    my ($class, @scripts) = @_;
    my $dir    = File::Temp->newdir('oribi-redis-XXXXXX', TMPDIR => 1);
    my $listen = IO::Socket::UNIX->new(Local => "$dir/socket", Listen => 16) or die "listen: $!";
    my $self   = bless { dir => $dir, path => "$dir/socket", owner => $$ }, $class;
    $self->{pid} = fork // die "fork: $!";
    if (!$self->{pid}) {
        local $SIG{PIPE} = 'IGNORE';
        local $SIG{ALRM} = 'DEFAULT';
        alarm 600;
        for (my $i = 0; my $client = $listen->accept; $i++) {
            $scripts[$i < @scripts ? $i : -1]->($client, $i);
        }
        POSIX::_exit(0);
    }
    close $listen;
    return $self;
}

sub path { return $_[0]{path} }

# As RedisServer's.
sub place { return (path => $_[0]{path}, map { ("${_}_timeout_ms" => 30_000) } qw(connect read write)) }

# Answers each read with the next of these texts, and waits for the client's end then.
sub says {
    my (@texts) = @_;
    return sub {
        my ($client) = @_;
        for my $text (@texts) {
            sysread($client, my $request, 65536) or return;
            syswrite $client, $text;
        }
        1 while sysread $client, my $rest, 65536;
    };
}

# The same, and closes at once.
sub says_and_leaves {
    my ($text) = @_;
    return sub {
        my ($client) = @_;
        sysread($client, my $request, 65536) or return;
        syswrite $client, $text if length $text;
    };
}

sub stop {
    my ($self) = @_;
    return if !$self->{pid} || $self->{owner} != $$;
    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
    delete $self->{pid};
    return;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $!, $@);
    $self->stop;
    return;
}

1;
