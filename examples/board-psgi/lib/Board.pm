package Board;
use strict;
use warnings;
use Board::Store ();
use Encode ();
use File::Basename ();
use POSIX ();

my $ROOT;
BEGIN { $ROOT = File::Basename::dirname(File::Basename::dirname(__FILE__)) }

use Dancer2 appname => 'Board';

# A message board: read, post, delete, a picture with a message if you like, and the whole archive as a stream.

my $NICK_CHARS_MAX = 40;
my $BODY_CHARS_MAX = 2000;
my $PICTURE_BYTES_MAX = 2 * 1024 * 1024;

# What a browser shows by itself, told by its first bytes and not by what the client calls it.
my %PICTURE_TYPES = (
    'image/png' => qr/\A\x89PNG\r\n\x1a\n/,
    'image/jpeg' => qr/\A\xff\xd8\xff/,
    'image/gif' => qr/\AGIF8[79]a/,
    'image/webp' => qr/\ARIFF....WEBP/s,
);

set appdir => $ROOT;
set views => "$ROOT/views";
set public_dir => "$ROOT/public";
set layout => 'main';
set charset => 'UTF-8';
set template => 'tiny';
set static_handler => 1;
set logger => 'console';
set log => 'warning';

# BOARD_DB: the file of the messages. BOARD_SEEDS=off: a new board opens empty.
my $seeds = ($ENV{BOARD_SEEDS} // '') eq 'off' ? undef : "$ROOT/seeds";
my $store = Board::Store->new($ENV{BOARD_DB} || "$ROOT/tmp/board.sqlite3", seeds => $seeds);

# The template engine escapes nothing, so everything that came from a person is escaped here, before it gets there.
sub escape {
    my ($text) = @_;
    my %entity = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;', "'" => '&#39;');
    return ($text // '') =~ s/([&<>"'])/$entity{$1}/gr;
}

sub shown {
    my ($message, $deletable) = @_;
    return {
        id => $message->{id},
        initial => escape(uc substr $message->{nick}, 0, 1),
        nick => escape($message->{nick}),
        body => escape($message->{body}),
        time => POSIX::strftime('%Y-%m-%d %H:%M UTC', gmtime $message->{created_at}),
        picture => $message->{picture_type},
        deletable => $deletable,
    };
}

# The template engine has no includes worth using for this: one message is one call.
sub messages_as_html {
    my ($deletable, @messages) = @_;
    return join '', map { template('message', { message => shown($_, $deletable) }, { layout => undef }) } @messages;
}

sub index_page {
    my ($draft, $error) = @_;
    my @messages = $store->latest;
    my $count = $store->count;
    return template 'index', {
        nick => escape($draft->{nick}), body => escape($draft->{body}), error => escape($error),
        messages => messages_as_html(1, @messages), count => $count == 1 ? '1 message' : "$count messages", empty => !@messages,
    };
}

# Form fields are text that somebody else encoded: made valid before anything looks at them. Dancer2 has decoded what
# can be decoded.
sub field {
    my ($name) = @_;
    my $text = body_parameters->get($name) // '';
    $text = Encode::decode('UTF-8', $text) unless utf8::is_utf8($text);
    return $text =~ s/\A\s+|\s+\z//gr;
}

sub read_picture {
    my $upload = upload('picture') or return;
    open my $fh, '<:raw', $upload->tempname or return;
    read $fh, my $bytes, $PICTURE_BYTES_MAX + 1 or return;
    my ($type) = grep { $bytes =~ $PICTURE_TYPES{$_} } sort keys %PICTURE_TYPES;
    return (picture => $bytes, picture_type => $type);
}

# One sentence for the person at the form, or nothing.
sub problem_with {
    my (%message) = @_;
    return 'Both a nick and a message are needed.' if !length $message{nick} || !length $message{body};
    return "A nick has at most $NICK_CHARS_MAX characters." if length $message{nick} > $NICK_CHARS_MAX;
    return "A message has at most $BODY_CHARS_MAX characters." if length $message{body} > $BODY_CHARS_MAX;
    return unless defined $message{picture};
    return 'A picture has at most 2 MiB.' if length $message{picture} > $PICTURE_BYTES_MAX;
    return 'A picture is a PNG, JPEG, GIF or WebP file.' unless $message{picture_type};
    return;
}

hook before => sub {
    response_header 'Content-Security-Policy' => "default-src 'self'";
    response_header 'X-Content-Type-Options' => 'nosniff';
};

get '/' => sub { return index_page({}) };

post '/messages' => sub {
    my %message = (nick => field('nick'), body => field('body'), read_picture());
    if (my $error = problem_with(%message)) {
        status 422;
        return index_page(\%message, $error);
    }
    $store->add(%message);
    return redirect '/', 303;
};

post '/messages/:id/delete' => sub {
    my $id = route_parameters->get('id');
    send_error('There is no such message.', 404) unless $id =~ /\A[0-9]{1,18}\z/;
    $store->delete($id);
    return redirect '/', 303;
};

get '/messages/:id/picture' => sub {
    my $id = route_parameters->get('id');
    my ($picture, $type) = $id =~ /\A[0-9]{1,18}\z/ ? $store->picture($id) : ();
    send_error('There is no such picture.', 404) unless defined $picture;
    response_header 'Cache-Control' => 'private, max-age=86400';
    content_type $type;
    response->is_encoded(1);    # bytes already
    return $picture;
};

# Written while it is read from the database: a board of any length needs the memory of twenty messages.
get '/stream' => sub {
    my ($top, $bottom) = split /<!-- messages -->/, template('stream'), 2;
    content_type 'text/html; charset=UTF-8';
    return delayed {
        flush;
        content Encode::encode('UTF-8', $top);
        my $last = 0;
        while (my @messages = $store->after($last)) {
            content Encode::encode('UTF-8', messages_as_html(0, @messages));
            $last = $messages[-1]{id};
        }
        content Encode::encode('UTF-8', $bottom);
        done;
    };
};

any qr{.*} => sub {
    status 404;
    return template \'<p class="notice">There is nothing here. <a href="/">Back to the board</a></p>';
};

1;
