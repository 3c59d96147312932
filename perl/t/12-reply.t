use strict;
use warnings;
use lib 't/lib';
use OribiTest;
use Test::More;

# Responses whose body is an array of strings, and what is no response.

package Text;
use overload '""' => sub { $_[0][0] }, fallback => 1;
sub new { bless [$_[1]], $_[0] }

package Dies;
use overload '""' => sub { die "cannot be printed\n" }, fallback => 1;
sub new { bless [], $_[0] }

package Does;    # printed as 200, which some code follows
use overload '""' => sub { $_[0][0]->(); 200 }, fallback => 1;
sub new { bless [$_[1]], $_[0] }

package TiedDoes;
sub TIESCALAR { bless [$_[1]], $_[0] }
sub FETCH { $_[0][0]->(); 200 }
sub STORE { }

package TiedArray;
require Tie::Array;
our @ISA = 'Tie::StdArray';

package TiedScalar;
require Tie::Scalar;
our @ISA = 'Tie::StdScalar';

package main;

my @TEXT = ('Content-Type' => 'text/plain');

my $latin = "caf\xe9";
my $flagged = $latin;
utf8::upgrade($flagged);
my $ascii = 'plain';
utf8::upgrade($ascii);
tie my @tied, 'TiedArray';
@tied = ('tied ', 'body');
tie my @tied_headers, 'TiedArray';
@tied_headers = ('X-Tied', 'yes');
tie my @tied_undef, 'TiedArray';
@tied_undef = ('X-Tied' => undef);
tie my $tied_text, 'TiedScalar';
$tied_text = 'tied text';
my @with_hole = ('a', undef, 'c');
$with_hole[5] = 'f';

# name => [response, status, body]
my %GOOD = (
    one => [[200, [@TEXT], ['hello']], 200, 'hello'],
    parts => [[200, [@TEXT], ['a', 'b', 'c']], 200, 'abc'],
    empty => [[200, [@TEXT], []], 200, ''],
    zero => [[200, [@TEXT], ['0', 0]], 200, '00'],
    undefined => [[200, [@TEXT], ['a', undef, '', 'b']], 200, 'ab'],
    hole => [[200, [@TEXT], \@with_hole], 200, 'acf'],
    number => [[200, [@TEXT], [42, 1.5]], 200, '421.5'],
    string_status => [['201', [@TEXT], ['x']], 201, 'x'],
    latin => [[200, [@TEXT], [$latin]], 200, "caf\xe9"],
    flagged => [[200, [@TEXT], [$flagged]], 200, "caf\xe9"],
    flagged_ascii => [[200, [@TEXT, 'X-A' => $ascii], [$ascii]], 200, 'plain'],
    object => [[200, [@TEXT], [Text->new('printed')]], 200, 'printed'],
    object_header => [[200, [@TEXT, 'X-Object' => Text->new('v')], ['x']], 200, 'x'],
    object_status => [[Text->new('202'), [@TEXT], ['x']], 202, 'x'],
    tied => [[200, [@TEXT], \@tied], 200, 'tied body'],
    tied_headers => [[200, \@tied_headers, ['x']], 200, 'x'],
    tied_text => [[200, [@TEXT], ['a', \0]], 500, undef],
    blessed => [bless([200, [@TEXT], bless(['x'], 'Some')], 'Other'), 200, 'x'],
    number_header => [[200, [@TEXT, 'X-Number' => 7], ['x']], 200, 'x'],
    many => [[200, [@TEXT], [map {"$_,"} 1 .. 5000]], 200, join('', map {"$_,"} 1 .. 5000)],
    no_content => [[204, [], []], 204, ''],
    header_undef => [[200, [@TEXT, 'X-A' => undef, 'X-B' => 'b'], ['x']], 200, 'x'],
    tied_header_undef => [[200, \@tied_undef, ['x']], 200, 'x'],
    length_undef => [[200, [@TEXT, 'Content-Length' => undef], ['x']], 200, 'x'],
    length_empty => [[200, [@TEXT, 'Content-Length' => ''], ['x']], 200, 'x'],
    length_spaced => [[200, [@TEXT, 'Content-Length' => '3 '], ['hello']], 200, 'hello'],
    status_text => [['200 OK', [@TEXT], ['x']], 200, 'x'],
    status_object => [[Text->new('404 Not Found'), [@TEXT], ['x']], 404, 'x'],
    header_line_end => [[200, [@TEXT, 'X-A' => "a\r\n"], ['x']], 200, 'x'],
    header_folded => [[200, [@TEXT, 'X-A' => "a\n b"], ['x']], 200, 'x'],
    not_modified => [[304, [], ['ignored']], 304, ''],
    status_classless => [[600, [@TEXT], ['x']], 600, 'x'],
    status_last => [[999, [@TEXT], ['x']], 999, 'x'],
    no_content_length => [[204, ['Content-Length' => 0], []], 204, ''],
);
$GOOD{tied_text} = [[200, [@TEXT], ['a ', $tied_text]], 200, 'a tied text'];

