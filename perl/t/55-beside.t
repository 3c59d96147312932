use strict;
use warnings;
use Oribi::Cookie ();
use Oribi::Form ();
use Oribi::Plack ();
use Plack::Request;
use Test::More;

# Side by side with the modules that Oribi's succeed, on random input: forms, cookies, bodies, and Plack::Request with
# and without Oribi::Plack. What may differ is said here, by the words of the exception; nothing else is let through.
#
#   ORIBI_SOAK_S=600 prove -b t/55-beside.t    so many seconds in all, from another seed each time
#   ORIBI_SEED=N                               that seed
#
# Where the distribution is installed it is left out: another version of a peer is no reason to refuse the server.

plan skip_all => 'a comparison for makers: AUTHOR_TESTING=1 runs it' if -d 'core/src' && !$ENV{AUTHOR_TESTING} && !$ENV{ORIBI_SOAK_S};

my $SECONDS = $ENV{ORIBI_SOAK_S} && $ENV{ORIBI_SOAK_S} / 6;    # for each of the comparisons
my $SEED = $ENV{ORIBI_SEED} // ($SECONDS ? time : 20_261_123);
my ($ROUNDS, $DIFFERENT_MAX) = (600, 3);
my $random = $SEED;

sub below { my ($n) = @_; $random = ($random * 6_364_136_223 + 1_442_695_041) % 2_147_483_647; return ($random >> 7) % $n }
sub one_of { return $_[below(scalar @_)] }
sub one_in { return below($_[0]) == 0 }
sub some { my ($most, @of) = @_; return join '', map { one_of(@of) } 1 .. below($most + 1) }

# All bytes of it, with the rest in hexadecimal.
sub seen { my ($text) = @_; return 'undef' if !defined $text; $text =~ s/(.)\g1{30,}/$1$1…/g; $text = substr($text, 0, 1500) . '…' if length $text > 1500; return $text =~ s/([^\x20-\x7e])/sprintf '\\x%02x', ord $1/ger }

sub flat {
    my ($of) = @_;
    return ref $of eq 'ARRAY' ? '[' . join(', ', map { flat($_) } @$of) . ']' : ref $of eq 'HASH' ? '{' . join(', ', map {"$_ => " . flat($of->{$_})} sort keys %$of) . '}' : defined $of ? length($of) . ":$of" : 'undef';
}

