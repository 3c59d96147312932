use strict;
use warnings;
use lib 't/lib';
use OribiSpec;
use Test::More;
use Oribi::Cookie qw(bake_cookie crush_cookie);
use Oribi::Form qw(parse_urlencoded parse_urlencoded_arrayref build_urlencoded build_urlencoded_utf8);

# Oribi::Form and Oribi::Cookie: the cases of spec/, their limits, and side by side with the XS modules that they
# succeed on random input of a fixed seed.

my $ROUNDS = 5000;

sub of_folder { my ($name) = @_; return map { cases($_) } glob folder() . "/$name/*.case" }

# The message and status of what the code dies with.
sub refused {
    my ($code) = @_;
    eval { $code->(); 1 } and return 'nothing';
    return ref $@ && $@->isa('Oribi::Form::Error') ? $@->status : "died: $@";
}

subtest 'cases of forms' => sub {
    for my $case (grep { $_->{as} eq 'perl' && !@{ $_->{limit} } } of_folder('form')) {
        is_deeply [parse_urlencoded($case->{input})], [map {@$_} @{ $case->{field} }], $case->{name};
        is_deeply parse_urlencoded_arrayref($case->{input}), [map {@$_} @{ $case->{field} }], "$case->{name}, as an array";
    }
};

subtest 'cases of cookies' => sub {
    for my $case (of_folder('cookie')) {
        if (($case->{as} // '') eq 'perl') {
            is_deeply crush_cookie($case->{input}), { map {@$_} reverse @{ $case->{field} } }, $case->{name};
        } elsif (($case->{style} // '') eq 'perl') {
            my %cookie = map { $_ => $case->{$_} } grep { exists $case->{$_} } qw(value domain path expires);
            $cookie{'max-age'} = $case->{max_age} if exists $case->{max_age};
            $cookie{samesite} = $case->{same_site} if exists $case->{same_site};
            $cookie{secure} = 1 if $case->{secure};
            $cookie{httponly} = 1 if $case->{http_only};
            $cookie{partitioned} = 1 if $case->{partitioned};
            my $got = eval { bake_cookie($case->{key}, \%cookie) };
            is $got, $case->{output}, $case->{name};    # without output it is to die
        }
    }
};

subtest 'nothing has no pairs' => sub {
    is_deeply [parse_urlencoded(undef)], [];
    is_deeply parse_urlencoded_arrayref(''), [];
    is_deeply crush_cookie(undef), {};
    is build_urlencoded(), '';
    is bake_cookie('a', undef), '';
    is bake_cookie('a', { value => undef }), 'a=';
};

subtest 'limits at the most and one more' => sub {
    is scalar(@{ parse_urlencoded_arrayref('&' x 65_535) }), 2 * 65_536, 'pairs';
    is refused(sub { my @pairs = parse_urlencoded('&' x 65_536) }), 413, 'a pair too many';
    like $@, qr/\Athe form has more than 65536 pairs at \S+53-form\.t line \d+\.\n\z/, 'and what the exception says';
    is $@->message, 'the form has more than 65536 pairs', 'and without the place';
    is length((parse_urlencoded('k' x (1 << 20)))[0]), 1 << 20, 'bytes of a key';
    is refused(sub { parse_urlencoded_arrayref('k' x ((1 << 20) + 1)) }), 413, 'a byte too many';
    is length((parse_urlencoded('=' . 'v' x ((1 << 26) - 1)))[1]), (1 << 26) - 1, 'bytes of a form';
    is refused(sub { parse_urlencoded_arrayref('=' . 'v' x (1 << 26)) }), 413, 'a byte too many';
    is scalar(keys %{ crush_cookie('=;' x 65_536) }), 1, 'cookies';
    is refused(sub { crush_cookie('=;' x 65_537) }), 413, 'a cookie too many';
    is_deeply crush_cookie(' ' x (1 << 20)), {}, 'bytes of a field';
    is refused(sub { crush_cookie(' ' x ((1 << 20) + 1)) }), 413, 'a byte too many';
    ok !eval { bake_cookie('a', 'b' x (1 << 20)); 1 }, 'bytes of a cookie';
};

subtest 'a form is built' => sub {
    is build_urlencoded(a => 'b c', d => [1, undef, 2]), 'a=b+c&d=1&d=&d=2', 'also behind an undef, where the XS module forgets the delimiter';
    is build_urlencoded({ a => [1, 2] }, ';'), 'a=1;a=2';
    is build_urlencoded(["\xe9", "\x{3042}"]), '%E9=%E3%81%82';
    is build_urlencoded_utf8(["\xe9", "\x{3042}"]), '%C3%A9=%E3%81%82';
    my $latin = "\xe9";
    build_urlencoded_utf8(a => $latin);
    ok !utf8::is_utf8($latin), 'the text of the program stays as it was';
};

subtest 'cookies are baked' => sub {
    is bake_cookie('a b', "\xe9;"), 'a%20b=%E9%3B';
    is bake_cookie(a => { value => 1, expires => 784_111_777, 'max-age' => 0 }), 'a=1; expires=Sun, 06-Nov-1994 08:49:37 GMT; max-age=0';
    is bake_cookie(a => { value => 1, samesite => 'NONE' }), 'a=1; SameSite=None; secure', 'none means secure';
    is bake_cookie(a => { value => 1, samesite => 'laxer' }), 'a=1';
    is bake_cookie(a => { value => 1, partitioned => 1 }), 'a=1; SameSite=None; secure; Partitioned';
    is bake_cookie(a => { value => 1, path => '', domain => 0, 'max-age' => undef, expires => undef }), 'a=1';
    like bake_cookie(a => { value => 1, expires => '+1d' }), qr/\Aa=1; expires=[A-Z][a-z]{2}, \d\d-[A-Z][a-z]{2}-\d{4} \d\d:\d\d:\d\d GMT\z/;
    for my $attribute (qw(domain path expires max-age)) {
        for my $byte ("\r", "\n", "\0", ';') {
            ok !eval { bake_cookie(a => { value => 1, $attribute => "x${byte}y" }); 1 }, sprintf '%s with byte %d dies', $attribute, ord $byte;
        }
    }
    ok !eval { bake_cookie(a => "\x{3042}"); 1 }, 'characters are no bytes';
    ok !eval { bake_cookie(a => [1]); 1 }, 'an array is no cookie';
};

# Text with code behind it.
package Overloaded { use overload '""' => sub { ${ $_[0] } // die "no text\n" }; }
package Tied {
    sub TIESCALAR { my ($class, $value) = @_; return bless \$value, $class }
    sub FETCH { return ${ $_[0] } }
}

subtest 'text may be an object or tied' => sub {
    my $text = bless \(my $t = 'a=1'), 'Overloaded';
    tie my $tied, 'Tied', 'a=2';
    is_deeply [parse_urlencoded($text)], ['a', 1];
    is_deeply crush_cookie($tied), { a => 2 };
    is build_urlencoded(a => $text, b => $tied), 'a=a%3D1&b=a%3D2';
    is bake_cookie(a => $text), 'a=a%3D1';
    my $bad = bless \(my $none), 'Overloaded';
    for my $code (sub { parse_urlencoded($bad) }, sub { crush_cookie($bad) }, sub { build_urlencoded(a => $bad) }, sub { bake_cookie(a => $bad) }) {
        ok !eval { $code->(); 1 }, 'what it dies with comes through';
        is $@, "no text\n";
    }
};

# --- beside the XS modules ---

my $seed = 20261123;
sub random { my ($below) = @_; $seed = ($seed * 1103515245 + 12345) & 0x7fffffff; return ($seed >> 8) % $below }
sub random_text { my ($parts) = @_; return join '', map { $parts->[random(scalar @$parts)] } 1 .. 1 + random(20) }

# The name of what differs, or nothing.
sub side_by_side {
    my ($parts, $ours, $theirs) = @_;
    for (1 .. $ROUNDS) {
        my $text = random_text($parts);
        utf8::upgrade($text) if random(8) == 0;
        my ($got, $want) = map { explain_flat($_->($text)) } $ours, $theirs;
        $got eq $want or return fail "the same for '$text'" || diag "got $got, want $want";
    }
    return pass "the same for $ROUNDS random texts";
}

sub explain_flat {
    my ($of) = @_;
    return join '|', map { length . ":$_" } ref $of eq 'HASH' ? map { $_, $of->{$_} } sort keys %$of : @$of;
}

SKIP: {
    eval { require WWW::Form::UrlEncoded::XS } or skip 'WWW::Form::UrlEncoded::XS is not installed', 3;
    my @parts = ('a', 'b', '=', '&', ';', '+', '%41', '%c3%BC', '%', ' ', "\xe9", "\0", 'key=', '=value', '%4', '%zz', '& ', '  ');
    side_by_side(\@parts, sub { [parse_urlencoded($_[0])] }, sub { [WWW::Form::UrlEncoded::XS::parse_urlencoded($_[0])] });
    side_by_side(\@parts, \&parse_urlencoded_arrayref, \&WWW::Form::UrlEncoded::XS::parse_urlencoded_arrayref);
    my $list = sub {
        my ($text) = @_;
        my @list = split /=/, $text, 1 + random(6);
        $list[random(scalar @list)] = [map { random_text(\@parts) } 0 .. random(4)] if random(3) == 0;
        my @arguments = random(3) == 0 ? (\@list, (';', undef, '--', '')[random(4)]) : @list;
        return \@arguments;
    };
    my $arguments;
    side_by_side(
        \@parts,
        sub { $arguments = $list->($_[0]); [build_urlencoded(@$arguments), build_urlencoded_utf8(@$arguments)] },
        sub { [WWW::Form::UrlEncoded::XS::build_urlencoded(@$arguments), WWW::Form::UrlEncoded::XS::build_urlencoded_utf8(@$arguments)] }
    );
}

SKIP: {
    eval { require Cookie::Baker::XS } or skip 'Cookie::Baker::XS is not installed', 1;
    my @parts = ('a', 'b', '=', ';', '; ', '+', '%41', '%c3%BC', '%', ' ', "\xe9", "\t", 'a=', '"', '="', '";', '%22', ',', '  ', "\n");
    side_by_side(\@parts, \&crush_cookie, \&Cookie::Baker::XS::crush_cookie);
}

SKIP: {
    eval { require Cookie::Baker } or skip 'Cookie::Baker is not installed', 1;
    my @texts = map { [map { chr } @$_] } [0x21 .. 0x7e], [0 .. 255];
    my @expires = (0, 784_111_777, 'Sun, 06 Nov 1994 08:49:37 GMT', 'later', '');
    my ($same, $count) = (0, 2000);
    for (1 .. $count) {
        my %cookie = (value => random_text($texts[1]));
        $cookie{domain} = random_text(['a', '.', 'b']) if random(2);
        $cookie{path} = random_text(['/', 'a', '%', ' ', '0']) if random(2);
        $cookie{expires} = $expires[random(scalar @expires)] if random(2);
        $cookie{'max-age'} = random(3) if random(2);
        $cookie{samesite} = ('lax', 'Strict', 'LAX')[random(3)] if random(2);
        $cookie{$_} = random(2) for qw(secure httponly);
        my $name = random_text($texts[0]);
        $same += bake_cookie($name, \%cookie) eq Cookie::Baker::bake_cookie($name, \%cookie);
    }
    is $same, $count, 'cookies are baked as by Cookie::Baker';
}

subtest 'hostile texts end' => sub {
    is scalar(@{ parse_urlencoded_arrayref(join '&', map {"k$_"} 1 .. 65_536) }), 2 * 65_536;
    is_deeply [parse_urlencoded('%' x 200_000)], ['%' x 200_000, ''];
    is scalar(keys %{ crush_cookie(join ';', map {"k$_="} 1 .. 65_536) }), 65_536;
};

done_testing;
