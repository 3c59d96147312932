use strict;
use warnings;
use lib 't/lib';
use OribiTest;
use Test::More;
use Oribi::Multipart;

# With multipart_stream: a long form is taken apart by the core, Oribi::Multipart takes the parts, and psgi.input reads
# the whole body as ever.

my @TEXT = ('Content-Type' => 'text/plain');
my $TYPE = 'multipart/form-data; boundary=b';
my $big = join '', map { chr(($_ * 7) % 256) } 1 .. 300_000;

sub part {
    my ($name, $content, $file) = @_;
    $file = defined $file ? "; filename=\"$file\"" : '';
    return "--b\r\nContent-Disposition: form-data; name=\"$name\"$file\r\n\r\n$content\r\n";
}

my $body = part('title', 'Holidays') . part('big', $big, 'big.bin') . part('small', 's' x 1000, 's.bin') . part('end', 'x') . "--b--\r\n";

sub post {
    my ($path, $body, $type) = @_;
    $type //= $TYPE;
    return "POST $path HTTP/1.1\r\nHost: a\r\nContent-Type: $type\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
}

sub slurp { my ($path) = @_; open my $in, '<:raw', $path or die "$path: $!"; local $/; return scalar <$in> }
sub whole { my ($input) = @_; seek $input, 0, 0; local $/; return scalar <$input> }

sub parsed {
    my ($env) = @_;
    my $parser = Oribi::Multipart->new;
    $parser->register('multipart/form-data', 'Oribi::Multipart::MultiPart');
    my ($params, $uploads) = $parser->parse($env);
    my %upload = @$uploads;
    return "@$params " . join ' ', map { "$_ $upload{$_}{filename} $upload{$_}{size} " . (slurp($upload{$_}{tempname}) eq ($_ eq 'big' ? $big : 's' x 1000) ? 'same' : 'other') } sort keys %upload;
}

# Where nobody tells, nothing is said of what was copied.
sub written { return -e '/proc/self/io' && slurp('/proc/self/io') =~ /^wchar: (\d+)/m ? $1 : 0 }

my @kept;
my %ROUTE = (
    '/parse' => \&parsed,
    '/written' => sub { my $before = written(); parsed($_[0]); written() - $before < length($big) / 2 ? 'no copy' : 'a copy' },
    '/read' => sub {
        my ($env) = @_;
        my $input = $env->{'psgi.input'};
        my $n = $input->read(my $start, 5);
        my $line = <$input>;
        return join ' ', $n, $start, tell($input), $line eq substr($body, 5, length $line), whole($input) eq $body, eof($input), $input->eof, fileno($input) > 2, tell($input) == length $body;
    },
    '/both' => sub { my ($env) = @_; parsed($env) . ' ' . (whole($env->{'psgi.input'}) eq $body) . ' ' . parsed($env) },
    '/twice' => sub { my ($env) = @_; parsed($env) eq parsed($env) ? 'same' : 'other' },
    '/moved' => sub {
        my ($env) = @_;
        my $parser = Oribi::Multipart->new;
        $parser->register('multipart/form-data', 'Oribi::Multipart::MultiPart');
        my (undef, $uploads) = $parser->parse($env);
        my %upload = @$uploads;
        my $path = "$upload{big}{tempname}.moved";
        rename $upload{big}{tempname}, $path or return "rename: $!";
        my $same = slurp($path) eq $big;
        unlink $path;
        return $same ? 'moved' : 'other';
    },
    '/raw' => sub { Oribi::Multipart->new->parse($_[0]); whole($_[0]{'psgi.input'}) eq $body ? 'same' : 'other' },
    '/fork' => sub {
        my ($env) = @_;
        my $pid = fork // die $!;
        if (!$pid) { require POSIX; POSIX::_exit(whole($env->{'psgi.input'}) eq $body ? 0 : 1) }
        waitpid $pid, 0;
        return $? >> 8;
    },
    '/close' => sub { my $input = $_[0]{'psgi.input'}; join ' ', close($input), defined(scalar <$input>) ? 'read' : 'closed' },
    '/keep' => sub { @kept = $_[0]{'psgi.input'}; 'kept' },
    '/kept' => sub { my $input = $kept[0]; defined(read($input, my $bytes, 5)) ? 'read' : 'closed' },
    '/kind' => sub { tied *{ $_[0]{'psgi.input'} } ? 'parts' : fileno($_[0]{'psgi.input'}) < 0 ? 'memory' : 'file' },
);
my $app = sub { my ($env) = @_; return [200, [@TEXT], [$ROUTE{ $env->{PATH_INFO} }->($env)]] };
my $server = serve($app, multipart_stream => 'on', verbose => 0);
my $client = $server->connect;

sub ask {
    my ($path, $text, $type) = @_;
    $client->send(post($path, $text // $body, $type));
    my $response = $client->response;
    $client = $server->connect if $response->{status} != 200;
    return $response->{status} == 200 ? $response->{body} : $response->{status};
}

my $expected = 'title Holidays end x big big.bin 300000 same small s.bin 1000 same';

is ask('/parse'), $expected;
SKIP: {
    skip 'elsewhere a file that has no name gets none: the upload is a copy', 1 if Oribi::Options->_layer ne 'linux';
    is ask('/written'), 'no copy', 'the file that the core has written is the upload\'s';
}
is ask('/read'), "5 --b\r\n 5 1 1 1 1 1 1" =~ s/ 5 1/ ' ' . (5 + length(($body =~ m{\A.{5}(.*?\n)}s)[0])) . ' 1'/er, 'it reads as a file';
is ask('/both'), "$expected 1 $expected", 'parsed, then read, then parsed';
is ask('/twice'), 'same';
is ask('/moved'), 'moved', 'an upload has a name';
is ask('/raw'), 'same', 'a type that no parser is registered for';
is ask('/fork'), 1, 'a child of the application reads what was read before the fork, and nothing else';
is ask('/close'), '1 closed';
is ask('/keep'), 'kept';
is ask('/kept'), 'closed';

is ask('/kind'), 'parts';
is ask('/kind', part('a', 'x') . '--b--'), 'memory';
is ask('/kind', $body, 'multipart/mixed; boundary=b'), 'memory', 'no form, and there is memory';
is ask('/parse', substr($body, 0, -8)), 400, 'cut';
is ask('/parse', $body, 'multipart/form-data'), 400, 'without a boundary';
is ask('/parse', part('f', 'x' x 600, 'f') x 129 . part('g', $big) . '--b--'), 413, 'too many files';

is $server->stop, 0;
done_testing;
