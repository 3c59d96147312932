# Publishes, for publish_test.rb and transports_test.rb; a WebSocket whose messages are commands, and an event stream.
use strict;
use warnings;
use Oribi;
use POSIX ();
use Time::HiRes ();

package Listener;

sub on_message {
    my ($class, $ws, $data) = @_;
    my ($word, $channel, $rest) = split / /, $data, 3;
    if ($word eq 'subscribe') {
        my $found = $ws->subscribe($channel, since => $rest);
        $ws->send('subscribed ' . ($found // ''));
    }
    $ws->publish($channel => $rest) if $word eq 'publish';
}

package main;

sub given {
    my ($query) = @_;
    return map { my ($name, $value) = split /=/, $_, 2; $value =~ tr/+/ /; $value =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge; ($name => $value) } split /&/, $query;
}

sub publish {
    my %given = given($_[0]);
    eval { Oribi::publish($given{channel} => $given{data} // 'x' x $given{size}, event => $given{event}); 1 } and return 'published';
    return "Oribi::Error: $@";
}

# A job of the application's: so many messages, each its number, or until the file "enough" is there; the file "job" has
# how many went out.
sub job {
    my %given = given($_[0]);
    my $pid = fork // die "fork: $!";
    return $pid if $pid;
    my $sent = 0;
    eval {
        until ($given{until} ? -e "$ENV{E2E_DIR}/enough" : $sent == $given{count}) {
            Oribi::publish($given{channel} => $sent);
            $sent++;
            Time::HiRes::sleep($given{pause} // 0.0005);
        }
    };
    open my $file, '>', "$ENV{E2E_DIR}/job.new" or POSIX::_exit(1);
    print $file $sent;
    close $file;
    rename "$ENV{E2E_DIR}/job.new", "$ENV{E2E_DIR}/job";
    POSIX::_exit(0);
}

# Of a channel, and since a position that the client has sent.
sub subscribe {
    my ($env) = @_;
    my ($channel, $since) = split /&/, $env->{QUERY_STRING};
    my $handshake = $env->{'oribi.websocket'};
    return $handshake->accept('Listener', channels => { $channel => $since }, ids => 1) if $handshake;
    return $env->{'oribi.events'}->stream(channels => [$channel]);
}

sub {
    my ($env) = @_;
    return subscribe($env) if $env->{PATH_INFO} eq '/listen';
    return $env->{'oribi.websocket'}->accept('Listener') if $env->{'oribi.websocket'};
    my $path = $env->{PATH_INFO};
    my $text = $path eq '/publish' || $path eq '/thread' ? publish($env->{QUERY_STRING}) : $path eq '/job' ? job($env->{QUERY_STRING}) : 'Hello, World!';
    return [200, [], [$text]];
};
