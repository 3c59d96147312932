use strict;
use warnings;
use lib 't/lib';
use File::Temp ();
use OribiTest;
use Test::More;

# Bodies that are handles or objects. Every one of them is closed, whatever happens.

package Body;
my $closed = 0;
sub new { my ($class, @records) = @_; return bless { records => [@records], separator => undef }, $class }

sub getline {
    my ($self) = @_;
    $self->{separator} = ref $/ ? ${$/} : $/;
    my $record = shift @{ $self->{records} };
    return ref $record eq 'CODE' ? $record->($self) : $record;
}
sub close { $closed++; return }

package Body::Path;
our @ISA = 'Body';
sub path { $_[0]{path} }

package Body::Handle;    # a real handle whose getline() gives something else
require IO::File;
our @ISA = 'IO::File';
sub getline { my $line = $_[0]->SUPER::getline; return defined $line ? uc $line : undef }

package Body::Array;
sub new { bless ['a', 'b'], $_[0] }
sub getline { shift @{ $_[0] } }
sub close { $closed++ }

package Body::NoClose;
sub new { bless { n => 0 }, $_[0] }
sub getline { $_[0]{n}++ < 2 ? 'x' : undef }

package Body::CloseDies;
our @ISA = 'Body';
sub close { $closed++; die "close failed\n" }

package Body::Asks;    # runs code when it is asked for its path, or printed as an element
our @ISA = 'Body';
use overload '""' => sub { $_[0]{code}->() }, fallback => 1;
sub path { $_[0]{code}->() }
sub with { my ($class, $code) = @_; my $self = $class->new; $self->{code} = $code; return $self }

package Tied;
sub TIEHANDLE { bless { n => 0 }, $_[0] }
sub READLINE { $_[0]{n}++ < 3 ? 'tied ' : undef }
sub CLOSE { $closed++ }

package main;

my $text = join '', map {"line $_\n"} 1 .. 30_000;
my $file = File::Temp->new;
print {$file} $text;
$file->flush;
my $name = $file->filename;
my $wide = File::Temp->new;
binmode $wide, ':encoding(UTF-8)';
print {$wide} "caf\x{e9}\n";
$wide->flush;

sub handle { my ($path, $layer) = @_; open my $fh, '<' . ($layer || ':raw'), $path or die "$path: $!"; return $fh }

