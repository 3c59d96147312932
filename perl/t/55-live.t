# Text that runs code of the program's when it is read: it frees or changes the other arguments, or moves perl's stack.
use strict;
use warnings;
use Test::More;

use Oribi::Form qw(parse_urlencoded parse_urlencoded_arrayref build_urlencoded build_urlencoded_utf8);
use Oribi::Cookie qw(bake_cookie crush_cookie);
use Oribi::HTTPParser qw(parse_http_request parse_http_response HEADERS_AS_ARRAYREF);
use Oribi::Multipart ();
use Oribi::Multipart::MultiPart ();

package Live {
    use overload '""' => sub { $_[0]->() }, fallback => 1;
    sub TIESCALAR { return $_[1] }
    sub FETCH     { return $_[0]->() }
}

package Live::Set {
    sub TIESCALAR { my ($class, $code) = @_; return bless { code => $code }, $class }
    sub STORE     { $_[0]{code}->(); return }
    sub FETCH     { return }
}

my @rubbish;

# What was freed is overwritten.
sub rubbish { @rubbish = map {'~' x (8 * $_)} 1 .. 600; return }

sub move_stack { my @list = (1) x 100_000; return scalar(() = pass_on(@list)) }
sub pass_on    { return @_ }

# An object that is `text` after `$code` has run.
sub live {
    my ($text, $code) = @_;
    return bless sub { $code->() if $code; rubbish(); $text }, 'Live';
}

subtest 'the stack may move' => sub {
    my $text = live('a b', \&move_stack);
    is build_urlencoded(live('a b', \&move_stack), 1, 'x' . 1, 'y' . 2, $text, 'z' . 3), 'a+b=1&x1=y2&a+b=z3';
    is build_urlencoded([live('k', \&move_stack), 1, b => $text]), 'k=1&b=a+b';
    is join('|', parse_urlencoded(live('a=1&b=2', \&move_stack))), 'a|1|b|2';
    is_deeply parse_urlencoded_arrayref(live('a=1', \&move_stack)), ['a', '1'];
    is bake_cookie(live('n', \&move_stack), live('v', \&move_stack)), 'n=v';
    is_deeply crush_cookie(live('a=1', \&move_stack)), { a => 1 };
};

subtest 'other arguments may be freed and changed' => sub {
    my $delimiter = '-' x 3000;
    my $freeing = live('v', sub { undef $delimiter; $delimiter = 'other' });
    is build_urlencoded([a => $freeing, b => 1], $delimiter), 'a=v' . '-' x 3000 . 'b=1';

    my %hash;
    %hash = map { $_ => live('v', sub { %hash = () }) } 1 .. 10;
    like build_urlencoded(\%hash), qr/\A\d+=v\z/;

    my @array;
    @array = map { ("k$_" => live('v', sub { @array = () })) } 1 .. 10;
    is build_urlencoded(\@array), 'k1=v';
    @array = (live('k', sub { @array = () }), 'x' x 1000);
    is build_urlencoded(\@array), 'k=' . 'x' x 1000;

    my @list;
    @list = ('k' . 1, [map { live("v\xe9", sub { @list = () }) } 1 .. 3], 'l' . 2, 'm' . 3);
    is build_urlencoded_utf8(@list), 'k1=v%C3%A9&k1=v%C3%A9&k1=v%C3%A9&l2=m3';
    @list = (live('k', sub { @list = () }), 'value' . 1, 'l' . 2, 'm' . 3);
    is build_urlencoded(@list), 'k=value1&l2=m3';
};

subtest 'attributes of a cookie, too' => sub {
    my %cookie = (value => 'V' x 3000, path => '/' x 100, domain => 'd' x 100);
    is bake_cookie(live('n', sub { %cookie = () }), \%cookie), 'n=', 'the name is read first';
    %cookie = (value => 'V' x 3000, domain => 'd' x 100);
    $cookie{path} = live('/p', sub { delete @cookie{qw(value domain)} });
    is bake_cookie('a', \%cookie), 'a=' . 'V' x 3000 . '; domain=' . 'd' x 100 . '; path=/p';
    my $cookie = { value => 'v', path => '/' };
    is bake_cookie(live('n', sub { undef $cookie }), $cookie), 'n=v; path=/';
    my $name = 'n' x 3000;
    is bake_cookie($name, live('v', sub { $name = 'm' })), 'm=v';
    $name = 'n';
    my $year = live('1', sub { $name = 'm' x 3000 });
    is bake_cookie($name, { 'max-age' => $year, secure => $year }), 'm' x 3000 . '=; max-age=1; secure';
};