# name => [response, words of the log line]
my %BAD = (
    nothing => [undef, qr/the application returned nothing/],
    text => ['text', qr/the response is no reference/],
    hash => [{}, qr/the response is a reference to HASH/],
    two => [[200, []], qr/the response has 2 elements, not 3/],
    four => [[200, [], [], 1], qr/the response has 4 elements, not 3/],
    none => [[], qr/the response has 0 elements/],
    status_text => [['OK', [], []], qr/the status is no integer.*'OK'/],
    status_fraction => [[200.5, [], []], qr/the status is no integer.*'200\.5'/],
    status_undef => [[undef, [], []], qr/the status is undefined/],
    status_low => [[99, [], []], qr/the status is no integer from 100 to 999/],
    status_high => [[1000, [], []], qr/the status is no integer from 100 to 999/],
    status_range => [[103, [], []], qr/answer not valid/],
    status_ref => [[[], [], []], qr/the status is no integer/],
    headers_hash => [[200, {}, []], qr/the headers are no array reference/],
    headers_undef => [[200, undef, []], qr/the headers are no array reference/],
    headers_odd => [[200, ['X-A'], []], qr/odd number of elements \(1\)/],
    header_name_undef => [[200, [undef, 'a'], []], qr/header name 0 is undefined/],
    header_ref => [[200, ['X-A' => []], []], qr/header value 0 is a reference \(ARRAY\)/],
    header_wide => [[200, ['X-A' => "\x{3042}"], []], qr/wide character in header value 0/],
    header_break => [[200, ['X-A' => "a\r\nX-B: c"], []], qr/control character in a header value/],
    header_name => [[200, ['X A' => 'b'], []], qr/header name is not a token/],
    header_many => [[200, [('X-A', 'b') x 1025], []], qr/more than 1024 headers/],
    body_text => [[200, [], 'text'], qr/the body is neither an array reference nor a handle/],
    body_undef => [[200, [], undef], qr/the body is neither/],
    body_hash => [[200, [], {}], qr/the body is neither/],
    body_code => [[200, [], sub { }], qr/the body is neither/],
    body_object => [[200, [], bless({}, 'No::Such::Class')], qr/the body is neither/],
    body_wide => [[200, [], ['a', "\x{3042}"]], qr/wide character in body element 1/],
    body_ref => [[200, [], [{}]], qr/body element 0 is a reference \(HASH\)/],
    body_dies => [[200, [], [Dies->new]], qr/the application died: cannot be printed/],
    header_dies => [[200, ['X-A' => Dies->new], ['x']], qr/the application died: cannot be printed/],
);

my $server = serve(
    sub {
        my ($env) = @_;
        my ($kind, $name) = $env->{PATH_INFO} =~ m{\A/(good|bad)/(\w+)\z} or return [404, [], []];
        return $kind eq 'good' ? $GOOD{$name}[0] : $BAD{$name}[0];
    },
    lint => 0
);

for my $name (sort keys %GOOD) {
    my (undef, $status, $body) = @{ $GOOD{$name} };
    for my $round (1, 2) {
        my $res = get($server, "/good/$name");
        is $res->{status}, $status, "$name: status";
        is $res->{body}, $body, "$name: body, round $round";
        ok $res->{complete};
    }
}

subtest 'header values' => sub {
    is_deeply get($server, '/good/object_header')->{fields}{'x-object'}, ['v'];
    is_deeply get($server, '/good/tied_headers')->{fields}{'x-tied'}, ['yes'];
    is_deeply get($server, '/good/number_header')->{fields}{'x-number'}, [7];
    is_deeply get($server, '/good/flagged_ascii')->{fields}{'x-a'}, ['plain'];
    is_deeply get($server, '/good/parts')->{fields}{'content-length'}, [3], 'an array has a length';
    ok !get($server, '/good/no_content')->{fields}{'content-length'};
};

subtest 'what was put right' => sub {
    is_deeply [@{ get($server, '/good/header_undef')->{fields} }{qw(x-a x-b)}], [undef, ['b']];
    is_deeply get($server, '/good/header_line_end')->{fields}{'x-a'}, ['a'];
    is_deeply get($server, '/good/header_folded')->{fields}{'x-a'}, ['a b'];
    is_deeply get($server, "/good/$_")->{fields}{'content-length'}, [1] for qw(length_undef length_empty);
    is_deeply get($server, '/good/length_spaced')->{fields}{'content-length'}, [5];
};

