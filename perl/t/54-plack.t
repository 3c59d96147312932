use strict;
use warnings;
use lib 't/lib';
use File::Copy ();
use File::Temp ();
use OribiServer;
use OribiTest qw(wait_until);
use Oribi::Plack ();
use Plack::Request;
use Plack::Response;
use Test::More;

# Oribi::Plack: Plack::Request with and without it, what is replaced and put back, and where uploads lie.

my $TMP = File::Temp->newdir;
local $ENV{TMPDIR} = "$TMP";
my $FORM = 'application/x-www-form-urlencoded';
my $PARTS = 'multipart/form-data; boundary=b';

sub env {
    my ($body, $type, %more) = @_;
    open my $in, '<', \$body or die;
    return {
        REQUEST_METHOD => 'POST', SCRIPT_NAME => '', PATH_INFO => '/', QUERY_STRING => '', CONTENT_TYPE => $type, CONTENT_LENGTH => length $body,
        'psgi.input' => $in, 'psgix.input.buffered' => 1, %more,
    };
}
sub part { my ($name, $body, $more) = @_; return qq(--b\r\nContent-Disposition: form-data; name="$name"$more\r\n\r\n$body\r\n) }
sub upload { return part('f', $_[0] // 'text', qq(; filename="C:\\dir\\a b.txt"\r\nContent-Type: text/plain)) . "--b--\r\n" }
sub slurped { my ($path) = @_; open my $in, '<:raw', $path or return "$path: $!"; local $/; return scalar <$in> }
sub left { my @left = sort glob "$TMP/oribi-upload-*"; return @left }

# All that a Plack::Request tells of an environment.
sub told {
    my ($env) = @_;
    my $request = Plack::Request->new($env);
    my @uploads = $request->uploads->flatten;
    my @told;
    while (my ($name, $upload) = splice @uploads, 0, 2) {
        push @told, [$name, $upload->filename, $upload->basename, $upload->size, $upload->content_type, $upload->headers->as_string, slurped($upload->path)];
    }
    return [
        [$request->query_parameters->flatten], [$request->body_parameters->flatten], [$request->parameters->flatten], $request->cookies,
        \@told, $request->content, [map { scalar $request->param($_) } sort $request->param], $request->raw_body,
    ];
}

sub with { my ($code, @import) = @_; Oribi::Plack->import(@import); my @result = eval { $code->() }; my $error = $@; Oribi::Plack->unimport; die $error if $error; return @result }

my %cases = (
    'a form' => sub { env('a=1&b=%C3%A4+x&a=2&=&c', $FORM, QUERY_STRING => 'a=0;q=%41& s', HTTP_COOKIE => 'a=1; b="2 %41";a=3; c') },
    'a form with a charset' => sub { env('a=1', "$FORM; charset=UTF-8") },
    'parts' => sub { env(part('a', '1', '') . part('a', '', '') . part('e', 'x', '; filename=""') . upload("\0\xff\r\n--c"), $PARTS, QUERY_STRING => 'q') },
    'another type' => sub { env('{"a":1}', 'application/json', HTTP_COOKIE => 'x') },
    'no body' => sub { env('', undef, QUERY_STRING => undef) },
    'an empty form' => sub { env('', $FORM) },
    'an input that cannot be rewound' => sub { env('a=1', $FORM, 'psgix.input.buffered' => 0) },
    'no input' => sub { my $env = env('', $FORM); delete $env->{'psgi.input'}; return $env },
);
for my $name (sort keys %cases) {
    my ($got) = with(sub { told($cases{$name}->()) });
    is_deeply $got, told($cases{$name}->()), "the same of $name";
}

subtest 'it is used only where it is said' => sub {
    my $counted = 0;
    my $crush = \&Oribi::Cookie::crush_cookie;
    no warnings 'redefine';
    local *Oribi::Cookie::crush_cookie = sub { $counted++; $crush->(@_) };
    my $cookies = sub { Plack::Request->new(env('', undef, HTTP_COOKIE => 'a=1'))->cookies };
    $cookies->();
    is $counted, 0, 'loading the module changes nothing';
    with($cookies);
    is $counted, 1, 'its import does';
    $cookies->();
    is $counted, 1, 'and `no` puts back what was there';
    my $parser = sub { ref Plack::Request->new(env('', undef))->request_body_parser };
    is_deeply [with($parser), $parser->()], ['Oribi::Multipart', 'HTTP::Entity::Parser'], 'the same with the parser of bodies';
    with(sub {
        my $env = env('', undef, HTTP_COOKIE => 'a=1');
        my $first = Plack::Request->new($env)->cookies;
        is(Plack::Request->new($env)->cookies, $first, 'cookies are parsed once');
        $env->{HTTP_COOKIE} = 'a=2';
        is(Plack::Request->new($env)->cookies->{a}, 2, '… unless the field has changed');
    });
};

# A framework's own request, as Kossy's is: with a parser that its class builds.
package Own::Request {
    our @ISA = 'Plack::Request';
    sub request_body_parser {
        my ($self) = @_;
        require HTTP::Entity::Parser;
        return $self->{request_body_parser} ||= do {
            my $parser = HTTP::Entity::Parser->new;
            $parser->register('application/json', 'HTTP::Entity::Parser::JSON');
            $parser;
        };
    }
}

subtest 'classes of other parsers' => sub {
    plan skip_all => 'HTTP::Entity::Parser::JSON is not there' if !eval { require HTTP::Entity::Parser };
    with(sub {
        is_deeply [Own::Request->new(env('{"a":1}', 'application/json'))->body_parameters->flatten], ['a', 1], "a class's own parser stays";
        my $request = Plack::Request->new(env('{"a":1}', 'application/json'));
        $request->request_body_parser->register('application/json', 'HTTP::Entity::Parser::JSON');
        is_deeply [$request->body_parameters->flatten], ['a', 1], 'a class of HTTP::Entity::Parser can be registered';
        is_deeply [Plack::Request->new(env('{"a":1}', 'application/json'))->body_parameters->flatten], [], '… for that request';
    });
};

subtest 'options' => sub {
    my $status = sub { my ($env, @import) = @_; eval { with(sub { Plack::Request->new($env)->uploads }, @import); 1 } ? 'taken' : ref $@ ? $@->status : $@ };
    my $two = part('a', '12', '; filename=x') . part('b', '345', '; filename=y') . part('c', '67', '') . '--b--';
    is $status->(env($two, $PARTS), files_max => 2), 'taken', 'as many files as allowed';
    is $status->(env($two, $PARTS), files_max => 1), 413, 'a file more';
    is $status->(env($two, $PARTS)), 'taken', 'options last until the next import';
    is $status->(env($two, $PARTS), parts_max => 2), 413, 'a part more';
    is $status->(env($two, $PARTS), memory_max => 1), 413, 'a byte more';
    is $status->(env($two, $PARTS), part_head_max => 10), 413, 'a longer head';
    is $status->(env('a' . '&' x 65_536, $FORM)), 413, 'a pair more';
    is $status->(env('', undef, QUERY_STRING => '&' x 65_536)), 'taken', 'which is looked at when it is asked for';
    like $status->(env('--b', $PARTS)), qr/\A\w.* at \S+ line \d+\.\n\z/, 'a cut body dies with a string, as there';
    like $status->(env('x', 'multipart/form-data')), qr/\AInvalid boundary in content_type: multipart\/form-data at /, 'no boundary, too';
    like $status->({}, file_max => 1), qr/\AOribi::Plack: no option file_max at \S+54-plack\.t line/, 'an unknown option';
    like $status->({}, files_max => 'many'), qr/files_max is no number/, 'a word';
    my $other = File::Temp->newdir;
    with(sub { my $env = env(upload(), $PARTS); like(Plack::Request->new($env)->upload('f')->path, qr/\A\Q$other\E\//, 'tempdir') }, tempdir => "$other");
};

subtest 'cookies of answers' => sub {
    my $answer = sub { my $response = Plack::Response->new(200); $response->cookies->{a} = { value => 'b c', path => $_[0] }; return $response->finalize->[1][1] };
    is_deeply [with(sub { $answer->('/') }, ':response'), $answer->('/')], ['a=b%20c; path=/', 'a=b%20c; path=/'], 'baked here and there';
    ok !eval { with(sub { $answer->("/\r\nSet-Cookie: x=y") }, ':response'); 1 }, 'none becomes two fields';
    ok eval { with(sub { $answer->('/;x') }); 1 }, 'without :response they are left alone';
};

subtest 'Dancer2' => sub {
    plan skip_all => 'Dancer2 is not installed' if !eval { require Dancer2 };
    my $dir = File::Temp->newdir(DIR => $TMP);
    eval sprintf <<'APP', "$dir" or die $@;
        package Own::Dancer;
        use Dancer2;
        set logger => 'null';
        post '/' => sub {
            my $upload = upload('f');
            return join '|', body_parameters->get('a'), query_parameters->get('q'), cookie('c')->value, $upload->content,
                $upload->link_to('%1$s/link'), $upload->copy_to('%1$s/copy'), $upload->basename;
        };
        1;
APP
    my $app = Own::Dancer->to_app;
    my $ask = sub { my $response = $app->(env($_[0], $_[1] // $PARTS, QUERY_STRING => 'q=2', HTTP_COOKIE => 'c=3', 'psgi.url_scheme' => 'http')); [$response->[0], ref $response->[2] eq 'ARRAY' ? $response->[2][0] : ''] };
    with(sub {
        is_deeply $ask->(part('a', '1', '') . upload('text')), [200, '1|2|3|text|1|1|C:\\dir\\a b.txt'], 'fields, cookies, and what it does with an upload';
        is $ask->('--b')->[0], 400, 'a cut body';
        is $ask->('x', 'multipart/form-data')->[0], 400, 'no boundary';
    });
    is_deeply [map { slurped("$dir/$_") } qw(link copy)], ['text', 'text'], 'which outlives the request';
};

# --- uploads on the disk ---

# Dancer2 wants a text for what a request dies of, and answers 400 with it.
subtest 'malformed bodies in Dancer2' => sub {
    plan skip_all => 'Dancer2 is not there' if !eval { require Dancer2 };
    my $app = eval q{package T::Dancer; use Dancer2; set logger => 'null'; post '/' => sub { upload('f')->size }; T::Dancer->to_app} or die $@;
    my @server = (SERVER_NAME => 'a', SERVER_PORT => 80, SERVER_PROTOCOL => 'HTTP/1.1', 'psgi.url_scheme' => 'http', 'psgi.version' => [1, 1], 'psgi.errors' => \*STDERR);
    my $answer = sub { my ($body) = @_; my $answer = $app->(env($body, $PARTS, @server)); return "$answer->[0] " . join '', @{ $answer->[2] } };
    is $answer->(upload()), '200 4', 'a good one';
    like $answer->('junk'), qr/\A400 /, 'a malformed one';
    is join('', with(sub { $answer->(upload()) })), '200 4', 'a good one, with Oribi::Plack';
    like join('', with(sub { $answer->('junk') })), qr/\A400 .*the body ends before/s, 'a malformed one';
    like join('', with(sub { $answer->(upload()) }, files_max => 0)), qr/\A400 .*too many files/s, 'too much';
};

subtest 'what programs do with an upload' => sub {
    my $dir = File::Temp->newdir(DIR => $TMP);
    for my $way (
        [rename => sub { rename $_[0], $_[1] }], [link => sub { link $_[0], $_[1] }],
        ['File::Copy::move' => sub { File::Copy::move($_[0], $_[1]) }], ['File::Copy::copy' => sub { File::Copy::copy($_[0], $_[1]) }],
        ['another program' => sub { system('cp', '--', $_[0], $_[1]) == 0 }],
    ) {
        my ($name, $code) = @$way;
        my $path;
        with(sub {
            my $env = env(upload('text'), $PARTS);
            my $upload = Plack::Request->new($env)->upload('f');
            $path = $upload->path;
            is $upload->tempname, $path, "$name: path and tempname";
            is sprintf('%o', (stat $path)[2] & oct 7777), '600', "$name: nobody else reads it";
            ok $code->($path, "$dir/$name" =~ s/::/-/gr), "$name: succeeds";
        });
        is slurped("$dir/$name" =~ s/::/-/gr), 'text', "$name: its text outlives the request";
        ok !-e $path, "$name: nothing else does";
    }
    is scalar(left()), 1, 'one folder, whatever has been uploaded';
};

# Runs the code in a child; gives its pid when it is dead.
sub in_a_child {
    my ($code) = @_;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        Test::More->builder->no_ending(1);
        $code->();
        POSIX::_exit(0);
    }
    waitpid $pid, 0;
    return $pid;
}

subtest 'folders of processes' => sub {
    my @before = left();
    in_a_child(sub { with(sub { my $env = env(upload(), $PARTS); Plack::Request->new($env)->uploads; kill KILL => $$ }) });
    my @orphan = grep { my $path = $_; !grep { $_ eq $path } @before } left();
    is scalar @orphan, 1, 'a killed process leaves its folder';
    is scalar(() = glob "$orphan[0]/*"), 1, '… with the upload';
    mkdir "$TMP/oribi-upload-0123456789abcdef" or die $!;
    symlink "$TMP", "$TMP/oribi-upload-fedcba9876543210" or die $!;
    Oribi::Multipart::Folder::sweep();
    is_deeply [left()], [@before, "$TMP/oribi-upload-fedcba9876543210"], 'the next process removes it, not its own, and follows no link';
    unlink "$TMP/oribi-upload-fedcba9876543210";

    my $env = env(upload(), $PARTS);
    my ($path) = with(sub { Plack::Request->new($env)->upload('f')->path });
    in_a_child(sub { undef $env; Oribi::Multipart::Folder::sweep(); exit 0 });
    ok -e $path, "a child ends, and leaves its parent's uploads alone";

    in_a_child(sub { with(sub { my $env = env(upload(), $PARTS); Plack::Request->new($env)->uploads; left() == 2 or kill KILL => $$; exit 0 }) });
    is_deeply [left()], [@before], 'a child that has uploads has a folder of its own, and takes it along';
    is $?, 0, '… which was there';

    my $again = sub { with(sub { my $env = env(upload(), $PARTS); slurped(Plack::Request->new($env)->upload('f')->path) }) };
    undef $env;
    rmdir $before[0] or die "$before[0]: $!";
    is_deeply [$again->()], ['text'], 'a folder that a cleaner of old files has removed is made again';
};

# The server of others: no one sweeps but the next process.
subtest 'under another server' => sub {
    my @command = ($^X, (map {"-I$_"} @INC), '-MOribi::Plack', '-MPlack::Request');
    my $before = left();
    in_a_child(sub { exec @command, '-e', 'my $env = { CONTENT_TYPE => "multipart/form-data; boundary=b", CONTENT_LENGTH => length $ARGV[0], "psgix.input.buffered" => 1 };'
        . 'open $env->{"psgi.input"}, "<", \$ARGV[0]; Plack::Request->new($env)->uploads; kill KILL => $$', '--', upload() });
    is left(), $before + 1, 'a killed process';
    in_a_child(sub { exec @command, '-e', '1' });
    is left(), $before, 'the next one, when it loads the module';
};

done_testing;
