use strict;
use warnings;
use lib 't/lib';
use JSON::PP ();
use OribiSpec;
use OribiTest;
use Test::More;

# The conformance cases through a socket and the PSGI environment: what C decides must arrive here unchanged.

my $folder = folder() or plan skip_all => 'no spec/ here';
my $json = JSON::PP->new->latin1->canonical;
my $LONG = 300_000;    # cases with longer bodies are the C runner's

package Records;
sub new { my ($class, @records) = @_; return bless [@records], $class }
sub getline { shift @{ $_[0] } }
sub close { }

package main;

my %answer;            # of response cases, by place; filled before the server forks

sub app {
    my ($env) = @_;
    if ($env->{PATH_INFO} =~ m{\A/answer/(\d+)\z}) { return $answer{$1}->() }
    local $/;
    my $input = $env->{'psgi.input'};
    my %seen = map { $_ => $env->{$_} } grep { !/\Apsgix?\./ && ref $env->{$_} ne 'CODE' && $_ ne 'oribi.websocket' } keys %$env;
    $seen{body} = <$input>;
    return [200, ['Content-Type' => 'application/json'], [$json->encode(\%seen)]];
}

# One server for each set of limits; undef for limits below what an operator may set.
my %servers;

sub server_with {
    my (@limits) = @_;
    my $key = join ' ', map {@$_} @limits;
    $servers{$key} = eval { serve(\&app, lint => 0, server_header => '', map { @$_ } @limits) } unless exists $servers{$key};
    return $servers{$key};
}

# The first final answer, or nothing when the connection ends without one.
sub exchange {
    my ($server, $bytes, %option) = @_;
    my $client = $server->connect;
    $client->send($bytes);
    shutdown $client->{socket}, 1 if $option{finish};
    my $res;
    do { $res = eval { $client->response(head => $option{head}) } or return } while $res->{status} < 200;
    $res->{client} = $client;
    return $res;
}

sub decoded {
    my ($path) = @_;
    return if $path =~ /%(?![0-9A-Fa-f]{2})/;
    return $path =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ger;
}

sub refused {
    my ($server, $name, $bytes, $status) = @_;
    my $res = exchange($server, $bytes, finish => $status eq 'again');
    if ($status eq 'again') {
        ok !$res || $res->{status} >= 400, "$name: not taken for complete";
        return;
    }
    is $res ? $res->{status} : 'nothing', $status, "$name: $status";
    ok $res && eval { $res->{client}->at_end }, "$name: and the connection ends";
    return;
}

# What to send behind the head so that the request is complete; nothing if that is too long for us.
sub completion {
    my ($case) = @_;
    my $framing = $case->{framing} || ($case->{input} =~ /^Transfer-Encoding:/mi ? 'chunked' : 'none');
    $framing = "length $1" if !$case->{framing} && $case->{input} =~ /^Content-Length: *(\d+)/mi;
    my $rest = defined $case->{rest} ? $case->{rest} : '';
    return "0\r\n\r\n" if $framing eq 'chunked' && !length $rest;
    return '' unless $framing =~ /\Alength (\d+)\z/;
    return if $1 > $LONG;
    return 'x' x ($1 - length $rest > 0 ? $1 - length $rest : 0);
}

sub env_key {
    my ($name) = @_;
    (my $key = uc $name) =~ tr/-/_/;
    return $key =~ /\ACONTENT_(?:TYPE|LENGTH)\z/ ? $key : "HTTP_$key";
}

sub check_request {
    my ($server, $case) = @_;
    my $name = $case->{name};
    return refused($server, $name, @$case{qw(input status)}) if $case->{status} ne 'ok';
    my $completion = completion($case);
    return unless defined $completion;
    my $path = defined $case->{path} ? decoded($case->{path}) : undef;
    return refused($server, $name, $case->{input} . $completion, 400) if defined $case->{path} && !defined $path;
    my $res = exchange($server, $case->{input} . $completion, head => scalar($case->{input} =~ /\AHEAD /));
    is $res ? $res->{status} : 'nothing', 200, "$name: answered" or return;
    is_deeply [grep { lc eq 'close' } @{ $res->{fields}{connection} || [] }], $case->{keep_alive} eq 'no' ? ['close'] : [], "$name: keep_alive"
        if defined $case->{keep_alive};
    return if !length $res->{body};
    my $env = $json->decode($res->{body});
    is $env->{REQUEST_METHOD}, $case->{method}, "$name: method" if defined $case->{method};
    is $env->{PATH_INFO}, $path, "$name: path" if defined $path;
    is $env->{QUERY_STRING}, $case->{query}, "$name: query" if defined $case->{query};
    is $env->{SERVER_NAME}, $case->{host}, "$name: host" if defined $case->{host} && length $case->{host};
    is $env->{SERVER_PROTOCOL}, "HTTP/1.$case->{minor}", "$name: minor" if defined $case->{minor};
    my @fields = grep { lc $_->[0] ne 'transfer-encoding' } @{ $case->{field} };
    is $env->{ env_key($_->[0]) }, $_->[1], "$name: field $_->[0]" for @fields;
    return unless defined $case->{fields};
    my %want = map { env_key($_->[0]) => 1 } @fields;
    $want{CONTENT_LENGTH} = 1 if ($case->{framing} || '') eq 'chunked' || @fields < @{ $case->{field} };
    my @got = grep {/\A(?:HTTP_|CONTENT_)/} sort keys %$env;
    is_deeply \@got, [sort keys %want], "$name: no other fields" if $case->{fields} == @{ $case->{field} };
    return;
}

