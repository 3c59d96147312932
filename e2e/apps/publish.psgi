# Publishes, for publish_test.rb; and a WebSocket whose messages are commands.
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

# A job of the application's: so many messages, each its number; the file has how many went out.
sub job {
    my %given = given($_[0]);
    my $pid = fork // die "fork: $!";
    return $pid if $pid;
    my $sent = 0;
    eval {
        for my $i (0 .. $given{count} - 1) {
            Oribi::publish($given{channel} => $i);
            $sent++;
            Time::HiRes::sleep(0.0005);
        }
    };
    open my $file, '>', "$ENV{E2E_DIR}/job" or POSIX::_exit(1);
    print $file $sent;
    close $file;
    POSIX::_exit(0);
}

sub {
    my ($env) = @_;
    return $env->{'oribi.websocket'}->accept('Listener') if $env->{'oribi.websocket'};
    my $path = $env->{PATH_INFO};
    my $text = $path eq '/publish' || $path eq '/thread' ? publish($env->{QUERY_STRING}) : $path eq '/job' ? job($env->{QUERY_STRING}) : 'Hello, World!';
    return [200, [], [$text]];
};
