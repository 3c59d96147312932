use strict;
use warnings;
use Config;
use lib 't/lib';
use OribiTest;
use Test::More;
use B ();
use Oribi::Multipart;

# A body in memory is the core's: psgi.input reads it there, parsers of whole bodies find it there, and who keeps the
# handle longer than the request gets a copy.

my @TEXT = ('Content-Type' => 'text/plain');
my $TYPE = 'multipart/form-data; boundary=b';

sub post {
    my ($path, $body, $type) = @_;
    $type //= 'application/x-www-form-urlencoded';
    return "POST $path HTTP/1.1\r\nHost: a\r\nContent-Type: $type\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
}

sub multipart {
    my ($file) = @_;
    return "--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nHolidays\r\n"
        . "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f.bin\"\r\n\r\n$file\r\n--b--";
}

sub slurp {
    my ($input) = @_;
    seek $input, 0, 0;
    local $/;
    return scalar(<$input>) // '';
}

sub parsed {
    my ($env, %options) = @_;
    my $parser = Oribi::Multipart->new;
    $parser->register('multipart/form-data', 'Oribi::Multipart::MultiPart', \%options);
    $parser->register('application/x-www-form-urlencoded', 'Oribi::Multipart::UrlEncoded');
    $parser->register('application/json', 'Oribi::Multipart::JSON') if $env->{CONTENT_TYPE} eq 'application/json';
    my ($params, $uploads) = $parser->parse($env);
    return join '|', @$params, map { ref $_ ? $_->{size} : $_ } @$uploads;
}

my @kept;
my $thread;
my %ROUTE = (
    '/lies' => sub {
        my $bytes = Oribi::Multipart::_lying($_[0]{'psgi.input'});
        return $bytes ? B::svref_2object($bytes)->LEN . " $$bytes" : 'no';
    },
    '/layer' => sub { binmode $_[0]{'psgi.input'}, ':utf8'; Oribi::Multipart::_lying($_[0]{'psgi.input'}) ? 'yes' : 'no' },
    '/parse' => sub { my ($env) = @_; parsed($env) . ' ' . tell($env->{'psgi.input'}) . ' ' . length slurp($env->{'psgi.input'}) },
    '/read-before' => sub { my ($env) = @_; read $env->{'psgi.input'}, my $some, 3; parsed($env) },
    '/twice' => sub { my ($env) = @_; parsed($env) . ' ' . parsed($env) },
    '/refused' => sub {
        my ($env) = @_;
        my $left = '';
        eval { parsed($env); 1 } or $left = $@->status;
        parsed($env, on_error => sub { $left .= " $_[0]" });
        return "$left " . length slurp($env->{'psgi.input'});
    },
    '/keep-env' => sub { @kept = ($_[0]); 'kept' },
    '/keep-handle' => sub { @kept = ({ 'psgi.input' => $_[0]{'psgi.input'} }); 'kept' },
    '/keep-io' => sub { @kept = ({ 'psgi.input' => *{ $_[0]{'psgi.input'} }{IO} }); 'kept' },
    '/keep-glob' => sub { open my $other, '<', \'' or die; *$other = *{ $_[0]{'psgi.input'} }; @kept = ({ 'psgi.input' => $other }); 'kept' },
    '/keep-dup' => sub { open my $dup, '<&', $_[0]{'psgi.input'} or return "no dup: $!"; @kept = ({ 'psgi.input' => $dup }); 'kept' },
    '/keep-bytes' => sub { @kept = (Oribi::Multipart::_lying($_[0]{'psgi.input'})); 'kept' },
    '/kept' => sub { my $kept = shift @kept; ref $kept eq 'HASH' ? slurp($kept->{'psgi.input'}) : $$kept },
    '/fork' => sub {
        my ($env) = @_;
        pipe my $reader, my $writer or die $!;
        my $pid = fork // die $!;
        if (!$pid) { print $writer slurp($env->{'psgi.input'}); close $writer; require POSIX; POSIX::_exit(0) }
        close $writer;
        waitpid $pid, 0;
        return scalar <$reader>;
    },
    '/thread' => sub {
        my ($env) = @_;
        $thread = threads->create({ context => 'scalar' }, sub { threads->yield for 1 .. 100; slurp($env->{'psgi.input'}) });
        return 'started';
    },
    '/joined' => sub { $thread->join },
);
my $app = sub {
    my ($env) = @_;
    my $path = $env->{PATH_INFO};
    return sub { my $writer = $_[0]->([200, [@TEXT]]); $writer->write(slurp($env->{'psgi.input'})); $writer->close } if $path eq '/stream';
    if ($path eq '/cleanup') {
        push @{ $env->{'psgix.cleanup.handlers'} }, sub { my ($env) = @_; @kept = (\slurp($env->{'psgi.input'})) };
        return [200, [@TEXT], ['later']];
    }
    die $env if $path eq '/die';
    return [200, [@TEXT], [$ROUTE{$path}->($env)]];
};

