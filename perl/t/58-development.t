use strict;
use warnings;
use lib 't/lib';
use Cwd ();
use File::Temp ();
use JSON::PP ();
use Oribi::App ();
use Oribi::Development ();
use Test::More;

# The page of an error: what Oribi::Development makes of what an application died with.

my $dir = Cwd::realpath(File::Temp::tempdir(CLEANUP => 1));
my $file = "$dir/app.psgi";

sub write_app {
    my ($source) = @_;
    open my $fh, '>', $file or die $!;
    print {$fh} $source;
    close $fh or die $!;
    return;
}

sub load_failure {
    my ($source) = @_;
    write_app($source);
    eval { Oribi::App::_from_file($file); 1 } and die 'it loads';
    return Oribi::Development::load_failure($@, $file);
}

sub json {
    my ($app, %env) = @_;
    my $answer = $app->({ REQUEST_METHOD => 'GET', HTTP_ACCEPT => 'application/json', %env });
    is $answer->[0], 500, 'status';
    return JSON::PP->new->utf8->decode(join '', @{ $answer->[2] });
}

my $error = json(load_failure("my \$x = 1;\n\ndie 'no shop';\nsub { };\n"));
like $error->{error}, qr/\Ano shop at /, 'the message';
is_deeply [@$error{qw(file line)}], ['app.psgi', 3], 'and its place';
is $error->{source}[2]{text}, "die 'no shop';", 'with the line';
is_deeply $error->{headers}, {}, 'a request has no part in it';

$error = json(load_failure("use strict;\nsub { \$nowhere };\n"));
like $error->{error}, qr/Global symbol "\$nowhere"/, 'a compile error';
is_deeply [@$error{qw(file line)}], ['app.psgi', 2], 'and its place';

$error = json(load_failure("use strict;\nuse No::Such::Module;\n"));
like $error->{error}, qr/Can't locate No\/Such\/Module\.pm/, 'a module that is missing: all that Perl says';
is $error->{line}, 2, 'and its place';

my $app = load_failure("die '<b>';\n");
my $answer = $app->({ REQUEST_METHOD => 'GET', HTTP_ACCEPT => 'text/html,*/*' });
my %headers = @{ $answer->[1] };
is $headers{'Content-Type'}, 'text/html; charset=utf-8', 'HTML';
is $headers{'Cache-Control'}, 'no-store', 'not kept';
is $headers{'Content-Length'}, length $answer->[2][0], 'length';
like $answer->[2][0], qr/&lt;b&gt;/, 'escaped';
$answer = $app->({ REQUEST_METHOD => 'HEAD', HTTP_ACCEPT => 'text/html' });
is_deeply $answer->[2], [], 'HEAD';
$answer = $app->({ REQUEST_METHOD => 'GET' });
like $answer->[2][0], qr/\A<b> at /, 'plain text';

# A call: the handler of die keeps the frames.
{
    my ($page, $handler) = Oribi::Development::for_calls($file);
    my $inner = eval "#line 7 \"$dir/inner.pl\"\npackage Shop; sub buy { die { code => 4 } } sub cart { buy() } \\&cart" or die $@;
    $inner = eval "#line 7 \"$dir/inner.pl\"\npackage Shop; sub pay { die \"no money\\n\" }\nsub cart2 { pay() } \\&cart2" or die $@;
    local $SIG{__DIE__} = $handler;
    eval { $inner->() };
    my $died = $@;
    eval { die $died };    # thrown again
    my %env = (
        REQUEST_METHOD => 'POST', PATH_INFO => '/cart', HTTP_ACCEPT => 'application/json', HTTP_COOKIE => 'sid=geheim',
        HTTP_AUTHORIZATION => 'Basic geheim', QUERY_STRING => 'token=geheim&page=2', 'psgix.session' => { a => 'geheim' },
        'plack.request.body_parameters' => [password => 'geheim', name => 'Jo'],
    );
    my ($type, $text) = $page->($died, \%env);
    unlike $text, qr/geheim/, 'no secrets';
    my $facts = JSON::PP->new->utf8->decode($text);
    is $facts->{error}, 'no money', 'the message';
    is_deeply [map {"$_->{file}:$_->{line} $_->{name}"} @{ $facts->{trace} }[0, 1]], ['inner.pl:7 Shop::pay', 'inner.pl:8 Shop::cart2'],
        'frames of the first time';
    is_deeply $facts->{parameters}, { token => '[hidden]', page => 2, password => '[hidden]', name => 'Jo' }, 'parameters';
    is $facts->{title}, 'POST /cart', 'title';

    my @heard;
    local $Oribi::Development::theirs = sub { push @heard, $_[0] };
    eval { die "heard\n" };
    is_deeply \@heard, ["heard\n"], 'the handler that was there is called';
    local $Oribi::Development::theirs = 'main::by_name';
    our @by_name;
    no warnings 'once';
    *by_name = sub { push @by_name, $_[0] };
    eval { die "named\n" };
    is_deeply \@by_name, ["named\n"], 'also by its name';

    # Without an environment: the client of a WebSocket.
    eval { $inner->() };
    is_deeply [$page->($@)], ['no money', 'inner.pl:7'], 'text and place';
    is_deeply [$page->("words at /home/me/Room.pm line 12.\nmore\n")], ['words', 'Room.pm:12'], 'a place in the text';
    is_deeply [$page->("\x{e9}\x{263a}\n")], ["\xc3\xa9\xe2\x98\xba", ''], 'characters';
    is_deeply [$page->("\xc3\xa9\n")], ["\xc3\xa9", ''], 'bytes of UTF-8';
    is_deeply [$page->("\xe9\n")], ["\xc3\xa9", ''], 'other bytes';
    like join('|', $page->(bless [], 'No::Text')), qr/\ANo::Text=ARRAY\(0x\w+\)\|\z/, 'an object without a text';

    ($type, $text) = $page->((bless [], 'No::Text'), { REQUEST_METHOD => 'GET' });
    like $text, qr/\ANo::Text: bless\( \[\]/, 'an object without a text';
    ($type, $text) = $page->({ code => 42 }, { REQUEST_METHOD => 'GET' });
    like $text, qr/\A\{\n\s+'code' => 42\n/, 'a reference to data';
}

done_testing;
