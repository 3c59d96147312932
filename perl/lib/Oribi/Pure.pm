package Oribi::Pure;
use 5.016;
use strict;
use warnings;
use Config ();
use File::Spec ();
use IO::Handle ();
use POSIX ();
use Scalar::Util ();
use Socket ();
use overload ();

# Oribi where no compiler is: a PSGI server in one file, with nothing but Perl's core modules. It keeps the core's rules
# of HTTP/1.1 (strict framing; limits with the same names and statuses) and leaves out what needs C, and what one file
# can do without: doc/pure.md tells when to take it, and lists the rest.
#
#   supervisor ─fork─► mold (loads the application) ─fork─► worker, worker, …        Processes; one process without fork
#
# A worker is one `select` loop. It holds all of its connections, slow ones too, and calls the application only with
# complete requests; what else it holds waits for that call. A connection goes through these states:
#
#   HEAD ──head, no body──────────────► READY ──call──► ANSWER ──all sent──► HEAD …
#     │ └─head─► BODY ──body complete────▲                │ close            (kept alive; pipelined bytes are read next)
#     └─refused─► ANSWER ◄─refused─┘                      └──► LINGER ──► closed
#
# Reading order, packages in the order of the file: Head (bytes of a head to an environment), Chunked (the transfer
# coding of bodies), Answer (an application's status and headers to bytes): three without sockets, which spec/ tests.
# Worker (the loop, connections, the call), Writer and Socket (what the application gets of a connection), Processes,
# Settings (options, their table, the configuration file), Command (the command line, the application's file).

our $VERSION = '0.100';

# Text of a log line, in the core's form.
our %log = (handle => \*STDERR, quiet => 0, verbose => 0);

sub say_log {
    my ($level, $format, @values) = @_;
    return if $log{quiet} && $level eq 'info' || !$log{verbose} && $level eq 'debug';
    my $text = (@values ? sprintf $format, @values : $format) =~ s/\s+\z//r;
    $text =~ s/([\x00-\x08\x0b-\x1f\x7f])/sprintf '\\x%02x', ord $1/ge;
    utf8::encode($text) if utf8::is_utf8($text);
    my $time = POSIX::strftime('%Y-%m-%dT%H:%M:%SZ', gmtime);
    syswrite $log{handle}, "$time oribi[$$] $level: $text\n";
    return;
}

# Options as for oribi-psgi, with underscores; dies with one line for an unknown name or a bad value.
sub new {
    my ($class, %options) = @_;
    my $settings = Oribi::Pure::Settings->new;
    $settings->set(command => $_, $options{$_}) for grep { defined $options{$_} } sort keys %options;
    return bless { settings => $settings }, $class;
}

# Serves the code reference, or the application of that file. Returns when the server was told to stop.
sub run {
    my ($self, $app) = @_;
    $self->{settings}{app} = $app;
    $self->{settings}->prepare;
    return Oribi::Pure::Processes->new($self->{settings})->run;
}

sub main { return Oribi::Pure::Command::run(@_) }

# --- heads of requests ------------------------------------------------------------------------------------------------

