# WebSockets and event streams for socket_clients_test.rb, as the documents have them; a message may be a command.
use strict;
use warnings;
use Oribi;

package Room;

sub on_message {
    my ($class, $ws, $data, $binary) = @_;
    return $ws->send($data, binary => 1) if $binary;
    return $ws->close($1, 'as you wish') if $data =~ /\Aclose (\d+)/;
    die "said to die\n" if $data eq 'die';
    $ws->send($data);
    return;
}

sub on_close {
    my ($class, $ws, $code, $reason) = @_;
    open my $file, '>>', "$ENV{E2E_DIR}/closed" or die "closed: $!\n";
    syswrite $file, $ws->id . " $code $reason\n";
    close $file or die "closed: $!\n";
    return;
}

package main;

sub unescaped {
    my ($text) = @_;
    $text =~ tr/+/ /;
    $text =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
    utf8::decode($text);
    return $text;
}

sub {
    my $env = shift;
    my %query = map { my ($name, $value) = split /=/, $_, 2; ($name => unescaped($value // '')) } split /&/, $env->{QUERY_STRING};
    if ($env->{PATH_INFO} eq '/chat') {
        my $ws = $env->{'oribi.websocket'} or return [426, [], []];
        return $ws->accept('Room', protocol => 'chat') if !defined $query{channel};
        return $ws->accept('Room', channels => { $query{channel} => $query{since} }, ids => 1);
    }
    if ($env->{PATH_INFO} eq '/events') {
        my $events = $env->{'oribi.events'} or return [406, [], []];
        return $events->stream(channels => [$query{channel}], retry => 50);
    }
    if ($env->{PATH_INFO} eq '/publish') {
        Oribi::publish($query{channel} => $query{data}, event => $query{event});
        return [204, [], []];
    }
    return [403, [], ["refused\n"]];
};