sub check_chunked {
    my ($server, $case) = @_;
    my $bytes = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n$case->{input}";
    return refused($server, $case->{name}, $bytes, $case->{status}) if $case->{status} ne 'ok';
    my $res = exchange($server, $bytes);
    is $res ? $res->{status} : 'nothing', 200, "$case->{name}: answered" or return;
    my $env = $json->decode($res->{body});
    is $env->{body}, $case->{body}, "$case->{name}: body" if defined $case->{body};
    is $env->{CONTENT_LENGTH}, length $env->{body}, "$case->{name}: CONTENT_LENGTH is what was decoded";
    my %trailers = map {@$_} @{ $case->{trailer} };
    is_deeply $env->{'oribi.trailers'}, %trailers ? \%trailers : undef, "$case->{name}: trailers" if defined $case->{trailers};
    is_deeply [grep { /\AHTTP_/ && !/\AHTTP_HOST\z/ } keys %$env], [], "$case->{name}: none of them among the fields";
    return;
}

sub answer_of {
    my ($case) = @_;
    my @headers = map {@$_} @{ $case->{header} };
    my $len = $case->{body_len};
    if (defined $case->{body}) {
        my @pieces = $case->{body} =~ /(.{1,3})/gs;
        return sub { [$case->{code}, \@headers, $case->{stream} ? Records->new(@pieces) : [$case->{body}]] };
    }
    return sub { [$case->{code}, \@headers, defined $len && $len >= 0 ? ['x' x $len] : Records->new('x')] };
}

# A body that the application has framed: its content, or an answer that nobody can take for whole.
sub check_framed {
    my ($case, $client, $head) = @_;
    my $res = eval { $client->response(head => $head) };
    if ($case->{status} ne 'ok') {
        my $refused = !$res || $res->{status} == 500 || ($case->{status} eq 'cut' && !$res->{complete});
        ok $refused, "$case->{name}: not taken for whole";
        return;
    }
    is $res->{status}, $case->{code}, "$case->{name}: answered";
    is $res->{body} // '', $case->{content}, "$case->{name}: the content" if defined $case->{content};
    my @lengths = map { /\AContent-Length: (.*)\r\z/ ? $1 : () } split /\n/, $case->{output};
    is_deeply $res->{fields}{'content-length'} || [], \@lengths, "$case->{name}: the length";
    return;
}

# The head on the wire, byte for byte, but for the second in Date.
sub check_response {
    my ($case, $place) = @_;
    my $server = server_with(defined $case->{server} ? [server_header => $case->{server}] : ());
    my $minor = defined $case->{minor} ? $case->{minor} : 1;
    my $head = ($case->{head} || 'no') eq 'yes';
    my $keep = ($case->{keep_alive} || 'yes') eq 'yes';
    my $connection = $keep ? $minor ? '' : "Connection: keep-alive\r\n" : $minor ? "Connection: close\r\n" : '';
    my $client = $server->connect;
    $client->send(($head ? 'HEAD' : 'GET') . " /answer/$place HTTP/1.$minor\r\nHost: a\r\n$connection\r\n");
    return check_framed($case, $client, $head) if defined $case->{body};
    1 while $client->{buffer} !~ /\r\n\r\n/ && $client->fill;
    my ($got) = $client->{buffer} =~ /\A(.*?\r\n\r\n)/s;
    if ($case->{status} eq 'error') {
        like $got, qr{\AHTTP/1\.1 500 }, "$case->{name}: 500";
        return;
    }
    $got =~ s/^Date: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r$/Date: Sun, 06 Nov 1994 08:49:37 GMT\r/m;
    is $got, $case->{output}, "$case->{name}: the head" if defined $case->{output};
    return;
}

# Cases whose application is not ours to play: interim answers have a test of their own, sockets that left the core
# write for themselves.
sub is_playable {
    my ($case) = @_;
    return 0 if !defined $case->{code} || ($case->{detached} || 'no') eq 'yes';
    return 0 if defined $case->{body_len} && $case->{body_len} > $LONG;
    return $case->{code} !~ /\A-?\d+\z/ || ($case->{code} >= 100 && $case->{code} <= 999);
}

my @responses = grep { is_playable($_) } map { cases($_) } sort glob "$folder/response/*.case";
$answer{$_} = answer_of($responses[$_]) for 0 .. $#responses;

for my $kind ([request => \&check_request], [chunked => \&check_chunked]) {
    for my $path (sort glob "$folder/$kind->[0]/*.case") {
        my ($file) = $path =~ m{([^/]+/[^/]+)\z};
        subtest $file => sub {
            my $count = 0;
            for my $case (cases($path)) {
                my $server = server_with(@{ $case->{limit} }) or next;
                $kind->[1]->($server, $case);
                $count++;
            }
            cmp_ok $count, '>', 0, "$count cases";
        };
    }
}

subtest response => sub {
    check_response($responses[$_], $_) for 0 .. $#responses;
    cmp_ok scalar @responses, '>', 10, @responses . ' cases';
};

is $_->stop, 0 for grep {defined} values %servers;
done_testing;
