use strict;
use warnings;
use lib 't/lib';
use File::Temp ();
use IO::File ();
use OribiTest;
use Plack::Builder;
use Plack::Util ();
use Test::More;

# Bodies that only say what they can do when they are asked, as those of Plack::Util::inline_object, and Plack's own
# middleware around every kind of body.

my $closed = 0;

# Methods by AUTOLOAD, and no can() of its own, so that can() says no.
package Body::Autoload {
    our $AUTOLOAD;
    sub new { my ($class, @records) = @_; return bless { records => [@records] }, $class }

    sub AUTOLOAD {
        my ($self) = @_;
        my ($name) = $AUTOLOAD =~ /(\w+)\z/;
        return shift @{ $self->{records} } if $name eq 'getline';
        return $closed++ if $name eq 'close';
        die "no method $name\n";
    }
    sub DESTROY { }
}

# Says by can() what it cannot do, though AUTOLOAD would answer.
package Body::Without {
    our @ISA = 'Body::Autoload';
    sub can { my ($self, $name) = @_; return $name eq 'getline' ? sub { } : undef }
}

package Body::CanDies {
    our @ISA = 'Body::Autoload';
    sub can { my ($self, $name) = @_; die "asked for $name\n" if ref $self; return UNIVERSAL::can($self, $name) }
}

# An array in itself.
package Body::Array {
    our @ISA = 'Body::Autoload';
    sub new { my ($class, @records) = @_; return bless [@records], $class }
    sub can { my ($self, $name) = @_; return $name =~ /\A(?:getline|close)\z/ ? sub { } : undef }
    our $AUTOLOAD;

    sub AUTOLOAD {
        my ($self) = @_;
        return $AUTOLOAD =~ /getline\z/ ? shift @$self : $closed++;
    }
}

package Body::Strings { sub new { my ($class, @records) = @_; return bless [@records], $class } }

package Body::Methods {
    sub new { my ($class, @records) = @_; return bless { records => [@records] }, $class }
    sub getline { shift @{ $_[0]{records} } }
    sub close { $closed++ }
}

package Tied {
    sub TIEHANDLE { my ($class, @records) = @_; return bless [@records], $class }
    sub READLINE { shift @{ $_[0] } }
    sub CLOSE { $closed++ }
    sub FILENO { }
}

package main;

my @TEXT = ('Content-Type' => 'text/plain');
my $text = join '', map {"line $_ of a file\n"} 1 .. 20_000;
my $file = File::Temp->new;
print {$file} $text;
$file->flush;

sub handle { open my $fh, '<:raw', $file->filename or die $!; return $fh }
sub tied_handle { open my $fh, '<', \'' or die $!; tie *$fh, 'Tied', 'one ', 'two ', 'three'; return $fh }

sub inline {
    my @records = @_;
    return Plack::Util::inline_object(getline => sub { shift @records }, close => sub { $closed++ });
}

# name => [body, what it says, how often our close() is called]
my %BODY = (
    array => [sub { ['one ', 'two ', 'three'] }, 'one two three', 0],
    handle => [\&handle, $text, 0],
    io_file => [sub { IO::File->new($file->filename, 'r') }, $text, 0],
    memory => [sub { open my $fh, '<', \$text or die $!; $fh }, $text, 0],
    tied => [\&tied_handle, 'one two three', 1],
    methods => [sub { Body::Methods->new('one ', 'two ', 'three') }, 'one two three', 1],
    inline => [sub { inline('one ', 'two ', 'three') }, 'one two three', 1],
    autoload => [sub { Body::Autoload->new('one ', 'two ', 'three') }, 'one two three', 1],
);

# --- bodies as they are ---

my %PLAIN = (
    (map { $_ => $BODY{$_} } keys %BODY),
    without => [sub { Body::Without->new('a', 'b') }, 'ab', 0],
    no_close => [sub { my @records = ('a', 'b'); Plack::Util::inline_object(getline => sub { shift @records }) }, 'ab', 0],
    object_array => [sub { Body::Array->new('a', 'b') }, 'ab', 1],
    strings => [sub { Body::Strings->new('a', 'b') }, 'ab', 0],
    path => [sub { inline_path() }, $text, 1],
);

sub inline_path {
    my @records = ('not this');
    return Plack::Util::inline_object(getline => sub { shift @records }, close => sub { $closed++ }, path => sub { $file->filename });
}

sub route {
    my ($env) = @_;
    my ($name) = $env->{PATH_INFO} =~ m{\A/(\w+)\z} or return [404, [@TEXT], ['none']];
    return [200, [@TEXT], [$closed]] if $name eq 'closed';
    my $entry = $PLAIN{$name} or return [404, [@TEXT], ['none']];
    return [200, [@TEXT], $entry->[0]->()];
}

sub closed { return get($_[0], '/closed')->{body} }

