use strict;
use warnings;
use lib 't/lib';
use Oribi::HTTPParser qw(parse_http_request);
use Oribi::Pure;
use OribiSpec;
use OribiTest;
use Test::More;
use Time::HiRes ();

# The parser of Oribi::Pure beside the core's, over random heads and over mutated heads of spec/: the same verdict and
# the same environment. Its decoder of chunks beside a worker of the core: the same status, content and trailers.
# ORIBI_BESIDE_S is how many seconds; ORIBI_BESIDE_SEED repeats a run.

my $SECONDS = $ENV{ORIBI_BESIDE_S} || 4;
my $seed = $ENV{ORIBI_BESIDE_SEED} // time;
srand $seed;
note "seed $seed";

# Those of the core's library (core/src/http/from_string.c).
my $limits = Oribi::Pure::Head::limits(
    target_bytes_max => 1 << 20, head_bytes_max => 1 << 20, fields_max => 128, body_bytes_max => '9223372036854775807', connect_allow => 1,
    underscores_allow => 1,
);

# Result and environment, as the library gives them: the number of a refusal is not told there.
sub ours {
    my ($bytes) = @_;
    my $result = Oribi::Pure::Head::parse(\my %state, $limits, $bytes);
    return ($result ? -1 : -2, {}) if $result <= 0;
    my $env = $state{env};
    $env->{PATH_INFO} = Oribi::Pure::Head::decoded($env->{PATH_INFO}) // return (-1, {});
    $env->{SCRIPT_NAME} = '';
    # Of the library alone: REQUEST_URI is the target as it came, and a target's authority is a Host field also without
    # one.
    delete $env->{REQUEST_URI};
    delete $env->{HTTP_HOST};
    return ($result, $env);
}

sub theirs {
    my ($bytes) = @_;
    my $result = parse_http_request($bytes, \my %env);
    delete @env{qw(REQUEST_URI HTTP_HOST)};
    return ($result, $result > 0 ? \%env : {});
}

# The verdict of bytes that come one by one: the first that is not "more".
sub one_by_one {
    my ($bytes) = @_;
    my %state;
    for my $n (1 .. length $bytes) {
        my $result = Oribi::Pure::Head::parse(\%state, $limits, substr($bytes, 0, $n));
        return $result > 0 ? $result : -1 if $result;
    }
    return -2;
}

sub is_same {
    my ($first, $second) = @_;
    my @texts = map { my $head = $_; join '|', map { "$_=" . ($_ eq 'env' ? join '|', map {"$_=$head->{env}{$_}"} sort keys %{ $head->{env} } : $head->{$_}) } sort keys %$head } $first, $second;
    return $texts[0] eq $texts[1];
}

