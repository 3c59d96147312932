use strict;
use warnings;
use lib 't/lib';
use Oribi::Multipart;
use OribiSpec;
use Test::More;

# Oribi::Multipart: the cases of spec/multipart, the interface of HTTP::Entity::Parser, and its results where it is
# installed.

my $TYPE = 'multipart/form-data; boundary=b';

# Gives as little as it is asked for, and a byte at a time where that is wanted.
package Input;
sub new { my ($class, $text, $most) = @_; open my $in, '<', \$text or die; binmode $in; return bless { in => $in, most => $most }, $class }

sub read {
    my ($self, undef, $length, $at) = @_;
    return read $self->{in}, $_[1], $self->{most} && $self->{most} < $length ? $self->{most} : $length, $at // 0;
}
sub seek { my ($self, $at, $whence) = @_; return seek $self->{in}, $at, $whence }

package main;

sub env {
    my ($body, $type, $most) = @_;
    my $env = { CONTENT_TYPE => $type // $TYPE, CONTENT_LENGTH => length $body, 'psgix.input.buffered' => 1 };
    $env->{'psgi.input'} = Input->new($body, $most);
    return $env;
}

sub parser {
    my (%options) = @_;
    my $parser = Oribi::Multipart->new(buffer_length => delete $options{buffer_length});
    $parser->register('multipart/form-data', 'Oribi::Multipart::MultiPart', \%options);
    $parser->register('application/json', 'Oribi::Multipart::JSON');
    $parser->register('application/x-www-form-urlencoded', 'Oribi::Multipart::UrlEncoded');
    return $parser;
}

sub slurp { my ($path) = @_; open my $in, '<:raw', $path or die "$path: $!"; local $/; return scalar <$in> }
sub part  { my ($head, $body) = @_; return "--b\r\n$head\r\n\r\n" . ($body // 'x') . "\r\n" }
sub field { my ($name, $body) = @_; return part("Content-Disposition: form-data; name=\"$name\"", $body) }
sub file  { my ($name, $body) = @_; return part("Content-Disposition: form-data; name=\"$name\"; filename=\"$name.bin\"", $body) }

sub refused {
    my ($status, $message, $code, $name) = @_;
    my $lived = eval { $code->(); 1 };
    my $error = $@;
    ok !$lived && ref $error && $error->isa('Oribi::Form::Error') && $error->status == $status, "$name: refused with $status"
        or diag $lived ? 'it was taken' : $error;
    is $error->message, $message, "$name: why" if defined $message && ref $error;
    return;
}

# --- spec/ ---

# What spec/ writes down, as this interface has it; undef where it is a mistake here.
sub expected {
    my ($parts) = @_;
    my (@params, @uploads);
    while ($parts =~ s/\A(.*?body=".*?")\n(?=(?:name|other|repeats|malformed|body)\b|\z)//s) {
        my $line = $1;
        my ($name, $rest) = $line =~ /\Aname="(.*?)" (?=\w+\*?=)(.*)\z/s or return;
        my ($filename) = $rest =~ /\Afilename="(.*?)" (?=\w+\*?=)/s;
        my ($body) = $rest =~ /body="(.*)"\z/s;
        if (!defined $filename) { push @params, $name, $body }
        elsif ($filename ne '') { push @uploads, $name, $filename, $body }
    }
    return $parts eq '' ? [\@params, \@uploads] : undef;
}

sub told {
    my ($params, $uploads) = @_;
    my @uploads = @$uploads;
    my @told;
    while (my ($name, $upload) = splice @uploads, 0, 2) { push @told, $name, $upload->{filename}, slurp($upload->{tempname}) }
    return [$params, \@told];
}

SKIP: {
    my $folder = folder() or skip 'no spec/ here', 1;
    my $ran = 0;
    for my $case (cases("$folder/multipart/parts.case")) {
        next if $case->{longer};
        my $strict = $case->{name} =~ /\Aparameters without quotation marks|\Aa name without a value/;    # refused here, as there
        my $expected = $case->{status} eq 'ok' && !$strict ? expected($case->{parts} // '') : undef;
        for my $most (0, 1, 7) {
            my $env = env($case->{input}, "multipart/form-data; boundary=\"$case->{boundary}\"", $most);
            my $parse = sub { told(parser()->parse($env)) };
            if ($expected) { is_deeply $parse->(), $expected, "$case->{name}, pieces of $most" or diag explain $parse->() }
            elsif (length $case->{input}) { refused($case->{status} eq 'head' ? 413 : 400, undef, $parse, "$case->{name}, pieces of $most") }
        }
        $ran++;
    }
    cmp_ok $ran, '>', 30, 'there are cases';
}

# --- the interface ---

{
    my $env = env(field('a', '1') . file('f', "\xff\0\r\n") . field('a', '2') . '--b--');
    my ($params, $uploads) = parser()->parse($env);
    is_deeply $params, ['a', '1', 'a', '2'], 'fields in their order';
    my ($name, $upload) = @$uploads;
    my $tempname = $upload->{tempname};
    is_deeply [$name, @{$upload}{qw(name filename size)}], ['f', 'f', 'f.bin', 4], 'an upload';
    is_deeply $upload->{headers}, ['Content-Disposition', 'form-data; name="f"; filename="f.bin"'], 'its headers';
    is slurp($tempname), "\xff\0\r\n", 'its bytes';
    is $env->{'psgi.input'}->read(my $again, 3), 3, 'the input is rewound';
    undef $env;
    ok !-e $tempname, 'the file goes with the environment';
}

{
    my $env = env(field('a') . '--b--');
    delete $env->{'psgix.input.buffered'};
    is_deeply [parser()->parse($env)], [['a', 'x'], []], 'an input that cannot be rewound';
    ok $env->{'psgix.input.buffered'}, '… is replaced';
    is_deeply [parser()->parse($env)], [['a', 'x'], []], '… and can be read again';
}

{
    my $body = field('a') . '--b--';
    my $chunks = join '', map { sprintf "%x;x=y\r\n%s\r\n", length, $_ } $body =~ /(.{1,10})/gs;
    my $env = { CONTENT_TYPE => $TYPE, HTTP_TRANSFER_ENCODING => 'chunked', 'psgi.input' => Input->new("${chunks}0\r\n\r\n", 3) };
    is_deeply [parser()->parse($env)], [['a', 'x'], []], 'chunks that the server has left';
    is $env->{CONTENT_LENGTH}, length $body, '… have a length then';
    $env = { CONTENT_TYPE => $TYPE, HTTP_TRANSFER_ENCODING => 'chunked', 'psgi.input' => Input->new("zz\r\n") };
    ok !eval { parser()->parse($env); 1 }, 'malformed chunks';
    $env = { CONTENT_TYPE => $TYPE, HTTP_TRANSFER_ENCODING => 'chunked', 'psgi.input' => Input->new('5') };
    ok !eval { parser()->parse($env); 1 }, 'chunks that end early';
}

is_deeply [parser()->parse({ CONTENT_TYPE => $TYPE })], [[], []], 'no input';
is_deeply [parser()->parse(env('abc', 'text/plain'))], [[], []], 'another type';
is_deeply [parser()->parse(env('abc', ''))], [[], []], 'no type';
ok !eval { parser()->parse({ %{ env('abc') }, CONTENT_LENGTH => 100 }); 1 }, 'an input that ends before its length';

{
    my @messages;
    my $parser = parser(on_error => sub { push @messages, @_ });
    my ($params, $uploads) = $parser->parse(env(field('a') . '--bX'));
    is_deeply \@messages, ["a delimiter goes on with something else than its line's end"], 'on_error is called once';
    is ref $params, 'ARRAY', '… and the lists are there';
}

# --- maxima ---

my $two = field('a', '12') . field('b', '345') . '--b--';
is_deeply [parser(parts_max => 2, memory_max => 5)->parse(env($two))], [['a', '12', 'b', '345'], []], 'as much as allowed';
refused(413, 'too many parts', sub { parser(parts_max => 1)->parse(env($two)) }, 'a part more');
refused(413, 'the fields are too large for memory', sub { parser(memory_max => 4)->parse(env($two)) }, 'a byte more');
my $files = file('a') . file('b') . '--b--';
is scalar @{ (parser(files_max => 2, memory_max => 0)->parse(env($files)))[1] }, 4, 'as many files as allowed';
refused(413, 'too many files', sub { parser(files_max => 1)->parse(env($files)) }, 'a file more');
my $head = 'Content-Disposition: form-data; name=a';
is_deeply [parser(part_head_max => length $head)->parse(env(part($head) . '--b--'))], [['a', 'x'], []], 'as long a head as allowed';
refused(413, "a part's head is too long", sub { parser(part_head_max => length($head) - 1)->parse(env(part($head) . '--b--')) }, 'a longer one');
refused(400, 'Invalid boundary in content_type: multipart/form-data', sub { parser()->parse(env('--b--', 'multipart/form-data')) }, 'no boundary');
refused(400, 'the boundary is longer than 70 bytes', sub { parser()->parse(env('x', 'multipart/form-data; boundary=' . 'b' x 71)) }, 'a long one');

{
    my $body = field('a') . file('f') . '--b--';
    my $taken = grep { my $n = $_; eval { parser()->parse(env(substr $body, 0, $n)); 1 } } 1 .. length($body) - 1;
    is $taken, 0, 'every truncation is refused';
}

{
    my $env = env(file('f', 'y' x 100));
    refused(400, undef, sub { parser()->parse($env) }, 'a cut body');
    my ($path) = map { @{ $_->{paths} } } @{ $env->{'oribi.multipart.files'} };
    ok -e $path, 'its file is there as long as the environment';
    undef $env;
    ok !-e $path, '… and goes with it';
}

ok !eval { parser(tempdir => '/nowhere')->parse(env(file('f') . '--b--')); 1 }, 'a folder that is not there';
like "$@", qr{/nowhere}, '… is named';

{
    my $reader = Oribi::Multipart::Reader::_new('b', 1, 1, 100, 100, sub { die "no file\n" });
    ok !eval { $reader->feed(file('f')); 1 }, 'a file that cannot be opened';
    is $@, "no file\n", '… as it says';
    ok !eval { $reader->feed('--b--'); 1 }, 'a reader that has failed takes nothing more';
    is eval { Oribi::Multipart::Reader::_new('b', 1, 1, 100, 100, sub { 1 })->feed(file('f')); 1 }, undef, 'no handle';
}

{
    my $piece = file('f') . '--b--';
    my $reader = Oribi::Multipart::Reader::_new('b', 1, 1, 100, 100, sub { $piece = 'gone' });
    ok !eval { $reader->feed($piece); 1 }, 'bytes that are read cannot be changed meanwhile';
    like $@, qr/read-only/, '… as perl says';
    ok eval { $piece .= 'x'; 1 }, '… and behind it they can';
    my $body = file('f') . field('a', "\xe4") . '--b--';
    utf8::upgrade(my $text = $body);
    open my $in, '<', \$body or die;
    my $env = { CONTENT_TYPE => $TYPE, CONTENT_LENGTH => length $body, 'psgi.input' => $in, 'psgix.input.buffered' => 1 };
    read $in, my $some, 10;
    is_deeply [(parser()->parse($env))[0]], [['a', "\xe4"]], 'a handle on a string, wherever it stands';
    is tell $in, 0, '… stands at its beginning then';
    open $env->{'psgi.input'}, '<', \$text or die;
    is_deeply [(parser()->parse($env))[0]], [['a', "\xe4"]], 'a string that perl keeps as UTF-8';
}

# --- other types ---

for my $most (0, 1, 7) {
    my $env = env('a=1&b=%c3%a4+x&a', 'application/x-www-form-urlencoded; charset=utf-8', $most);
    is_deeply [parser()->parse($env)], [['a', '1', 'b', "\xc3\xa4 x", 'a', ''], []], "a form, pieces of $most";
}
refused(413, undef, sub { parser()->parse(env('&' x 65_536, 'application/x-www-form-urlencoded')) }, 'a pair too many');

SKIP: {
    skip 'JSON::MaybeXS is not installed', 3 if !eval { require JSON::MaybeXS };
    my $body = '{"a":"\u00e4","b":[1,{"c":null}]}';
    my %got = @{ (parser()->parse(env($body, 'application/json; charset=utf-8')))[0] };
    is_deeply \%got, { a => "\xc3\xa4", b => [1, { c => undef }] }, 'JSON';
    is_deeply [parser()->parse(env('[1]', 'application/json'))], [[], []], 'JSON that is no object';
    refused(400, undef, sub { parser()->parse(env('{', 'application/json')) }, 'no JSON');
}

# --- side by side with HTTP::Entity::Parser ---

SKIP: {
    skip 'HTTP::Entity::Parser is not installed', 1 if !eval { require HTTP::Entity::Parser };
    my $theirs = HTTP::Entity::Parser->new;
    $theirs->register('multipart/form-data', 'HTTP::Entity::Parser::MultiPart');
    my $seed = 4711;
    my $random = sub { my ($n) = @_; $seed = ($seed * 1103515245 + 12345) % 2**31; return int($seed / 65536) % $n };
    my @heads = (
        'form-data; name="a"', 'form-data; name="b\\"c"', 'form-data; name=bare', 'form-data;name="a";filename="x.bin"',
        'FORM-DATA; NAME="a" ; FileName=y', 'form-data; size=3; name="\\\\"', 'form-data; filename="C:\\x"; name="f"', 'form-data; name="f"; filename=""',
    );
    my @bodies = ('', 'x', "\r\n", "a--b", "\r\n--", "\r\n-", "\0\xff", "a\r\nb", "\n--b\n", 'y' x 70000);
    my $different = 0;
    for (1 .. 300) {
        my $body = '';
        for (0 .. $random->(5)) {
            my @more = $random->(3) ? () : ('Content-Type: text/plain', "X-Folded: a\r\n  b");
            $body .= part(join("\r\n", "Content-Disposition: $heads[$random->(scalar @heads)]", @more), $bodies[$random->(scalar @bodies)]);
        }
        $body .= "--b--\r\n";
        my @got = map {
            my ($params, $uploads) = $_->parse(my $env = env($body));
            [$params, map { ref $_ ? [@{$_}{qw(name filename size headers)}, slurp($_->{tempname})] : $_ } @$uploads];
        } $theirs, parser();
        $_->[0] = [map { $_ // '' } @{ $_->[0] }] for @got;
        $different++ if !is_deeply_quietly(@got);
    }
    is $different, 0, 'the same as HTTP::Entity::Parser for 300 bodies';
}

sub is_deeply_quietly {
    my ($one, $other) = @_;
    require Data::Dumper;
    no warnings "once";
    local $Data::Dumper::Useqq = 1;
    return 1 if Data::Dumper::Dumper($one) eq Data::Dumper::Dumper($other);
    diag Data::Dumper::Dumper($one, $other) if length Data::Dumper::Dumper($one) < 3000;
    return 0;
}

done_testing;
