use strict;
use warnings;
use lib 't/lib';
use Oribi::HTTPParser qw(:all);
use OribiSpec;
use Test::More;

# Oribi::HTTPParser: the cases of spec/ that are heads, what only this language has, and side by side with
# HTTP::Parser::XS on random heads of a fixed seed.

my $ROUNDS = 20_000;
my %RESULT = (broken => -1, again => -2, incomplete => -2);
my $response = "HTTP/1.1 200 OK\r\nContent-Type: a\r\nX-A: 1\r\nx-a: 2\r\nX-A: 3\r\n\r\nbody";

sub of_folder { my ($name) = @_; return map { cases($_) } glob folder() . "/$name/*.case" }

# The spec's verdict as a result: any status is one refusal.
sub result_of {
    my ($case) = @_;
    return $RESULT{ $case->{status} } // -1 if $case->{status} ne 'ok';
    return length($case->{input}) - length($case->{rest} // '');
}

subtest 'environments' => sub {
    for my $case (of_folder('from_string')) {
        is parse_http_request($case->{input}, \my %env), result_of($case), $case->{name};
        is_deeply \%env, { map {@$_} @{ $case->{field} } }, "$case->{name}, environment";
    }
};

subtest 'requests of the server have its verdict' => sub {
    my $count = 0;
    for my $case (of_folder('request')) {
        next if @{ $case->{limit} } || $case->{status} =~ /\A(?:413|414|431)\z/ || $case->{status} eq '501' && $case->{input} =~ /\ACONNECT /;
        my $escapes = ($case->{path} // '') !~ /%(?![0-9A-Fa-f]{2})/;    # the server for Rack does not look at them
        is parse_http_request($case->{input}, \my %env), $escapes ? result_of($case) : -1, $case->{name};
        $count++;
    }
    cmp_ok $count, '>', 200;
};

subtest 'responses' => sub {
    for my $case (grep { !@{ $_->{limit} } } of_folder('response_head')) {
        my ($length, $minor, $status, $message, $headers) = parse_http_response($case->{input}, HEADERS_AS_ARRAYREF);
        if ($case->{status} ne 'ok') {
            is_deeply [parse_http_response($case->{input}, HEADERS_AS_ARRAYREF)], [result_of($case)], $case->{name};
            next;
        }
        is $length, result_of($case), $case->{name} if defined $case->{rest};
        is $minor, $case->{minor}, "$case->{name}: minor" if defined $case->{minor};
        is $status, $case->{code}, "$case->{name}: status" if defined $case->{code};
        is $message, $case->{reason}, "$case->{name}: reason" if defined $case->{reason};
        is_deeply $headers, [map { (lc $_->[0], $_->[1]) } @{ $case->{field} }], "$case->{name}: headers" if defined $case->{fields};
    }
};

subtest 'headers in three forms, and special ones' => sub {
    my $length = length($response) - 4;
    my %headers = (
        HEADERS_NONE()        => undef,
        HEADERS_AS_HASHREF()  => { 'content-type' => 'a', 'x-a' => [1, 2, 3] },
        HEADERS_AS_ARRAYREF() => ['content-type', 'a', 'x-a', 1, 'x-a', 2, 'x-a', 3],
    );
    for my $form (sort keys %headers) {
        my %special = ('x-a' => undef, etag => 7);
        is_deeply [parse_http_response($response, $form, \%special)], [$length, 1, 200, 'OK', $headers{$form}], "form $form";
        is_deeply \%special, { 'x-a' => 3, etag => 7 }, 'special ones';
        is scalar(my @all = parse_http_response($response, $form)), 5, 'without special ones';
    }
    is_deeply [parse_http_response('HTTP/1.1 200', HEADERS_NONE)], [-2], 'incomplete';
    is_deeply [parse_http_response('HTTP/1.1 x', HEADERS_NONE)], [-1], 'broken';
};

subtest 'arguments of another kind' => sub {
    for my $env ('', undef, [], sub { }) {
        ok !eval { parse_http_request("GET / HTTP/1.0\r\n\r\n", $env); 1 };
        like $@, qr/\Asecond param to parse_http_request should be a hashref at /;
    }
    ok !eval { parse_http_response($response, 3); 1 }, 'a form that there is not';
    ok !eval { parse_http_response($response, HEADERS_NONE, []); 1 }, 'special ones that are no hash';
    is_deeply [(parse_http_response($response, HEADERS_NONE, undef))[2]], [200], 'none';
};

subtest 'an environment' => sub {
    my %env = ('psgi.input' => 1, HTTP_X_A => 0);
    is parse_http_request("GET / HTTP/1.0\r\nX-A: 1\r\n\r\n", \%env), 26;
    is_deeply [@env{qw(psgi.input HTTP_X_A PATH_INFO)}], [1, 1, '/'], 'other entries stay, the same are replaced';
    %env = (a => 1);
    is_deeply \%env, { a => 1 }, 'it is not touched' for map { parse_http_request($_, \%env) } 'GET', "GET / HTTP/1.0\n\n", "GET /%zz HTTP/1.0\r\n\r\n";
    tie my %tied, 'Seen';
    parse_http_request("GET /x HTTP/1.0\r\nX-A: 1\r\nX-A: 2\r\n\r\n", \%tied);
    is_deeply [@Seen::last{qw(PATH_INFO HTTP_X_A)}], ['/x', '1, 2'], 'it may be tied';
    $Seen::fatal = 1;
    ok !eval { parse_http_request("GET /x HTTP/1.0\r\nX-A: 1\r\nX-A: 2\r\n\r\n", \%tied); 1 }, 'and may die';
};

package Seen;
our (%last, $fatal);
sub TIEHASH { return bless {}, shift }
sub STORE { my ($self, $key, $value) = @_; die "no\n" if $fatal; $last{$key} = $value; return }

package main;

subtest 'strings of characters' => sub {
    my $text = "GET /\xe9 HTTP/1.0\r\n\r\n";
    utf8::upgrade(my $wide = $text);
    is parse_http_request($wide, \my %env), length $text, 'are read as bytes';
    is $env{PATH_INFO}, "/\xe9";
    ok utf8::is_utf8($wide), 'and stay as they were';
    is parse_http_request("GET /\x{3042} HTTP/1.0\r\n\r\n", \%env), -1, 'beyond bytes';
    is((parse_http_response("HTTP/1.1 200 \x{3042}\r\n\r\n", HEADERS_NONE))[0], -1, 'beyond bytes');
};

subtest 'limits at the most and one more' => sub {
    my $fields = join '', map {"X$_: $_\r\n"} 1 .. 128;
    cmp_ok parse_http_request("GET / HTTP/1.0\r\n$fields\r\n", \my %env), '>', 0, 'fields';
    is $env{HTTP_X128}, 128;
    is parse_http_request("GET / HTTP/1.0\r\n${fields}X: 1\r\n\r\n", \%env), -1, 'a field too many';
    my $name = 'x' x 1024;
    cmp_ok parse_http_request("GET / HTTP/1.0\r\n$name: 42\r\n\r\n", \%env), '>', 0, 'bytes of a name';
    is $env{ 'HTTP_' . uc $name }, 42;
    is parse_http_request("GET / HTTP/1.0\r\nx$name: 42\r\n\r\n", \%env), -1, 'a byte too many';
    is_deeply [(parse_http_response("HTTP/1.1 200 OK\r\n$name: 42\r\n\r\n", HEADERS_AS_ARRAYREF))[4]], [[$name, 42]], 'of a response';
    is_deeply [parse_http_response("HTTP/1.1 200 OK\r\nx$name: 42\r\n\r\n", HEADERS_AS_ARRAYREF)], [-1], 'a byte too many';
};

subtest 'nothing is left behind' => sub {
    plan skip_all => 'needs /proc' unless -r '/proc/self/statm';
    my $kib = sub { open my $in, '<', '/proc/self/statm' or die; return 4 * (split ' ', <$in>)[1] };
    my $joined = "GET / HTTP/1.0\r\n" . "X-A: " . 'v' x 500 . "\r\nX-A: 2\r\n\r\n";
    my $some = sub {
        for (1 .. 5000) {
            parse_http_request($joined, {});
            parse_http_response($response, HEADERS_AS_HASHREF, { 'x-a' => 1 });
            eval { parse_http_request($joined, \%Seen::last) };
        }
    };
    $some->();
    my $before = $kib->();
    $some->();
    cmp_ok $kib->() - $before, '<', 400, 'KiB';
};

# --- side by side ---

my @pieces = (
    (map {"$_ "} qw[GET POST get OPTIONS CONNECT G(T]), '/', '/a', '/a%20b', '/%2', '?q=1', '#f', '*', 'http://a/', "\xe9", ' ', "\t", "\0", ' HTTP/1.0',
    ' HTTP/1.1', ' HTTP/1.9', 'HTTP/2.0', 'HTTP/1.1 ', 'HTTP/1.0 ', '200 OK', '404 ', '20', ("\r\n") x 8, "\n", "\r", "\r\n\r\n", 'Host: a', 'Host:',
    'X-A: 1', 'x-a:2 ', 'X_A: 3', 'Content-Length: 5', 'Content-Type: t', 'Cookie: c=d', ' folded', ': x', 'X : y', "X: \x7f", "X: \xff", 'nothing',
);

sub random_head {
    my $start = rand() < 0.5 ? 'GET / HTTP/1.0' : rand() < 0.5 ? "POST /a%20b?q HTTP/1.1\r\nHost: a" : 'HTTP/1.1 200 OK';
    my @parts = ((rand() < 0.7 ? "$start\r\n" : ()), map { $pieces[rand @pieces] } 1 .. 1 + rand 8);
    return join '', map { $_, rand() < 0.5 && /[^\r\n]\z/ ? "\r\n" : () } @parts, rand() < 0.7 ? "\r\n\r\n" : ();
}

# What is theirs in our terms, where that is more than a refusal: see DIFFERENCES.
sub settled {
    my ($env) = @_;
    my %settled = %$env;
    delete @settled{ grep {/X_A/} keys %settled };    # X_A is left out, and what of the value is X-A's cannot be told
    s/[ \t]+\z//, s/[ \t]+,/,/g for values %settled;
    $settled{HTTP_COOKIE} =~ s/, /; /g if exists $settled{HTTP_COOKIE};
    return \%settled;
}

subtest 'beside HTTP::Parser::XS' => sub {
    plan skip_all => 'HTTP::Parser::XS is not installed' unless eval { require HTTP::Parser::XS; HTTP::Parser::XS->import; 1 };
    srand 20_261_123;
    my ($same, $stricter, @wrong) = (0, 0);
    for (1 .. $ROUNDS) {
        my $text = random_head();
        my $ours = parse_http_request($text, \my %our_env);
        my $theirs = HTTP::Parser::XS::parse_http_request($text, \my %their_env);
        my $apart = $text =~ m{\A(?:\r\n)*(?:\S+ http:|CONNECT )|HTTP/1\.9|\A(?:\r\n){2}};
        if ($ours == -1) { $stricter += $theirs != -1 }
        elsif ($ours == -2 && $theirs == -1 && parse_http_request("$text\r\n\r\n", {}) == -1) { next }    # known at the line's end
        elsif ($ours != $theirs && !$apart) { push @wrong, "$ours, there $theirs: $text" }
        elsif ($ours > 0 && !$apart) {
            is_deeply settled(\%our_env), settled(\%their_env), 'environment' or push @wrong, $text;
            $same++;
        }
        my @ours = parse_http_response($text, HEADERS_AS_ARRAYREF);
        my @theirs = HTTP::Parser::XS::parse_http_response($text, HEADERS_AS_ARRAYREF);
        if ($ours[0] == -1) { $stricter += $theirs[0] != -1 }
        elsif ($ours[0] == -2 && $theirs[0] == -1 && (parse_http_response("$text\r\n\r\n", HEADERS_NONE))[0] == -1) { next }
        elsif ($ours[0] != $theirs[0]) { push @wrong, "$ours[0], there $theirs[0]: $text" }
        elsif ($ours[0] > 0) {
            s/[ \t]+\z// for $theirs[3], @{ $theirs[4] }, $ours[3];
            $theirs[1] = 1 if $theirs[1] > 1;
            is_deeply \@ours, \@theirs, 'response' or push @wrong, $text;
            $same++;
        }
    }
    is_deeply \@wrong, [], 'what is taken by both is the same';
    cmp_ok $same, '>', 500, "$same heads that both take";
    cmp_ok $stricter, '>', 500, "$stricter that only we refuse";
};

done_testing;