# Classes of bytes, for the inside of brackets.
my $TOKEN = q{!#$%&'*+\-.^_`|~0-9A-Za-z};
my $TEXT  = '\t\x20-\x7e\x80-\xff';

# Strict (RFC 9112 2-6, RFC 9110 5), with the verdicts of core/src/http: request_line.c, field_lines.c, head.c,
# authority.c. A head that has arrived whole and is as usual is two matches. Every other one goes through walk(), which
# alone decides what is refused and what has not arrived yet. What fields mean is kept: clients repeat them.
package Oribi::Pure::Head 0.100 {
    use constant { METHOD_MAX => 32, KEYS_KEPT => 1000, HEADS_KEPT => 256, HEAD_BYTES_KEPT => 2048 };

    my $HOST   = q{!$&'()*+,\-.;=_~0-9A-Za-z};
    my $RAW    = '\x21\x24-\x3b\x3d\x3f-\x7e\x80-\xff';                  # of a target
    my $STRICT = '\x21\x24-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e';

    # A second line of these is refused, equal or not: they decide where the message ends and whom it is for.
    my %SINGLE = map { $_ => 1 } qw(HTTP_HOST CONTENT_LENGTH HTTP_TRANSFER_ENCODING CONTENT_TYPE);
    # A second line of these must equal the first, and then counts as one.
    my %EQUAL = map { $_ => 1 } qw(HTTP_AUTHORIZATION HTTP_EXPECT);
    # Never the application's: httpoxy, and what middleware for X-Sendfile would believe.
    my %DROPPED = map { $_ => 1 } qw(HTTP_PROXY HTTP_X_SENDFILE_TYPE HTTP_X_ACCEL_MAPPING);

    my %KEY;    # what key_of() says of names that were met

    # What parse() goes by: options; base, what each environment begins with, if it is to name the server; and the heads
    # that it has met (known, by the bytes from the minor version to the last field).
    sub limits {
        my %limits = (%{ Oribi::Pure::Settings->new->{value} }, known => {}, @_);
        my $class = $limits{strict_target} ? $STRICT : $RAW;
        $limits{line} = qr/\G([$TOKEN]{0,33}+)(?:( )([$class]*+)(?:( )(.{0,10}+))?+)?+/s;
        return \%limits;
    }

    # parse(\%state, $limits, $bytes): the bytes begin at the first byte of a request, and only grow until there is a
    # verdict. Returns the head's length; 0 when more bytes are needed; or the negative status of a refusal, with
    # state->{reason}.
    #
    # Sets state->{env}, the CGI part of the environment (PATH_INFO is still as it came), with state->{peer}, an address
    # and a port; and state->{head}, which requests share: { env (a list), minor, keep_alive, expect, upgrade, length
    # (-1: chunked), has_body, host, port, dropped; and spare, an environment that was made of the list beforehand }.
    sub parse {
        my ($state, $limits) = @_;
        my ($length, $head, $path, $query) = 0;
        my ($method, $target) = $_[2] =~ m{\A(?!CONNECT |PROXY )([A-Z]{3,7}+) (/[$RAW]*+) HTTP/1\.}o;
        if (defined $method) {
            ($path, $query) = split /\?/, $target, 2;
            my $start = length($method) + length($target) + length '  HTTP/1.';
            my $end = 2 + index $_[2], "\r\n\r\n", $start;
            if ($end > 2 && length $target <= $limits->{target_bytes_max} && !$limits->{strict_target}) {
                $length = $end + 2;
                my $block = substr $_[2], $start, $end - $start;
                my $is_short = $length <= $limits->{head_bytes_max};
                $head = $limits->{known}{$block} // met($state, $limits, $block) if $is_short;
            }
        }
        if (!$head) {
            my ($max, $line, $minor, $block, $authority) = $limits->{head_bytes_max};
            ($length, $line) = walk($state, $limits, substr $_[2], 0, $max);
            return $length if $length < 0 || !$length && length $_[2] < $max;
            return fault($state, $line ? 431 : 414, 'longer than head_bytes_max') if !$length;
            ($method, $target, $minor, $path, $query, $authority, $block) = @$line;
            $target = length $query ? "$path?$query" : $path if defined $authority;
            $head = meaning($state, $limits, $minor, $block, $authority);
        }
        return $head if !ref $head;
        my $env = delete $head->{spare} // { @{ $head->{env} } };
        @$env{qw(REQUEST_METHOD REQUEST_URI PATH_INFO QUERY_STRING)} = ($method, $target, $path, $query // '');
        @$env{qw(REMOTE_ADDR REMOTE_PORT)} = @{ $state->{peer} } if $state->{peer};
        @$state{qw(head env)} = ($head, $env);
        return $length;
    }

    # What good fields mean, kept for the next request with the same; a fault; or nothing for others.
    sub met {
        my ($state, $limits, $block) = @_;
        my ($minor, $fields) = $block =~ /\A([01])\r\n((?:[$TOKEN]{1,1024}+:[$TEXT]*+\r\n)*+)\z/o or return;
        return if $fields =~ tr/\n// > $limits->{fields_max};
        my $head = meaning($state, $limits, $minor, $fields);
        return $head if !ref $head || length $block > HEAD_BYTES_KEPT;
        my $known = $limits->{known};
        %$known = () if keys %$known >= HEADS_KEPT;
        return $known->{$block} = $head;
    }

    sub fault { my ($state, $status, $reason) = @_; $state->{reason} = $reason; return -$status }

    # Line by line. Returns the head's length and its request line; 0, with the request line if that has arrived; or a
    # fault. The verdict hangs on the first bytes that allow it, so that waiting for more cannot change it.
    sub walk {
        my ($state, $limits, $in) = @_;
        my $is_bad = $in =~ /\A(?:(?:\r\n){0,2}+(?:\n|\r.)|(?:\r\n){2}\r)/s;    # RFC 9112 2.2
        return fault($state, 400, 'bare CR or LF, or too many empty lines') if $is_bad;
        $in =~ /\A(?:\r\n)*+/g;
        return 0 if $in =~ /\G\r?\z/;
        my $line = request_line($state, $limits, \$in, pos $in);
        return $line if !ref $line;
        my ($begin, $count) = (pos $in, 0);
        while ($in =~ /\G([$TEXT]*+)\r\n/gc) {
            return (pos $in, [@$line, substr $in, $begin, pos($in) - 2 - $begin]) if $1 eq '';
            return fault($state, 431, 'more fields than fields_max') if ++$count > $limits->{fields_max};
            return fault($state, 400, 'field name is not a token') if $1 !~ /\A([$TOKEN]++):/;
            return fault($state, 431, 'field name over 1024 bytes') if length $1 > 1024;
        }
        return (0, $line) if $in =~ /\G[$TEXT]*+\r?\z/;
        return fault($state, 400, 'bare CR or LF, or a control, in a field line');
    }

    # Gives [method, target, minor, path, query, authority or undef], 0 or a fault; pos() is behind the line.
    sub request_line {
        my ($state, $limits, $in, $at) = @_;
        pos($$in) = $at;    # so that an empty match may follow one
        $$in =~ /$limits->{line}/g;
        my ($method, $blank, $target, $second_blank, $version) = ($1, $2, $3, $4, $5);
        my $is_end = pos $$in == length $$in;
        return fault($state, 400, 'method too long') if length $method > METHOD_MAX;
        return 0 if !$blank && $is_end;
        return fault($state, 400, 'method is not a token') if !$blank || $method eq '';
        return fault($state, 400, 'PROXY header, which is not served') if $method eq 'PROXY';
        my $most = $limits->{target_bytes_max};
        return fault($state, 414, 'target longer than target_bytes_max') if length $target > $most;
        return 0 if !$second_blank && $is_end;
        return fault($state, 400, 'byte not allowed in the target') if !$second_blank || $target eq '';
        my $is_start = !index "HTTP/0.0\r\n", $version =~ tr/0-9/0/r;
        return fault($state, 400, 'malformed HTTP version or line end') if !$is_start;
        return 0 if $version !~ m{\AHTTP/([0-9])\.([0-9])\r\n};
        return fault($state, 505, 'unsupported HTTP version') if $1 != 1;
        return forms($state, $limits, $method, $target, $2 ? 1 : 0);
    }

    # The forms that a target may have, RFC 9112 3.2.
    sub forms {
        my ($state, $limits, $method, $target, $minor) = @_;
        my ($path, $query) = split /\?/, $target, 2;
        my @line = ($method, $target, $minor, $path, $query // '', undef);
        if ($method eq 'CONNECT') {
            return fault($state, 501, 'CONNECT is not served unless connect_allow is on') if !$limits->{connect_allow};
            my ($host, $port) = authority($target);
            return fault($state, 400, 'CONNECT target is no host and port') if !length($host // '') || !length $port;
            return [@line[0 .. 2], '', '', $target];
        }
        return \@line if $target =~ m{\A/} || $target eq '*' && $method eq 'OPTIONS';
        my ($authority, $rest) = $path =~ m{\Ahttps?://([^/]*)(.*)\z}i;
        my ($host) = authority($authority // '');
        return fault($state, 400, 'target is no path and no http URI') if !length($host // '');
        return [@line[0 .. 2], length $rest ? $rest : '/', $line[4], $authority];
    }

    # Names and values of good lines. White space at the end is cut with a look behind: without it, a long run of it in
    # the middle of a value would be walked over once for each of its bytes.
    sub fields_of {
        my ($block) = @_;
        $block =~ s/(?<![ \t])[ \t]++\r/\r/g if $block =~ /[ \t]\r/;
        return [$block =~ /([^:]++):[ \t]*+([^\r]*+)\r\n/g];
    }

    # The environment's key of a name as it came; '' of one that is left out, '!' of one that imitates a field that
    # frames or routes, '+' and the key of any other with `_`.
    sub key_of {
        my ($name) = @_;
        my $key = uc($name) =~ tr/-/_/r;
        my $has_underscore = $name =~ tr/_//;
        my $full = $key =~ /\ACONTENT_(?:TYPE|LENGTH)\z/ && !$has_underscore ? $key : "HTTP_$key";
        my $result
            = $has_underscore && $key =~ /\A_*(?:CONTENT_LENGTH|TRANSFER_ENCODING|HOST)_*\z/ ? '!'
            : $DROPPED{$full} ? ''
            : $has_underscore ? "+$full" : $full;
        $KEY{$name} = $result if keys %KEY < KEYS_KEPT && length $name < 100;
        return $result;
    }

    # What the fields mean: repeats, Host, framing, Expect, persistence, in the core's order, so that one input has one
    # verdict. Returns the head without what its request line says, or a fault.
    sub meaning {
        my ($state, $limits, $minor, $block, $authority) = @_;
        my $fields = fields_of($block);
        my %env = %{ $limits->{base} || {} };
        my ($shadow, $dropped, %owner) = (0, 0);
        if ($limits->{underscores_allow}) {    # of two names for one key the one without `_` stays, else the first
            my @places = sort { ($fields->[$a] =~ /_/) <=> ($fields->[$b] =~ /_/) } grep { !($_ % 2) } 0 .. $#$fields;
            $fields = [map { @$fields[$_, $_ + 1] } @places];
        }
        while (my ($name, $value) = splice @$fields, 0, 2) {
            my $key = $KEY{$name} // key_of($name);
            if (ord $key < 65) {
                $shadow = 1 if $key eq '!';
                $dropped++, next if $key !~ s/\A\+// || !$limits->{underscores_allow};
            }
            my $is_second = $limits->{underscores_allow} && ($owner{ lc($name) =~ tr/_/-/r } //= lc $name) ne lc $name;
            $dropped++, next if $is_second;
            if (!exists $env{$key}) {
                $env{$key} = $value;
            } elsif ($SINGLE{$key} || $EQUAL{$key}) {
                return fault($state, 400, "field may not be repeated: $name") if $SINGLE{$key} || $env{$key} ne $value;
            } else {
                $env{$key} .= ($key eq 'HTTP_COOKIE' ? '; ' : ', ') . $value;
            }
        }
        return fault($state, 400, 'field name imitates a framing field') if $shadow;

        my ($host, $port) = authority($env{HTTP_HOST} // '') or return fault($state, 400, 'invalid Host field');
        my $has_host = defined $env{HTTP_HOST} && ($host ne '' || defined $authority);
        return fault($state, 400, 'no Host field') if $minor && !$has_host;
        if (defined $authority) {
            $env{HTTP_HOST} = $authority if $has_host;    # RFC 9112 3.2.2: it replaces the field
            ($host, $port) = authority($authority);
        }
        $env{SERVER_NAME} = $host if $host ne '' && $limits->{base};
        $env{SERVER_PORT} //= $port ne '' ? $port : 80 if $limits->{base};

        my $has_body = defined $env{CONTENT_LENGTH} || defined $env{HTTP_TRANSFER_ENCODING};
        my $length = $has_body ? framing($state, $limits, $minor, \%env) : 0;
        return $length if $length < -1;
        my $expect = lc($env{HTTP_EXPECT} // '');
        return fault($state, 417, 'unknown expectation') if defined $env{HTTP_EXPECT} && $expect ne '100-continue';
        my %has = map { lc() => 1 } split /[ \t]*,[ \t]*/, $env{HTTP_CONNECTION} // '';
        $env{SERVER_PROTOCOL} = "HTTP/1.$minor";
        return {
            env => [%env], minor => $minor, expect => $minor && $length && $expect, length => $length,
            dropped => $dropped, has_body => $has_body, host => $host, port => $port,
            keep_alive => $has{close} ? 0 : $minor || $has{'keep-alive'} ? 1 : 0,
            upgrade => $minor && $has{upgrade} && exists $env{HTTP_UPGRADE} ? 1 : 0,    # RFC 9110 7.8: not in 1.0
        };
    }

    # A transfer coding with its parameters. What merely resembles chunked, or stands for none, is an attempt at
    # confusion, and so is chunked anywhere but at the end.
    my $PARAMETER = qr/[ \t]*+;[ \t]*+[$TOKEN]++[ \t]*+=[ \t]*+(?:"[^,;]*"|[$TOKEN]++)/;
    my $CODING = qr/(?!identity[ \t]*+(?:[,;]|\z)|[$TOKEN]*chunked)[$TOKEN]++$PARAMETER*+[ \t]*+/i;

    # The length of the body, -1 when it is chunked; or a fault. RFC 9112 6.
    sub framing {
        my ($state, $limits, $minor, $env) = @_;
        my ($length, $coding) = @$env{qw(CONTENT_LENGTH HTTP_TRANSFER_ENCODING)};
        if (!defined $coding) {
            return fault($state, 400, 'invalid Content-Length') if $length !~ /\A[0-9]++\z/;
            return 0 + $length if $length <= $limits->{body_bytes_max};
            return fault($state, 413, 'Content-Length over body_bytes_max');
        }
        return fault($state, 400, 'Transfer-Encoding with Content-Length') if defined $length;
        return fault($state, 400, 'Transfer-Encoding in HTTP/1.0') if !$minor;
        return -1 if lc $coding eq 'chunked';
        my $is_unknown = $coding =~ /\A$CODING(?:,[ \t]*+$CODING)*+(?:,[ \t]*+chunked)?\z/i;
        return fault($state, $is_unknown ? (501, 'unknown transfer coding') : (400, 'malformed Transfer-Encoding'));
    }

    my $IPV6 = eval { Socket::AF_INET6() };

    # Host and port of uri-host [ ":" *DIGIT ], brackets kept (RFC 3986 3.2); nothing when it is none.
    sub authority {
        my ($text) = @_;
        return $text =~ /\A((?:[$HOST]|%[0-9A-Fa-f]{2})*+)(?::([0-9]*))?\z/ ? ($1, $2 // '') : () if $text !~ /\A\[/;
        my ($host, $inner, $port) = $text =~ /\A(\[([^\]]*)\])(?::([0-9]*))?\z/ or return;
        my $is_good = $inner =~ /\Av[0-9A-Fa-f]+\.[$HOST:]+\z/i || defined eval { Socket::inet_pton($IPV6, $inner) };
        return $is_good ? ($host, $port // '') : ();
    }

    # The path with its escapes decoded; undefined where one is none.
    sub decoded {
        my ($path) = @_;
        return undef if $path =~ /%(?![0-9A-Fa-f]{2})/;    ## no critic: a list would be no result
        return $path =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ger;
    }
}

# --- chunked ----------------------------------------------------------------------------------------------------------

# Chunked transfer coding (RFC 9112 7.1), strict and incremental, with the verdicts of core/src/http/chunked.c: one
# state for each place in the grammar, so that no cut of the bytes can fall between two of them. Usual chunks are taken
# whole.
package Oribi::Pure::Chunked 0.100 {
    use constant { EXT_MAX => 16 << 10, TRAILER_MAX => 16 << 10, DIGITS_MAX => 16, ZEROS_FREE => 16 };
    use constant { OVERHEAD_FREE => 64 << 10, OVERHEAD_RATIO => 8 };

    our %FORBIDDEN;    # names that no trailer can have: of requests, of content and of access; Settings fills it

    my ($HEX, $BLANK) = ('0-9A-Fa-f', ' \t');

    # state => [reason of a refusal, class of bytes => next state, …]
    # chunk-ext = *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )
    my ($SIZE, $LINE, $EXT, $TRAILER)
        = map {"malformed $_"} 'chunk size', 'chunk line', 'chunk extension', 'trailer field';
    my @EQUALS = ('=' => 'ext_value_first');
    my @END = (';' => 'ext_name_first');
    my %WAY = (
        size_first => [$SIZE, $HEX => 'size'],
        size => [$SIZE, $HEX => 'size', '\r' => 'size_lf', @END],
        size_lf => [$LINE, '\n' => 'data'],
        data_cr => [$LINE, '\r' => 'data_lf'], data_lf => [$LINE, '\n' => 'size_first'],
        ext_name_first => [$EXT, $BLANK => 'ext_name_first', $TOKEN => 'ext_name'],
        ext_name => [$EXT, $TOKEN => 'ext_name', $BLANK => 'ext_name_end', @EQUALS, '\r' => 'size_lf', @END],
        ext_name_end => [$EXT, $BLANK => 'ext_name_end', @EQUALS, @END],
        ext_value_first => [$EXT, $BLANK => 'ext_value_first', $TOKEN => 'ext_token', '"' => 'ext_quoted'],
        ext_token => [$EXT, $TOKEN => 'ext_token', $BLANK => 'ext_blank', '\r' => 'size_lf', @END],
        ext_quoted => [$EXT, '"' => 'ext_value_end', '\\\\' => 'ext_escaped', $TEXT => 'ext_quoted'],
        ext_escaped => [$EXT, $TEXT => 'ext_quoted'],
        ext_value_end => [$EXT, $BLANK => 'ext_blank', '\r' => 'size_lf', @END],
        ext_blank => [$EXT, $BLANK => 'ext_blank', @END],
        first => [$TRAILER, '\r' => 'end_lf', $TOKEN => 'name'],
        name => [$TRAILER, $TOKEN => 'name', ':' => 'value'],
        value => [$TRAILER, '\r' => 'line_lf', $TEXT => 'value'],
        line_lf => [$TRAILER, '\n' => 'first'], end_lf => [$TRAILER, '\n' => 'done'],
    );

    # Where a whole chunk line is usual, that line.
    my %USUAL = (size_first => qr/\A([1-9A-Fa-f][0-9A-Fa-f]{0,7}+)\r\n/);
    $USUAL{data_cr} = qr/\A\r\n([1-9A-Fa-f][0-9A-Fa-f]{0,7}+)\r\n/;

    sub new {
        my ($class, $limits) = @_;
        my %self = map { $_ => 0 } qw(body left digits zeros ext overhead count done);
        return bless { %self, state => 'size_first', trailer => '', limits => $limits }, $class;
    }

    # Takes bytes off the front of the buffer, as many as it can use. Returns the content among them; after a fault,
    # {status} and {reason} are set, and what was returned counts for nothing. {done} is true behind the last byte.
    sub decode {
        my ($self, $in) = @_;
        my ($at, $out) = (0, '');
        while ($at < length $$in && !$self->{done} && !$self->{status}) {
            my $state = $self->{state};
            if ($state eq 'data') {
                my $piece = substr $$in, $at, $self->{left};
                $out .= $piece;
                $at += length $piece;
                $self->{body} += length $piece;
                $self->{state} = 'data_cr' if !($self->{left} -= length $piece);
                next;
            }
            my ($digits) = $USUAL{$state} ? substr($$in, $at, 12) =~ $USUAL{$state} : ();
            my $count = defined $digits ? $+[0] : 1;
            # Bytes that are no content cost something: beyond 64 KiB, eight for each byte of content at most.
            my $overhead = $self->{overhead} += $count;
            if ($overhead > OVERHEAD_FREE && int($overhead / OVERHEAD_RATIO) > $self->{body}) {
                $self->refuse(400, 'too little body in too many chunks');
            } elsif (defined $digits) {
                $self->{left} = hex $digits;
                $self->size_known;
            } else {
                $self->byte(substr $$in, $at, 1);
            }
            $at += $count;
        }
        substr $$in, 0, $at, '';
        return $out;
    }

    sub refuse { my ($self, @refusal) = @_; return @$self{qw(status reason)} = @refusal }

    sub size_known {
        my ($self) = @_;
        my $room = $self->{limits}{body_bytes_max} - $self->{body};
        return $self->refuse(413, 'body over body_bytes_max') if $self->{left} > $room;
        return @$self{qw(state digits zeros)} = ($self->{left} ? 'data' : 'first', 0, 0);
    }

    # One byte that is not content.
    sub byte {
        my ($self, $c) = @_;
        my $state = $self->{state};
        my ($reason, @ways) = @{ $WAY{$state} };
        if ($reason eq $TRAILER && $state ne 'end_lf') {
            $self->{trailer} .= $c;
            return $self->refuse(431, 'trailer section over the limit') if length $self->{trailer} > TRAILER_MAX;
        }
        splice @ways, 0, 2 while @ways && $c !~ /[$ways[0]]/;
        my $next = $ways[1] // return $self->refuse(400, $reason);
        return $self->digit($c) if $next eq 'size';
        return $self->refuse(400, "$EXT over the limit") if $reason eq $EXT && ++$self->{ext} > EXT_MAX;
        my $is_over = $state eq 'first' && $next eq 'name' && ++$self->{count} > $self->{limits}{fields_max};
        return $self->refuse(431, 'too many trailer fields') if $is_over;
        @$self{qw(state done)} = ($next, $next eq 'done');
        return $next eq 'data' && $self->size_known;
    }

    # Some clients pad sizes with zeros to a fixed width; more than that is charged like an extension.
    sub digit {
        my ($self, $c) = @_;
        $self->{state} = 'size';
        my $is_over = $c ne '0' || $self->{digits} ? ++$self->{digits} > DIGITS_MAX
            : ++$self->{zeros} > ZEROS_FREE && ++$self->{ext} > EXT_MAX;
        return $self->refuse(400, $SIZE) if $is_over;
        return $self->{left} = 16 * $self->{left} + hex $c;
    }

    # The trailer fields that an application may see, by lower-case names; repeats joined. The second value counts those
    # left out.
    sub trailers {
        my ($self) = @_;
        my $fields = Oribi::Pure::Head::fields_of($self->{trailer});
        my ($dropped, %kept) = 0;
        while (my ($name, $value) = splice @$fields, 0, 2) {
            $name = lc $name;
            $dropped++, next if $name =~ /_/ || length $name > 1024 || $FORBIDDEN{$name};
            $kept{$name} = join ', ', $kept{$name} // (), $value;
        }
        return (\%kept, $dropped);
    }
}

# --- answers ----------------------------------------------------------------------------------------------------------

# Heads of answers, as core/src/http/response.c and mend.c write them: every name and value is checked, framing and
# persistence are written from what the server knows and never copied from the application.
package Oribi::Pure::Answer 0.100 {
    use constant { HEAD_BYTES_MAX => 256 << 10, FIELDS_MAX => 1024, NAMES_KEPT => 1000, LENGTH_MAX => ~0 >> 1 };

    our %REASON;    # phrases by status; Settings fills it
    my %FIRST_LINE;    # of answers with a body that were met

    # Names that the writer treats as its own. %OWN also keeps the verdict on other names: '' for a good one, '!' for
    # none.
    my %IS_OWN = map { $_ => 1 } qw(date server upgrade connection keep-alive status content-length transfer-encoding);
    my %OWN;

    sub own_name {
        my ($name) = @_;
        my $own = $name !~ /\A[$TOKEN]+\z/ ? '!' : $IS_OWN{ lc $name } ? lc $name : '';
        $OWN{$name} = $own if keys %OWN < NAMES_KEPT && length $name < 100;
        return $own;
    }

    # The number at the start of a status as applications give it ("200 OK"), or -1.
    sub status_of { return ($_[0] // '') =~ /\A[ \t\r\n]*([0-9]{3})(?:[ \t\r\nA-Za-z]|\z)/ ? $1 : -1 }

    sub has_body { my ($status) = @_; return $status >= 200 && $status != 204 && $status != 304 }

    # The head of a usual answer, as head() would write it: HTTP/1.1, a body that is there, a status and good headers
    # whose names have been met, of the server's own none but the right Content-Length. Nothing for any other.
    sub usual {
        my ($status, $headers, $length, $date, $closes) = @_;
        no warnings 'uninitialized';
        my $out = $FIRST_LINE{$status} // return;
        my $lines = 1 + @$headers / 2;
        return if @$headers % 2 || @$headers > 64;
        for (my $i = 0; $i < @$headers; $i += 2) {
            my $own = $OWN{ $headers->[$i] } // return;
            if ($own eq '') { $out .= "$headers->[$i]: $headers->[$i + 1]\r\n" }
            elsif ($own eq 'content-length' && $headers->[$i + 1] eq $length) { $lines-- }
            else { return }
        }
        # No control characters in values, no blanks around them, none empty.
        return if ($out =~ tr/\x00-\x1f\x7f//) != 2 * $lines || index($out, " \r\n") >= 0;
        $out .= "Date: $date\r\nContent-Length: $length\r\n" . ($closes ? "Connection: close\r\n\r\n" : "\r\n");
        return utf8::is_utf8($out) || length $out > HEAD_BYTES_MAX ? () : $out;
    }

    # Writes the head of %$res: status, headers (pairs), minor, is_head, keep_alive, unframed (its framing has been
    # taken off the body), body_len (-1: not known), date, server. Sets framing (none, length, chunked, close), length
    # (what Content-Length says, or -1), closes, framed (framing is still to be taken off), dropped, and mended: what
    # was put right. Returns the bytes, or nothing with {reason}.
    sub head {
        my ($res) = @_;
        my ($status, %wish) = $res->{status};
        return refuse($res, 'status out of range') if $status < 200 || $status > 999;
        my $out = lines($res, \%wish) // return;
        my $given = $wish{length} // -1;
        my $length = $given >= 0 ? $given : $res->{body_len};
        $length = $res->{unframed} ? $res->{body_len} : -1 if $wish{framed};
        $res->{dropped}++ if $given >= 0 && ($wish{framed} || $status == 204 && $given > 0);
        @$res{qw(framing length)}    # RFC 9112 6.3
            = $status == 204 ? ('none', -1)
            : $status == 304 ? ('none', $given)    # ours would be that of an empty body
            : $res->{is_head} ? ('none', $length)
            : $length >= 0 ? ('length', $length)
            : ($res->{minor} ? 'chunked' : 'close', -1);
        $res->{framed} = $wish{framed} && !$res->{unframed} && $res->{framing} ne 'none';
        $res->{closes} = !$res->{keep_alive} || $wish{has_close} || $res->{framing} eq 'close' ? 1 : 0;
        $out .= "Date: $res->{date}\r\n" if !$wish{date};
        $out .= "Server: $res->{server}\r\n" if !$wish{server} && length($res->{server} // '');
        $out .= "Content-Length: $res->{length}\r\n" if $res->{length} >= 0;
        $out .= "Transfer-Encoding: chunked\r\n" if $res->{framing} eq 'chunked';
        my @options = $res->{closes} ? 'close' : !$res->{minor} ? 'keep-alive' : ();
        push @options, 'upgrade' if $wish{has_upgrade};
        $out .= @options ? 'Connection: ' . join(', ', @options) . "\r\n\r\n" : "\r\n";
        return refuse($res, 'response head over the limit') if length $out > HEAD_BYTES_MAX;
        return refuse($res, 'characters above 255') if utf8::is_utf8($out) && !utf8::downgrade($out, 1);
        return $out;
    }

    sub refuse { my ($res, $reason) = @_; $res->{reason} = $reason; return }

    # Status line and fields. What the server decides itself goes to %$wish: length, framed (its body has chunks of its
    # own), has_close, has_upgrade, date, server.
    sub lines {
        my ($res, $wish) = @_;
        my $headers = $res->{headers};
        $res->{dropped} = 0;
        return refuse($res, 'headers in odd number') if @$headers % 2;
        return refuse($res, 'too many headers') if @$headers > 2 * FIELDS_MAX;
        my $status = $res->{status};
        my $out = "HTTP/1.1 $status " . ($REASON{$status} // '') . "\r\n";
        $FIRST_LINE{$status} = $out if has_body($status) && $REASON{$status};
        for (my $i = 0; $i < @$headers; $i += 2) {
            my ($name, $value) = @$headers[$i, $i + 1];
            my $own = $OWN{ $name // '' } // own_name($name // '');
            return refuse($res, 'header name is not a token') if $own eq '!';
            $res->{mended}{undefined} = 1, next if !defined $value;
            my @mended;    # what was put right in this one
            ($value, @mended) = mend($value) if $value !~ /\A[$TEXT]*[\x21-\x7e\x80-\xff]\z/;
            return refuse($res, 'control character in a header value') if !defined $value;
            $out .= "$name: $value\r\n" if $own eq '' || take_own($res, $own, $value, \@mended, $wish);
            $res->{mended}{$_} = 1 for @mended;
        }
        return defined $res->{reason} ? () : $out;
    }

    # A value that can be sent safely once it is put right, and how: white space and line ends at its end are cut, a
    # value on several lines is joined. Nothing for any other control character.
    sub mend {
        my ($value) = @_;
        my @now = $value =~ s/[ \t\r\n]++\z// ? 'trimmed' : ();
        return ($value, @now) if $value !~ /[^$TEXT]/;
        $value =~ s/\A(?:[ \t]*\r?\n[ \t]++)+//;
        $value =~ s/(?:[ \t]*\r?\n[ \t]++)+/ /g;
        return $value =~ /[^$TEXT]/ ? () : ($value, @now, 'folded');
    }

    # Looks at a field that concerns the server. Returns whether it is to be written as it stands.
    sub take_own {
        my ($res, $own, $value, $mended, $wish) = @_;
        return $wish->{$own} = 1 if $own =~ /\A(?:date|server|upgrade)\z/;
        if ($own eq 'connection') {
            my @known = grep {/\A(?:close|upgrade|keep-alive)\z/} map {lc} split /[, \t]+/, $value;
            $wish->{"has_$_"} = 1 for @known;
            $res->{dropped}++ if !@known;
        } elsif ($own eq 'content-length') {
            take_length($res, $value, $mended, $wish);
        } elsif ($own eq 'transfer-encoding' && has_body($res->{status}) && $value =~ /\A[ \t]*chunked\z/i) {
            $wish->{framed} = 1;
        } elsif ($own ne 'status') {    # a program's word to a CGI gateway; PSGI forbids it
            $res->{dropped}++;
        }
        return 0;
    }

    # A number with white space around it may have been meant for something else: it counts only where the server cannot
    # count, because the body is not there or not sent.
    sub take_length {
        my ($res, $value, $mended, $wish) = @_;
        my ($blank, $number) = $value =~ /\A([ \t]*)([0-9]*)\z/;
        @$mended = 'length' if @$mended || !length($number // '') || length $blank;
        return refuse($res, 'Content-Length is no number') if !defined $number || $number gt '' && $number > LENGTH_MAX;
        my $can_count = $res->{body_len} >= 0 && !$res->{is_head} && $res->{status} != 304;
        return if $number eq '' || @$mended && $can_count;
        return refuse($res, 'Content-Length given twice') if ($wish->{length} // $number) != $number;
        return $wish->{length} = 0 + $number;
    }

    # A whole answer of the server's own, such as to a refused request.
    sub own {
        my ($status, %res) = @_;
        my $body = join(' ', $status, $REASON{$status} // ()) . "\n";
        my @headers = ('Content-Type' => 'text/plain', $status == 503 ? ('Retry-After' => 1) : ());
        my $head = head({ status => $status, minor => 1, body_len => length $body, headers => \@headers, %res });
        return $res{is_head} ? $head : $head . $body;
    }

    # An IMF-fixdate, RFC 9110 5.6.7.
    sub date_of {
        my ($weekday, $month, $day, $time, $year) = split ' ', scalar gmtime $_[0];    # in English everywhere
        return sprintf '%s, %02d %s %d %s GMT', $weekday, $day, $month, $year, $time;
    }
}

# --- the worker -------------------------------------------------------------------------------------------------------

# A connection is a hash: fh, fd, address and port (of the peer); limits (of its listener); state; in (bytes read and
# not yet used); head, env (of Head::parse); body, temp, left, received, chunks (of the request); out, then source (a
# file whose bytes follow: fh, pos, left), complete, closes (of the answer); paused (not waited for input); deadline
# (0: none). Only the worker's loop reads and writes sockets.
package Oribi::Pure::Worker 0.100 {
    use Errno qw(EAGAIN EWOULDBLOCK EINTR EBADF);

    use constant {
        HEAD => 0, BODY => 1, LINGER => 2, READY => 3, ANSWER => 4,    # the first three are read
        READ_BYTES => 64 << 10, SMALL_BODY_BYTES => 128 << 10, TICK => 0.25, TURN_MAX => 1, ACCEPT_BATCH => 16,
        BACKLOG_TAKEN => 1024, CLEANUP_MAX => 1024, LAST_CALL => 1, LINGER_SILENCE => 2, LINGER_MAX => 30,
        LINGER_BYTES_MAX => 256 << 20, ROOM_IDLE_MIN => 0.1,
    };
    # Where the system has these flags, a peer that has gone is no signal, and sockets need not be made non-blocking.
    # Linux alone is known to heed the second one in both directions.
    use constant DONTWAIT => $^O eq 'linux' && eval { Socket::MSG_DONTWAIT() } || 0;
    use constant FLAGS => DONTWAIT | (eval { Socket::MSG_NOSIGNAL() } // 0);

    # Waits are measured by a clock that nobody sets, where there is one. A Perl cut down to its base (perl-base of
    # Debian) lacks both modules: then times are told in hundredths of a second, and bodies are always in files.
    my $TICKS = eval { POSIX::sysconf(POSIX::_SC_CLK_TCK()) } || 100;
    my $HAS_SCALAR = eval { require PerlIO::scalar; 1 };
    my $ID = eval { require Time::HiRes; Time::HiRes::CLOCK_MONOTONIC() };
    *clock = defined $ID && eval { Time::HiRes::clock_gettime($ID) } ? sub { Time::HiRes::clock_gettime($ID) }
        : Time::HiRes->can('time') || sub { (POSIX::times())[0] / $TICKS };

    sub must_wait { return $! == EAGAIN || $! == EWOULDBLOCK || $! == EINTR }

    our ($serving, $calling);    # worker and connection of the running call: what exit() in it leaves behind

    # Goes by the options, listeners and signals of the process object.
    sub new {
        my ($class, $processes, $app) = @_;
        my %self = map { $_ => $processes->{$_} } qw(options listeners signals parent);
        my ($options, $now) = ($self{options}, clock());
        $self{multiprocess} = $self{parent} && $processes->{count} > 1 ? 1 : '';
        my ($least, $most) = split /\.\./, $options->{requests_max};
        my $spread = ($most || $least) - $least;
        my $calls_max = $least && $least + int(rand(1 + $spread)) + int rand(1 + $options->{requests_jitter});
        my %constant = map { $_ => '' } qw(SCRIPT_NAME psgi.multithread psgi.run_once psgi.nonblocking);
        $constant{$_} = 1 for qw(psgi.streaming psgix.harakiri psgix.cleanup psgix.input.buffered);
        @constant{qw(psgi.version psgi.url_scheme psgi.errors)} = ([1, 1], 'http', \*STDERR);
        $constant{'psgi.multiprocess'} = $self{multiprocess};
        for my $listener (@{ $self{listeners} }) {
            my %base = (%constant, SERVER_NAME => $listener->{host}, SERVER_PORT => $listener->{port});
            $listener->{limits} = Oribi::Pure::Head::limits(%$options, base => \%base);
        }
        return bless {
            %self, processes => $processes, app => $app, access_log => $processes->{access}, pid => $$, conns => {},
            ready => [], rmask => '', wmask => '', memory => 0, files => 0, calls => 0, calls_max => $calls_max,
            now => $now, next_tick => 0, listening => 0, second => 0,
            ends_at => $options->{age_max} ? $now + $options->{age_max} * (1 + rand(0.125)) : 0,
        }, $class;
    }

    # --- the loop ---

    # Serves until it was told to stop and all connections have ended, or shutdown_timeout has passed.
    sub run {
        my ($self) = @_;
        $serving = $self;
        $self->listen_on(1);
        my ($conns, $ready, $signals) = @$self{qw(conns ready signals)};
        until ($self->{draining} && (!%$conns || $self->{now} >= $self->{drain_deadline})) {
            $self->turn(@$ready ? 0 : TURN_MAX);
            while (!%$signals && (my $c = shift @$ready)) { $self->call($c) if $c->{fh} }
            $self->heed if %$signals;
            $self->drain if $self->{stops} && !$self->{draining};
        }
        my $left = keys %{ $self->{conns} };
        Oribi::Pure::say_log(warning => 'shutdown_timeout reached: closing %d connections', $left) if $left;
        $self->drop($_) for values %{ $self->{conns} };
    }

    # Signals that came. INT ends at once, and so does the second TERM of a process that serves alone.
    sub heed {
        my ($self) = @_;
        for my $name ($self->{processes}->take_signals) {
            my $is_stop = $name =~ /\A(?:TERM|QUIT|INT)\z/;
            if ($name eq 'USR1') { $self->{access_log} = $self->{processes}->reopen_logs }
            elsif (!$is_stop && $self->{parent}) { next }    # which is for the parent
            elsif (!$is_stop) { Oribi::Pure::say_log(warning => '%s: one process cannot do this: restart', $name) }
            elsif ($name eq 'INT' || $self->{told} && !$self->{parent}) { @$self{qw(draining drain_deadline)} = (1, 1) }
            else { $self->{stops} = $self->{told} = 1 }
        }
    }

    # From now on no connection is accepted, and none is kept beyond the next answer, which says so. A client whose
    # request is on its way gets that answer.
    sub drain {
        my ($self) = @_;
        $self->{draining} = 1;
        $self->{now} = clock();
        $self->{drain_deadline} = $self->{now} + $self->{options}{shutdown_timeout};
        my @open = $self->{told} && $self->{listening} ? @{ $self->{listeners} } : ();
        $self->accept_from($_, BACKLOG_TAKEN) for @open;    # who has connected before the stop is answered
        $self->listen_on(0);
        $self->{processes}->tell('leaves') if $self->{parent};
        my ($last, @conns) = ($self->{now} + LAST_CALL, values %{ $self->{conns} });
        $_->{deadline} = $last for grep { $_->{state} == HEAD && $_->{in} eq '' && $_->{deadline} > $last } @conns;
    }

    sub listen_on {
        my ($self, $on) = @_;
        $self->{listening} = $on;
        vec($self->{rmask}, fileno $_->{fh}, 1) = $on for @{ $self->{listeners} };
    }

    # One turn: waits for so many seconds at most, reads and writes what can be, and ends what has waited too long. Runs
    # no code of the application; complete requests are left in {ready}.
    sub turn {
        my ($self, $seconds) = @_;
        $self->await($_, 0, 0) for @{ $self->{ready} };    # what has more to read must not end each wait at once
        $seconds = TICK if $seconds && !$self->{listening};    # no descriptor tells when there is room again
        my $count = select my $readable = $self->{rmask}, my $writable = $self->{wmask}, undef, $seconds;
        $self->{now} = clock();
        if ($count > 0) {
            my $conns = $self->{conns};
            my $to_write = $writable =~ tr/\0//c ? unpack 'b*', $writable : '';
            my $to_read = unpack 'b*', $readable;
            $self->flush($conns->{ $-[0] }) while $to_write =~ /1/g;
            for (my $fd = -1; ($fd = index $to_read, '1', $fd + 1) >= 0;) {
                if (my $c = $conns->{$fd}) { $self->readable($c) if $c->{state} <= LINGER }
                elsif ($self->{listening}) {    # several at once where no sibling waits for them, and clients do
                    my $most = $self->{multiprocess} || !%$conns ? 1 : ACCEPT_BATCH;
                    $self->accept_from($_, $most) for grep { fileno($_->{fh}) == $fd } @{ $self->{listeners} };
                }
            }
        } elsif ($count < 0 && $! == EBADF) {    # the application has closed a descriptor that is not its own
            $self->cut($_, 'its descriptor was closed') for grep { !stat $_->{fh} } values %{ $self->{conns} };
        }
        $self->tick if $self->{now} >= $self->{next_tick};
    }

    # Deadlines are looked at a few times a second: a walk over all connections.
    sub tick {
        my ($self) = @_;
        my $now = $self->{now};
        $self->{next_tick} = $now + TICK;
        $self->{stops} = 1 if $self->{ends_at} && $now >= $self->{ends_at};
        $self->{stops} = $self->{told} = 1 if $self->{processes}->is_orphan;
        $self->expire($_) for grep { $_->{deadline} && $_->{deadline} <= $now } values %{ $self->{conns} };
        $self->listen_on(1) if !$self->{listening} && !$self->{draining} && $self->has_room;
    }

    sub expire {
        my ($self, $c) = @_;
        my $state = $c->{state};
        return $self->refuse($c, 408, 'body_timeout') if $state == BODY;
        return $self->refuse($c, 408, 'head_timeout') if $state == HEAD && $c->{in} ne '';
        Oribi::Pure::say_log(info => 'connection of %s closed: write_timeout', name_of($c)) if $state == ANSWER;
        $self->readable($c) if $state == HEAD;    # its next request may have come at this moment
        return $c->{state} == $state && $c->{in} eq '' && $self->drop($c);
    }

    # --- connections ---

    # A further connection replaces the longest idle one, then the oldest unfinished head, else it waits in the backlog.
    sub has_room {
        my ($self) = @_;
        my $conns = $self->{conns};
        return 1 if keys %$conns < $self->{options}{connections_max};
        my ($first) = sort { ($a->{in} ne '') <=> ($b->{in} ne '') || $a->{deadline} <=> $b->{deadline} }
            grep { $_->{state} == HEAD && $self->{now} - $_->{since} >= ROOM_IDLE_MIN } values %$conns;
        $self->drop($first) if $first;
        return defined $first;
    }

    # Each connection may bring one more request: together with those that were called, that is all of requests_max.
    sub is_spent {
        my ($self) = @_;
        return $self->{calls_max} && $self->{calls} + keys %{ $self->{conns} } >= $self->{calls_max};
    }

    sub accept_from {
        my ($self, $listener, $count) = @_;
        # Without the layer for buffers, which asks each new socket whether it is a terminal; psgix.io gets it.
        BEGIN { ${^OPEN} = ":unix\0:unix" if $^O ne 'MSWin32' }
        for (1 .. $count) {
            return $self->listen_on(0) if $self->is_spent || !$self->has_room;
            my $from = accept my $fh, $listener->{fh};
            if (!defined $from || !$from && !defined fileno $fh) {
                return if must_wait();
                Oribi::Pure::say_log(warning => 'a connection cannot be accepted: %s', $!);
                return $self->listen_on(0);    # until the next tick
            }
            Oribi::Pure::Processes::unblock($fh) if !DONTWAIT;
            my $fd = fileno $fh;
            my ($address, $port) = $listener->{path} ? () : Oribi::Pure::Processes::address_of($from);
            my $c = $self->{conns}{$fd} = {
                fh => $fh, fd => $fd, limits => $listener->{limits}, state => HEAD, in => '', out => '', requests => 0,
                since => $self->{now}, deadline => $self->{now} + $self->{options}{idle_timeout}, address => $address,
                peer => defined $address && [$address, $port],
            };
            $self->await($c, 1, 0);
            $self->{stops} = 1 if $self->is_spent;
            $self->readable($c);    # most clients send at once
        }
    }

    # From now on waits until the connection can be read, written, or neither.
    sub await {
        my ($self, $c, $read, $write) = @_;
        vec($self->{rmask}, $c->{fd}, 1) = $read;
        vec($self->{wmask}, $c->{fd}, 1) = $write;
        $c->{paused} = !$read;
    }

    # Forgets the connection; closes it unless the application has its socket.
    sub drop {
        my ($self, $c) = @_;
        my $fh = delete $c->{fh} or return;
        $self->await($c, 0, 0);
        delete $self->{conns}{ $c->{fd} };
        $self->listen_on(1) if !$self->{listening} && !$self->{stops} && !$self->{draining};
        $self->release($c);
        delete @$c{qw(head env)} if !$calling || $calling != $c;
        close $fh if !$c->{detached};
        return;
    }

    # Memory and temporary files of the request and of what is not sent, given back.
    sub release {
        my ($self, $c) = @_;
        $self->{memory} -= length($c->{body} // '');
        $self->{files} -= $c->{filed} // 0;
        delete @$c{qw(body temp chunks source filed)};
    }

    sub readable {
        my ($self, $c) = @_;
        my $is_read = defined recv $c->{fh}, my $bytes, READ_BYTES, DONTWAIT;    # a buffer would keep all that room
        return if !$is_read && must_wait();
        return $self->drop($c) if !$is_read || $bytes eq '';    # what ends early is never taken for a whole request
        if ($c->{state} == LINGER) {    # read and forgotten, so that no reset overtakes the last answer
            $c->{deadline} = $self->{now} + LINGER_SILENCE;
            my $is_over = ($c->{lingered} += length $bytes) > LINGER_BYTES_MAX || $self->{now} >= $c->{linger_end};
            return $is_over && $self->drop($c);
        }
        my $is_first = $c->{in} eq '';
        $c->{in} .= $bytes;
        return $self->take_head($c, $is_first) if $c->{state} == HEAD;
        $self->allow($c, 'body_timeout');
        return $self->take_body($c);
    }

    sub allow { my ($self, $c, $option) = @_; return $c->{deadline} = clock() + $self->{options}{$option} }

    # Takes what has been read as far as it goes: to a complete request, a refusal, or the need for more bytes.
    sub take_head {
        my ($self, $c, $is_first) = @_;
        my $result = Oribi::Pure::Head::parse($c, $c->{limits}, $c->{in});
        return $self->refuse($c, -$result, $c->{reason}) if $result < 0;
        return $is_first && $self->allow($c, 'head_timeout') if !$result;    # for all of it, from its first byte on
        if ($result == length $c->{in}) { $c->{in} = '' }    # cheaper
        else { substr $c->{in}, 0, $result, '' }
        $c->{is_head} = $c->{env}{REQUEST_METHOD} eq 'HEAD';    # the application may change it
        my $length = $c->{head}{length} or return $self->complete($c);
        @$c{qw(state since received left body)} = (BODY, $self->{now}, 0, $length, '');
        $self->allow($c, 'body_timeout');
        $c->{chunks} = Oribi::Pure::Chunked->new($c->{limits}) if $length < 0;
        $self->take_body($c);
        # A client that has begun its body does not wait for this.
        return if !$c->{fh} || $c->{state} != BODY || !$c->{head}{expect} || $c->{received} || $c->{in} ne '';
        $c->{out} = "HTTP/1.1 100 Continue\r\n\r\n";
        return $self->flush($c);
    }

    # A complete request: nothing more is read before its answer is sent.
    sub complete {
        my ($self, $c) = @_;
        @$c{qw(state deadline)} = (READY, 0);
        my $max = $self->{options}{queue_max};
        return $self->refuse($c, 503, 'queue_max') if $max && @{ $self->{ready} } >= $max;
        push @{ $self->{ready} }, $c;
    }

    # --- bodies of requests ---

    sub take_body {
        my ($self, $c) = @_;
        my $content;
        if (my $chunks = $c->{chunks}) {
            $content = $chunks->decode(\$c->{in});
            return $self->refuse($c, @$chunks{qw(status reason)}) if $chunks->{status};
        } else {
            $content = substr $c->{in}, 0, $c->{left}, '';
            $c->{left} -= length $content;
        }
        $c->{received} += length $content;
        $self->store($c, $content) or return;
        return $self->complete($c) if $c->{chunks} ? $c->{chunks}{done} : !$c->{left};
        my ($least, $wait) = @{ $self->{options} }{qw(body_rate_min body_timeout)};
        my $seconds = $self->{now} - $c->{since};
        $self->refuse($c, 408, 'body_rate_min') if $seconds > $wait && $c->{received} < $seconds * $least;
    }

    # Appends to the body. False when the request was refused for it.
    sub store {
        my ($self, $c, $bytes) = @_;
        if (!$c->{temp}) {
            $c->{body} .= $bytes;
            $self->{memory} += length $bytes;
            my ($max, $all) = @{ $self->{options} }{qw(body_memory_max buffers_memory_max)};
            my $length = $c->{left} > 0 ? $c->{head}{length} : length $c->{body};
            my $is_much = $all && $length > SMALL_BODY_BYTES && $self->{memory} + $length > $all * 3 / 4;
            return 1 if $length <= $max && !$is_much;
            $self->{memory} -= length $c->{body};
            $bytes = delete $c->{body};
            $c->{temp} = temp_file();
        }
        my $reason = $self->keep($c, $c->{temp}, $bytes) or return 1;
        return $self->refuse($c, $reason ne 'buffers_file_max' && $!{ENOSPC} ? 507 : 503, $reason);
    }

    sub temp_file { open my $fh, '+>', undef or return; binmode $fh; return $fh }

    # Writes to a temporary file of the connection. Returns why it cannot, or ''.
    sub keep {
        my ($self, $c, $fh, $bytes) = @_;
        my ($n, $max) = (length $bytes, $self->{options}{buffers_file_max});
        return 'buffers_file_max' if $max && $self->{files} + $n > $max;
        return "temporary file: $!" if !$fh || $n && (syswrite($fh, $bytes) // -1) != $n;
        $self->{files} += $n;
        $c->{filed} += $n;
        return '';
    }

    # --- output ---

    sub name_of { return $_[0]{address} // 'a unix socket' }

    # The server's own answer to a request that never reaches the application; then the connection ends. Returns 0.
    sub refuse {
        my ($self, $c, $status, $reason) = @_;
        if ($status != 408 || $c->{state} == BODY) {
            Oribi::Pure::say_log(warning => 'request from %s refused with %d: %s', name_of($c), $status, $reason);
        }
        $c->{is_head} = $c->{in} =~ /\A(?:\r\n){0,2}HEAD / if $c->{state} == HEAD;
        return $self->own_answer($c, $status);
    }

    sub own_answer {
        my ($self, $c, $status) = @_;
        $self->release($c);
        @$c{qw(state closes lingers complete)} = (ANSWER, 1, 1, 1);
        my @given = (is_head => $c->{is_head}, date => $self->date, server => $self->{options}{server_header});
        $c->{out} .= Oribi::Pure::Answer::own($status, @given);
        $self->log_access($c, $status, 0, $c->{env} || {}) if $self->{access_log};
        $self->flush($c);
        return 0;
    }

    # Sends what the socket takes, of a file piece by piece; what is left is sent when it is writable. When all of a
    # complete answer is sent, the next request begins, or the end.
    sub flush {
        my ($self, $c) = @_;
        return if !$c->{fh};    # the client went during the call
        while ($c->{out} ne '' || $c->{source}) {
            if ($c->{out} eq '') {
                my $source = $c->{source};
                sysseek $source->{fh}, $source->{pos}, 0;
                my $want = $source->{left} < READ_BYTES ? $source->{left} : READ_BYTES;
                my $n = sysread $source->{fh}, $c->{out}, $want or return $self->cut($c, 'its file has become shorter');
                $source->{pos} += $n;
                delete $c->{source} if !($source->{left} -= $n);
            }
            my $n = send $c->{fh}, $c->{out}, FLAGS;
            if (defined $n) {
                $c->{took} = 1;
                substr $c->{out}, 0, $n, '';
            } elsif ($! != EINTR) {
                return $self->drop($c) if !must_wait();
                $self->allow($c, 'write_timeout') if !$c->{deadline} || $c->{took};
                $c->{took} = 0;
                return $self->await($c, 0, 1);
            }
        }
        if ($c->{paused}) {
            my $is_body = $c->{state} == BODY ? 1 : 0;    # which begins behind 100 Continue
            $self->await($c, $is_body, 0);
            $c->{deadline} = $is_body && $self->allow($c, 'body_timeout');
        }
        return $c->{complete} && $self->next_request($c);
    }

    # Sends, and moves what one connection should not keep in memory to a temporary file.
    sub push_out {
        my ($self, $c) = @_;
        $self->flush($c);
        return if !$c->{fh} || $c->{source} || length $c->{out} <= $self->{options}{response_memory_max};
        $c->{source} = { fh => temp_file(), pos => 0, left => 0 };
        my $bytes = $c->{out};
        $c->{out} = '';
        return $self->add($c, $bytes);
    }

    # Puts bytes behind what is not sent yet.
    sub add {
        my ($self, $c, $bytes) = @_;
        my $file = $c->{source} or return $c->{out} .= $bytes;
        sysseek $file->{fh}, $file->{pos} + $file->{left}, 0 if $file->{fh};
        my $reason = $self->keep($c, $file->{fh}, $bytes);
        return $self->cut($c, $reason) if $reason;
        return $file->{left} += length $bytes;
    }

    # Ends an answer so that nobody takes it for whole.
    sub cut {
        my ($self, $c, $reason) = @_;
        complain($c, "answer cut: $reason");
        return $self->drop($c);
    }

    # All is sent: the next request, which may have been read already, or the end of the connection.
    sub next_request {
        my ($self, $c) = @_;
        $self->release($c) if defined $c->{body} || $c->{filed};
        my $now = $self->{now} = clock();    # the call may have taken long
        $self->await($c, 1, 0) if $c->{paused};
        if ($c->{closes}) {
            return $self->drop($c) if !$c->{lingers} && $c->{in} eq '' && !($c->{head} && $c->{head}{keep_alive});
            shutdown $c->{fh}, 1;
            my @ends = ($now + LINGER_SILENCE, $now + LINGER_MAX);
            return @$c{qw(state in lingered deadline linger_end)} = (LINGER, '', 0, @ends);
        }
        my $rest = $self->{draining} ? LAST_CALL : $self->{options}{idle_timeout};
        @$c{qw(state since deadline complete env)} = (HEAD, $now, $now + $rest, 0, undef);
        return $c->{in} ne '' && $self->take_head($c, 1);
    }

    # The value of Date, made once a second.
    sub date {
        my ($self) = @_;
        return $self->{date} if time == $self->{second};
        @$self{qw(second log_time)} = (time, undef);
        return $self->{date} = Oribi::Pure::Answer::date_of($self->{second});
    }

    # --- the call ---

    sub complain {
        my ($c, $what, $level) = @_;
        my $line = $c->{env} ? join ' ', @{ $c->{env} }{qw(REQUEST_METHOD REQUEST_URI)} : 'a request';
        Oribi::Pure::say_log($level // 'error', '%s: %s', $line, $what);
    }

    # Runs code of the application: true and what it gives, or false and the error. A process that it has forked ends
    # here, as a script does.
    sub attempt {
        my ($self, $code, @arguments) = @_;
        my ($result, $error);
        my $lived = eval { $result = $code->(@arguments); 1 } or $error = $@;
        exit($lived ? 0 : 255) if $$ != $self->{pid};
        return $lived ? (1, $result) : (0, eval {"$error"} // 'an exception without text');
    }

    # Builds the environment, calls the application, answers, and does what comes after an answer.
    sub call {
        my ($self, $c) = @_;
        my ($env, $head) = @$c{qw(env head)};
        if (index($env->{PATH_INFO}, '%') >= 0) {
            $env->{PATH_INFO} = Oribi::Pure::Head::decoded($env->{PATH_INFO})
                // return $self->refuse($c, 400, 'bad escape in the path');
        }
        $c->{requests}++;
        $self->{calls}++;
        @$c{qw(state answered status)} = (ANSWER, 0, 0);
        my ($input, $handlers) = ($self->{nothing}, []);    # an empty handle serves all requests until it is closed
        $input = $self->input_of($c) if $c->{temp} || defined $c->{body} || !$input || !defined fileno $input;
        @$env{qw(psgi.input psgix.cleanup.handlers)} = ($input, $handlers);
        tie $env->{'psgix.io'}, 'Oribi::Pure::Socket', $c;
        $env->{'oribi.unread'} = $c->{in} if $c->{in} ne '' && $head->{upgrade};
        if ($c->{chunks}) {
            delete $env->{HTTP_TRANSFER_ENCODING};
            $env->{CONTENT_LENGTH} = $c->{received};
            my ($trailers) = $c->{chunks}->trailers;
            $env->{'oribi.trailers'} = $trailers if %$trailers;
        }
        $calling = $c;    # not local: exit() would undo that before END blocks run
        my ($lived, $res) = $self->attempt($self->{app}, $env);
        $self->{stops} = 1 if $env->{'psgix.harakiri.commit'};
        if (!$lived) { $self->died($c, $res) }
        elsif (ref $res ne 'ARRAY' && kind_of($res) eq 'CODE') { $self->answer_later($c, $res) }
        else { $self->answer_with($c, $res) }
        $self->log_access($c, @$c{qw(status bytes)}, $env) if $self->{access_log} && $c->{status};
        delete $env->{'psgix.io'};
        $self->clean_up($c, $env) if @$handlers || ($env->{'psgix.cleanup.handlers'} // 0) != $handlers;
        delete @$c{qw(head env)} if !$c->{fh};
        $head->{spare} //= { @{ $head->{env} } } if $head->{calls}++;    # now, while the client is busy
        $self->{stops} = 1 if $env->{'psgix.harakiri.commit'} || $self->{calls_max} && $self->is_spent;
        $calling = undef;
    }

    sub input_of {
        my ($self, $c) = @_;
        my ($input, $body) = ($c->{temp}, $c->{body} // '');
        if (!$input && $HAS_SCALAR) {
            open $input, '<', \$body or die "psgi.input: $!";
            return $body eq '' ? $self->{nothing} = $input : $input;
        }
        $input ||= temp_file() || die "psgi.input: $!";
        syswrite $input, $body;
        seek $input, 0, 0;
        return $input;
    }

    # What the application did wrong: 500, or the end of an answer that has begun. Returns nothing.
    sub fail {
        my ($self, $c, $what) = @_;
        return if $c->{failed}++;
        complain($c, $what);
        return $self->drop($c) if !$c->{fh} || $c->{answered};
        $c->{answered} = 1;
        $self->own_answer($c, 500);
        return;
    }

    sub bad { my ($self, $c, $reason) = @_; return $self->fail($c, "bad response: $reason") }
    sub died { my ($self, $c, $error) = @_; return $self->fail($c, "the application died: $error") }

    # A delayed answer: code that gives one to the code that it gets.
    sub answer_later {
        my ($self, $c, $res) = @_;
        my $writer;
        my ($lived, $error) = $self->attempt($res, sub {
            die "the response was given already\n" if $c->{answered};
            $writer = $self->answer_with($c, $_[0], 1);
            return ref $writer ? $writer : undef;    ## no critic: a list would be no result
        });
        return if !$c->{fh};
        return $self->died($c, $error) if !$lived;
        return ref $writer && !$writer->{closed} && $self->cut($c, 'the writer was not closed') if $c->{answered};
        return $self->bad($c, 'no response was given') if ($c->{looked_at} // 0) != $c->{requests};
        $c->{detached} = 1;    # the socket is the application's from now on
        return $self->drop($c);
    }

    sub answer_with {
        my ($self, $c, $res, $may_stream) = @_;
        return $self->bad($c, 'it is no reference to an array') if ref $res ne 'ARRAY' && kind_of($res) ne 'ARRAY';
        my ($status, $headers, $body) = @$res;
        my $is_list = ref $headers eq 'ARRAY' || kind_of($headers) eq 'ARRAY';
        return $self->bad($c, 'the headers are no reference to an array') if !$is_list;
        if (ref $body eq 'ARRAY') {
            no warnings 'uninitialized';
            return $self->whole($c, $status, $headers, @$body == 1 ? "$body->[0]" : join '', @$body);
        }
        if ($may_stream && @$res == 2) {
            $self->begin($c, $status, $headers, -1) or die "the response was refused, see the log\n";
            $self->flush($c);
            return bless { worker => $self, conn => $c, pid => $$ }, 'Oribi::Pure::Writer';
        }
        my $is_handle = Scalar::Util::blessed($body) && $body->can('getline');
        return $self->handle($c, $status, $headers, $body) if $is_handle || kind_of($body) eq 'GLOB';
        return $self->bad($c, 'the body is neither a list nor a handle');
    }

    # Of what a reference is, blessed or not.
    sub kind_of { return Scalar::Util::reftype($_[0]) // '' }

    # Does the connection stay, if the answer allows it? Not when the application has kept the socket: two others hold
    # it, of which one is not counted, the connection and the value in the environment.
    sub may_keep {
        my ($self, $c) = @_;
        my $max = $self->{options}{keepalive_requests_max};
        $self->heed if %{ $self->{signals} };    # a stop that came during the call
        return 0 if $c->{looked_at} && $c->{fh} && &Internals::SvREFCNT($c->{fh}) > 1;
        return $c->{head}{keep_alive} && !$self->{stops} && (!$max || $c->{requests} < $max);
    }

    # Begins an answer whose content goes through put(), its end through finish(). Returns what Answer::head() says, or
    # nothing after a 500.
    sub begin {
        my ($self, $c, $status, $headers, $length, $content) = @_;
        my $res = {
            status => Oribi::Pure::Answer::status_of($status), headers => $headers, body_len => $length,
            minor => $c->{head}{minor}, is_head => $c->{is_head}, keep_alive => $self->may_keep($c),
            date => $self->date, server => $self->{options}{server_header},
        };
        my $bytes = Oribi::Pure::Answer::head($res);
        if ($res->{framed} && $content) {    # the application has framed it itself: it is taken out of its chunks
            return $self->bad($c, 'its chunks are malformed') if !unframe(unframer(), $content, 1);
            @$res{qw(unframed body_len)} = (1, length $$content);
            $bytes = Oribi::Pure::Answer::head($res);
        }
        return $self->bad($c, $res->{reason}) if !defined $bytes;
        my @mended = sort keys %{ $res->{mended} || {} };
        complain($c, "headers put right: @mended", 'warning') if @mended;
        @$c{qw(answered status closes framing length given bytes)} = (1, @$res{qw(status closes framing length)}, 0, 0);
        $c->{unframe} = $res->{framed} ? unframer() : undef;
        $c->{out} .= $bytes;
        return $res;
    }

    sub unframer { return Oribi::Pure::Chunked->new({ body_bytes_max => 1 << 52, fields_max => 256 }) }

    # Takes the chunks off. False when the bytes are not framed as they should be, or end too soon.
    sub unframe {
        my ($chunks, $content, $is_end) = @_;
        my $bytes = $$content;
        $$content = $chunks->decode(\$bytes);
        return !$chunks->{status} && $bytes eq '' && ($chunks->{done} || !$is_end);
    }

    # An answer whose body is there.
    sub whole {
        my ($self, $c, $status, $headers, $content) = @_;
        return $self->bad($c, 'characters above 255') if utf8::is_utf8($content) && !utf8::downgrade($content, 1);
        if ($c->{head}{minor} && !$c->{is_head} && !length $self->{options}{server_header}) {
            my ($length, $closes) = (length $content, !$self->may_keep($c));
            my $bytes = Oribi::Pure::Answer::usual($status, $headers, $length, $self->date, $closes);
            if (defined $bytes) {
                $bytes .= $content;
                @$c{qw(answered status closes bytes complete)} = (1, $status, $closes, $length, 1);
                my $n = $c->{out} eq '' && $c->{fh} && send($c->{fh}, $bytes, FLAGS) || 0;
                return $self->next_request($c) if $n == length $bytes;
                $c->{out} .= substr $bytes, $n;
                return $self->push_out($c);    # which meets an error of send() again
            }
        }
        $self->begin($c, $status, $headers, length $content, \$content) or return;
        $self->put($c, $content);
        return $self->finish($c);
    }

    # Puts content behind what is not sent yet; what is longer than Content-Length says is cut.
    sub put {
        my ($self, $c, $content) = @_;
        $content = "$content";
        die "characters above 255\n" if utf8::is_utf8($content) && !utf8::downgrade($content, 1);
        die "its chunks are malformed\n" if $c->{unframe} && !unframe($c->{unframe}, \$content);
        $c->{given} += length $content;
        return if $content eq '' || $c->{framing} eq 'none';
        $content = substr $content, 0, $c->{length} - $c->{bytes} if $c->{framing} eq 'length';
        $c->{bytes} += length $content;
        $content = sprintf "%x\r\n%s\r\n", length $content, $content if $c->{framing} eq 'chunked';
        return $self->add($c, $content);
    }

    # What is shorter than its Content-Length ends with the connection.
    sub finish {
        my ($self, $c) = @_;
        return $self->cut($c, 'its chunks are malformed') if $c->{unframe} && !delete($c->{unframe})->{done};
        if ($c->{framing} eq 'length' && $c->{given} != $c->{length}) {
            complain($c, "the body has $c->{given} bytes, its Content-Length is $c->{length}");
            @$c{qw(closes lingers)} = (1, 1) if $c->{bytes} < $c->{length};
        }
        $self->add($c, "0\r\n\r\n") if $c->{framing} eq 'chunked';
        $c->{complete} = 1;
        return $self->push_out($c);
    }

    # A handle is read to its end now, so that a slow client does not hold it; a plain file is sent as the client takes
    # it.
    sub handle {
        my ($self, $c, $status, $headers, $body) = @_;
        my ($file, $is_object) = (scalar eval { plain_file($body) }, Scalar::Util::blessed($body));
        my ($lived, $error) = $self->attempt(sub {
            $self->begin($c, $status, $headers, $file ? $file->{left} : -1) or return;
            if ($file && $c->{framing} eq 'length' && $c->{length} == $file->{left}) {
                @$c{qw(bytes given source)} = ($file->{left}, $file->{left}, $file);
            } elsif ($c->{framing} ne 'none') {
                local $/ = \65536;
                while ($c->{fh} && defined(my $piece = $is_object ? $body->getline : readline $body)) {
                    $self->put($c, $piece);
                    $self->push_out($c) if $c->{fh};
                }
            }
            $self->finish($c) if $c->{fh};
        });
        my $close = sub { $is_object ? $body->can('close') && $body->close : close $body };
        my ($is_closed, $reason) = $self->attempt($close);
        complain($c, "closing the body died: $reason") if !$is_closed;
        return !$lived && $c->{fh} && $self->died($c, $error);
    }

    # Of a body that is an open plain file without layers that change bytes, or names one by `path`: { fh, pos, left }.
    sub plain_file {
        my ($fh) = @_;
        if (Scalar::Util::blessed($fh) && $fh->can('path')) {
            open my $named, '<:raw', $fh->path // return or return;
            $fh = $named;
        }
        return if Scalar::Util::reftype($fh) ne 'GLOB' || tied *$fh || (fileno($fh) // -1) < 0;
        # Without blocks, the size is not the content's, as in /sys.
        return if !-f $fh || !-s _ || ((stat _)[12] // '') eq '0';
        return if grep { !/\A(?:unix|perlio)\z/ } PerlIO::get_layers($fh);
        my ($size, $pos) = (-s _, tell $fh);
        open my $own, '<&', $fh or return;    # the application may close its own
        return $pos >= 0 && $pos < $size ? { fh => $own, pos => $pos, left => $size - $pos } : ();
    }

    sub clean_up {
        my ($self, $c, $env) = @_;
        my $handlers = $env->{'psgix.cleanup.handlers'};
        return if ref $handlers ne 'ARRAY';
        for (my $i = 0; $i < @$handlers && $i < CLEANUP_MAX; $i++) {
            my ($lived, $error) = $self->attempt($handlers->[$i], $env);
            complain($c, "a cleanup handler died: $error") if !$lived;
        }
        @$handlers = ();
    }

    # A line of the combined format.
    sub log_access {
        my ($self, $c, $status, $bytes, $env) = @_;
        $self->date;
        $self->{log_time} //= POSIX::strftime('%d/%b/%Y:%H:%M:%S %z', localtime $self->{second});
        my @values = map { length($_ // '') ? $_ : '-' } @$env{qw(REQUEST_URI HTTP_REFERER HTTP_USER_AGENT)};
        my ($uri, $referer, $agent) = map { s/([\x00-\x1f"\\\x7f-\xff])/sprintf '\\x%02x', ord $1/ger } @values;
        my $line = $env->{REQUEST_METHOD} ? "$env->{REQUEST_METHOD} $uri $env->{SERVER_PROTOCOL}" : '-';
        my @shown = ($c->{address} // '-', $self->{log_time}, $line, $status, $bytes, $referer, $agent);
        syswrite $self->{access_log}, sprintf qq{%s - - [%s] "%s" %d %d "%s" "%s"\n}, @shown;
    }

    # exit() inside the application: its client gets 500 if nothing was sent yet.
    END {
        if ($calling && $serving->{pid} == $$) {
            my ($self, $c) = ($serving, $calling);
            local ($?, $@, $!);
            $self->fail($c, 'the application called exit') if $c->{fh} && !$c->{complete};
        }
    }
}

# What a streaming application writes to. write() waits while the client is slow, and serves the other connections'
# input and output meanwhile; it dies when the client has gone, so that endless streams end.
package Oribi::Pure::Writer 0.100 {
    sub write {
        my ($self, $content) = @_;
        my ($worker, $c) = @$self{qw(worker conn)};
        die "the writer is of another process\n" if $self->{pid} != $$;
        die "the writer is closed\n" if $self->{closed};
        die "the client has gone\n" if !$c->{fh};
        $worker->put($c, $content // '');
        $worker->flush($c);
        $worker->turn(1) while $c->{fh} && length $c->{out} > $worker->{options}{response_memory_max};
        die "the client has gone\n" if !$c->{fh};
        return 1;
    }

    sub close {
        my ($self) = @_;
        return if $self->{closed}++ || $self->{pid} != $$;
        return !$self->{conn}{fh} || $self->{worker}->finish($self->{conn}) // 1;
    }
}

# The value of psgix.io: the client's socket, once somebody looks at it.
package Oribi::Pure::Socket 0.100 {
    sub TIESCALAR { return bless [$_[1]] }    # the connection, and what the application has stored
    sub STORE { my ($self, $value) = @_; $self->[1] = $value; return }

    sub FETCH {
        my ($self) = @_;
        return $self->[1] if @$self > 1;
        my ($c) = @$self;
        my $fh = $c->{fh} or return undef;    ## no critic: a list would be no value
        return $fh if ($c->{looked_at} // 0) == $c->{requests};
        $c->{looked_at} = $c->{requests};
        if (ref $fh eq 'GLOB') {    # of a connection's first look
            Oribi::Pure::Processes::unblock($fh);
            binmode $fh, ':perlio';
        }
        my $kind = !defined $c->{address} ? 'UNIX' : $c->{address} =~ /:/ ? 'IP' : 'INET';
        bless $fh, eval "require IO::Socket::$kind; 1" ? "IO::Socket::$kind" : 'IO::Handle';
        $fh->ungetc(ord) for reverse split //, $c->{in};    # read() gives it back; sysread() does not see it
        return $fh;
    }
}

# --- processes --------------------------------------------------------------------------------------------------------

# The supervisor runs no code of the application. Its children are molds: a mold has loaded one generation of the
# application, and its children are that generation's workers. At a reload the next mold is started beside the one that
# serves, and takes over once its workers have been forked. Both keep their children by one loop, tend(). A child tells
# its parent by a pipe that it is `ready`, that it `leaves` (it is replaced at once), or why it `failed`; a few times a
# second it asks who its parent is, to end with it. Without fork, one process serves.
package Oribi::Pure::Processes 0.100 {
    use constant { QUICK_DEATH => 1, FIRST_FD => 3 };

    sub new {
        my ($class, $settings) = @_;
        my %self = (settings => $settings, options => $settings->{value}, count => $settings->{value}{workers});
        return bless { %self, signals => {}, listeners => [], generation => 0, serving => 0 }, $class;
    }

    sub can_fork { return $^O ne 'MSWin32' && $Config::Config{d_fork} }

    # --- sockets ---

    # Windows has no fcntl for sockets.
    sub unblock { return $^O eq 'MSWin32' ? ioctl $_[0], 0x8004667e, pack 'L', 1 : IO::Handle::blocking($_[0], 0) }

    # Numeric host and port of a packed address; of a mapped IPv4 address that of IPv4.
    sub address_of {
        my ($packed) = @_;
        if (Socket::sockaddr_family($packed) == Socket::AF_INET()) {
            my ($port, $bytes) = Socket::unpack_sockaddr_in($packed);
            return (join('.', unpack 'C4', $bytes), $port);
        }
        my ($error, $host, $port) = Socket::getnameinfo($packed, Socket::NI_NUMERICHOST() | Socket::NI_NUMERICSERV());
        return $error ? () : ($host =~ s/\A::ffff:(?=[0-9.]+\z)|%.*//gr, $port);
    }

    # { fh, host, port or path, shown } of an address as `bind` has it.
    sub open_listener {
        my ($self, $text) = @_;
        die "$text: $Oribi::Pure::Settings::REFUSAL\n" if $text =~ m{\Atls://|[?&](?:frontend|proxy)=};
        my ($address, $query) = split /\?/, $text, 2;
        my %given = map { my ($key, $value) = split /=/, $_, 2; $key => $value // '' } split /&/, $query // '';
        my $is_path = $address =~ s{\Aunix://}{} || $address =~ m{\A[^:]*/(?!/)};
        my @known = $is_path ? qw(umask mode backlog) : qw(backlog ipv6only);
        my ($key) = grep { my $given = $_; !grep { $given eq $_ } @known } sort keys %given;
        die qq{address "$text": Oribi::Pure has no "$key" (known: @known)\n} if defined $key;
        my $backlog = $given{backlog} // $self->{options}{backlog};
        my $fh = eval {
            $address =~ m{\Afd://([0-9]+)\z} ? inherited($1)
                : $is_path ? unix_socket($address, $given{mode} ? 0777 & ~oct $given{mode} : oct($given{umask} // 0))
                : $self->tcp_socket($address =~ s{\Atcp://}{}r, $given{ipv6only} // '');
        } or die "cannot listen on $text: $@";
        listen $fh, $backlog || Socket::SOMAXCONN() or die "cannot listen on $text: $!\n";
        unblock($fh);
        my $name = getsockname $fh;
        if (Socket::sockaddr_family($name) == (eval { Socket::AF_UNIX() } // -1)) {
            my ($path, $shown) = (File::Spec->rel2abs($address), $is_path ? "unix://$address" : $address);
            return { fh => $fh, path => $path, inode => (stat $path)[1], host => 'localhost', shown => $shown };
        }
        setsockopt $fh, Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1;    # its connections inherit it
        my ($host, $port) = address_of($name);
        my $shown = 'tcp://' . ($host =~ /:/ ? "[$host]" : $host) . ":$port";
        return { fh => $fh, host => $host, port => $port, shown => $shown };
    }

    sub inherited { my ($fd) = @_; open my $fh, '+<&=', $fd or die "$!\n"; getsockname $fh or die "$!\n"; return $fh }

    sub unix_socket {
        my ($path, $umask) = @_;
        my $name = eval { Socket::pack_sockaddr_un($path) } or die "this system has no unix sockets\n";
        my ($fh, $probe) = map { socket my $new, Socket::AF_UNIX(), Socket::SOCK_STREAM(), 0 or die "$!\n"; $new } 1, 2;
        die "another server listens there\n" if -S $path && connect $probe, $name;
        unlink $path if -S _;
        my $before = umask $umask;
        my $error = bind($fh, $name) ? '' : "$!\n";
        umask $before;
        return $error ? die $error : $fh;
    }

    sub tcp_socket {
        my ($self, $address, $v6only) = @_;
        my ($v6, $host, $port) = $address =~ /\A(?:(?:\[([^\]]*)\]|([^:\/\[]*)):)?([0-9]+)\z/
            or die "it must be host:port, with brackets around an IPv6 address\n";
        $host = length($v6 // '') ? $v6 : length($host // '') ? $host : '0.0.0.0';
        my %hints = (socktype => Socket::SOCK_STREAM(), flags => Socket::AI_PASSIVE());
        my ($error, $info) = Socket::getaddrinfo($host, $port, \%hints);
        die "$error\n" if $error;
        socket my $fh, $info->{family}, Socket::SOCK_STREAM(), 0 or die "$!\n";
        # On Windows this option lets two servers share a port.
        setsockopt $fh, Socket::SOL_SOCKET(), Socket::SO_REUSEADDR(), 1 if $^O ne 'MSWin32';
        setsockopt $fh, Socket::SOL_SOCKET(), Socket::SO_REUSEPORT(), 1 if $self->{options}{reuse_port};
        my $is_only = $host ne '::' || $v6only eq 'on' ? 1 : 0;
        eval { setsockopt $fh, Socket::IPPROTO_IPV6(), Socket::IPV6_V6ONLY(), $is_only };    # of IPv4: fails, no matter
        return bind($fh, $info->{addr}) ? $fh : die "$!\n";
    }

    # Sockets of start_server (SERVER_STARTER_PORT) and systemd (LISTEN_FDS) come first.
    sub open_listeners {
        my ($self) = @_;
        my @ready = map { /=([0-9]+)\z/ ? "fd://$1" : () } split /;/, delete $ENV{SERVER_STARTER_PORT} // '';
        my ($fds, $for) = delete @ENV{qw(LISTEN_FDS LISTEN_PID)};
        push @ready, map { 'fd://' . ($_ + FIRST_FD) } 0 .. $fds - 1 if $fds && ($for // 0) == $$;
        push @{ $self->{listeners} }, $self->open_listener($_) for @ready ? @ready : $self->{settings}->addresses;
    }

    # --- the start ---

    # Returns the exit code.
    sub run {
        my ($self) = @_;
        my ($file, $is_written) = $self->{options}{pid_file};
        $self->{settings}->check_app;
        STDOUT->autoflush(1);    # what a server prints is read while it runs
        $self->watch(qw(TERM QUIT HUP USR1 USR2 TTIN TTOU));    # whoever can connect may send one, which would end us
        $SIG{$_} = sub { } for grep { exists $SIG{$_} } qw(PIPE XFSZ);    # the call that failed says so
        my $code = eval {
            $self->open_listeners;
            $self->open_logs;
            if (length $file) {
                open my $fh, '>', $file or die "pid_file $file: $!\n";
                print {$fh} "$$\n";
                $is_written = close $fh or die "pid_file $file: $!\n";
            }
            $self->{options}{single} || !can_fork() ? $self->serve : $self->tend('adjust_molds');
        };
        my $error = $@;
        my @own = grep { $_->{inode} && ((stat $_->{path})[1] // 0) == $_->{inode} } @{ $self->{listeners} };
        unlink((map { $_->{path} } @own), $is_written ? $file : ());
        return $code // die $error;
    }

    # Returns where the access log goes, if there is one.
    sub open_logs {
        my ($self) = @_;
        my ($access, $error) = @{ $self->{options} }{qw(access_log error_log)};
        if ($error ne '-') {
            open my $fh, '>>', $error or die "error_log $error: $!\n";
            open STDERR, '>&', $fh or die "error_log $error: $!\n";
        }
        return if $access eq 'off';
        my @how = $access eq '-' ? ('>&', \*STDOUT) : ('>>', $access);
        open my $fh, $how[0], $how[1] or die "access_log $access: $!\n";
        return $self->{access} = $fh;
    }

    # At a signal: what cannot be opened stays as it is.
    sub reopen_logs {
        my ($self) = @_;
        eval { $self->open_logs; 1 } or Oribi::Pure::say_log(error => '%s', $@);
        return $self->{access};
    }

    sub announce {
        my ($self, $how) = @_;
        my $listeners = $self->{listeners};
        my $shown = join ', ', map { $_->{shown} } @$listeners;
        Oribi::Pure::say_log(info => 'Oribi::Pure %s listening on %s, %s', $Oribi::Pure::VERSION, $shown, $how);
        my %said = (proto => 'http', server_software => 'Oribi::Pure', map { $_ => $listeners->[0]{$_} } qw(host port));
        $self->hook(server_ready => \%said);
    }

    sub hook {
        my ($self, $name, @arguments) = @_;
        for my $code (@{ $self->{options}{$name} }) {
            eval { $code->(@arguments); 1 } or Oribi::Pure::say_log(error => 'a hook died: %s', $@);
        }
    }

    # Remembers signals until the loop looks.
    sub watch {
        my ($self, @names) = @_;
        for my $name (grep { exists $SIG{$_} } @names) { $SIG{$name} = sub { $self->{signals}{$name}++ } }
    }

    sub take_signals {
        my ($self) = @_;
        return map { ($_) x delete $self->{signals}{$_} } sort keys %{ $self->{signals} };
    }

    # The life of a worker, or of the one process, which has no parent. Returns the exit code.
    sub serve {
        my ($self, $index) = @_;
        my $app = $self->{settings}->load;
        $self->announce('one process') if !$self->{parent};
        $self->watch(qw(TERM QUIT INT USR1 HUP));
        $self->hook(after_fork => $index // 0, $self->{generation});
        Oribi::Pure::Worker->new($self, $app)->run;
        return 0;
    }

    # --- parents and children ---

    # Keeps the children that the method $adjust wants. Ends when this process was told to stop and has no child any
    # more. Returns the exit code.
    sub tend {
        my ($self, $adjust) = @_;
        $self->watch(qw(TERM QUIT INT HUP TTIN TTOU USR1 USR2));
        $SIG{CHLD} = sub { } if exists $SIG{CHLD};    # the end of a child only wakes
        $self->{up} = delete $self->{tell};    # to the parent; of the supervisor: none
        pipe $self->{hear}, $self->{tell} or die "pipe: $!\n";    # from the children
        @$self{qw(children heard next ends)} = ({}, '', 0, 0);
        while (1) {
            $self->heed($_) for $self->take_signals;
            $self->stop('TERM') if !$self->{ends} && $self->is_orphan;
            $self->reap;
            return 0 if $self->{ends} && !%{ $self->{children} };
            my $now = Oribi::Pure::Worker::clock();
            $self->$adjust($now) if !$self->{ends};
            kill KILL => keys %{ $self->{children} } if $self->{ends} && $now >= $self->{ends};
            $self->hear($self->{ends} ? 0.05 : 1);
        }
    }

    # Has the process ended that forked this one?
    sub is_orphan { my ($self) = @_; return $self->{parent} && getppid != $self->{parent} }

    # Says it to the process that tends this one.
    sub tell {
        my ($self, $word) = @_;
        my $line = substr("$$ $word", 0, 2000) =~ s/\s+\z//r =~ tr/\n/ /r;    # so short that it arrives in one piece
        return syswrite $self->{up} || $self->{tell}, "$line\n";
    }

    # Waits for what children tell, so many seconds at most.
    sub hear {
        my ($self, $seconds) = @_;
        vec(my $set = '', fileno $self->{hear}, 1) = 1;
        return if select($set, undef, undef, $seconds) <= 0;
        sysread $self->{hear}, $self->{heard}, 65536, length $self->{heard};
        while ($self->{heard} =~ s/\A([0-9]+) (\w+) ?(.*)\n//) {
            $self->{children}{$1}{$2} = length $3 ? $3 : 1 if $self->{children}{$1};
        }
    }

    sub heed {
        my ($self, $name) = @_;
        my $is_top = !$self->{up};
        if ($name eq 'HUP') {
            Oribi::Pure::say_log(info => 'reload') if $is_top && !$self->{ends};
            @$self{qw(reload next)} = (1, 0);
        } elsif ($name eq 'USR2') {
            Oribi::Pure::say_log(warning => 'no upgrade here: restart by start_server or systemd, or take Oribi');
        } elsif ($name eq 'USR1') {
            $self->reopen_logs;
            kill USR1 => keys %{ $self->{children} };
        } elsif ($name !~ /\ATT/) {
            $self->stop($name);
        } elsif ($name eq 'TTIN' || $self->{count} > 1) {
            $self->{count} += $name eq 'TTIN' ? 1 : -1;
            kill $name => keys %{ $self->{children} } if $is_top;
            Oribi::Pure::say_log(info => '%d workers from now on', $self->{count}) if $is_top;
        }
    }

    # INT, and a second word to the supervisor: at once. What is left at {ends} is killed, by a mold first.
    sub stop {
        my ($self, $name) = @_;
        my $is_top = !$self->{up};
        my $at_once = $name eq 'INT' || $is_top && $self->{ends};
        Oribi::Pure::say_log(info => 'stopping') if $is_top && !$self->{ends};
        my $ends = Oribi::Pure::Worker::clock() + $is_top + ($at_once ? 0 : $self->{options}{shutdown_timeout} + 1);
        $self->{ends} = $ends if !$self->{ends} || $ends < $self->{ends};
        return kill $at_once ? 'INT' : 'TERM', keys %{ $self->{children} };
    }

    # Forks a child with that life, which returns its exit code. The child does not hear of its parent's signals, and
    # misses none of its own: they wait until it has handlers.
    sub start {
        my ($self, $child, $life) = @_;
        my ($all, $before, $parent) = (POSIX::SigSet->new, POSIX::SigSet->new, $$);
        $all->fillset;
        POSIX::sigprocmask(POSIX::SIG_BLOCK(), $all, $before);
        my $pid = fork;
        $self->{signals} = {} if defined $pid && !$pid;
        POSIX::sigprocmask(POSIX::SIG_SETMASK(), $before);
        my $now = Oribi::Pure::Worker::clock();
        if (!defined $pid) {
            Oribi::Pure::say_log(error => '%s cannot be forked: %s', $child->{name}, $!);
            return $self->{next} = $now + 1;
        }
        return $self->{children}{$pid} = { %$child, pid => $pid, since => $now } if $pid;
        $self->{parent} = $parent;
        close $_ for grep {defined} delete @$self{qw(up hear)};
        my $code = eval { $life->() };
        $self->tell("failed $@") if !defined $code;
        exit($code // 1);
    }

    # A child that ended soon is not started again at once.
    sub reap {
        my ($self) = @_;
        while ((my $pid = waitpid -1, POSIX::WNOHANG()) > 0) {
            my ($status, $now) = ($?, Oribi::Pure::Worker::clock());
            $self->hear(0);    # its last words
            my $child = delete $self->{children}{$pid} or next;
            my $how = $child->{failed} // ($status & 127 ? 'signal ' . ($status & 127) : 'exit code ' . ($status >> 8));
            my $level = $status ? 'error' : $self->{ends} || $child->{generation} ? 'debug' : 'info';
            Oribi::Pure::say_log($level, '%s (pid %d) ended: %s', $child->{name}, $pid, $how) if $child->{ready};
            my $is_quick = $status && $now - $child->{since} < QUICK_DEATH || !$child->{ready};
            $self->{next} = $now + ($is_quick ? $self->{options}{err_respawn_interval} : 0);
            next if $child->{ready} || $self->{ends};
            my $reason = $child->{failed} // 'the process that loads the application ended';
            die "$reason\n" if !$self->{serving};
            Oribi::Pure::say_log(error => 'reload failed, the old generation goes on serving: %s', $reason);
        }
    }

    # One mold serves; a new one that is ready takes over.
    sub adjust_molds {
        my ($self, $now) = @_;
        my @molds = sort { $b->{generation} <=> $a->{generation} } grep { !$_->{leaves} } values %{ $self->{children} };
        my ($newest, @old) = grep { $_->{ready} } @molds;
        $_->{leaves} = kill TERM => $_->{pid} for @old;
        if ($newest && $newest->{generation} > $self->{serving}) {
            Oribi::Pure::say_log(info => 'generation %d serves', $newest->{generation}) if $self->{serving};
            $self->announce("$self->{count} workers") if !$self->{serving};
            $self->{serving} = $newest->{generation};
        }
        # A HUP during a load counts, for files may have changed: it is heeded when that load has ended.
        return if $now < $self->{next} || $newest && !$self->{reload} || grep { !$_->{ready} } @molds;
        my $mold = $self->start({ name => 'the mold', generation => ++$self->{generation} }, sub {
            $self->{settings}{app} = $self->{settings}->load if $self->{options}{preload};
            return $self->tend('adjust_workers');
        });
        $self->{reload} = 0 if ref $mold;    # otherwise it is tried again
    }

    # As many workers as there should be.
    sub adjust_workers {
        my ($self, $now) = @_;
        my @workers = sort { $a->{index} <=> $b->{index} } values %{ $self->{children} };
        my %used = map { $_->{index} => 1 } @workers;
        my @serving = grep { !$_->{leaves} } @workers;
        $_->{leaves} = kill TERM => $_->{pid} for @serving[$self->{count} .. $#serving];
        for my $index (grep { !$used{$_} } 0 .. @workers + $self->{count}) {
            last if @serving >= $self->{count} || $now < $self->{next};
            $self->hook(before_fork => $index);
            push @serving, $self->start({ name => "worker $index", index => $index, ready => 1 }, sub {
                $SIG{CHLD} = 'DEFAULT' if exists $SIG{CHLD};
                srand;    # otherwise all workers draw the same numbers
                return $self->serve($index);
            });
        }
        $self->tell($self->{told} = 'ready') if !$self->{told} && %{ $self->{children} };
    }
}

# --- settings ---------------------------------------------------------------------------------------------------------

# Options by the core's table: names, bounds, defaults and what they mean are those of oribi-psgi. Beside them what only
# Perl can hold: hooks.
package Oribi::Pure::Settings 0.100 {
    my %RANK = (default => 0, launcher => 1, environment => 2, file => 3, command => 4);

    our $REFUSAL = 'Oribi::Pure cannot do this; the distribution Oribi can, which needs a C compiler'
        . ' (Debian: package oribi-psgi)';

    # Where select takes no descriptor above its set (https://perldoc.perl.org/perlport#select).
    my $SELECT_MAX = $^O eq 'linux' ? 1_000_000 : $^O eq 'MSWin32' ? 60 : 1000;

    # --- tables of the core (written by tools/pure-options) ---
    # name|type|least|most|default|flag|argument|aliases|help; rows without help are options that are refused
    my @ROWS = split /\n/, <<'ROWS';
bind|LIST|0|0||b|ADDR|listen l -l -b|address to listen on; repeatable: host:port, :port, [::1]:port, [::]:port for every address, tcp://host:port, unix:///path?umask=007, /path, fd://3, tls://host:port?certificate=FILE&key=FILE. ?frontend=on: HTTP/2 without TLS. ?proxy=on: expect a PROXY header from trusted proxies
host|TEXT|0|0||o|HOST|-o|host to listen on, without bind
port|COUNT|0|65535|9292|p|PORT|-p|port to listen on, without bind; 0: any free port
backlog|COUNT|0|2147483647|0||N||connections that may wait to be accepted; 0: the system's maximum
reuse_port|BOOL|0|0|off||||set SO_REUSEPORT, so that another server may listen on the same address
workers|COUNT|0|512|auto|w|N|max_workers -w|worker processes; auto or 0: one for each CPU that this process may use
single|BOOL|0|0|off||||one process that serves by itself, without forking; a reload or upgrade starts the program anew under its pid
preload|BOOL|0|0|on|||preload_app|load the application before the workers are forked, so that they share its memory
pid_file|TEXT|0|0||P|FILE|pid -P|write the supervisor's process id to this file; removed at the end
shutdown_timeout|TIME|0|86400000|30s||TIME||time for a graceful stop; what is left then is killed
err_respawn_interval|TIME|0|86400000|1s||TIME||pause before a failed start is tried again
head_timeout|TIME|1|86400000|10s||TIME|read_timeout|time for a whole request head, from its first byte on, then 408; and for a new connection to send one
body_timeout|TIME|1|86400000|10s||TIME||time to wait for the next bytes of a request body; then 408
body_rate_min|SIZE|0|1073741824|256||SIZE||least bytes per second of a request body, checked after body_timeout; 0: any
idle_timeout|TIME|1|86400000|75s||TIME|keepalive_timeout|time that a connection may rest between two requests
write_timeout|TIME|1|86400000|30s||TIME||time without the client taking a byte of an answer; then its connection is closed
target_bytes_max|SIZE|64|1048576|16K||SIZE||longest request target; beyond it 414
head_bytes_max|SIZE|1024|1048576|64K||SIZE||longest request head; beyond it 431
fields_max|COUNT|1|256|100||N||most header fields of a request; beyond it 431
body_bytes_max|SIZE|0|1099511627776|1G||SIZE||longest request body; beyond it 413
body_memory_max|SIZE|1024|1073741824|16M||SIZE||longer request bodies go to an unlinked file in TMPDIR; above 128K also when three quarters of buffers_memory_max are in use
response_memory_max|SIZE|1024|1073741824|1M||SIZE||more unsent output of one connection goes to an unlinked file
buffers_memory_max|SIZE|0|1099511627776|64M||SIZE||bodies and unsent output that one worker keeps in memory; more goes to unlinked files. 0: no limit
buffers_file_max|SIZE|0|1099511627776|16G||SIZE||bodies and unsent output that one worker keeps in unlinked files; beyond it requests get 503 and answers are cut. 0: no limit
connections_max|COUNT|1|1000000|10000||N|max_keepalive_connection|open connections of one worker. A further one replaces the longest idle connection, then the oldest unfinished request head, else it waits in the backlog. The soft limit of descriptors is raised as needed
queue_max|COUNT|0|1000000|0||N||complete requests that may wait in one worker; beyond it 503 with Retry-After. 0: no limit
keepalive_requests_max|COUNT|0|2147483647|0||N|max_keepalive_reqs|requests on one connection; 1: no keep-alive, 0: no limit
underscores_allow|BOOL|0|0|off||||keep request fields with an underscore in their name, which look like others in the environment
strict_target|BOOL|0|0|off||||refuse request targets with bytes above 127 or any of \^`{|} unescaped, as browsers send them
connect_allow|BOOL|0|0|off||||pass CONNECT to the application instead of answering 501
requests_max|RANGE|0|2147483647|0||N[..M]|max_requests max_request_per_child max_reqs_per_child|replace a worker after so many requests; N..M: each worker draws its number. 0: never
requests_jitter|COUNT|0|2147483647|0||N||add up to so many requests to requests_max, drawn for each worker
age_max|TIME|0|31536000000|0||TIME||replace a worker that has served for longer, or up to an eighth longer; 0: never
access_log|TEXT|0|0|||FILE||one line for each answer; -: standard output, off: none
error_log|TEXT|0|0|-||FILE||file for standard error of the server and the application; -: leave it
quiet|BOOL|0|0|off|q||-q|log warnings and errors only
verbose|BOOL|0|0|off|v||-v|log debugging lines too
env|TEXT|0|0||E|NAME|environment -E|environment that the application sees; production and deployment change defaults
chdir|TEXT|0|0|||DIR||directory to change to before anything else is looked for; in the configuration file, before what it names
include|LIST|0|0||I|DIR|-I|directory to search libraries in; repeatable
require|LIST|0|0||r|NAME|modules M -M -r|library or module to load before the application; repeatable
server_header|TEXT|0|0|||TEXT||value of the Server field, unless the application sets one; not set: none
config|TEXT|0|0||C|FILE|config_file -C|configuration file; the command line wins over it
check|BOOL|0|0|off||||load configuration and application, say whether that worked, and end; the command check also reports risks
version|BOOL|0|0|off||||print the version and end
help|BOOL|0|0|off|h||-h|print the most used options and end; --help all prints every option
before_fork|HOOK|||||||code that is called before a worker is forked
after_fork|HOOK|||||||code that each worker calls first
server_ready|HOOK|||||||code that is called when the server can be reached
trusted_proxies|LIST|||||||
proxy_protocol|BOOL|||||||
certificate|LIST|||||||
certificate_password_command|TEXT|||||||
acme|LIST|||||||
acme_terms|BOOL|||||||
acme_directory|TEXT|||||||
acme_dir|TEXT|||||||
acme_command|TEXT|||||||
acme_user|TEXT|||||||
client_ca|TEXT|||||||
client_verify|TEXT|||||||
tls_min|TEXT|||||||
http2|BOOL|||||||
hsts|COUNT|||||||
https_redirect|COUNT|||||||
frontends|COUNT|||||||
frontend_user|TEXT|||||||
frontend_sandbox|BOOL|||||||
frontend_drain|TIME|||||||
static|LIST|||||||
sendfile_root|LIST|||||||
sendfile_map|LIST|||||||
compress|TEXT|||||||
compress_level|COUNT|||||||
compress_min|SIZE|||||||
compress_types|LIST|||||||
compress_private|BOOL|||||||
answer|LIST|||||||
redirect|LIST|||||||
health|TEXT|||||||
header|LIST|||||||
error_page|LIST|||||||
helper|BOOL|||||||
daemonize|BOOL||||D||-D|
restart_file|TEXT|||||||
user|TEXT|||||||
group|TEXT|||||||
boot_timeout|TIME|||||||
spawn_interval|TIME|||||||
roll_max_unavailable|COUNT|||||||
drain_delay|TIME|||||||
control|TEXT|||||||
status|TEXT|||||||
status_token|TEXT|||||||
agent|TEXT|||||||
metrics_max|COUNT|||||||
call_timeout|TIME||||t||-t|
cancel_gone|TEXT|||||||
gone_on|TEXT|||||||
queue_time_max|TIME|||||||
multipart_stream|BOOL|||||||
static_memory_max|SIZE|||||||
static_open_max|COUNT|||||||
websocket_origins|LIST|||||||
websocket_ping|TIME|||||||
websocket_message_max|SIZE|||||||
websocket_pending_max|SIZE|||||||
websockets_max|COUNT|||||||
websocket_rate_max|COUNT|||||||
events_ping|TIME|||||||
events_max|COUNT|||||||
history|LIST|||||||
history_memory_max|SIZE|||||||
subscriptions_max|COUNT|||||||
memory_max|SIZE|||||||
refork_after|COUNT|||||||
slow_log|TIME|||||||
access_log_format|TEXT|||||||
access_log_skip|LIST|||||||
access_log_sample|COUNT|||||||
request_id|BOOL|||||||
request_id_header|TEXT|||||||
server_timing|BOOL|||||||
error_log_format|TEXT|||||||
warmup|LIST|||||||
dev|BOOL|||||||
watch|LIST|||||||
eval|TEXT||||e||-e|
child_exit|TEXT|||||||
early_hints|BOOL|||||||
open|BOOL|||||||
print_config|BOOL|||||||
completion|TEXT|||||||
after_worker_ready|TEXT|||||||
before_worker_exit|TEXT|||||||
after_exit|TEXT|||||||
before_reload|TEXT|||||||
on_worker_exit|TEXT|||||||
listen_sock|TEXT|||||||
ROWS
    %Oribi::Pure::Answer::REASON = map { split / /, $_, 2 } split /\n/, <<'ROWS';
100 Continue
101 Switching Protocols
102 Processing
103 Early Hints
200 OK
201 Created
202 Accepted
203 Non-Authoritative Information
204 No Content
205 Reset Content
206 Partial Content
207 Multi-Status
208 Already Reported
226 IM Used
300 Multiple Choices
301 Moved Permanently
302 Found
303 See Other
304 Not Modified
305 Use Proxy
307 Temporary Redirect
308 Permanent Redirect
400 Bad Request
401 Unauthorized
402 Payment Required
403 Forbidden
404 Not Found
405 Method Not Allowed
406 Not Acceptable
407 Proxy Authentication Required
408 Request Timeout
409 Conflict
410 Gone
411 Length Required
412 Precondition Failed
413 Content Too Large
414 URI Too Long
415 Unsupported Media Type
416 Range Not Satisfiable
417 Expectation Failed
421 Misdirected Request
422 Unprocessable Content
423 Locked
424 Failed Dependency
425 Too Early
426 Upgrade Required
428 Precondition Required
429 Too Many Requests
431 Request Header Fields Too Large
451 Unavailable For Legal Reasons
500 Internal Server Error
501 Not Implemented
502 Bad Gateway
503 Service Unavailable
504 Gateway Timeout
505 HTTP Version Not Supported
506 Variant Also Negotiates
507 Insufficient Storage
508 Loop Detected
510 Not Extended
511 Network Authentication Required
ROWS
    %Oribi::Pure::Chunked::FORBIDDEN = map { $_ => 1 } split /\n/, <<'ROWS';
accept
accept-charset
accept-encoding
accept-language
age
allow
authorization
cache-control
connection
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
dnt
expect
expires
forwarded
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
keep-alive
location
max-forwards
origin
pragma
prefer
priority
proxy
proxy-authenticate
proxy-authorization
proxy-connection
range
referer
retry-after
sec-ch-ua
sec-ch-ua-mobile
sec-ch-ua-platform
sec-fetch-dest
sec-fetch-mode
sec-fetch-site
sec-fetch-user
sec-purpose
sec-websocket-extensions
sec-websocket-key
sec-websocket-protocol
sec-websocket-version
set-cookie
te
trailer
transfer-encoding
upgrade
upgrade-insecure-requests
user-agent
vary
via
warning
www-authenticate
x-csrf-token
x-forwarded-for
x-forwarded-host
x-forwarded-port
x-forwarded-proto
x-http-method-override
x-real-ip
x-request-id
x-request-start
x-requested-with
ROWS
    # --- end of the tables ---
    my (%NAME, @SERVED);
    for my $row (@ROWS) {
        my %option;
        @option{qw(name type least most default flag argument aliases help)} = split /\|/, $row, 9;
        $option{is_list} = $option{type} =~ /LIST|HOOK/;
        $NAME{$_} = \%option for $option{name}, split ' ', $option{aliases};
        push @SERVED, \%option if length $option{help};
    }

    sub find { return $NAME{ $_[0] } }
    sub shown { return grep { $_->{type} ne 'HOOK' } @SERVED }

    sub new {
        my ($class) = @_;
        my $self = bless { value => {}, rank => {} }, $class;
        $self->{value}{ $_->{name} } = $_->{is_list} ? [] : read_value($_, @$_{qw(name default)}) for @SERVED;
        my %given = (port => $ENV{PORT}, env => $ENV{PLACK_ENV});
        $self->set(environment => $_, $given{$_}) for grep { length($given{$_} // '') } sort keys %given;
        return $self;
    }

    # Dies with one line for an unknown name or a bad value. Lists grow within a source; a stronger source replaces
    # them.
    sub set {
        my ($self, $source, $name, $value) = @_;
        my $plain = $name =~ tr/-/_/r;
        return $self->{builder} = $value if $plain eq 'psgi_app_builder';
        my $option = find($plain) || die "$name: unknown option\n";
        my ($rank, $key) = ($RANK{$source}, $option->{name});
        my $before = $self->{rank}{$key} // -1;
        return if $before > $rank;
        if (!length $option->{help}) {
            return if !ref $value && $value =~ /\A(?:off|false|no|0|none|)\z/i;    # it is off here in any case
            die "$name: $REFUSAL\n";
        }
        my @values = map { read_value($option, $name, $_) } ref $value eq 'ARRAY' ? @$value : $value;
        die "$name: takes one value\n" if @values != 1 && !$option->{is_list};
        unshift @values, @{ $self->{value}{$key} } if $option->{is_list} && $before == $rank;
        $self->{value}{$key} = $option->{is_list} ? \@values : $values[0];
        return $self->{rank}{$key} = $rank;
    }

    my %SWITCH = ((map { $_ => 1 } qw(on true yes 1)), map { $_ => 0 } qw(off false no 0), '');
    my %UNIT = (k => 1 << 10, m => 1 << 20, g => 1 << 30, ms => 0.001, s => 1, min => 60, h => 3600);

    # What the server works with: 1 and 0 for switches, numbers for counts, bytes and seconds. Strict: what is silently
    # read as something else is found out in production.
    sub read_value {
        my ($option, $name, $text) = @_;
        my $type = $option->{type};
        return is_code($text) ? $text : die "$name: is no code reference\n" if $type eq 'HOOK';
        my $is_text = !ref $text || overload::Method($text, '""');
        die "$name: a " . ref($text) . " reference is no value for this option\n" if !$is_text;
        return "$text" if $type eq 'TEXT' || $type eq 'LIST';
        return $SWITCH{ lc $text } // die "$name: must be on or off, not \"$text\"\n" if $type eq 'BOOL';
        return 0 if $name eq 'workers' && $text eq 'auto';
        my ($number, $unit, $end)
            = $type eq 'COUNT' ? $text =~ /\A([0-9]+)\z/
            : $type eq 'SIZE' ? $text =~ /\A([0-9]+)([kmg]?)\z/i
            : $type eq 'TIME' ? $text =~ /\A([0-9]+(?:\.[0-9]+)?)(ms|[smh]?)\z/i
            : $text =~ /\A([0-9]+)()(?:\.\.([0-9]+))?\z/;
        my $is_bad = !defined $number || defined $end && (!$number || $number > $end);
        die "$name: no " . lc($type) . ": \"$text\"\n" if $is_bad;
        $unit = lc($unit // '');
        $number = ($end // $number) * ($unit eq '' ? 1 : $UNIT{ $type eq 'TIME' && $unit eq 'm' ? 'min' : $unit });
        my ($scale, $of) = $type eq 'TIME' ? (1000, ' ms') : (1, '');
        my ($least, $most) = @$option{qw(least most)};
        die "$name: at least $least$of, not \"$text\"\n" if $number * $scale < $least;
        die "$name: at most $most$of, not \"$text\"\n" if $most && $number * $scale > $most;
        return $type eq 'RANGE' ? $text : $type eq 'TIME' && $number && $number < 0.001 ? 0.001 : $number;
    }

    # Folder and configuration file; then no option changes any more.
    sub prepare {
        my ($self) = @_;
        return if $self->{prepared}++;
        my $value = $self->{value};
        $self->enter_dir;
        my $file = length $value->{config} ? $value->{config} : -e 'config/oribi.pl' ? 'config/oribi.pl' : '';
        $self->read_file($file) if length $file;
        $value->{env} = 'development' if !length $value->{env};
        $ENV{PLACK_ENV} = $value->{env};
        $value->{access_log} = $self->is_production ? 'off' : '-' if !length $value->{access_log};
        for my $path (grep { length && !/\A(?:-|off)\z/ } @$value{qw(access_log error_log pid_file)}) {
            $path = File::Spec->rel2abs($path);    # the application may change the folder
        }
        my $id = { linux => 84, darwin => 58, freebsd => 58, openbsd => 503, netbsd => 1002 }->{$^O};    # of processors
        $value->{workers} ||= $id && eval { POSIX::sysconf($id) } || 1;
        $value->{connections_max} = $SELECT_MAX if $value->{connections_max} > $SELECT_MAX;
        @Oribi::Pure::log{qw(quiet verbose)} = @$value{qw(quiet verbose)};
    }

    sub is_production { return $_[0]{value}{env} =~ /\A(?:production|deployment)\z/ }

    sub enter_dir {
        my ($self) = @_;
        my $dir = $self->{value}{chdir};
        return if !length $dir || $self->{entered}++;
        return chdir $dir || die "chdir $dir: $!\n";
    }

    sub addresses {
        my ($self) = @_;
        my ($bind, $host, $port) = @{ $self->{value} }{qw(bind host port)};
        $host = $self->is_production ? '0.0.0.0' : '127.0.0.1' if !length $host;
        return @$bind ? @$bind : ($host =~ /\A[^\[].*:/ ? "[$host]" : $host) . ":$port";
    }

    # A Perl file that returns a reference to a hash.
    sub read_file {
        my ($self, $file) = @_;
        my ($hash, $error) = from_file($file);
        $error .= "options as words: $REFUSAL\n" if $error =~ /syntax error/;
        die "config file $file: $error" =~ s/\n*\z/\n/r if length $error;
        die "config file $file: does not return a hash reference\n" if ref $hash ne 'HASH';
        my @mistakes;
        my @names = grep { defined $hash->{$_} } sort keys %$hash;
        for my $name (sort { ($b eq 'chdir') <=> ($a eq 'chdir') } @names) {
            eval { $self->set(file => $name, $hash->{$name}); 1 } or push @mistakes, "$file: $@";
            $self->enter_dir if $name eq 'chdir';
        }
        die @mistakes if @mistakes;
    }

    # --- the application ---

    # Tells the operator of a wrong name before anything is started.
    sub check_app {
        my ($self) = @_;
        my $file = $self->{app} //= 'app.psgi';
        return if ref $file || $self->{builder};
        die "$file: no such file\n" if !-e $file;
        die "$file: is a directory\n" if -d _;
    }

    # Gives the application's code; dies with one line.
    sub load {
        my ($self) = @_;
        my $file = $self->{app};
        return $file if ref $file;
        return $self->{builder}->() if $self->{builder};
        my ($include, $require) = @{ $self->{value} }{qw(include require)};
        unshift @INC, @$include;
        for my $module (@$require) {
            my ($name, @import) = split /[=,]/, $module;
            die "-M $name: is no name of a module\n" if $name !~ /\A\w+(?:::\w+)*\z/;
            my $is_there = eval "package main; require $name; $name->import(\@import); 1";
            die "module $name: " . first_line($@) . "\n" if !$is_there;
        }
        my ($code, $error) = from_file($file);
        die "$file: " . first_line($error) . "\n" if length $error;
        $code = $code->to_app if !is_code($code) && Scalar::Util::blessed($code) && $code->can('to_app');
        return is_code($code) ? $code : die "$file: returns no code reference\n";
    }

    sub first_line { my ($line) = grep {/\S/} split /\n/, "$_[0]"; return $line // 'unknown error' }
    sub is_code { return ref $_[0] && (Scalar::Util::reftype($_[0]) eq 'CODE' || overload::Method($_[0], '&{}')) }

    # Gives the value of a Perl file, in a package of its own, and $@.
    sub from_file {
        my ($file) = @_;
        my $path = File::Spec->rel2abs($file);
        my $package = $path =~ s/([^A-Za-z0-9_])/sprintf '_%02x', ord $1/ger;
        local $0 = $path;    # FindBin looks at it
        open my $readable, '<', $path or return (undef, "cannot be read: $!");
        my ($app, $error);
        eval "package Oribi::Pure::App::_$package; \$app = do \$path; \$error = \$@; 1" or $error = $@;
        return ($app, $error);
    }
}

# --- the command line -------------------------------------------------------------------------------------------------

package Oribi::Pure::Command 0.100 {
    # perl Pure.pm [options] [app.psgi]; returns the exit code.
    sub run {
        my $code = eval { start(@_) };
        print STDERR map {"oribi-psgi: $_\n"} grep {/\S/} split /\n/, "$@" if !defined $code;
        return $code // 1;
    }

    sub start {
        my (@argv) = @_;
        my $settings = Oribi::Pure::Settings->new;
        my $value = $settings->{value};
        parse($settings, @argv);
        @ARGV = ();    # the words are the server's, and the application finds none of them
        return say_text(help()) if $value->{help};
        my $version = "oribi-psgi $Oribi::Pure::VERSION (Oribi::Pure, perl $^V)\nsystem calls: perl\n";
        return say_text($version) if $value->{version};
        $settings->prepare;
        return Oribi::Pure::Processes->new($settings)->run if !$value->{check};
        $settings->check_app;
        $settings->load;
        return say_text("application and configuration load\n");
    }

    sub say_text { local $| = 1; print STDOUT $_[0]; return 0 }

    # --name value, --name=value, --no-name, -n value, -nvalue; one word that is no option is the application.
    sub parse {
        my ($settings, @argv) = @_;
        while (defined(my $word = shift @argv)) {
            my ($name, $value) = $word =~ /\A(?|--([^=]+)(?:=(.*))?|(-[A-Za-z])(.+)?)\z/s;
            $name =~ tr/-/_/ if length($name // '') > 2;
            if (!defined $name) {
                $word = shift @argv // last if $word eq '--';
                die "$word: one application is enough, $settings->{app} was given already\n" if $settings->{app};
                $settings->{app} = $word;
                next;
            }
            my $option = Oribi::Pure::Settings::find($name);
            if (!$option && !defined $value && $name =~ /\Ano_(.+)/) {
                $option = Oribi::Pure::Settings::find($1);
                die "$word: is no switch\n" if $option && $option->{type} ne 'BOOL' && length $option->{help};
                $value = 'off';
            }
            die "$word: unknown option\n" if !$option;
            $value //= $option->{type} eq 'BOOL' ? 'on' : shift @argv // die "$word: needs a value\n";
            $settings->set(command => $option->{name}, $value);
        }
    }

    sub help {
        my $text = "usage: oribi-psgi --pure [options] [app.psgi]\n\nOribi::Pure, in Perl alone. Options:\n\n";
        for my $option (Oribi::Pure::Settings::shown()) {
            my $word = '--' . $option->{name} =~ tr/_/-/r . ($option->{type} eq 'BOOL' ? '' : " $option->{argument}");
            my $default = length $option->{default} ? " [$option->{default}]" : '';
            my @lines = "$option->{help}$default" =~ /(.{1,90})(?:\s+|\z)/g;
            $text .= join '', '  ', (map {"-$_, "} split //, $option->{flag}), "$word\n", map {"      $_\n"} @lines;
        }
        return "$text\nAll other options of Oribi are refused: they need its C core.\n";
    }
}

package Oribi::Pure;

# perl Pure.pm app.psgi
if (!caller) {
    $INC{'Oribi/Pure.pm'} ||= File::Spec->rel2abs(__FILE__);
    exit main(@ARGV);
}

1;

__END__

=encoding utf8

=head1 NAME

Oribi::Pure - the application server Oribi in one file of Perl

=head1 SYNOPSIS

    perl Pure.pm app.psgi
    oribi-psgi --pure --workers 4 app.psgi
    plackup -s Oribi::Pure app.psgi

    use Oribi::Pure;
    Oribi::Pure->new(bind => '127.0.0.1:9292', workers => 4)->run($app);

=head1 DESCRIPTION

A server for PSGI where no compiler is: one file, which needs Perl 5.16 and its core modules alone, not even Plack. It
keeps Oribi's rules of HTTP/1.1: strict framing, limits with the same names and statuses, keep-alive, pipelining, bodies
that are read before the application is called. Slow clients hold no worker.

It has no TLS, no HTTP/2, no files without the application, no compression, no interim answers, no deadline of calls, no
control socket and no metrics: options for these are refused with one line. F<doc/pure.md> says when to take it and when
not.

=head1 METHODS

=head2 new(%options)

The options that C<oribi-psgi --pure --help> lists, with underscores in their names, and the hooks C<before_fork>,
C<after_fork> and C<server_ready>. Dies with one line for an unknown name or a bad value.

=head2 run($app)

Serves the code reference, or loads it from the file of that name. Returns when the server was told to stop.

=head1 THE ENVIRONMENT

PSGI 1.1 with C<psgix.io>, C<psgix.input.buffered>, C<psgix.harakiri>, C<psgix.cleanup>, C<oribi.trailers> and
C<oribi.unread>, as L<Oribi> describes them. To take the connection over, read C<psgix.io>, return a
delayed response, and return from it without calling its responder.

=head1 SIGNALS

TERM and QUIT end the server when running requests are finished, a second one and INT at once. HUP loads the application
anew, in a fresh process, and replaces the workers. TTIN and TTOU add and remove a worker. USR1 opens the log files anew.

=head1 SEE ALSO

L<Oribi>, L<oribi-psgi>

=cut
