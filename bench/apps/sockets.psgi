# WebSockets, event streams and publishing, for bench/workloads/sockets.rb and e2e/cut_test.rb.
use strict;
use warnings;
use Oribi;
use Time::HiRes ();

# Sends back what it gets.
package Echo {
    our $VERSION = '1.0';
    sub on_message { my ($class, $ws, $data) = @_; return $ws->send($data) }
}

# So slowly that a worker may be killed in the call.
package SlowEcho {
    our $VERSION = '1.0';

    sub on_message {
        my ($class, $ws, $data) = @_;
        Time::HiRes::sleep(0.005);
        return $ws->send($data);
    }
}

# The value of a key; names and numbers alone, so that nothing is escaped.
sub value {
    my ($env, $key) = @_;
    return $env->{QUERY_STRING} =~ /(?:\A|&)$key=([^&]*)/ ? $1 : '';
}

my %answers = (
    '/echo'      => sub { $_[0]{'oribi.websocket'}->accept('Echo') },
    '/subscribe' => sub { $_[0]{'oribi.websocket'}->accept('Echo', channels => [value($_[0], 'channel')]) },
    '/socket'    => sub {
        my ($env) = @_;
        my $since = value($env, 'since');
        my $handler = $env->{QUERY_STRING} =~ /&slow=/ ? 'SlowEcho' : 'Echo';
        return $env->{'oribi.websocket'}->accept($handler, channels => { value($env, 'channel') => length $since ? $since : undef }, ids => 1);
    },
    '/events'  => sub { $_[0]{'oribi.events'}->stream(channels => [value($_[0], 'channel')]) },
    '/publish' => sub {
        my ($env) = @_;
        my $data = do { local $/ = undef; readline $env->{'psgi.input'} };
        Oribi::publish(value($env, 'channel') => $data);
        return [204, [], []];
    },
    '/pid' => sub { [200, [], [$$]] },
);
my $hello = [200, ['Content-Type' => 'text/plain'], ['Hello, World!']];

sub {
    my ($env) = @_;
    my $answer = $answers{ $env->{PATH_INFO} } or return $hello;
    return $answer->($env);
};
