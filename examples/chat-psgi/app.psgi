use strict;
use warnings;
use File::Basename ();
my $DIR;
BEGIN { $DIR = File::Basename::dirname(__FILE__) }
use lib "$DIR/lib";
use Chat::Journal ();
use Chat::Peer ();
use Chat::Room ();

# The Perl twin of examples/chat, whose page it serves: WebSockets and server-sent events on a server whose workers make
# one call at a time. Each long-lived connection is given to a process of its own within its call, and the worker goes
# on with the next request at once.

my $journal = Chat::Journal->new($ENV{CHAT_JOURNAL} || "$DIR/tmp/journal");

sub file_of { my ($name) = @_; open my $file, '<:raw', "$DIR/../chat/public/$name" or die "$name: $!\n"; local $/; return <$file> }

my %PAGE = (
    '/' => [file_of('index.html'), 'text/html; charset=utf-8'],
    '/chat.css' => [file_of('chat.css'), 'text/css'],
    '/chat.js' => [file_of('chat.js'), 'text/javascript'],
);

sub text { my ($status, $words, @headers) = @_; return [$status, ['Content-Type' => 'text/plain', @headers], ["$words\n"]] }

# Browsers let any site open a WebSocket to any other, and tell where it came from.
sub own_origin {
    my ($env) = @_;
    my $origin = $env->{HTTP_ORIGIN};
    return 1 if !defined $origin;
    $origin =~ s{\A\w+://}{};
    return $origin eq $env->{HTTP_HOST};
}

# Returning from a delayed response without calling its responder leaves psgix.io to the application.
sub given_away {
    my ($env, $make) = @_;
    return sub { Chat::Room->give_away($make->($env->{'psgix.io'})) };
}

# %more: on_message, and where to listen.
sub web_socket {
    my ($env, %more) = @_;
    my $handshake = Chat::Peer::Socket->handshake($env)
        or return text(426, 'a WebSocket, please', Upgrade => 'websocket', Connection => 'upgrade', 'Sec-WebSocket-Version' => 13);
    return text(403, 'from another site') if !own_origin($env);
    # Clients must wait for the 101, but one that has not is understood too.
    my $early = defined $env->{'oribi.unread'} ? $env->{'oribi.unread'} : '';
    return given_away($env, sub { Chat::Peer::Socket->new(io => $_[0], handshake => $handshake, early => $early, %more) });
}

sub listening {
    my ($env) = @_;
    my ($after) = $env->{QUERY_STRING} =~ /(?:\A|&)after=([0-9]+)/;
    my $id = defined $env->{HTTP_LAST_EVENT_ID} ? $env->{HTTP_LAST_EVENT_ID} : $after;
    return (journal => $journal, place => $journal->place_for($id));
}

sub messages {
    my ($env) = @_;
    return text(405, 'POST only', Allow => 'POST') if $env->{REQUEST_METHOD} ne 'POST';
    return text(403, 'from another site') if !own_origin($env);
    my $bytes = do { local $/; readline $env->{'psgi.input'} };
    return $journal->add($bytes) ? [204, [], []] : text(422, 'not a message');
}

my %ROUTE = (
    '/echo' => sub { web_socket($_[0], on_message => sub { my ($peer, $message, $type) = @_; $peer->say($message, $type) }) },
    '/chat' => sub { web_socket($_[0], listening($_[0]), on_message => sub { $journal->add($_[1]) }) },
    '/events' => sub { my ($env) = @_; given_away($env, sub { Chat::Peer::Events->new(io => $_[0], listening($env)) }) },
    '/messages' => \&messages,
);

sub {
    my ($env) = @_;
    my $route = $ROUTE{$env->{PATH_INFO}};
    return $route->($env) if $route;
    my $page = $PAGE{$env->{PATH_INFO}} or return text(404, 'nothing here');
    return [200, ['Content-Type' => $page->[1], 'Content-Security-Policy' => "default-src 'self'", 'Cache-Control' => 'no-cache'], [$page->[0]]];
};