my ($sys) = grep { -r $_ && -s $_ == 4096 } '/sys/kernel/mm/transparent_hugepage/enabled', glob('/sys/kernel/mm/*/*'), glob('/sys/kernel/*');
my @CHUNKED = ('Transfer-Encoding' => 'chunked');    # the application's own framing; more in spec/response/framed.case
my $framed = File::Temp->new;
print {$framed} "3\r\none\r\n0\r\n\r\n";
$framed->flush;
my @TEXT = ('Content-Type' => 'text/plain');
my %ROUTE = (
    handle => sub { [200, [@TEXT], handle($name)] },
    middle => sub { my $fh = handle($name); readline $fh for 1 .. 10; [200, [@TEXT], $fh] },
    seeked => sub { my $fh = handle($name); seek $fh, 5, 0; [200, [@TEXT], $fh] },
    at_end => sub { my $fh = handle($name); seek $fh, 0, 2; [200, [@TEXT], $fh] },
    file_object => sub { [200, [@TEXT], IO::File->new($name, 'r')] },
    cut => sub { [200, [@TEXT, 'Content-Length' => 10], handle($name)] },
    own_getline => sub { [200, [@TEXT], Body::Handle->new($name, 'r')] },
    memory => sub { open my $fh, '<', \$text; [200, [@TEXT], $fh] },
    layered => sub { [200, [@TEXT], handle($wide->filename, ':encoding(UTF-8)')] },
    crlf => sub { [200, [@TEXT], handle($name, ':crlf')] },
    pipe => sub { pipe my $read, my $write; print {$write} "through a pipe\n"; close $write; [200, [@TEXT], $read] },
    tied => sub { my $fh = do { local *FH }; tie *$fh, 'Tied'; [200, [@TEXT], $fh] },
    glob => sub { open our $FH, '<', $name or die; open FH, '<', $name or die; [200, [@TEXT], \*FH] },
    with_path => sub { require Plack::Util; my $fh = handle($name); Plack::Util::set_io_path($fh, $name); [200, [@TEXT], $fh] },
    path => sub { my $body = Body::Path->new('not this'); $body->{path} = $name; [200, [@TEXT], $body] },
    path_gone => sub { my $body = Body::Path->new('re', 'cords'); $body->{path} = "$name.no"; [200, [@TEXT], $body] },
    path_undef => sub { [200, [@TEXT], Body::Path->new('re', 'cords')] },
    records => sub { [200, [@TEXT], Body->new('one ', '', 0, ' two')] },
    sized => sub { [200, [@TEXT, 'Content-Length' => 6], Body->new('abc', 'def')] },
    separator => sub { my $body = Body->new(sub { ' ' }, sub { ref \$_[0] ? $_[0]{separator} : '' }); [200, [@TEXT], $body] },
    array => sub { [200, [@TEXT], Body::Array->new] },
    no_close => sub { [200, [@TEXT], Body::NoClose->new] },
    close_dies => sub { [200, [@TEXT], Body::CloseDies->new('x')] },
    dies_first => sub { [200, [@TEXT], Body->new(sub { die "first record\n" })] },
    dies_later => sub { [200, [@TEXT], Body->new('one', sub { die "second record\n" })] },
    wide => sub { [200, [@TEXT], Body->new('one', "\x{3042}")] },
    bad_header => sub { [200, ['X-A' => []], Body->new('x')] },
    bad_status => sub { ['x', [], Body->new('x')] },
    refused => sub { [200, ['X A' => 'b'], Body->new('x')] },
    proc => sub { [200, [@TEXT], handle('/proc/self/comm')] },
    proc_path => sub { my $body = Body::Path->new('records'); $body->{path} = '/proc/self/comm'; [200, [@TEXT], $body] },
    sys => sub { [200, [@TEXT], handle($sys)] },
    big => sub { my $n = 0; [200, [@TEXT], Body->new(('x' x 65536) x 100)] },
    framed => sub { [200, [@TEXT, @CHUNKED], Body->new("3\r\none\r\n", "4\r", "\n two\r\n", "0\r\n\r\n")] },
    framed_file => sub { [200, [@TEXT, @CHUNKED], handle($framed->filename)] },
    framed_path => sub { my $body = Body::Path->new("3\r\none\r\n0\r\n\r\n"); $body->{path} = $name; [200, [@TEXT, @CHUNKED], $body] },
    framed_badly => sub { [200, [@TEXT, @CHUNKED], Body->new('no size')] },
    framed_badly_later => sub { [200, [@TEXT, @CHUNKED], Body->new("3\r\none\r\n", 'no size')] },
    framed_short => sub { [200, [@TEXT, @CHUNKED], Body->new("3\r\none\r\n")] },
    closed => sub { [200, [@TEXT], [$closed]] },
    separator_after => sub { [200, [@TEXT], [$/ eq "\n" ? 'newline' : 'changed']] },
);

# A response whose body, or its element, does something with the interim answer or with the headers.
sub asking {
    my ($env, $deed) = @_;
    my @headers = (@TEXT, 'X-Long' => 'y' x 1000);
    my $ask = Body::Asks->with(sub { $deed->($env, \@headers); return $name });
    return [200, \@headers, $env->{HTTP_X_SHAPE} eq 'path' ? $ask : [$ask]];
}
$ROUTE{informs} = sub { asking($_[0], sub { $_[0]{'psgix.informational'}->(103, [Link => '</a>']) }) };
$ROUTE{changes} = sub {
    asking($_[0], sub { my (undef, $headers) = @_; undef $headers->[3]; my @fill = map { "\n" x 1000 } 1 .. 50; $headers->[3] = 'short' });
};
my $server = serve(sub { my ($env) = @_; $ROUTE{ substr $env->{PATH_INFO}, 1 }->($env) }, lint => 0);

sub closed { return get($server, '/closed')->{body} }

# Expects what the route gives and how many bodies of ours it closes.
sub gives {
    my ($route, $want, $closes, $what) = @_;
    my $before = closed();
    my $res = get($server, "/$route");
    is $res->{status}, 200, "$route: 200";
    ok $res->{body} eq $want, "$route: " . ($what || 'the body') or diag substr($res->{body}, 0, 80);
    ok $res->{complete}, "$route: complete";
    is closed() - $before, $closes, "$route: close";
    return $res;
}

