use strict;
use warnings;
use IO::Select;

# Keeps handles of its clients' sockets, and writes there while it answers others; lent.ru is its twin.

my @TEXT = ('Content-Type' => 'text/plain');
my $ANSWER = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s";
my @kept;

sub answer { my ($text) = @_; [200, [@TEXT], [$text]] }

# The socket is looked at, as by code that copies an environment, and the server answers.
sub looked {
    my ($env) = @_;
    my %copy = %$env;
    push @kept, $copy{'psgix.io'};
    return answer('kept');
}

# The application answers by itself, and keeps the socket.
sub taken {
    my ($env) = @_;
    return sub {
        push @kept, $env->{'psgix.io'};
        syswrite $kept[-1], sprintf $ANSWER, 4, 'kept';
    };
}

sub forge {
    local $SIG{PIPE} = 'IGNORE';
    syswrite $_, sprintf $ANSWER, 6, 'forged' for @kept;
    return answer('mine');
}

# What else came on the sockets, until they are at their end.
sub rest {
    my $text = '';
    for my $io (@kept) {
        while (1) {
            IO::Select->new($io)->can_read(10) or return answer("$text open");
            last unless sysread $io, $text, 4096, length $text;
        }
    }
    @kept = ();
    return answer("$text ended");
}

my %ROUTES = ('/looked' => \&looked, '/taken' => \&taken, '/forge' => \&forge, '/rest' => \&rest);

sub { $ROUTES{ $_[0]{PATH_INFO} }->($_[0]) };