# Compares what two functions make of the same input. `explain` gets the input and both exceptions; it says whether that
# may be.
sub beside {
    my ($name, $input, $ours, $theirs, $explain) = @_;
    plan skip_all => "$name is not installed" if !$theirs;
    my ($count, $different, $explained, $end) = (0, 0, 0, time + ($SECONDS // 0));
    my %taken;
    while ($SECONDS ? time < $end : $count < $ROUNDS) {
        $count++;
        my @given = $input->();
        my (@got, @error);
        for my $code ($ours, $theirs) {
            local $SIG{__WARN__} = sub { };
            my $got = eval { flat($code->(@given)) };
            push @error, defined $got ? undef : "$@";
            push @got, $got;
        }
        $taken{ defined $got[0] ? 'taken' : 'refused' }++;
        next if defined $got[0] && defined $got[1] && $got[0] eq $got[1];
        next if !defined $got[0] && !defined $got[1];
        ++$explained && next if $explain && $explain->(\@given, \@error, \@got);
        next if ++$different > $DIFFERENT_MAX;
        fail 'the same';
        diag 'of   ', seen(flat(\@given));
        diag 'ours ', seen($got[0] // "died: $error[0]");
        diag 'theirs ', seen($got[1] // "died: $error[1]");
    }
    is $different, 0, "no unexplained difference of $count, seed $SEED";
    note "$explained of $count differ as the documents say; ", join ', ', map {"$taken{$_} $_"} sort keys %taken;
    cmp_ok $taken{taken} // 0, '>', $count / 5, 'most are no mistakes';
    return;
}

sub code_of { my ($module, $function) = @_; return eval "require $module; 1" ? $module->can($function) : undef }

# --- forms and cookies ---

my @FORM = ('a', 'b', '=', '&', ';', '+', '%41', '%c3%BC', '%', ' ', "\xe9", "\0", 'key=', '=value', '%4', '%zz', '& ', '  ', "\n", '%00', 'x' x 300, '%2b%3D%26');
my @COOKIE = ('a', 'b', '=', ';', '; ', '+', '%41', '%c3%BC', '%', ' ', "\xe9", "\t", 'a=', '"', '="', '";', '%22', ',', '  ', "\n", '$Path=', '%', '%4', "\0", 'v' x 200);

sub form { my $text = some(30, @FORM); utf8::upgrade($text) if one_in(8); return $text }
sub cookies { my $text = some(30, @COOKIE); utf8::upgrade($text) if one_in(8); return $text }

subtest 'forms' => sub { beside('WWW::Form::UrlEncoded::XS', \&form, \&Oribi::Form::parse_urlencoded_arrayref, code_of('WWW::Form::UrlEncoded::XS', 'parse_urlencoded_arrayref')) };

subtest 'cookies' => sub { beside('Cookie::Baker::XS', \&cookies, \&Oribi::Cookie::crush_cookie, code_of('Cookie::Baker::XS', 'crush_cookie')) };

sub pairs {
    my @pairs = map { one_in(9) ? undef : one_in(9) ? [map { form() } 1 .. below(4)] : some(4, @FORM) } 0 .. below(8);
    $_ = ref $_ ? 'k' : $_ for @pairs[grep { $_ % 2 == 0 } 0 .. $#pairs];
    return one_in(3) ? \@pairs : @pairs, (one_in(4) ? one_of(';', '--', '') : ());
}
subtest 'forms that are built' => sub {
    my $both = sub { my ($class) = @_; my ($plain, $utf8) = map { code_of($class, $_) } qw(build_urlencoded build_urlencoded_utf8); return $plain && sub { [$plain->(@_), $utf8->(@_)] } };
    beside('WWW::Form::UrlEncoded::XS', \&pairs, $both->('Oribi::Form'), $both->('WWW::Form::UrlEncoded::XS'));
};

sub cookie {
    my %cookie = (value => some(6, map {chr} 0 .. 255));
    $cookie{domain} = some(3, 'a', '.', 'b') if one_in(2);
    $cookie{path} = some(3, '/', 'a', '%', ' ', '0', "\xe9", "\n", "\r\n", ';', "\0") if one_in(2);
    $cookie{expires} = one_of(0, 1, 784_111_777, 'Sun, 06 Nov 1994 08:49:37 GMT', 'later', '', -1, 4_102_444_800) if one_in(2);
    $cookie{'max-age'} = one_of(0, 1, '', 'x', "1;") if one_in(2);
    $cookie{samesite} = one_of(qw(lax Strict LAX none None laxer no), '') if one_in(2);
    $cookie{$_} = below(2) for qw(secure httponly);
    return some(3, 'a', 'b1', '%', ' ', ';', "\xe9", "=", '!', "'", '~', '*'), \%cookie;
}
subtest 'cookies that are baked' => sub {
    beside('Cookie::Baker', \&cookie, \&Oribi::Cookie::bake_cookie, code_of('Cookie::Baker', 'bake_cookie'), sub {
        my ($given, $error) = @_;
        my $cookie = $given->[1];
        return 1 if ($error->[0] // '') =~ /cannot be baked/ && grep { defined && /[\x00-\x08\x0a-\x1f\x7f;]/ } @$cookie{qw(domain path expires max-age)};
        return 1 if ($cookie->{samesite} // '') =~ /\A(?:none\z|lax.)/i && !$error->[0];    # 0.12: none is secure, `laxer` nothing
        return;
    });
};

# --- bodies ---

my @NAMES = ('a', 'a\\', 'b c', "\xc3\xa4", 'x' x 200, 'a[b]', '%41', 'a\\"b', 'a\\\\', '');
my @DISPOSITIONS = (
    map({ ("form-data; name=\"$_\"", "form-data; name=\"$_\"; filename=\"$_\"") } @NAMES),
    'form-data; name=bare', 'form-data;name="a";filename="x.bin"', 'FORM-DATA; NAME="a" ; FileName=y', 'form-data; size=3; name="s"', 'form-data; name = "a"',
    'form-data; filename="C:\\x"; name="f"', 'form-data; name="f"; filename=""', 'form-data ; name="a"', "form-data;\tname=\"a\"", "form-data; name=\"a\"; filename*=UTF-8''x",
    'form-data; name="a;b"; filename="c;d"', 'form-data;; name="a"', "form-data;\r\n name=\"a\r\n  b\"; filename=\"c\r\n\td\"", "form-data; name=bare\r\n ; x=y", 'form-data; x; name="a"', 'form-data; name="a";', 'form-data; name="a"; ', 'form-data; ; ;name=a',
);
my @MISTAKES = (
    'form-data; name="a"; name="b"', 'form-data; name="a', 'form-data', 'attachment; name="a"', 'form-data; name=', 'form-data; name="a" filename="b"', 'form-data; name=a b', '',
    'form-data; name="a"; filename="b"; filename="c"', 'name="a"', 'form-data, name="a"', 'form-data; name="a"; filename="b', 'form-data; name="a"b"', 'form-data; name="a" x; filename="b"', 'form-data; name', 'form-data; na me=a', 'form-data; "name"=a', 'form-data; =x; name=a',
);
my @FIELDS = ('Content-Type: text/plain', "X-Folded: a\r\n  b", "content-type:text/html ; charset=\"x\"", 'X: y ', "X:\t y", 'X:', 'A: b: c', "X-High: \xe9", "X: a\r\n \r\n\tb");
my @NO_FIELDS = ('X : y', 'broken', "X: a\0b", "X: \x01", ': x', "X: y\rz", "X: y\nZ: a", ' folded: first', "X\xe9: y", 'a b: c', 'Content-Disposition: form-data; name=again');
my @BODIES = ('', 'x', "\r\n", '--b', "\r\n--", "\r\n-", "\0\xff", "a\r\nb", "\n--b\n", "\r\n\r\n", "\r", "\r\n--c\r\n", "\r\r\n--", 'y' x 3000, 'y' x 70_000);

sub part {
    my $disposition = one_of('Content-Disposition: ', 'content-disposition:', 'CONTENT-DISPOSITION:  ') . one_of(one_in(12) ? @MISTAKES : @DISPOSITIONS);
    my @fields = map { one_of(one_in(20) ? @NO_FIELDS : @FIELDS) } one_in(2) ? () : 0 .. below(2);
    @fields = one_in(2) ? ($disposition, @fields) : (@fields, $disposition) if !one_in(40);
    return join("\r\n", @fields) . "\r\n\r\n" . some(3, @BODIES);
}

sub body {
    my $body = one_in(25) ? one_of("preamble\r\n", "\r\n", "--c\r\n", "-", "\n", "x") : '';
    $body .= "--b\r\n" . part() . "\r\n" for 0 .. below(4);
    $body .= '--b--' . (one_in(20) ? one_of('', "\n", "\r\nepilogue", ' ', "\r", "\r\n\r\n") : "\r\n");
    substr $body, below(length $body), 1, one_of('', "\r", "\n", '-', 'b', '"', "\0", '--b', "\r\n--b") if one_in(12);
    substr $body, below(length $body), length $body, '' if one_in(20);
    return $body;
}
my @TYPES = (('multipart/form-data; boundary=b') x 20, 'multipart/form-data; boundary="b"', 'multipart/form-data; charset=x; boundary=b; x=y', 'multipart/form-data', 'multipart/form-data; boundary=');

sub env {
    my ($body, $type, $query, $cookie, $buffered) = @_;
    open my $in, '<', \$body or die;
    return {
        QUERY_STRING => $query, HTTP_COOKIE => $cookie, CONTENT_TYPE => $type, CONTENT_LENGTH => length $body, 'psgi.input' => $in, 'psgix.input.buffered' => $buffered,
        REQUEST_METHOD => 'POST', SCRIPT_NAME => '', PATH_INFO => '/', 'psgi.url_scheme' => 'http', HTTP_HOST => 'a',
    };
}
sub slurped { my ($path) = @_; open my $in, '<:raw', $path or die "$path: $!"; local $/; return scalar <$in> }

# Blanks at the end of a part's fields are no part of them here.
sub trimmed { return map {s/[ \t]+$//mgr} @_ }

# May a body be taken here and refused there? The words are the parsers' own.
my $TAKEN_HERE = qr/Closing boundary does not terminate|parsing closing boundary|Nonempty epilogue|Boundary does not terminate/;
my $IGNORED_HERE = qr/;[ \t]+\r\n/;    # blanks at the end of a disposition
my $FIELD_THERE = qr/\r\n[ \t]+[^\r\n:]+:/;    # a folded line with a colon is the value's rest here
my $HEAD_ALONE = qr/(?:\A|\r\n)[^\r\n]+\r\n\r\n--b/;    # a part may end with its head here (RFC 2046, 5.1.1); there the delimiter is its body
my $REFUSED_HERE = qr/control byte|two names|quotation mark|no field|a delimiter goes on/;

sub explained {
    my ($given, $error) = @_;
    return 1 if begins_elsewhere($given->[0]) || $given->[0] =~ $FIELD_THERE || $given->[0] =~ $HEAD_ALONE;
    return 1 if defined $error->[0] && !defined $error->[1] && $error->[0] =~ $REFUSED_HERE;
    # all of a disposition in its commonest spelling is one name there, if it is no two
    return 1 if ($error->[0] // '') =~ /is no parameter/ && !defined $error->[1] && $given->[0] =~ /name="[^"\r]*\\"; filename=/;
    return 1 if !defined $error->[0] && defined $error->[1] && $error->[1] =~ $TAKEN_HERE;
    return 1 if !defined $error->[0] && ($error->[1] // '') =~ /'name' is missing/ && $given->[0] =~ $IGNORED_HERE;
    return;
}

sub parsed_by {
    my ($class, $parts) = @_;
    return if !eval "require $class; 1";
    return sub {
        my ($body, $type) = @_;
        my $parser = $class->new(buffer_length => one_of(1024, 65_536));
        $parser->register('multipart/form-data', $parts);
        my ($params, $uploads) = $parser->parse(my $env = env($body, $type, '', '', 1));
        return [$params, map { ref $_ ? [@{$_}{qw(name filename size)}, trimmed(@{ $_->{headers} }), slurped($_->{tempname})] : $_ } @$uploads];
    };
}
sub begins_elsewhere { my ($body) = @_; my ($preamble) = $body =~ /\A(.*?)--b/s; return length $preamble && $preamble !~ /\r\n\z/ }

subtest 'bodies' => sub {
    my ($ours, $theirs) = (parsed_by('Oribi::Multipart', 'Oribi::Multipart::MultiPart'), parsed_by('HTTP::Entity::Parser', 'HTTP::Entity::Parser::MultiPart'));
    beside('HTTP::Entity::Parser', sub { return (body(), one_of(@TYPES)) }, $ours, $theirs, \&explained);
};

# --- Plack::Request ---

sub told {
    my (@given) = @_;
    my $env = env(@given);
    my $request = Plack::Request->new($env);
    my @calls = (
        sub { [$request->query_parameters->flatten] }, sub { [$request->body_parameters->flatten] }, sub { [$request->parameters->flatten] }, sub { $request->cookies },
        sub { my @all = $request->uploads->flatten; [map { ref $_ ? [$_->filename, $_->basename, $_->size, $_->content_type, trimmed($_->headers->as_string), slurped($_->path)] : $_ } @all] },
        sub { $request->content }, sub { [map { [$request->param($_)] } sort $request->param] },
    );
    return [map { $_->() } @calls];
}

sub request {
    my @cookie = one_in(2) ? () : cookies();
    return (form(), one_of('application/x-www-form-urlencoded', 'application/x-www-form-urlencoded; charset=utf-8', 'text/plain', ''), form(), @cookie, below(2)) if one_in(2);
    return (body(), one_of(@TYPES), form(), $cookie[0], below(2));
}
# Its plain twin keeps a blank before a name, which XS leaves out, as we do.
subtest 'Plack::Request' => sub {
    plan skip_all => 'no WWW::Form::UrlEncoded::XS' if !eval { require WWW::Form::UrlEncoded::XS; 1 };
    my $with = sub { my @given = @_; Oribi::Plack->import; my $told = eval { told(@given) }; my $error = $@; Oribi::Plack->unimport; die $error if !$told; return $told };
    beside('Plack', \&request, $with, \&told, \&explained);
};

done_testing;