my ($rest) = $text =~ /\A(?:[^\n]*\n){10}(.*)\z/s;
is_deeply gives(handle => $text, 0)->{fields}{'content-length'}, [length $text], 'a file has a length';
gives(middle => $rest, 0, 'from where the handle stands, not where its buffer ends');
gives(seeked => substr($text, 5), 0);
gives(at_end => '', 0);
gives(file_object => $text, 0);
gives(cut => substr($text, 0, 10), 0);
gives(own_getline => uc $text, 0, 'what its getline gives');
ok !gives(memory => $text, 0)->{fields}{'content-length'}, 'read in records';
gives(layered => "caf\xe9\n", 0, 'what its layers give');
gives(crlf => $text, 0);
SKIP: {
    skip 'there is no /proc here', 8 unless -r '/proc/self/comm';
    my $res = get($server, '/proc');
    like $res->{body}, qr/\A.+\n\z/, 'a file that says it is empty and is not';
    ok $res->{complete};
    gives(proc_path => 'records', 1, 'by its name it is left to getline');
}
SKIP: {
    skip 'there is no /sys here', 4 unless $sys;
    gives(sys => do { open my $fh, '<', $sys or die; local $/; <$fh> }, 0, 'a file that is shorter than it says');
}
gives(pipe => "through a pipe\n", 0);
gives(tied => 'tied tied tied ', 1);
gives(glob => $text, 0);
gives(with_path => $text, 0);
is_deeply gives(path => $text, 1)->{fields}{'content-length'}, [length $text], 'the path was sent';
gives(path_gone => 'records', 1);
gives(path_undef => 'records', 1);
gives(records => 'one 0 two', 1);
is_deeply gives(sized => 'abcdef', 1)->{fields}{'content-length'}, [6];
gives(separator => ' 65536', 1, '$/ is a reference to 65536');
gives(separator_after => 'newline', 0);
gives(array => 'ab', 1);
gives(no_close => 'xx', 0);
gives(close_dies => 'x', 1);
like $server->log_text, qr{GET /close_dies: close of the body died: close failed};
gives(big => 'x' x 6_553_600, 1);

subtest 'headers hold, whatever the code of a body does meanwhile' => sub {
    for my $shape (qw(path element)) {
        my $before = closed();
        my $mark = length $server->log_text;
        for my $deed (qw(informs changes)) {
            my $client = $server->connect;
            $client->send("GET /$deed HTTP/1.1\r\nHost: a\r\nX-Shape: $shape\r\n\r\n");
            my $res = $client->response;
            if ($deed eq 'informs') {
                is $res->{status}, 103, "$shape: the interim answer";
                $res = $client->response;
            }
            is $res->{status}, 200, "$shape $deed: 200";
            is $res->{body}, $shape eq 'path' ? $text : $name, 'the body';
            is_deeply $res->{fields}{'x-long'}, [$deed eq 'changes' ? 'short' : 'y' x 1000], 'the header';
            ok !$res->{fields}{link}, 'none of the interim answer';
        }
        is substr($server->log_text, $mark), '', 'nothing to complain of';
        is closed() - $before, $shape eq 'path' ? 2 : 0, 'close';
    }
};

gives(framed => 'one two', 1, 'the content alone');
gives(framed_file => 'one', 0);
gives(framed_path => 'one', 1);

sub fails {
    my ($route, $status, $words, $complete) = @_;
    my $before = closed();
    my $mark = length $server->log_text;
    my $res = get($server, "/$route");
    is $res->{status}, $status, "$route: $status";
    is $res->{complete}, $complete, "$route: " . ($complete ? 'complete' : 'cut');
    is closed() - $before, 1, "$route: close";
    like substr($server->log_text, $mark), $words, "$route: logged";
    return;
}

fails(dies_first => 500, qr/the application died: first record/, 1);
fails(dies_later => 200, qr/the application died: second record/, 0);
fails(wide => 200, qr/wide character in record 1/, 0);
fails(bad_header => 500, qr/header value 0 is a reference/, 1);
fails(framed_badly => 500, qr/the answer says Transfer-Encoding: chunked, but its body is not framed so: malformed chunk size/, 1);
fails(framed_badly_later => 200, qr/is not framed so: malformed chunk size/, 0);
fails(framed_short => 200, qr/is not framed so: it ends before its last chunk/, 0);
fails(bad_status => 500, qr/the status is no integer/, 1);
fails(refused => 500, qr/header name is not a token/, 1);

subtest 'HEAD closes too, and reads nothing' => sub {
    for my $route (qw(handle records path)) {
        my $before = closed();
        my $res = request($server, "HEAD /$route HTTP/1.1\r\nHost: a\r\n\r\n");
        is $res->{status}, 200;
        is closed() - $before, $route eq 'handle' ? 0 : 1, $route;
    }
};

subtest 'HTTP/1.0: a body of unknown length ends with the connection' => sub {
    my $res = request($server, "GET /records HTTP/1.0\r\n\r\n");
    is $res->{body}, 'one 0 two';
    ok !$res->{fields}{'transfer-encoding'};
};

subtest 'a client that leaves in the middle' => sub {
    my $before = closed();
    my $mark = length $server->log_text;
    for (1 .. 3) {
        my $client = $server->connect;
        $client->send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
        $client->fill;
        $client->close;
    }
    is closed() - $before, 3, 'its bodies are closed';
    is substr($server->log_text, $mark), '', 'nobody complains';
};

is $server->stop, 0;
done_testing;
