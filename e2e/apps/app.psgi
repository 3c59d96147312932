# The application of the end-to-end tests; app.ru is its twin, route for route.
use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use IO::Handle ();
use JSON::PP ();
use POSIX ();

# What tests ask the one worker about: bodies closed, answers finished.
my %count = (closed => 0, after => 0);

# A response body without a length: gives its parts, counts its close, and fails where it is told to.
package E2E::Parts {
    sub new {
        my ($class, $next, %option) = @_;
        return bless { next => $next, index => 0, fail_after => $option{fail_after} }, $class;
    }

    sub getline {
        my ($self) = @_;
        die "body failed after $self->{index} parts\n" if defined $self->{fail_after} && $self->{index} == $self->{fail_after};
        return $self->{next}->($self->{index}++);
    }

    sub close { $count{closed}++ }
}

# A body that the server may send straight from the file.
package E2E::PathBody {
    sub new {
        my ($class, $path) = @_;
        open my $fh, '<:raw', $path or die "$path: $!";
        return bless { path => $path, fh => $fh }, $class;
    }

    sub path { $_[0]{path} }

    sub getline { local $/ = \65536; readline $_[0]{fh} }

    sub close { $count{closed}++; CORE::close $_[0]{fh} }
}

my @TEXT = ('Content-Type' => 'text/plain');
my %ROUTES;

sub route { my ($path, $code) = @_; $ROUTES{$path} = $code }
sub text { my ($body, %option) = @_; [$option{status} || 200, [@TEXT, @{ $option{headers} || [] }], ["$body"]] }
sub block { my ($size) = @_; substr '0123456789abcdef' x ($size / 16 + 1), 0, $size }
sub list_body { my @parts = @_; sub { $parts[$_[0]] } }

sub read_all {
    my ($input) = @_;
    my $body = '';
    1 while $input->read($body, 65536, length $body);
    return $body;
}

sub params {
    my ($env) = @_;
    return { map { my ($name, $value) = split /=/, $_, 2; $name => $value } split /&/, $env->{QUERY_STRING} };
}

route '/' => sub { text('Hello, World!') };
route '*' => sub { text('asterisk') };
route '/pid' => sub { text($$) };
route '/env' => sub {
    my ($env) = @_;
    my %plain = map { $_ => "$env->{$_}" } grep { defined $env->{$_} && !ref $env->{$_} } keys %$env;
    return [200, ['Content-Type' => 'application/json'], [JSON::PP->new->latin1->encode(\%plain)]];
};
route '/trailers' => sub { text($_[0]{'oribi.trailers'} ? JSON::PP->new->latin1->encode($_[0]{'oribi.trailers'}) : 'none') };
route '/queue' => sub { text($_[0]{'oribi.queue_us'}) };
route '/method' => sub { text($_[0]{REQUEST_METHOD}) };
route '/echo' => sub { text(read_all($_[0]{'psgi.input'})) };
route '/digest' => sub {
    my ($env) = @_;
    my $body = read_all($env->{'psgi.input'});
    my $length = defined $env->{CONTENT_LENGTH} && $env->{CONTENT_LENGTH} ne '' ? $env->{CONTENT_LENGTH} : 'none';
    return text("$length " . length($body) . ' ' . sha256_hex($body));
};
# Reads twice: the input is buffered and can be rewound.
route '/twice' => sub {
    my ($env) = @_;
    my $first = read_all($env->{'psgi.input'});
    seek $env->{'psgi.input'}, 0, 0 or die "seek: $!";
    return text($first eq read_all($env->{'psgi.input'}) ? 'same' : 'different');
};
route '/unread' => sub { text('ignored') };
route '/upload' => sub {
    my ($env) = @_;
    require Plack::Request;
    my $request = Plack::Request->new($env);
    my $file = $request->upload('file');
    open my $fh, '<:raw', $file->path or die "upload: $!";
    my $content = do { local $/; <$fh> };
    return text(join ' ', $request->parameters->{nick}, $file->filename, length $content, sha256_hex($content));
};

route '/status' => sub { [($_[0]{PATH_INFO} =~ m{/(\d+)\z})[0], [], ['body']] };
route '/empty' => sub { [200, [@TEXT], []] };
route '/cookies' => sub { [200, [@TEXT, 'Set-Cookie' => 'a=1', 'Set-Cookie' => 'b=2'], ['cookies']] };
route '/own' => sub { text('own', headers => [Date => 'Thu, 01 Jan 1970 00:00:00 GMT', Server => 'own']) };
route '/close' => sub { text('closing', headers => [Connection => 'close']) };
# Framed by the application itself.
my @CHUNKED = ('Transfer-Encoding' => 'chunked');
route '/framed' => sub {
    [200, [@TEXT, @CHUNKED], E2E::Parts->new(list_body("6\r\nframed\r\n", "5\r\n by ", "m\r\n2\r\n", "e\n\r\n", "0\r\nX-T: 1\r\n\r\n"))];
};
route '/misframed' => sub { [200, [@TEXT, @CHUNKED], E2E::Parts->new(list_body("6\r\nframed\r\n", 'no size at all'))] };
route '/hop' => sub {
    text("3\r\nhop\r\n0\r\n\r\n", headers => [Connection => 'keep-alive, x-y', 'Transfer-Encoding' => 'chunked', 'Keep-Alive' => 'timeout=9']);
};
route '/big' => sub { text(block($_[1]{size})) };
route '/many' => sub { [200, [@TEXT], [map {"$_\n"} 0 .. $_[1]{count} - 1]] };