subtest 'asked for their methods' => sub {
    my $server = serve(\&route, lint => 0);
    for my $name (sort keys %PLAIN) {
        my (undef, $want, $closes) = @{ $PLAIN{$name} };
        my $before = closed($server);
        my $res = get($server, "/$name");
        is $res->{status}, 200, "$name: 200";
        ok $res->{complete} && $res->{body} eq $want, "$name: the body" or diag substr $res->{body} // '', 0, 80;
        is closed($server) - $before, $closes, "$name: close";
    }
    is $server->log_text, '', 'nothing to complain of';
    $server->stop;
};

subtest 'can() that dies' => sub {
    my $server = serve(sub { [200, [@TEXT], Body::CanDies->new('x')] }, lint => 0);
    is get($server, '/')->{status}, 500 for 1 .. 2;
    like $server->log_text, qr/the application died: asked for getline/;
    like $server->log_text, qr/close of the body died: asked for close/;
    $server->stop;
};

subtest 'what has neither' => sub {
    my $server = serve(sub { [200, [@TEXT], Plack::Util::inline_object(read => sub { })] }, lint => 0);
    is get($server, '/')->{status}, 500;
    like $server->log_text, qr/the body is neither an array reference nor a handle, nor has it a getline method/;
    $server->stop;
};

# --- Plack's middleware ---

# name => [middleware, what becomes of the text]
my $upper = sub { my $text = shift; defined $text ? uc $text : undef };
my %AROUND = (
    Lint => [sub { enable 'Lint' }],
    Chunked => [sub { enable 'Chunked' }],    # frames the body itself
    ContentLength => [sub { enable 'ContentLength' }],
    ConditionalGET => [sub { enable 'ConditionalGET' }],
    'AccessLog::Timed' => [sub { enable 'AccessLog::Timed', logger => sub { } }],
    'SimpleContentFilter' => [sub { enable 'SimpleContentFilter', filter => sub { $_ = uc } }, sub { uc $_[0] }],
    Head => [sub { enable 'Head' }],
    Runtime => [sub { enable 'Runtime' }],
    StackTrace => [sub { enable 'StackTrace' }],
    XSendfile => [sub { enable 'XSendfile' }],
    BufferedStreaming => [sub { enable 'BufferedStreaming' }],
    filter => [sub { enable sub { my $app = shift; sub { Plack::Util::response_cb($app->(@_), sub { $upper }) } } }, $upper],
    twice => [
        sub {
            enable 'AccessLog::Timed', logger => sub { };
            enable sub { my $app = shift; sub { Plack::Util::response_cb($app->(@_), sub { $upper }) } };
            enable 'Lint';
        },
        $upper
    ],
);

sub around {
    my ($enable) = @_;
    return builder { $enable->(); \&route };
}

for my $name (sort keys %AROUND) {
    my ($enable, $change) = @{ $AROUND{$name} };
    subtest $name => sub {
        my $server = serve(around($enable), lint => 0);
        my $client = $server->connect;
        for my $body (sort keys %BODY) {
            next if $body =~ /autoload|tied/ && $name =~ /Lint|twice/;    # which are no bodies for Lint
            my (undef, $want, $closes) = @{ $BODY{$body} };
            my $before = closed($server);
            $client->send("GET /$body HTTP/1.1\r\nHost: a\r\n\r\n");
            my $res = $client->response;
            is $res->{status}, 200, "$body: 200";
            ok $res->{complete} && $res->{body} eq ($change ? $change->($want) : $want), "$body: the body" or diag substr $res->{body} // '', 0, 80;
            is closed($server) - $before, $closes, "$body: close";
        }
        is $server->log_text, '', 'nothing to complain of';
        $server->stop;
    };
}

SKIP: {
    skip 'Plack::Middleware::Deflater is not installed', 1 unless eval { require Plack::Middleware::Deflater; 1 };
    subtest Deflater => sub {
        require Compress::Zlib;
        my $server = serve(around(sub { enable 'Deflater' }), lint => 0);
        for my $body (sort keys %BODY) {
            my (undef, $want, $closes) = @{ $BODY{$body} };
            my $before = closed($server);
            my $res = get($server, "/$body", 'Accept-Encoding: gzip');
            is_deeply $res->{fields}{'content-encoding'}, ['gzip'], "$body: compressed";
            ok $res->{complete} && Compress::Zlib::memGunzip($res->{body}) eq $want, "$body: the body";
            is closed($server) - $before, $closes, "$body: close";
        }
        is $server->log_text, '', 'nothing to complain of';
        $server->stop;
    };
}

subtest 'a writer with a filter around it' => sub {
    my $silent = sub { defined $_[0] && $_[0] =~ /x/ ? uc $_[0] : () };
    my $app = builder {
        enable sub { my $app = shift; sub { Plack::Util::response_cb($app->(@_), sub { $silent }) } };
        sub { sub { my $writer = $_[0]->([200, [@TEXT]]); $writer->write($_) for 'ax', 'b', 'cx'; $writer->close } }
    };
    my $server = serve($app, lint => 0);
    is get($server, '/')->{body}, 'AXCX', 'a filter may write nothing at all';
    is $server->log_text, '';
    $server->stop;
};

done_testing;