my $server = serve($app, body_memory_max => '4K');
my $client = $server->connect;

sub ask {
    my ($path, $body, $type) = @_;
    $client->send(defined $body ? post($path, $body, $type) : "GET $path HTTP/1.1\r\nHost: a\r\n\r\n");
    return $client->response->{body};
}

subtest 'the bytes are the core\'s' => sub {
    is ask('/lies', 'abc'), '0 abc', 'a scalar that has no buffer of its own';
    is ask('/lies', 'x' x 4096), '0 ' . 'x' x 4096;
    is ask('/lies', 'x' x 4097), 'no', 'a file';
    is ask('/lies'), 'no', 'no body';
    is ask('/layer', 'abc'), 'no', 'a handle with layers reads other bytes';
};

subtest 'parsed where they lie' => sub {
    is ask('/parse', 'a=1&b=2'), 'a|1|b|2 0 7', 'the handle stands at its beginning';
    is ask('/parse', multipart('x' x 1000), $TYPE), 'title|Holidays|f|1000 0 ' . length multipart('x' x 1000);
    is ask('/parse', multipart('x' x 300_000), $TYPE), 'title|Holidays|f|300000 0 ' . length multipart('x' x 300_000), 'from a file';
    is ask('/parse', 'a=' . 'v' x 5000), 'a|' . 'v' x 5000 . ' 0 5002', 'a form in a file';
    is ask('/parse', '{"a":1}', 'application/json'), 'a|1 0 7';
    is ask('/read-before', 'a=1&b=2'), 'a|1|b|2', 'from the beginning, wherever it stood';
    is ask('/twice', multipart('x'), $TYPE), 'title|Holidays|f|1 title|Holidays|f|1';
    for my $size (1, 5000) {
        my $cut = substr multipart('x' x $size), 0, -4;
        is ask('/refused', $cut, $TYPE), '400 the body ends before its closing delimiter ' . length $cut, "cut, $size";
    }
};

subtest 'who keeps it gets a copy' => sub {
    for my $way (qw(env handle io glob dup bytes)) {
        my $body = "kept by its $way";
        is ask("/keep-$way", $body), 'kept';
        is ask('/parse', 'other=bytes'), 'other|bytes 0 11' for 1 .. 3;
        is ask('/kept'), $body;
    }
};

subtest 'what runs after the application returned' => sub {
    is ask('/stream', 'streamed'), 'streamed';
    is ask('/cleanup', 'cleaned up'), 'later';
    is ask('/kept'), 'cleaned up';
    my $error = ask('/die', 'dead');
    $client = $server->connect;
    like $error, qr/500/;
    is ask('/lies', 'alive'), '0 alive';
};

is ask('/fork', 'in a child'), 'in a child';

SKIP: {
    skip 'this perl has no threads', 2 if !$Config{useithreads};
    my $threaded = serve(sub { require threads; $app->(@_) }, body_memory_max => '4K');
    $client = $threaded->connect;
    is ask('/thread', 'in a thread'), 'started';
    ask('/parse', 'b' x 11) for 1 .. 3;
    is ask('/joined'), 'in a thread';
    $threaded->stop;
}

is $server->stop, 0;
done_testing;
