use strict;
use warnings;
use Encode ();
use Fcntl qw(:flock);
use File::Basename ();
use File::Path ();
use File::Spec ();
use JSON::PP ();
use POSIX ();

# A message board with nothing but Perl's core modules: read, post, delete, and the whole archive as a stream. The
# messages are lines of JSON in one file. perl Oribi/Pure.pm app.psgi serves it.

my $FOLDER = File::Basename::dirname(File::Spec->rel2abs(__FILE__));
my $FILE = $ENV{BOARD_FILE} || "$FOLDER/tmp/board.json";
my $NICK_CHARS_MAX = 40;
my $BODY_CHARS_MAX = 2000;
my $FORM_BYTES_MAX = 16 * 1024;
my $PAGE_SIZE = 50;
my @HTML = ('Content-Type' => 'text/html; charset=utf-8', 'Content-Security-Policy' => "default-src 'self'", 'X-Content-Type-Options' => 'nosniff');

my $STYLE = <<'CSS';
body { font: 16px/1.5 sans-serif; margin: 2em auto; max-width: 40em; padding: 0 1em }
article, form.write { border: 1px solid #ccc; border-radius: 6px; margin: 1em 0; padding: 1em }
input, textarea { display: block; font: inherit; width: 100% }
time, .count { color: #666; font-size: small }
.error { color: #a00 }
CSS

# --- messages: { id, nick, body, created_at } ---

# Calls code with all messages, oldest first, under a lock; what it returns is written back, unless that is nothing.
sub with_messages {
    my ($code) = @_;
    File::Path::make_path(File::Basename::dirname($FILE));
    open my $fh, '+>>', $FILE or die "$FILE: $!\n";
    flock $fh, LOCK_EX or die "$FILE: $!\n";
    seek $fh, 0, 0;
    my $changed = $code->(map { JSON::PP::decode_json($_) } readline $fh) or return;
    truncate $fh, 0 or die "$FILE: $!\n";
    print {$fh} map { JSON::PP::encode_json($_) . "\n" } @$changed;
    close $fh or die "$FILE: $!\n";
    return;
}

sub messages { my @all; with_messages(sub { @all = @_; return }); return @all }

sub add {
    my (%message) = @_;
    return with_messages(sub { [@_, { id => 1 + (@_ ? $_[-1]{id} : 0), created_at => time, %message }] });
}

sub remove {
    my ($id) = @_;
    return with_messages(sub { [grep { $_->{id} != $id } @_] });
}

# --- pages ---

sub escape {
    my ($text) = @_;
    my %entity = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;', "'" => '&#39;');
    return ($text // '') =~ s/([&<>"'])/$entity{$1}/gr;
}

sub article {
    my ($message, $deletable) = @_;
    my $time = POSIX::strftime('%Y-%m-%d %H:%M UTC', gmtime $message->{created_at});
    my $delete = $deletable ? qq{<form action="/messages/$message->{id}/delete" method="post"><button>Delete</button></form>} : '';
    return '<article><strong>' . escape($message->{nick}) . "</strong> <time>$time</time><p>" . escape($message->{body}) . "</p>$delete</article>\n";
}

sub page {
    my ($status, $content) = @_;
    my $html = qq{<!doctype html><title>Board</title><link rel="stylesheet" href="/style.css"><p><a href="/">Board</a> <a href="/archive">Archive</a></p>\n$content};
    return [$status, [@HTML], [Encode::encode('UTF-8', $html)]];
}

sub index_page {
    my ($draft, $error) = @_;
    my @all = messages();
    my $count = @all;
    my @latest = reverse @all > $PAGE_SIZE ? @all[-$PAGE_SIZE .. -1] : @all;
    my $problem = $error ? '<p class="error">' . escape($error) . '</p>' : '';
    my ($nick, $body) = map { escape($draft->{$_}) } qw(nick body);
    return page($error ? 422 : 200, <<"HTML" . join '', map { article($_, 1) } @latest);
<form class="write" action="/messages" method="post">$problem
<label>Nick <input name="nick" maxlength="$NICK_CHARS_MAX" value="$nick" required></label>
<label>Message <textarea name="body" maxlength="$BODY_CHARS_MAX" required>$body</textarea></label>
<button>Post</button></form>
<p class="count">@{[ $count == 1 ? '1 message' : "$count messages" ]}</p>
HTML
}

sub fields {
    my ($env) = @_;
    return if ($env->{CONTENT_LENGTH} || 0) > $FORM_BYTES_MAX;
    read $env->{'psgi.input'}, (my $form = ''), $FORM_BYTES_MAX;
    my %field = map { my ($name, $value) = split /=/, $_, 2; $name => $value // '' } split /&/, $form;
    for my $value (values %field) {
        $value =~ tr/+/ /;
        $value =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
        $value = Encode::decode('UTF-8', $value) =~ s/\A\s+|\s+\z//gr;
    }
    return %field;
}

sub post {
    my ($env) = @_;
    my %field = fields($env);
    my ($nick, $body) = map { $_ // '' } @field{qw(nick body)};
    my $problem
        = !length $nick || !length $body ? 'Both a nick and a message are needed.'
        : length $nick > $NICK_CHARS_MAX ? "A nick has at most $NICK_CHARS_MAX characters."
        : length $body > $BODY_CHARS_MAX ? "A message has at most $BODY_CHARS_MAX characters."
        : undef;
    return index_page(\%field, $problem) if $problem;
    add(nick => $nick, body => $body);
    return [303, [Location => '/'], []];
}

# Written piece by piece, so that a long archive is never held as one text.
sub archive {
    return sub {
        my ($respond) = @_;
        my $writer = $respond->([200, [@HTML]]);
        $writer->write("<!doctype html><title>Archive</title><h1>Archive</h1>\n");
        $writer->write(Encode::encode('UTF-8', article($_))) for messages();
        $writer->write("<p>That was all.</p>\n");
        $writer->close;
    };
}

sub {
    my ($env) = @_;
    my $route = "$env->{REQUEST_METHOD} $env->{PATH_INFO}";
    return index_page({}) if $route =~ m{\A(?:GET|HEAD) /\z};
    return post($env) if $route eq 'POST /messages';
    return archive() if $route eq 'GET /archive';
    return [200, ['Content-Type' => 'text/css'], [$STYLE]] if $route eq 'GET /style.css';
    if ($route =~ m{\APOST /messages/([0-9]{1,9})/delete\z}) {
        remove($1);
        return [303, [Location => '/'], []];
    }
    return page(404, '<h1>Not found</h1>');
};
