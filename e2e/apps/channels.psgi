use strict;
use warnings;
use Oribi::WebSocket;

# Channels for channels_test.rb: a message is a command.
package Room;

my %COMMANDS = (
    subscribe   => sub { $_[0]->subscribe($_[1], since => $_[2]) },
    unsubscribe => sub { $_[0]->unsubscribe($_[1]) },
    publish     => sub { $_[0]->publish($_[1], $_[2] // '') },
    binary      => sub { $_[0]->publish($_[1], pack('H*', $_[2]), binary => 1) },
    event       => sub { $_[0]->publish($_[1], 'data', event => $_[2]) },
    large       => sub { $_[0]->publish($_[1], 'x' x $_[2]) },
    repeat      => sub { my ($ws, $channel, $n) = @_; $ws->publish($channel, sprintf '%04d', $_) for 0 .. $n - 1 },
    many        => sub { my ($ws, $channel, $n) = @_; $ws->subscribe("$channel$_") for 0 .. $n - 1 },
    kill        => sub { kill KILL => $$ },
    try         => sub { my ($ws, $what, $size) = @_; eval { attempt($ws, $what, $size); 1 } or $ws->send("error $@") },
);

sub attempt {
    my ($ws, $what, $size) = @_;
    $ws->subscribe('n' x $size) if $what eq 'name';
    $ws->subscribe($size) if $what eq 'subscribe' || $what eq 'instead' && !$ws->unsubscribe('c7');
    $ws->subscribe("a\nb") if $what eq 'control';
    $ws->publish('a', '', event => 'e' x $size) if $what eq 'event';
    $ws->publish('a', 'd' x $size) if $what eq 'data';
    $ws->subscribe('a', since => '1-1') if $what eq 'since';
}

sub on_message {
    my ($class, $ws, $data) = @_;
    my ($word, $channel, $rest) = split / /, $data, 3;
    $COMMANDS{$word}->($ws, $channel, $rest);
    $ws->send('ok');
}

sub on_close { my ($class, $ws, $code) = @_; $ws->publish('closed', "closed $code") }

package main;

sub {
    my $env = shift;
    return [200, [], [$$]] if $env->{PATH_INFO} eq '/pid';
    my $ws = $env->{'oribi.websocket'} or return [426, [], []];
    my %query = map { my ($key, $value) = split /=/, $_, 2; ($key => $value // '') } split /&/, $env->{QUERY_STRING};
    my $channels = [split /,/, $query{channels} // ''];
    $channels = { map { ($_ => $query{since}) } @$channels } if defined $query{since};
    $channels = [map {"c$_"} 1 .. $query{count}] if $query{count};
    return $ws->accept('Room', channels => $channels, ids => exists $query{ids});
};
