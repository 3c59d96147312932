package Chat::Room;
use strict;
use warnings;
use JSON::PP ();

# A room is a channel of the server: whoever is in it has subscribed to it, and the server remembers what was said
# (`history` in config/oribi.pl). Nothing is kept here, and each call may come to another worker.

use constant NO_MESSAGE => 4000;    # close code, which the page knows

my %CHARS_MAX = (key => 64, nick => 40, text => 500);
my $JSON = JSON::PP->new->canonical;    # of characters: messages are texts

sub _plain { my ($status, $words, @headers) = @_; return [$status, ['Content-Type' => 'text/plain', @headers], ["$words\n"]] }

# A WebSocket is for those who speak, an event stream for those who only read.
sub answer {
    my ($class, $env) = @_;
    my ($room) = $env->{PATH_INFO} =~ m{\A/rooms/([a-z0-9-]{1,40})\z} or return _plain(404, 'no room');
    my $channel = "room:$room";
    if (my $ws = $env->{'oribi.websocket'}) {
        my ($since) = $env->{QUERY_STRING} =~ /\Asince=([\w-]+)\z/;    # the last message that the page has
        return $ws->accept($class, channels => {$channel => $since}, ids => 1, state => {channel => $channel});
    }
    if (my $events = $env->{'oribi.events'}) {
        return $events->stream(channels => [$channel], retry => 1000);
    }
    return _plain(426, 'a WebSocket or an event stream, please', Upgrade => 'websocket', Connection => 'upgrade');
}

# The page sends {"key": "…", "nick": "Ann", "text": "Hello"}. What is published comes back to it, too.
sub on_message {
    my ($class, $ws, $data) = @_;
    my $message = _read($data) or return $ws->close(NO_MESSAGE, 'not a message');
    $ws->publish($ws->state->{channel} => $JSON->encode({%$message, at => time}));
}

sub _read {
    my ($data) = @_;
    my $said = eval { $JSON->decode($data) };
    return if ref $said ne 'HASH';
    my %message = map { ($_ => _clean($said->{$_}, $CHARS_MAX{$_})) } keys %CHARS_MAX;
    return (grep { $_ eq '' } values %message) ? undef : \%message;
}

sub _clean {
    my ($value, $max) = @_;
    return '' if !defined $value || ref $value;
    $value =~ s/\A\s+|\s+\z//g;
    return substr $value, 0, $max;
}

1;