my $folder = folder();
my @heads = $folder ? grep { length() < 2000 } map { $_->{input} } map { cases($_) } glob "$folder/request/*.case" : ();
my @pieces = (
    (map {"$_ "} qw[GET POST get OPTIONS CONNECT PROXY G(T HEAD]), '/', '/a', '/a%20b', '/%2', '?q=1', '#f', '*', 'http://a/', 'https://[::1]:8/x?y', "\xe9", ' ',
    "\t", "\0", ' HTTP/1.0', ' HTTP/1.1', ' HTTP/1.9', ' HTTP/2.0', ' http/1.1', ("\r\n") x 8, "\n", "\r", "\r\n\r\n", 'Host: a', 'Host:', 'Host: [::1]:80',
    'Host: a:b', 'Host: %41', 'X-A: 1', 'x-a:2 ', 'X_A: 3', 'Content-Length: 5', 'Content-Length: 5', 'Content_Length: 5', 'Content-Type: t', 'Cookie: c=d', ' folded',
    ': x', 'X : y', "X: \x7f", "X: \xff", 'nothing', 'Transfer-Encoding: chunked', 'Transfer-Encoding: gzip, chunked', 'Transfer-Encoding: x;a="b"',
    'Expect: 100-continue', 'Expect: x', 'Connection: close, x', 'Connection: keep-alive', 'Upgrade: x', 'Proxy: x', 'Authorization: a', 'X-Sendfile-Type: x',
    "X: a \t ", "X:\t", '_Host: x', 'a' x 1030 . ': x', "X: 1\r\n" x 130,
);

sub random_head {
    my $start = rand() < 0.5 ? 'GET / HTTP/1.0' : "POST /a%20b?q HTTP/1.1\r\nHost: a";
    my @parts = ((rand() < 0.7 ? "$start\r\n" : ()), map { $pieces[rand @pieces] } 1 .. 1 + rand 8);
    return join '', map { $_, rand() < 0.5 && /[^\r\n]\z/ ? "\r\n" : () } @parts, rand() < 0.7 ? "\r\n\r\n" : ();
}

sub mutated {
    my $bytes = @heads ? $heads[rand @heads] : random_head();
    for (1 .. rand 4) {
        my ($at, $way) = (int rand(1 + length $bytes), int rand 5);
        if ($way == 0) { substr $bytes, $at, 1, '' if $at < length $bytes }
        elsif ($way == 1) { substr $bytes, $at, 0, chr rand 256 }
        elsif ($way == 2) { substr($bytes, $at, 1) = chr rand 256 if $at < length $bytes }
        elsif ($way == 3) { substr $bytes, $at, 0, $pieces[rand @pieces] }
        else { my $part = substr $bytes, $at, rand 30; substr $bytes, rand(1 + length $bytes), 0, $part }
    }
    return $bytes;
}

my ($count, $taken, @wrong) = (0, 0);
my $end = Time::HiRes::time() + $SECONDS;
while (Time::HiRes::time() < $end && @wrong < 5) {
    my $bytes = rand() < 0.5 ? random_head() : mutated();
    my ($our_result, $our_env) = ours($bytes);
    my ($their_result, $their_env) = theirs($bytes);
    $count++;
    $taken += $their_result > 0;
    if ($our_result != $their_result) {
        push @wrong, "$our_result, the core $their_result: $bytes";
        next;
    }
    my @differ = grep { ($our_env->{$_} // "\0") ne ($their_env->{$_} // "\0") } keys %{ { %$our_env, %$their_env } };
    push @wrong, "$_: " . ($our_env->{$_} // 'none') . ', the core ' . ($their_env->{$_} // 'none') . ": $bytes" for @differ;
    my $again = Oribi::Pure::Head::parse(\my %kept, $limits, $bytes);
    my $first = $again > 0 && { %{ $kept{head} }, env => $kept{env} };
    my $known = $again > 0 && Oribi::Pure::Head::parse(\%kept, $limits, $bytes);
    my $second = $known && { %{ $kept{head} }, env => $kept{env} };
    push @wrong, "another meaning the second time: $bytes" if $again > 0 && ($known != $again || !is_same($first, $second));
    next if $count % 20 || $our_result < 0 && $bytes =~ /%/;
    my $slow = one_by_one($bytes);
    push @wrong, "$slow byte by byte, $our_result whole: $bytes" if $slow != $our_result && length $bytes < 3000;
}
is_deeply [map { s/([^\x20-\x7e])/sprintf '\\x%02x', ord $1/ger } @wrong], [], "$count heads, seed $seed";
cmp_ok $taken, '>', $count / 50, "$taken were taken";

# --- bodies in chunks ---

my $worker = serve(sub {
    my ($env) = @_;
    my $content = do { local $/; readline $env->{'psgi.input'} };
    my $trailers = $env->{'oribi.trailers'} || {};
    return [200, ['Content-Type' => 'text/plain'], [join "\0", $content // '', map { ($_, $trailers->{$_}) } sort keys %$trailers]];
}, lint => 0);

# Status and what the application sees; 'again' where the body does not end.
sub core_says {
    my ($bytes) = @_;
    my $client = $worker->connect;
    $client->send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n$bytes");
    $client->{socket}->shutdown(1);
    my $res = eval { $client->response } or return 'again';
    return $res->{status} == 200 ? "200 $res->{body}" : $res->{status};
}

sub pure_says {
    my ($bytes, $step) = @_;
    my $chunks = Oribi::Pure::Chunked->new(Oribi::Pure::Head::limits());
    my ($content, $buffer) = ('', '');
    while (length $bytes && !$chunks->{status} && !$chunks->{done}) {
        $buffer .= substr $bytes, 0, $step, '';
        $content .= $chunks->decode(\$buffer);
    }
    return $chunks->{status} || 'again' if !$chunks->{done};
    my ($trailers) = $chunks->trailers;
    return '200 ' . join "\0", $content, map { ($_, $trailers->{$_}) } sort keys %$trailers;
}

my @extensions = ('', '', '', ';a', ';a=b', ' ; a = "b\\"c"', ';a=b;c', ';', ';a="', '; a ', ';a=b ', ';a="b" ', ';a="b";c');
my @trailers = ("X-A: 1\r\n", "X-A:2 \r\n", "X_B: 1\r\n", "Content-Length: 3\r\n", "Via: a\r\n", "A b: 1\r\n", ": 1\r\n", " x\r\n", "X: \x01\r\n");
my @parts = ("\r", "\n", "\r\n", '0', 'f', 'G', ';', '=', '"', '\\', ' ', "\t", ':', "\0", "\xff", '0' x 17, 'f' x 17, '-', '+', 'x');

sub random_chunks {
    my $bytes = '';
    for (1 .. rand 4) {
        my $content = 'c' x (1 + rand 40);
        $bytes .= ('0' x (rand() < 0.2 && rand 20)) . sprintf(rand() < 0.5 ? '%x' : '%X', length $content) . $extensions[rand @extensions] . "\r\n$content\r\n";
    }
    $bytes .= '0' . $extensions[rand @extensions] . "\r\n" . join('', map { $trailers[rand @trailers] } 1 .. (rand() < 0.5 && rand 4)) . "\r\n";
    for (1 .. (rand() < 0.6 && rand 4)) {
        my ($at, $length) = (int rand(1 + length $bytes), rand() < 0.5 ? 0 : int rand 4);
        substr($bytes, $at, $length) = rand() < 0.5 ? $parts[rand @parts] : '' if $at + $length <= length $bytes;
    }
    return $bytes;
}

my ($bodies, $whole, @other) = (0, 0);
$end = Time::HiRes::time() + $SECONDS;
while (Time::HiRes::time() < $end && @other < 5) {
    my $bytes = random_chunks();
    my $theirs = core_says($bytes);
    $bodies++;
    $whole += $theirs =~ /\A200/;
    for my $step (length($bytes) || 1, 1, 3) {
        my $said = pure_says($bytes, $step);
        push @other, "$said in pieces of $step, the core $theirs: $bytes" if $said ne $theirs;
    }
}
is_deeply [map { s/([^\x20-\x7e])/sprintf '\\x%02x', ord $1/ger } @other], [], "$bodies bodies in chunks, seed $seed";
cmp_ok $whole, '>', $bodies / 50, "$whole were whole";

done_testing;