subtest 'tied variables' => sub {
    tie my $text, 'Live', live('a=1&b', \&move_stack);
    is join('|', parse_urlencoded($text)), 'a|1|b|';
    is build_urlencoded($text, $text), 'a%3D1%26b=a%3D1%26b';
    is bake_cookie('a', { value => $text, path => $text }), 'a=a%3D1%26b; path=a=1&b';
    tie my $list, 'Live', bless sub { [1, 2] }, 'Live';
    is build_urlencoded(a => $list), 'a=1&a=2';
    tie my $hash, 'Live', bless sub { { a => 1 } }, 'Live';
    is build_urlencoded($hash), 'a=1';
    is bake_cookie('a', $hash), 'a=';
    tie my $dying, 'Live', live('', sub { die "gone\n" });
    for my $call (sub { parse_urlencoded($dying) }, sub { build_urlencoded(a => $dying) }, sub { bake_cookie($dying, 1) }, sub { crush_cookie($dying) }) {
        is eval { $call->(); 1 }, undef;
        is $@, "gone\n";
    }
};

# Runs code of the program's when a field is stored.
package Watch {
    require Tie::Hash;
    our @ISA = 'Tie::ExtraHash';
    sub TIEHASH { my ($class, $code) = @_; return bless [{}, $code], $class }
    sub STORE   { my ($self, $key, $value) = @_; $self->[1]->(); $self->[0]{$key} = $value; return }
}

subtest 'heads' => sub {
    my @fields = ('Accept: ' . 'a' x 1000, 'Cookie: ' . 'c' x 1000);
    my $head = join "\r\n", 'GET /p HTTP/1.1', 'Host: a', @fields, '', '';
    my $length = length $head;
    my $copy = join '', $head; # no copy on write
    tie my %env, 'Watch', sub { undef $copy; rubbish(); move_stack() };
    is parse_http_request($copy, \%env), $length;
    is $env{HTTP_COOKIE}, 'c' x 1000;
    is parse_http_request(live($head, \&move_stack), {}), $length;

    $head = join "\r\n", 'HTTP/1.1 200 OK', @fields, '', '';
    $copy = join '', $head;
    is join('|', (parse_http_response(live($head, \&move_stack), HEADERS_AS_ARRAYREF))[0 .. 3]), length($head) . '|1|200|OK';
    is join('|', parse_http_response(live('HTTP', \&move_stack), HEADERS_AS_ARRAYREF)), '-2';
    my %special = (accept => undef);
    tie $special{accept}, 'Live::Set', sub { undef $copy; rubbish(); move_stack() };
    my @response = parse_http_response($copy, HEADERS_AS_ARRAYREF, \%special);
    is_deeply $response[4], [accept => 'a' x 1000, cookie => 'c' x 1000];
};

my $field = qq{--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n};
my $body = $field . qq{--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\ndata\r\n--x--\r\n};

subtest 'what a reader has given may go' => sub {
    my $open = sub { open my $file, '>', '/dev/null'; ($file, 'null') };
    my $reader;
    $reader = Oribi::Multipart::Reader::_new('x', 9, 9, 1000, 1000, sub { undef $reader; rubbish(); $open->() });
    is eval { $reader->feed($body); 1 }, 1, 'the reader itself, while it asks for a file';
    $reader = Oribi::Multipart::Reader::_new('x', 9, 9, 1000, 1000, $open);
    $reader->feed(substr $body, 0, index($body, "1\r\n"));
    @{ $reader->params } = ();
    rubbish();
    $reader->feed(substr $body, index($body, "1\r\n"));
    $reader->finish;
    is_deeply $reader->params, [], 'the value that it appends to';
    is scalar @{ $reader->uploads }, 2;
    undef $reader;
    ok !grep({ $_ ne '~' x length } @rubbish), 'nothing was written to what others have got';
};

# Says that it has read, and has not.
package Liar {
    sub new  { my ($class, $piece) = @_; return bless { piece => $piece }, $class }
    sub seek {1}
    sub read { $_[1] = $_[0]{piece}; return 5 }
}

subtest 'an input that gives nothing ends' => sub {
    for my $piece ('', undef) {
        for my $framing ({ CONTENT_LENGTH => 100 }, { HTTP_TRANSFER_ENCODING => 'chunked' }) {
            my $parser = Oribi::Multipart->new;
            $parser->register('multipart/form-data', 'Oribi::Multipart::MultiPart');
            my %env = (CONTENT_TYPE => 'multipart/form-data; boundary=x', 'psgix.input.buffered' => 1);
            is eval { $parser->parse({ %env, %$framing, 'psgi.input' => Liar->new($piece) }); 1 }, undef;
            like $@, qr/Bad Content-Length|Malformed chunked/;
        }
    }
};

done_testing;