route '/parts' => sub { [200, [@TEXT], E2E::Parts->new(list_body(map {"part $_\n"} 0 .. $_[1]{count} - 1))] };
route '/sized' => sub { [200, [@TEXT, 'Content-Length' => 10], E2E::Parts->new(list_body('01234', '56789'))] };
route '/short' => sub { [200, [@TEXT, 'Content-Length' => 10], E2E::Parts->new(list_body('01234'))] };
route '/long' => sub { [200, [@TEXT, 'Content-Length' => 5], E2E::Parts->new(list_body('01234', '56789'))] };
route '/flood' => sub {
    my ($env, $params) = @_;
    my $part = block(65536);
    return [200, [@TEXT], E2E::Parts->new(sub { $_[0] < $params->{count} ? $part : undef })];
};
route '/stream' => sub {
    return sub {
        my ($respond) = @_;
        my $writer = $respond->([200, [@TEXT]]);
        $writer->write("line $_\n") for 0 .. 2;
        $writer->close;
    };
};
route '/file' => sub { [200, [@TEXT], E2E::PathBody->new($ENV{E2E_FILE})] };
route '/handle' => sub {
    open my $fh, '<:raw', $ENV{E2E_FILE} or die "$ENV{E2E_FILE}: $!";
    return [200, [@TEXT], $fh];
};
route '/closed' => sub { text($count{closed}) };

route '/raise' => sub { die "told to fail\n" };
route '/raise-in-body' => sub { [200, [@TEXT], E2E::Parts->new(list_body('one', 'two', 'three'), fail_after => $_[1]{after})] };
my %BAD_HEADER = (
    crlf => ['X-A', "1\r\nX-Injected: 1"], cr => ['X-A', "1\rx"], nul => ['X-A', "1\0x"],
    name => ["X-A: 1\r\nX-Injected", '1'], space => ['X A', '1'], empty => ['', '1'],
);
route '/bad-header' => sub { text('bad', headers => $BAD_HEADER{ $_[1]{kind} }) };
route '/bad-status' => sub { [$_[1]{status}, [@TEXT], ['bad']] };
route '/exit' => sub { POSIX::_exit(3) };

route '/hints' => sub {
    my ($env) = @_;
    $env->{'psgix.informational'}->(103, [Link => '</style.css>; rel=preload']) if $env->{'psgix.informational'};
    return text('hinted');
};
route '/bad-hints' => sub {
    my ($env, $params) = @_;
    return text('hints were sent') if eval { $env->{'psgix.informational'}->(103, $BAD_HEADER{ $params->{kind} }); 1 };
    return text('no hints');
};
route '/framed-hints' => sub {
    $_[0]{'psgix.informational'}->(103, [Link => '</style.css>', 'Content-Length' => 5, 'Transfer-Encoding' => 'chunked']);
    return text('hinted');
};
# The application takes the socket and answers by itself.
route '/hijack' => sub {
    my ($env) = @_;
    return sub {
        my $io = $env->{'psgix.io'};
        $io->blocking(1);
        my $date = POSIX::strftime('%a, %d %b %Y %H:%M:%S GMT', gmtime);
        syswrite $io, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nDate: $date\r\nConnection: close\r\n\r\nhijacked";
        close $io;
    };
};
# The same, with answers that end with the connection.
sub takes_and_writes {
    my ($answer) = @_;
    return sub {
        my ($env) = @_;
        return sub {
            my $io = $env->{'psgix.io'};
            $io->blocking(1);
            syswrite $io, $answer;
            close $io;
        };
    };
}
route '/hijack-switches' => takes_and_writes("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: bye\r\n\r\nbye");
route '/hijack-unframed' => takes_and_writes("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nunframed");
route '/stderr' => sub { $_[0]{'psgi.errors'}->print("a line for the error log\n"); text('logged') };
route '/stdout' => sub { print "a line on standard output\n"; text('printed') };

# Says that it was entered, then waits for the test to open the gate.
route '/gate' => sub {
    my ($env, $params) = @_;
    my $gate = "$ENV{E2E_DIR}/$params->{name}";
    open my $fh, '>', "$gate.entered" or die "$gate: $!";
    print {$fh} $$;
    close $fh;
    my $deadline = time + 20;
    select undef, undef, undef, 0.005 until -e "$gate.open" || time > $deadline;
    return text('gate passed');
};

route '/after' => sub {
    my ($env) = @_;
    push @{ $env->{'psgix.cleanup.handlers'} }, sub { $count{after}++ };
    return text('after');
};
route '/after-count' => sub { text($count{after}) };

sub {
    my ($env) = @_;
    my ($first) = $env->{PATH_INFO} =~ m{\A(/[^/]*|\*)};
    my $handler = defined $first ? $ROUTES{$first} : undef;
    return text("no route\n", status => 404) unless $handler;
    return $handler->($env, params($env));
};