subtest 'and what the log says of it' => sub {
    my %said = (
        header_undef => 'header X-A of the answer has no value (undef, nil): it is left out',
        header_line_end => 'header X-A of the answer has a value that ends in white space or a line end: that is cut off',
        header_folded => 'header X-A of the answer has a value on several lines: they are joined with a space',
        length_spaced => 'header Content-Length of the answer is empty or has white space around it: the server counts where it can',
        status_text => "the status '200 OK' of the answer is taken for 200",
    );
    my $talking = serve(sub { $GOOD{ substr $_[0]{PATH_INFO}, 1 }[0] }, lint => 0);
    for my $name (sort keys %said) {
        get($talking, "/$name");
        like $talking->log_text, qr{ warn: GET /$name: \Q$said{$name}\E$}m, $name;
    }
    get($talking, "/$_") for (sort keys %said) x 20;
    cmp_ok scalar(() = $talking->log_text =~ /^.*of the answer.*$/mg), '<=', 10, 'and not for ever';
    is $talking->stop, 0;
};

subtest 'and what it says nothing of' => sub {
    my $mark = length $server->log_text;
    get($server, "/good/$_") for qw(no_content_length status_classless status_last);
    is substr($server->log_text, $mark), '', 'a length of 0, a status without a class';
};

subtest 'a WebSocket that the application does not know gets a line' => sub {
    my $asked = serve(sub { $_[0]{PATH_INFO} eq '/page' ? [200, [@TEXT], ['x']] : [404, [@TEXT], ['none']] }, lint => 0);
    my @ask  = ('Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==');
    is get($asked, '/socket', @ask)->{status}, 404;
    like $asked->log_text, qr{info: GET /socket: the client asked for websocket, and the application answered 404};
    my $mark = length $asked->log_text;
    get($asked, '/none');
    get($asked, '/page', @ask);
    is substr($asked->log_text, $mark), '', 'and nothing else does';
    is $asked->stop, 0;
};

# Code of a value that lets go of what the answer consists of, and fills the memory that this frees.
subtest 'whatever the code of its values does meanwhile, an answer is whole' => sub {
    my $letting = serve(
        sub {
            my ($env) = @_;
            my ($what) = $env->{PATH_INFO} =~ m{(\w+)\z};
            my @fill;
            my ($res, $headers, $body);
            my $let_go = sub {
                undef $res->[$_] for 0 .. 2;
                undef @$res;
                undef @$headers;
                undef @$body;
                undef $_ for $headers, $body, $res;
                @fill = map { [('spoilt') x 8] } 1 .. 500;
            };
            my $value = Does->new($let_go);
            tie my $tied, 'TiedDoes', $let_go;
            $body    = [$what eq 'element' ? $value : 'a', 'b'];
            $headers = [@TEXT, 'X-A' => $what eq 'header' ? $value : $what eq 'tied_header' ? $tied : 'v', 'X-B' => 'b'];
            $headers->[3] = $value if $what eq 'header';
            if ($what eq 'tied_header') { tie $headers->[3], 'TiedDoes', $let_go }
            $res = [$what eq 'status' ? $value : 200, $headers, $body];
            tie $res->[0], 'TiedDoes', $let_go if $what eq 'tied_status';
            return $what =~ /delayed/ ? sub { $_[0]->($res) } : $res if $what !~ /delayed/;
            $headers->[3] = $value;
            return sub { my ($respond) = @_; $respond->($res); };
        },
        lint => 0
    );
    for my $what (qw(header tied_header status tied_status element delayed)) {
        my $res = get($letting, "/$what");
        ok $res->{status} == 200 || $res->{status} == 500, "$what: one or the other";
        is get($letting, '/none')->{body}, 'ab', 'the worker serves on';
    }
    is $letting->stop, 0;
};

subtest 'HEAD sends no body and its length' => sub {
    my $client = $server->connect;
    $client->send("HEAD /good/parts HTTP/1.1\r\nHost: a\r\n\r\nGET /good/one HTTP/1.1\r\nHost: a\r\n\r\n");
    my $res = $client->response(head => 1);
    is_deeply $res->{fields}{'content-length'}, [3];
    is $client->response->{body}, 'hello', 'the next answer follows';
};

for my $name (sort keys %BAD) {
    my (undef, $words) = @{ $BAD{$name} };
    my $before = length $server->log_text;
    is get($server, "/bad/$name")->{status}, 500, "$name: 500";
    my $said = substr $server->log_text, $before;
    like $said, $words, "$name: the log says what is wrong";
    like $said, qr{GET /bad/$name: }, "$name: and where";
}

is $server->stop, 0, 'the worker lived through all of it';

done_testing;
