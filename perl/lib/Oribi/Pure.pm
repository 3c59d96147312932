package Oribi::Pure;
use 5.016;
use strict;
use warnings;

# Oribi where no compiler is: a PSGI server in one file, with nothing but Perl's core modules. It keeps the core's rules
# of HTTP/1.1 (strict framing; limits with the same names and statuses) and leaves out what needs C: TLS, HTTP/2, files
# without the application, compression, control socket and metrics, deadlines of calls. doc/pure.md tells when to take
# it.
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
    my $text = @values ? sprintf $format, @values : $format;
    $text =~ s/\s+\z//;
    $text =~ s/([\x00-\x08\x0b-\x1f\x7f])/sprintf '\\x%02x', ord $1/ge;
    my ($second, $minute, $hour, $day, $month, $year) = gmtime;
    my $time = sprintf '%04d-%02d-%02dT%02d:%02d:%02dZ', $year + 1900, $month + 1, $day, $hour, $minute, $second;
    utf8::encode($text) if utf8::is_utf8($text);
    syswrite $log{handle}, "$time oribi[$$] $level: $text\n" or return;
    return;
}

# Options as for oribi-psgi, with underscores; dies with one line for an unknown name or a bad value.
sub new {
    my ($class, %options) = @_;
    my $settings = Oribi::Pure::Settings->new;
    $settings->set_all(command => %options);
    return bless { settings => $settings }, $class;
}

# Serves the code reference, or the application of that file. Returns when the server was told to stop.
sub run {
    my ($self, $app) = @_;
    my $settings = $self->{settings};
    $settings->prepare;
    my $code = Oribi::Pure::Processes->new($settings, $app)->run;
    exit $code if $code;
    return;
}

sub main { return Oribi::Pure::Command::run(@_) }

# --- heads of requests ------------------------------------------------------------------------------------------------

# Strict and incremental (RFC 9112 2-6, RFC 9110 5), with the verdicts of core/src/http: request_line.c, field_lines.c,
# head.c, authority.c. A head that has arrived whole and is as usual is one match and one walk over its fields. Every
# other one goes through advance(), which alone decides what is refused and what has not arrived yet; both end in
# meaning().
package Oribi::Pure::Head 0.100 {
    use constant { FIELDS_CAP => 256, NAME_MAX => 1024, METHOD_MAX => 32, EMPTY_LINES_MAX => 2, KEYS_KEPT => 1000 };

    # Classes of bytes, for the inside of brackets.
    our $TOKEN = q{!#$%&'*+\-.^_`|~0-9A-Za-z};
    our $TEXT  = '\t\x20-\x7e\x80-\xff';
    my $HOST   = q{!$&'()*+,\-.;=_~0-9A-Za-z};
    my $RAW    = '\x21\x24-\x3b\x3d\x3f-\x7e\x80-\xff';               # of a target
    my $STRICT = '\x21\x24-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e';

    my %DEFAULT = (
        target_bytes_max => 16 << 10, head_bytes_max => 64 << 10, fields_max => 100, body_bytes_max => 1 << 30,
        underscores_allow => 0, strict_target => 0, connect_allow => 0,
    );

    # A second line of these is refused, equal or not: they decide where the message ends and whom it is for.
    my %SINGLE = map { $_ => 1 } qw(HTTP_HOST CONTENT_LENGTH HTTP_TRANSFER_ENCODING CONTENT_TYPE);
    # A second line of these must equal the first, and then counts as one.
    my %EQUAL = map { $_ => 1 } qw(HTTP_AUTHORIZATION HTTP_EXPECT);
    # Never the application's: httpoxy, and what middleware for X-Sendfile would believe.
    my %DROPPED = map { $_ => 1 } qw(HTTP_PROXY HTTP_X_SENDFILE_TYPE HTTP_X_ACCEL_MAPPING);

    my %KEY;    # what key_of() says of names that were met

    # The limits of requests, with what parse() needs of them.
    sub limits {
        my (%given) = @_;
        my %limits = (%DEFAULT, %given);
        $limits{fields_max} = FIELDS_CAP if $limits{fields_max} > FIELDS_CAP;
        my $class = $limits{strict_target} ? $STRICT : $RAW;
        $limits{target} = qr/\G([$class]*+)/;
        $limits{usual} = qr{\A(?!CONNECT |PROXY )([A-Z]{3,7}+) (/[$class]*+) HTTP/1\.([01])\z};
        return \%limits;
    }

    # parse(\%state, $limits, $bytes, \$head): the bytes begin at the first byte of a request; %state is empty at its
    # start, and the bytes only grow until there is a verdict. Returns the head's length and sets $head; 0 when more
    # bytes are needed; or the negative status of a refusal, with state->{reason}.
    #
    # $head is { env, minor, keep_alive, expect, upgrade, length (-1: chunked), has_body, host, port, dropped }. Its env
    # has the CGI part of the environment; PATH_INFO is still as it came.
    sub parse {
        my ($state, $limits, $head) = @_[0, 1, 3];
        if (!%$state && (my $end = index $_[2], "\r\n\r\n") > 0) {
            my $result = $end + 4 <= $limits->{head_bytes_max} ? whole($state, $limits, substr($_[2], 0, $end), $head) : undef;
            return $result || $end + 4 if defined $result;
        }
        my $is_long = length $_[2] >= $limits->{head_bytes_max};
        my $bytes = $is_long ? \substr($_[2], 0, $limits->{head_bytes_max}) : \$_[2];
        my $result = advance($state, $limits, $bytes, $head);
        return $result if $result || !$is_long;
        return fault($state, 414, 'request line longer than head_bytes_max') if !$state->{line};
        return fault($state, 431, 'head longer than head_bytes_max');
    }

    # A whole head, without the empty line, in one walk: 0 or a fault of its meaning; undefined for what advance() must
    # look at. All controls but TAB are those that split() has taken out.
    sub whole {
        my ($state, $limits, $text, $head) = @_;
        my ($first, @lines) = split /\r\n/, $text;
        return undef if @lines > $limits->{fields_max} || ($text =~ tr/\x00-\x08\x0a-\x1f\x7f//) != 2 * @lines;
        my ($method, $target, $minor) = $first =~ $limits->{usual} or return undef;
        return undef if length $target > $limits->{target_bytes_max};
        my @fields;
        for my $line (@lines) {
            my $colon = index $line, ':';
            my $name = substr $line, 0, $colon;
            return undef if $colon < 1 || !defined $KEY{$name} && $name !~ /\A[$TOKEN]{1,1024}\z/o;
            my $value = substr $line, $colon + (substr($line, $colon + 1, 1) eq ' ' ? 2 : 1);
            $value =~ s/\A[ \t]++|(?<![ \t])[ \t]++\z//g if $value =~ /\A[ \t]/ || substr($value, -1) =~ /[ \t]/;
            push @fields, $name, $value;
        }
        my $mark = index $target, '?';
        my @parts = $mark < 0 ? ($target, '') : (substr($target, 0, $mark), substr $target, $mark + 1);
        return meaning($state, $limits, [$method, $target, $minor, @parts], \@fields, $head);
    }

    sub fault { my ($state, $status, $reason) = @_; $state->{reason} = $reason; return -$status }

    # Line by line; remembers in the state how far the bytes are known to be good.
    sub advance {
        my ($state, $limits, $in, $head) = @_;
        $state->{pos} //= 0;
        if (!$state->{line}) {
            my $result = empty_lines($state, $in) // request_line($state, $limits, $in);
            return $result unless ref $result;
            $state->{line} = $result;
        }
        my $end = field_lines($state, $limits, $in);
        return $end if $end <= 0;
        my $fields = fields_of(substr $$in, $state->{fields}, $end - 2 - $state->{fields});
        return meaning($state, $limits, $state->{line}, $fields, $head) || $end;
    }

    # Skips empty lines before the request line (RFC 9112 2.2). Undefined at the first other byte.
    sub empty_lines {
        my ($state, $in) = @_;
        while (1) {
            my $two = substr $$in, $state->{pos}, 2;
            return 0 if $two eq '';
            return fault($state, 400, 'bare LF') if $two =~ /\A\n/;
            return undef if $two !~ /\A\r/;    ## no critic: a list would be no result
            return fault($state, 400, 'too many empty lines') if ($state->{empty} // 0) == EMPTY_LINES_MAX;
            return 0 if length $two == 1;
            return fault($state, 400, 'bare CR') if $two ne "\r\n";
            $state->{empty}++;
            $state->{pos} += 2;
        }
    }

    # Gives [method, target, minor, path, query, authority or undef], 0 or a fault. The verdict hangs on the first bytes
    # that allow it, so that waiting for more cannot change it.
    sub request_line {
        my ($state, $limits, $in) = @_;
        my $n = length $$in;
        pos($$in) = $state->{pos};
        $$in =~ /\G([$TOKEN]{0,33}+)/g;
        my $method = $1;
        my $at = $state->{pos} + length $method;
        return fault($state, 400, 'method too long') if length $method > METHOD_MAX;
        return 0 if $at == $n;
        return fault($state, 400, 'method is not a token') if $method eq '' || substr($$in, $at, 1) ne ' ';
        return fault($state, 400, 'PROXY header, which is not served') if $method eq 'PROXY';

        pos($$in) = ++$at;
        $$in =~ /$limits->{target}/g;
        my $target = $1;
        return fault($state, 414, 'target longer than target_bytes_max') if length $target > $limits->{target_bytes_max};
        $at += length $target;
        return 0 if $at == $n;
        return fault($state, 400, 'byte not allowed in the target') if $target eq '' || substr($$in, $at, 1) ne ' ';

        my $version = substr $$in, $at + 1, 10;
        if ($version !~ m{\AHTTP/([0-9])\.([0-9])\r\n\z}) {
            (my $shape = $version) =~ tr/0-9/d/;
            my $is_start = $version =~ m{\A[HTP/.0-9\r\n]*\z} && $shape eq substr "HTTP/d.d\r\n", 0, length $shape;
            return $is_start ? 0 : fault($state, 400, 'malformed HTTP version or line end');
        }
        return fault($state, 505, 'unsupported HTTP version') if $1 != 1;
        @$state{qw(pos fields scanned count)} = ($at + 11, $at + 11, 0, 0);
        return forms($state, $limits, $method, $target, $2 ? 1 : 0);
    }

    # The forms that a target may have, RFC 9112 3.2.
    sub forms {
        my ($state, $limits, $method, $target, $minor) = @_;
        my ($path, $query) = split /\?/, $target, 2;
        my @line = ($method, $target, $minor, $path, $query // '');
        if ($method eq 'CONNECT') {
            return fault($state, 501, 'CONNECT is not served unless connect_allow is on') if !$limits->{connect_allow};
            my ($host, $port) = authority($target);
            return fault($state, 400, 'CONNECT target is no host and port') if !length($host // '') || !length $port;
            return [@line[0 .. 2], '', '', $target];
        }
        return \@line if $target =~ m{\A/};
        return $method eq 'OPTIONS' ? \@line : fault($state, 400, 'target * without OPTIONS') if $target eq '*';
        my ($authority, $rest) = $path =~ m{\Ahttps?://([^/]*)(.*)\z}i;
        my ($host) = defined $authority ? authority($authority) : ();
        return fault($state, 400, 'target is no path and no http URI') if !length($host // '');
        return [@line[0 .. 2], length $rest ? $rest : '/', $line[4], $authority];
    }

    # Accepts field lines up to the empty one. Returns the head's length with it, 0 or a fault.
    sub field_lines {
        my ($state, $limits, $in) = @_;
        while (1) {
            pos($$in) = $state->{pos} + $state->{scanned};
            $$in =~ /\G([$TEXT]*+)/g;
            $state->{scanned} += length $1;
            my $end = $state->{pos} + $state->{scanned};
            my $two = substr $$in, $end, 2;
            return 0 if $two eq '' || $two eq "\r";
            return fault($state, 400, $two =~ /\A\r/ ? 'bare CR' : $two =~ /\A\n/ ? 'bare LF' : 'control in a field line') if $two ne "\r\n";
            return $end + 2 if !$state->{scanned};
            return fault($state, 431, 'more fields than fields_max') if $state->{count} == $limits->{fields_max};
            return fault($state, 400, 'field name is not a token') if substr($$in, $state->{pos}, $state->{scanned}) !~ /\A([$TOKEN]++):/;
            return fault($state, 431, 'field name over 1024 bytes') if length $1 > NAME_MAX;
            @$state{qw(pos scanned count)} = ($end + 2, 0, $state->{count} + 1);
        }
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
        (my $key = uc $name) =~ tr/-/_/;
        (my $core = $key) =~ s/\A_+|_+\z//g;
        my $has_underscore = $name =~ tr/_//;
        my $full = $key =~ /\ACONTENT_(?:TYPE|LENGTH)\z/ && !$has_underscore ? $key : "HTTP_$key";
        my $result = $has_underscore && $core =~ /\A(?:CONTENT_LENGTH|TRANSFER_ENCODING|HOST)\z/ ? '!' : $DROPPED{$full} ? '' : $has_underscore ? "+$full" : $full;
        $KEY{$name} = $result if keys %KEY < KEYS_KEPT && length $name < 100;
        return $result;
    }

    # With names that keep `_`, two can end under one key: the one without `_` stays, else the first.
    sub unambiguous {
        my ($fields) = @_;
        my %owner;
        my @folded = map { lc $fields->[2 * $_] } 0 .. @$fields / 2 - 1;
        for my $name (@folded) {
            (my $key = $name) =~ tr/_/-/;
            $owner{$key} = $name if !defined $owner{$key} || ($name !~ /_/ && $owner{$key} =~ /_/);
        }
        my @kept = grep { (my $key = $folded[$_]) =~ tr/_/-/; $owner{$key} eq $folded[$_] } 0 .. $#folded;
        return [map { @$fields[2 * $_, 2 * $_ + 1] } @kept];
    }

    # Gives collected fields their meaning: repeats, Host, framing, Expect, persistence, in the core's order, so that
    # one input has one verdict. Returns 0 or a fault.
    sub meaning {
        my ($state, $limits, $line, $fields, $out) = @_;
        my ($method, $target, $minor, $path, $query, $authority) = @$line;
        my (%env, $shadow);
        my $dropped = 0;
        if ($limits->{underscores_allow}) {
            my $all = @$fields;
            $shadow = grep { ($KEY{ $fields->[2 * $_] } // key_of($fields->[2 * $_])) eq '!' } 0 .. $all / 2 - 1;
            $fields = unambiguous($fields);
            $dropped = ($all - @$fields) / 2;
        }
        for (my $i = 0; $i < @$fields; $i += 2) {
            my $key = $KEY{ $fields->[$i] } // key_of($fields->[$i]);
            if (ord $key < 65) {
                $shadow = 1 if $key eq '!';
                $dropped++, next if $key !~ s/\A\+// || !$limits->{underscores_allow};
            }
            if (!exists $env{$key}) {
                $env{$key} = $fields->[ $i + 1 ];
            } elsif ($SINGLE{$key} || $EQUAL{$key}) {
                return fault($state, 400, "field may not be repeated: $fields->[$i]") if $SINGLE{$key} || $env{$key} ne $fields->[ $i + 1 ];
            } else {
                $env{$key} .= ($key eq 'HTTP_COOKIE' ? '; ' : ', ') . $fields->[ $i + 1 ];
            }
        }
        return fault($state, 400, 'field name imitates a framing field') if $shadow;

        my ($host, $port) = ('', '');
        if (defined $env{HTTP_HOST}) {
            ($host, $port) = authority($env{HTTP_HOST}) or return fault($state, 400, 'invalid Host field');
            return fault($state, 400, 'empty Host field') if $minor && $host eq '' && !defined $authority;
            $env{HTTP_HOST} = $authority if defined $authority;    # RFC 9112 3.2.2: it replaces the field
        } elsif ($minor) {
            return fault($state, 400, 'no Host field');
        }
        ($host, $port) = authority($authority) if defined $authority;

        my $length = 0;
        my $has_body = defined $env{CONTENT_LENGTH} || defined $env{HTTP_TRANSFER_ENCODING};
        if ($has_body) {
            ($length, my $reason) = framing(\%env, $minor, $limits);
            return fault($state, -$length, $reason) if $reason;
        }
        my $expect = 0;
        if (defined $env{HTTP_EXPECT}) {
            return fault($state, 417, 'unknown expectation') if lc $env{HTTP_EXPECT} ne '100-continue';
            $expect = $minor && $length ? 1 : 0;
        }
        my ($keep_alive, $upgrade) = ($minor, 0);
        if (defined $env{HTTP_CONNECTION}) {
            my %has = map { lc() => 1 } split /[ \t]*,[ \t]*/, $env{HTTP_CONNECTION};
            $keep_alive = $has{close} ? 0 : $minor || $has{'keep-alive'} ? 1 : 0;
            $upgrade = $minor && $has{upgrade} && exists $env{HTTP_UPGRADE} ? 1 : 0;    # RFC 9110 7.8: not in 1.0
        }
        $env{REQUEST_METHOD} = $method;
        $env{REQUEST_URI} = $target =~ m{\A[/*]} ? $target : length $query ? "$path?$query" : $path;
        $env{PATH_INFO} = $path;
        $env{QUERY_STRING} = $query;
        $env{SERVER_PROTOCOL} = $minor ? 'HTTP/1.1' : 'HTTP/1.0';
        $$out = {
            env => \%env, minor => $minor, keep_alive => $keep_alive, expect => $expect, upgrade => $upgrade, length => $length,
            has_body => $has_body, host => $host, port => $port, dropped => $dropped,
        };
        return 0;
    }

    # The length of the body, -1 when it is chunked; or a negative status and a reason. RFC 9112 6.
    sub framing {
        my ($env, $minor, $limits) = @_;
        my ($length, $coding) = @$env{qw(CONTENT_LENGTH HTTP_TRANSFER_ENCODING)};
        if (!defined $coding) {
            return (-400, 'invalid Content-Length') if $length !~ /\A0*+([0-9]*+)\z/ || $length eq '';
            my ($digits, $max) = ($1, $limits->{body_bytes_max});
            my $is_over = length $digits == length $max ? $digits gt $max : length $digits > length $max;
            return (-413, 'Content-Length over body_bytes_max') if $is_over;
            return $digits eq '' ? 0 : 0 + $digits;
        }
        return (-400, 'Transfer-Encoding with Content-Length') if defined $length;
        return (-400, 'Transfer-Encoding in HTTP/1.0') if !$minor;
        return -1 if lc $coding eq 'chunked';
        return codings($coding) ? (-501, 'unknown transfer coding') : (-400, 'malformed Transfer-Encoding');
    }

    # A list of well-formed codings that are not known. What is malformed, names chunked anywhere but at the end, or
    # merely resembles it ("xchunked", "identity") is an attempt at confusion.
    sub codings {
        my ($list) = @_;
        my $is_last = 0;
        for my $coding (map { s/\A[ \t]+//r =~ s/(?<![ \t])[ \t]+\z//r } split /,/, $list, -1) {
            my ($name, @params) = split /[ \t]*;/, $coding, -1;
            return 0 if $is_last || ($name // '') !~ /\A[$TOKEN]+\z/ || lc $name eq 'identity' || grep { !is_param($_) } @params;
            $is_last = lc $coding eq 'chunked';
            return 0 if !$is_last && $name =~ /chunked/i;
        }
        return $list ne '';
    }

    sub is_param { return $_[0] =~ /\A[ \t]*[$TOKEN]+[ \t]*=[ \t]*(?:"(?:.*")|[$TOKEN]+)[ \t]*\z/ }

    # Host and port of uri-host [ ":" *DIGIT ], brackets kept (RFC 3986 3.2); nothing when it is none.
    my @last = ('', '', '');    # text, host and port: clients of a server ask for the same host

    sub authority {
        my ($text) = @_;
        return @last[1, 2] if $text eq $last[0];
        my ($host, $port);
        if ($text =~ /\A\[/) {
            ($host, my $inner, $port) = $text =~ /\A(\[([^\]]*)\])(?::([0-9]*))?\z/ or return;
            return if !is_ipv6($inner) && $inner !~ /\Av[0-9A-Fa-f]+\.[$HOST:]+\z/i;
            return ($host, $port // '');
        }
        ($host, $port) = split /:/, $text, 2;
        $host //= '';
        return if defined $port && $port =~ /[^0-9]/;
        my $plain = index($host, '%') < 0 ? $host : $host =~ s/%[0-9A-Fa-f]{2}//gr;
        return if $plain =~ /[^$HOST]/o;
        @last = ($text, $host, $port // '');
        return @last[1, 2];
    }

    my $OCTET = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';

    # An IPv6address (RFC 3986 3.2.2), without brackets; the last 32 bits may be written as an IPv4 address.
    sub is_ipv6 {
        my ($text) = @_;
        $text =~ s/:$OCTET(?:\.$OCTET){3}\z/:0:0/;
        my ($before, $behind, @more) = split /::/, $text, -1;
        return 0 if @more;
        my @groups = map { defined && length ? split(/:/, $_, -1) : () } $before, $behind;
        return 0 if grep { !/\A[0-9A-Fa-f]{1,4}\z/ } @groups;
        return defined $behind ? @groups <= 7 : @groups == 8;
    }

    # The path with its escapes decoded; undefined where one is none.
    sub decoded {
        my ($path) = @_;
        return undef if $path =~ /%(?![0-9A-Fa-f]{2})/;    ## no critic: a list would be no result
        $path =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
        return $path;
    }
}

# --- chunked ----------------------------------------------------------------------------------------------------------

# Chunked transfer coding (RFC 9112 7.1), strict and incremental, with the verdicts of core/src/http/chunked.c: one
# state for each place in the grammar, so that no cut of the bytes can fall between two of them. Usual chunks are taken
# whole.
#
#   size_first ─hex─► size ─;─► ext_… ─CR─► size_lf ─► data ─► data_cr ─► data_lf ─► size_first
#                       └──────CR───────────►┘  └ size 0 ─► first ─CR─► end_lf ─► done
#   first ─tchar─► name ─:─► value ─CR─► line_lf ─► first                                          (trailer fields)
package Oribi::Pure::Chunked 0.100 {
    use constant { EXT_MAX => 16 << 10, TRAILER_MAX => 16 << 10, DIGITS_MAX => 16, ZEROS_FREE => 16, OVERHEAD_FREE => 64 << 10, OVERHEAD_RATIO => 8 };

    my $TOKEN = $Oribi::Pure::Head::TOKEN;
    my $TEXT = $Oribi::Pure::Head::TEXT;
    my %MAY_END = map { $_ => 1 } qw(ext_name ext_name_end ext_token ext_value_end ext_blank);

    # Names that no trailer can have: those that frame, route or decide access, and those about the content.
    my %FORBIDDEN = map { $_ => 1 } qw(
        accept accept-charset accept-encoding accept-language authorization cache-control connection content-length content-type
        cookie dnt expect forwarded host if-match if-modified-since if-none-match if-range if-unmodified-since keep-alive origin
        pragma priority range referer sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform sec-fetch-dest sec-fetch-mode sec-fetch-site
        sec-fetch-user sec-websocket-extensions sec-websocket-key sec-websocket-protocol sec-websocket-version te
        transfer-encoding upgrade upgrade-insecure-requests user-agent via x-csrf-token x-forwarded-for x-forwarded-host
        x-forwarded-port x-forwarded-proto x-real-ip x-requested-with x-request-id x-request-start
        age allow content-disposition content-encoding content-language content-location content-range date expires location
        max-forwards prefer proxy proxy-authenticate proxy-authorization proxy-connection retry-after set-cookie sec-purpose
        trailer vary warning www-authenticate x-http-method-override
    );

    sub new {
        my ($class, $limits) = @_;
        my $fields_max = $limits->{fields_max} < 256 ? $limits->{fields_max} : 256;
        return bless {
            max => $limits->{body_bytes_max}, fields_max => $fields_max, state => 'size_first', body => 0, left => 0, digits => 0,
            zeros => 0, ext => 0, overhead => 0, trailer => '', trailer_len => 0, count => 0, done => 0,
        }, $class;
    }

    # Takes bytes off the front of the buffer, as many as it can use. Returns the content among them; after a fault,
    # {status} and {reason} are set, and what was returned counts for nothing. {done} is true behind the last byte.
    sub decode {
        my ($self, $in) = @_;
        my ($at, $n, $out) = (0, length $$in, '');
        while ($at < $n && !$self->{done} && !$self->{status}) {
            my $state = $self->{state};
            if ($state eq 'data') {
                my $take = $n - $at < $self->{left} ? $n - $at : $self->{left};
                $out .= substr $$in, $at, $take;
                $at += $take;
                $self->{body} += $take;
                $self->{state} = 'data_cr' if !($self->{left} -= $take);
            } elsif ($state eq 'data_cr' && substr($$in, $at, 2) eq "\r\n") {
                $at += 2;
                $self->charge(2);
                $self->{state} = 'size_first';
            } elsif ($state eq 'size_first' && (substr $$in, $at, 10) =~ /\A([1-9A-Fa-f][0-9A-Fa-f]{0,7}+)\r\n/) {
                $at += length($1) + 2;
                $self->{left} = hex $1;
                $self->charge(length($1) + 2) && $self->size_known;
            } else {
                $self->charge(1) && $self->byte(substr $$in, $at++, 1);
            }
        }
        substr $$in, 0, $at, '';
        return $out;
    }

    sub refuse { my ($self, $status, $reason) = @_; @$self{qw(status reason)} = ($status, $reason); return 0 }

    # Bytes that are no content cost something: beyond 64 KiB, eight for each byte of content at most.
    sub charge {
        my ($self, $count) = @_;
        $self->{overhead} += $count;
        return 1 if $self->{overhead} <= OVERHEAD_FREE || int($self->{overhead} / OVERHEAD_RATIO) <= $self->{body};
        return $self->refuse(400, 'too little body in too many chunks');
    }

    sub size_known {
        my ($self) = @_;
        return $self->refuse(413, 'body over body_bytes_max') if $self->{left} > $self->{max} - $self->{body};
        @$self{qw(state digits zeros)} = ($self->{left} ? 'data' : 'first', 0, 0);
        return 1;
    }

    # One byte that is not content.
    sub byte {
        my ($self, $c) = @_;
        my $state = $self->{state};
        return $self->size($c) if $state eq 'size_first' || $state eq 'size';
        return $self->extension($c) if $state =~ /\Aext_/;
        if ($state eq 'size_lf') {
            return $c eq "\n" ? $self->size_known : $self->refuse(400, 'chunk size line does not end in CRLF');
        }
        if ($state eq 'data_cr' || $state eq 'data_lf') {
            return $self->refuse(400, 'chunk data does not end in CRLF') if $c ne ($state eq 'data_cr' ? "\r" : "\n");
            $self->{state} = $state eq 'data_cr' ? 'data_lf' : 'size_first';
            return 1;
        }
        return $self->trailer($c) if $state ne 'end_lf';
        return $self->refuse(400, 'malformed trailer field') if $c ne "\n";
        return $self->{done} = 1;
    }

    sub size {
        my ($self, $c) = @_;
        if ($c !~ /[0-9A-Fa-f]/) {
            my $is_end = $self->{state} eq 'size' && ($c eq "\r" || $c eq ';');
            $self->{state} = $c eq ';' ? 'ext_name_first' : 'size_lf';
            return $is_end || $self->refuse(400, 'malformed chunk size');
        }
        $self->{state} = 'size';
        if ($c eq '0' && !$self->{digits}) {
            # Some clients pad sizes to a fixed width; more than that is charged like an extension.
            return 1 if $self->{zeros}++ < ZEROS_FREE || ++$self->{ext} <= EXT_MAX;
            return $self->refuse(400, 'malformed chunk size');
        }
        return $self->refuse(400, 'malformed chunk size') if $self->{digits}++ == DIGITS_MAX;
        $self->{left} = 16 * $self->{left} + hex $c;
        return 1;
    }

    # Where an extension goes on behind this byte; undefined where it may not stand. chunk-ext = *( BWS ";" BWS token
    # [ BWS "=" BWS ( token / quoted-string ) ] )
    sub next_of {
        my ($state, $c) = @_;
        if ($state eq 'ext_quoted' || $state eq 'ext_escaped') {
            return if $c !~ /[$TEXT]/;
            return $state eq 'ext_escaped' ? 'ext_quoted' : $c eq '"' ? 'ext_value_end' : $c eq '\\' ? 'ext_escaped' : 'ext_quoted';
        }
        return $state =~ /\Aext_(?:name|token|value_end)\z/ ? 'size_lf' : () if $c eq "\r";
        return $MAY_END{$state} ? 'ext_name_first' : () if $c eq ';';
        my $kind = $c =~ /[ \t]/ ? 'blank' : $c eq '=' ? 'equals' : $c eq '"' ? 'quote' : $c =~ /[$TOKEN]/ ? 'token' : return;
        return {
            ext_name_first => { blank => 'ext_name_first', token => 'ext_name' },
            ext_name => { token => 'ext_name', blank => 'ext_name_end', equals => 'ext_value_first' },
            ext_name_end => { blank => 'ext_name_end', equals => 'ext_value_first' },
            ext_value_first => { blank => 'ext_value_first', token => 'ext_token', quote => 'ext_quoted' },
            ext_token => { token => 'ext_token', blank => 'ext_blank' },
            ext_value_end => { blank => 'ext_blank' },
            ext_blank => { blank => 'ext_blank' },
        }->{$state}{$kind};
    }

    sub extension {
        my ($self, $c) = @_;
        my $next = next_of($self->{state}, $c) // return $self->refuse(400, 'malformed chunk extension');
        return $self->refuse(400, 'chunk extensions over the limit') if ++$self->{ext} > EXT_MAX;
        $self->{state} = $next;
        return 1;
    }

    sub trailer {
        my ($self, $c) = @_;
        my $state = $self->{state};
        return $self->refuse(431, 'trailer section over the limit') if ++$self->{trailer_len} > TRAILER_MAX;
        if ($state eq 'first' && $c eq "\r") {
            return $self->{state} = 'end_lf';
        } elsif ($state eq 'first' && $c =~ /[$TOKEN]/) {
            return $self->refuse(431, 'too many trailer fields') if $self->{count}++ == $self->{fields_max};
            $self->{state} = 'name';
        } elsif ($state eq 'name' && $c eq ':') {
            $self->{state} = 'value';
        } elsif ($state eq 'value' && $c eq "\r") {
            $self->{state} = 'line_lf';
        } elsif ($state eq 'line_lf' && $c eq "\n") {
            $self->{state} = 'first';
        } elsif (!($state eq 'name' && $c =~ /[$TOKEN]/) && !($state eq 'value' && $c =~ /[$TEXT]/)) {
            return $self->refuse(400, 'malformed trailer field');
        }
        $self->{trailer} .= $c;
        return 1;
    }

    # The trailer fields that an application may see, by lower-case names; repeats joined. The second value counts those
    # left out.
    sub trailers {
        my ($self) = @_;
        my $fields = Oribi::Pure::Head::fields_of($self->{trailer});
        my (%kept, $dropped);
        while (my ($name, $value) = splice @$fields, 0, 2) {
            $name = lc $name;
            $dropped++, next if $name =~ /_/ || length $name > 1024 || $FORBIDDEN{$name};
            $kept{$name} = defined $kept{$name} ? "$kept{$name}, $value" : $value;
        }
        return (\%kept, $dropped // 0);
    }
}

# --- answers ----------------------------------------------------------------------------------------------------------

# Heads of answers, as core/src/http/response.c and mend.c write them: every name and value is checked, framing and
# persistence are written from what the server knows and never copied from the application.
package Oribi::Pure::Answer 0.100 {
    use constant { HEAD_BYTES_MAX => 256 << 10, FIELDS_MAX => 1024, NAMES_KEPT => 1000 };

    my $TOKEN = $Oribi::Pure::Head::TOKEN;
    my $TEXT = $Oribi::Pure::Head::TEXT;

    my %REASON = (
        100 => 'Continue', 101 => 'Switching Protocols', 102 => 'Processing', 103 => 'Early Hints', 200 => 'OK', 201 => 'Created',
        202 => 'Accepted', 203 => 'Non-Authoritative Information', 204 => 'No Content', 205 => 'Reset Content',
        206 => 'Partial Content', 207 => 'Multi-Status', 208 => 'Already Reported', 226 => 'IM Used', 300 => 'Multiple Choices',
        301 => 'Moved Permanently', 302 => 'Found', 303 => 'See Other', 304 => 'Not Modified', 305 => 'Use Proxy',
        307 => 'Temporary Redirect', 308 => 'Permanent Redirect', 400 => 'Bad Request', 401 => 'Unauthorized',
        402 => 'Payment Required', 403 => 'Forbidden', 404 => 'Not Found', 405 => 'Method Not Allowed', 406 => 'Not Acceptable',
        407 => 'Proxy Authentication Required', 408 => 'Request Timeout', 409 => 'Conflict', 410 => 'Gone', 411 => 'Length Required',
        412 => 'Precondition Failed', 413 => 'Content Too Large', 414 => 'URI Too Long', 415 => 'Unsupported Media Type',
        416 => 'Range Not Satisfiable', 417 => 'Expectation Failed', 421 => 'Misdirected Request', 422 => 'Unprocessable Content',
        423 => 'Locked', 424 => 'Failed Dependency', 425 => 'Too Early', 426 => 'Upgrade Required', 428 => 'Precondition Required',
        429 => 'Too Many Requests', 431 => 'Request Header Fields Too Large', 451 => 'Unavailable For Legal Reasons',
        500 => 'Internal Server Error', 501 => 'Not Implemented', 502 => 'Bad Gateway', 503 => 'Service Unavailable',
        504 => 'Gateway Timeout', 505 => 'HTTP Version Not Supported', 506 => 'Variant Also Negotiates', 507 => 'Insufficient Storage',
        508 => 'Loop Detected', 510 => 'Not Extended', 511 => 'Network Authentication Required',
    );

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

    sub status_line { my ($status) = @_; return "HTTP/1.1 $status " . ($REASON{$status} // '') . "\r\n" }

    # The number at the start of a status as applications give it ("200 OK"), or -1.
    sub status_of {
        my ($text) = @_;
        return defined $text && $text =~ /\A[ \t\r\n]*([0-9]{3})(?:[ \t\r\nA-Za-z]|\z)/ ? $1 : -1;
    }

    sub refuse { my ($res, $reason) = @_; $res->{reason} = $reason; return undef }    ## no critic: a list would be no result

    # Writes the head of %$res: status, headers (pairs), minor, is_head, keep_alive, detached, unframed (its framing has
    # been taken off the body), body_len (-1: not known), date, server, added (pairs of the operator). Sets framing
    # (none, length, chunked, close), length (what Content-Length says, or -1), closes, framed (framing is still to be
    # taken off), dropped, and mended: what was put right. Returns the bytes, or undef with {reason}.
    sub head {
        my ($res) = @_;
        my ($status, $headers) = @$res{qw(status headers)};
        @$res{qw(reason dropped mended)} = (undef, 0, {});
        return refuse($res, 'status out of range') if ($status < 200 && !($status == 101 && $res->{detached})) || $status > 999;
        return refuse($res, 'headers in odd number') if @$headers % 2;
        return refuse($res, 'too many headers') if @$headers > 2 * FIELDS_MAX;
        my %wish = (length => -1);
        my $out = status_line($status);
        for (my $i = 0; $i < @$headers; $i += 2) {
            my ($name, $value) = @$headers[$i, $i + 1];
            my $own = $OWN{ $name // '' } // own_name($name // '');
            return refuse($res, 'header name is not a token') if $own eq '!';
            my $mended;    # what was put right in this one
            if (!defined $value || $value !~ /\A[$TEXT]*[\x21-\x7e\x80-\xff]\z/o) {
                $res->{mended}{undefined} = 1, next if !defined $value;
                ($value, $mended) = mend($value);
                return refuse($res, 'control character in a header value') if !defined $value;
            }
            my $written = $own eq '' || take_own($res, $own, $value, \$mended, \%wish);
            return if $res->{reason};
            @{ $res->{mended} }{ keys %$mended } = values %$mended if $mended;
            $out .= "$name: $value\r\n" if $written;
        }
        decide($res, \%wish);
        $out .= added($res) if $res->{added};
        $out .= "Date: $res->{date}\r\n" if !$wish{date};
        $out .= "Server: $res->{server}\r\n" if !$wish{server} && length($res->{server} // '');
        $out .= tail($res, \%wish);
        return refuse($res, 'response head over the limit') if length $out > HEAD_BYTES_MAX;
        return refuse($res, 'characters above 255') if utf8::is_utf8($out) && !utf8::downgrade($out, 1);
        return $out;
    }

    # A value that can be sent safely once it is put right: white space and line ends at its end are cut, a value on
    # several lines is joined. Undefined for any other control character.
    sub mend {
        my ($value) = @_;
        my %now;
        $now{trimmed} = 1 if $value =~ s/[ \t\r\n]++\z//;
        if ($value =~ /[^$TEXT]/) {
            $value =~ s/\A(?:[ \t]*\r?\n[ \t]++)+//;
            $value =~ s/(?:[ \t]*\r?\n[ \t]++)+/ /g;
            return if $value =~ /[^$TEXT]/;
            $now{folded} = 1;
        }
        return ($value, %now ? \%now : undef);
    }

    # True when the body is there and will be sent: then its length is known without the application.
    sub can_count { my ($res) = @_; return $res->{body_len} >= 0 && !$res->{is_head} && $res->{status} != 304 }

    sub has_body { my ($status) = @_; return $status >= 200 && $status != 204 && $status != 304 }

    # Looks at a field that concerns the server. Returns whether it is to be written as it stands.
    sub take_own {
        my ($res, $own, $value, $mended, $wish) = @_;
        if ($own eq 'date' || $own eq 'server' || $own eq 'upgrade') {
            $wish->{$own} = 1;
            return 1;
        }
        return 0 if $own eq 'status';    # a program's word to a CGI gateway; PSGI forbids it
        if ($own eq 'connection') {
            $wish->{connection} = 1;
            $wish->{"has_$_"} = 1 for map {lc} split /[, \t]+/, $value;
            return 1 if $res->{detached};
            $res->{dropped}++ if !$wish->{has_close} && !$wish->{has_upgrade} && !$wish->{'has_keep-alive'};
            return 0;
        }
        if ($own eq 'content-length') {
            take_length($res, $value, $mended, $wish);
            $res->{dropped}++ if !$res->{detached} && ($res->{status} < 200 || $res->{status} == 204) && $wish->{length} > 0;
            return 0;
        }
        if ($own eq 'transfer-encoding' && !$res->{detached} && has_body($res->{status}) && $value =~ /\A[ \t]*chunked\z/i) {
            $wish->{framed} = 1;
            return 0;
        }
        return 1 if $res->{detached} && $res->{status} >= 200;    # not with a 101: RFC 9112 6.1
        $res->{dropped}++;
        return 0;
    }

    # A number with white space around it may have been meant for something else: it counts only where the server cannot
    # count.
    sub take_length {
        my ($res, $value, $mended, $wish) = @_;
        my ($digits) = $value =~ /\A[ \t]*([0-9]*)\z/;
        $$mended = { length => 1 } if $$mended || ($digits // '') eq '' || length $digits < length $value;
        return refuse($res, 'Content-Length is no number') if !defined $digits || is_over("$digits");
        return if $digits eq '' || ($$mended && can_count($res));
        return refuse($res, 'Content-Length given twice') if $wish->{length} >= 0 && $wish->{length} != $digits;
        $wish->{length} = 0 + $digits;
        return;
    }

    # Beyond 2^63-1.
    sub is_over { my $digits = $_[0] =~ s/\A0+//r; return length $digits > 19 || length $digits == 19 && $digits gt '9223372036854775807' }

    # Framing and persistence, RFC 9112 6.3 and 9.3.
    sub decide {
        my ($res, $wish) = @_;
        my $length = $wish->{length} >= 0 ? $wish->{length} : $res->{body_len};
        my $status = $res->{status};
        if ($wish->{framed}) {
            $length = $res->{unframed} ? $res->{body_len} : -1;
            $res->{dropped}++ if $wish->{length} >= 0;
        }
        @$res{qw(framing length)}
            = $res->{detached} ? ('close', $status < 200 ? -1 : $wish->{length})    # RFC 9110 8.6
            : $status < 200 || $status == 204 ? ('none', -1)
            : $status == 304 ? ('none', $wish->{length})    # ours would be that of an empty body
            : $res->{is_head} ? ('none', $length)
            : $length >= 0 ? ('length', $length)
            : ($res->{minor} ? 'chunked' : 'close', -1);
        $res->{framed} = $wish->{framed} && !$res->{unframed} && $res->{framing} ne 'none';
        $res->{closes} = !$res->{keep_alive} || $wish->{has_close} || $res->{framing} eq 'close' ? 1 : 0;
        return;
    }

    # Headers of the operator that the application has not set.
    sub added {
        my ($res) = @_;
        my ($headers, $added, $out) = (@$res{qw(headers added)}, '');
        my %has = map { defined $headers->[2 * $_ + 1] ? (lc $headers->[2 * $_] => 1) : () } 0 .. @$headers / 2 - 1;
        for (my $i = 0; $i < @$added; $i += 2) {
            $out .= "$added->[$i]: $added->[$i + 1]\r\n" if !$has{ lc $added->[$i] };
        }
        return $out;
    }

    sub tail {
        my ($res, $wish) = @_;
        my $out = $res->{length} >= 0 ? "Content-Length: $res->{length}\r\n" : '';
        $out .= "Transfer-Encoding: chunked\r\n" if $res->{framing} eq 'chunked';
        if ($res->{detached}) {
            my $asks = $res->{status} == 101 && $wish->{upgrade} && !$wish->{has_upgrade};    # RFC 9110 7.8
            $out .= $asks ? "Connection: upgrade\r\n" : "Connection: close\r\n" if $asks || !$wish->{connection};
        } elsif ($res->{closes} || $wish->{has_upgrade} || !$res->{minor}) {
            my @options = ($res->{closes} ? 'close' : !$res->{minor} ? 'keep-alive' : (), $wish->{has_upgrade} ? 'upgrade' : ());
            $out .= 'Connection: ' . join(', ', @options) . "\r\n";
        }
        return "$out\r\n";
    }

    # The head of an interim answer (100 … 199, not 101): nothing about framing is in it (RFC 9110 8.6).
    sub interim {
        my ($status, $headers) = @_;
        return if $status !~ /\A1(?!01)[0-9]{2}\z/ || @$headers % 2 || @$headers > 2 * FIELDS_MAX;
        my $out = status_line($status);
        my %own = map { $_ => 1 } qw(connection keep-alive status content-length transfer-encoding);
        for (my $i = 0; $i < @$headers; $i += 2) {
            my ($name, $value) = @$headers[$i, $i + 1];
            my $verdict = own_name($name // '');
            return if $verdict eq '!';
            next if !defined $value || $own{$verdict};
            ($value) = mend($value);
            return if !defined $value;
            $out .= "$name: $value\r\n";
        }
        $out .= "\r\n";
        return if length $out > HEAD_BYTES_MAX || utf8::is_utf8($out) && !utf8::downgrade($out, 1);
        return $out;
    }

    # A whole answer of the server's own, such as to a refused request.
    sub own {
        my ($status, %res) = @_;
        my $retry = delete $res{retry_after};
        my $body = "$status" . (defined $REASON{$status} ? " $REASON{$status}" : '') . "\n";
        my $res = {
            status => $status, minor => 1, keep_alive => 0, body_len => length $body, %res,
            headers => ['Content-Type' => 'text/plain', defined $retry ? ('Retry-After' => $retry) : ()],
        };
        return head($res) . ($res->{is_head} ? '' : $body);
    }

    my @DAY = qw(Sun Mon Tue Wed Thu Fri Sat);
    my @MONTH = qw(Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec);

    # An IMF-fixdate, RFC 9110 5.6.7.
    sub date_of {
        my ($second, $minute, $hour, $day, $month, $year, $weekday) = gmtime $_[0];
        return sprintf '%s, %02d %s %d %02d:%02d:%02d GMT', $DAY[$weekday], $day, $MONTH[$month], $year + 1900, $hour, $minute, $second;
    }
}

# --- the worker -------------------------------------------------------------------------------------------------------

# A connection is a hash: fh, fd, listener; address and port of the peer; state; in (bytes read and not yet used);
# parser (state of Head::parse); head, body, temp, left, chunks (of the request); out, spill, source, complete, closes
# (of the answer); deadline (0: none). Only the worker's loop reads and writes sockets.
package Oribi::Pure::Worker 0.100 {
    use Errno qw(EAGAIN EWOULDBLOCK EINTR EBADF);
    use POSIX ();
    use Scalar::Util ();
    use Socket ();

    use constant {
        HEAD => 0, BODY => 1, READY => 2, ANSWER => 3, LINGER => 4,
        READ_BYTES => 64 << 10, SMALL_BODY_BYTES => 128 << 10, TICK => 0.25, TURN_MAX => 1, ACCEPT_BATCH => 16, BACKLOG_TAKEN => 1024, CLEANUP_MAX => 1024, INTERIM_UNSENT_MAX => 128 << 10,
        NEWCOMER => 1, LINGER_SILENCE => 2, LINGER_MAX => 30, LINGER_BYTES_MAX => 256 << 20, ROOM_IDLE_MIN => 0.1,
    };
    # A peer that has gone is a result of send(), no signal, where the system has this flag.
    use constant NOSIGNAL => eval { Socket::MSG_NOSIGNAL() } // 0;

    # A Perl cut down to its base (perl-base of Debian) lacks these: then times are told in hundredths of a second,
    # bodies are always in files, and a connection whose socket was looked at ends with its answer.
    my ($HAS_HIRES, $HAS_SCALAR, $HAS_B) = map { my $file = $_; eval { require $file; 1 } || 0 } qw(Time/HiRes.pm PerlIO/scalar.pm B.pm);

    # Waits are measured by a clock that nobody sets, where there is one.
    my $MONOTONIC = !$HAS_HIRES ? undef : eval { my $id = Time::HiRes::CLOCK_MONOTONIC(); Time::HiRes::clock_gettime($id); $id };
    my $TICKS = eval { POSIX::sysconf(POSIX::_SC_CLK_TCK()) } || 100;

    sub clock {
        return Time::HiRes::clock_gettime($MONOTONIC) if defined $MONOTONIC;
        return $HAS_HIRES ? Time::HiRes::time() : (POSIX::times())[0] / $TICKS;
    }

    our $calling;    # worker and connection of the running call: what exit() in it leaves behind

    # Options with numbers in seconds and bytes; app; listeners: { fh, host, port }; alive: the reading end of a pipe
    # that the parent keeps open, or undef; multiprocess; hooks.
    sub new {
        my ($class, %given) = @_;
        my $options = $given{options};
        my $self = bless {
            %given, limits => Oribi::Pure::Head::limits(%$options), conns => {}, ready => [], rmask => '', wmask => '', pid => $$,
            signals => $given{signals} // {}, memory => 0, files => 0, calls => 0, now => clock(), next_tick => 0, listening => 0, second => 0,
        }, $class;
        my ($least, $most) = split /\.\./, $options->{requests_max} // 0;
        $self->{calls_max} = $least + ($most ? int rand($most - $least + 1) : 0);
        $self->{calls_max} += int rand(1 + $options->{requests_jitter}) if $self->{calls_max};
        $self->{ends_at} = $options->{age_max} ? $self->{now} + $options->{age_max} * (1 + rand(0.125)) : 0;
        my %constant = (
            SCRIPT_NAME => '', 'psgi.url_scheme' => 'http', 'psgi.multithread' => '', 'psgi.run_once' => '',
            'psgi.multiprocess' => $given{multiprocess} ? 1 : '', 'psgi.nonblocking' => '', 'psgi.streaming' => 1, 'psgix.harakiri' => 1,
            'psgix.cleanup' => 1, 'psgix.input.buffered' => 1,
        );
        $self->{constant} = [[keys %constant], [values %constant]];
        return $self;
    }

    # --- the loop ---

    # Serves until it was told to stop and all connections have ended, or shutdown_timeout has passed.
    sub run {
        my ($self) = @_;
        $SIG{PIPE} = 'IGNORE' if !NOSIGNAL && exists $SIG{PIPE};
        vec($self->{rmask}, fileno $self->{alive}, 1) = 1 if $self->{alive};
        $self->listen_on(1);
        until ($self->{draining} && (!%{ $self->{conns} } || $self->{now} >= $self->{drain_deadline})) {
            if (my $c = shift @{ $self->{ready} }) {
                $self->call($c) if $c->{fh};
            } else {
                $self->turn(TURN_MAX);
            }
            $self->{on_signal}->($self) if %{ $self->{signals} };
            $self->drain if $self->{stops};
        }
        my $left = keys %{ $self->{conns} };
        Oribi::Pure::say_log(warning => 'shutdown_timeout reached: closing %d connections', $left) if $left;
        $self->drop($_) for values %{ $self->{conns} };
        return;
    }

    # From now on no connection is accepted, and none is kept.
    sub drain {
        my ($self) = @_;
        return if $self->{draining};
        $self->turn(0);    # a request that has arrived on a kept connection is answered
        $self->{draining} = 1;
        $self->{now} = clock();
        $self->{drain_deadline} = $self->{now} + $self->{options}{shutdown_timeout};
        if ($self->{told} && $self->{listening}) {    # who has connected before the stop is answered
            $self->accept_from($_, BACKLOG_TAKEN) for @{ $self->{listeners} };
        }
        $self->listen_on(0);
        $self->{on_drain}->() if $self->{on_drain};
        for my $c (values %{ $self->{conns} }) {
            next if $c->{state} != HEAD || $c->{in} ne '';
            if ($c->{requests}) { $self->drop($c) }
            else { $c->{deadline} = $self->{now} + NEWCOMER }    # its first request is on the way
        }
        return;
    }

    sub listen_on {
        my ($self, $on) = @_;
        return if $self->{listening} == $on;
        $self->{listening} = $on;
        vec($self->{rmask}, fileno $_->{fh}, 1) = $on for @{ $self->{listeners} };
        return;
    }

    # One turn: waits for so many seconds at most, reads and writes what can be, and ends what has waited too long. Runs
    # no code of the application; complete requests are left in {ready}.
    sub turn {
        my ($self, $seconds) = @_;
        my $count = select my $readable = $self->{rmask}, my $writable = $self->{wmask}, undef, $seconds;
        my $error = $count < 0 ? $! + 0 : 0;
        $self->{now} = clock();
        if ($count > 0) {
            my $conns = $self->{conns};
            if ($writable =~ /[^\0]/) {
                my ($bits, $fd) = (unpack('b*', $writable), -1);
                while (($fd = index $bits, '1', $fd + 1) >= 0) {
                    $self->flush($conns->{$fd}) if $conns->{$fd};
                }
            }
            my ($bits, $fd) = (unpack('b*', $readable), -1);
            while (($fd = index $bits, '1', $fd + 1) >= 0) {
                if (my $c = $conns->{$fd}) { $self->readable($c) if vec $self->{rmask}, $fd, 1 }
                elsif ($self->{alive} && $fd == fileno $self->{alive}) { $self->parent_gone }
                else { $self->accept_from($_) for grep { $self->{listening} && fileno($_->{fh}) == $fd } @{ $self->{listeners} } }
            }
        } elsif ($error == EBADF) {
            $self->drop_closed;
        }
        $self->tick if $self->{now} >= $self->{next_tick};
        return;
    }

    sub parent_gone {
        my ($self) = @_;
        vec($self->{rmask}, fileno $self->{alive}, 1) = 0;
        $self->{stops} = $self->{told} = 1;
        return;
    }

    # The application has closed a descriptor that is not its own.
    sub drop_closed {
        my ($self) = @_;
        for my $fd (keys %{ $self->{conns} }) {
            next if stat $self->{conns}{$fd}{fh};
            Oribi::Pure::say_log(error => 'the application has closed the descriptor of a connection');
            $self->drop($self->{conns}{$fd});
        }
        return;
    }

    # Deadlines are looked at a few times a second: a walk over all connections.
    sub tick {
        my ($self) = @_;
        my $now = $self->{now};
        $self->{next_tick} = $now + TICK;
        $self->{stops} = 1 if $self->{ends_at} && $now >= $self->{ends_at};
        for my $c (values %{ $self->{conns} }) {
            $self->expire($c) if $c->{deadline} && $c->{deadline} <= $now;
        }
        $self->listen_on(1) if !$self->{listening} && !$self->{draining} && $self->has_room;
        return;
    }

    sub expire {
        my ($self, $c) = @_;
        my $state = $c->{state};
        return $self->refuse($c, 408, 'head_timeout') if $state == HEAD && $c->{in} ne '';
        return $self->refuse($c, 408, 'body_timeout') if $state == BODY;
        Oribi::Pure::say_log(info => 'connection of %s closed: write_timeout', $c->{address} // 'a unix socket') if $state == ANSWER;
        return $self->drop($c);
    }

    # --- connections ---

    # A further connection replaces the longest idle one, then the oldest unfinished head, else it waits in the backlog.
    sub has_room {
        my ($self) = @_;
        my $conns = $self->{conns};
        return 1 if keys %$conns < $self->{options}{connections_max};
        my @waiting = sort { ($a->{in} ne '') <=> ($b->{in} ne '') || $a->{deadline} <=> $b->{deadline} }
            grep { $_->{state} == HEAD && $self->{now} - $_->{since} >= ROOM_IDLE_MIN } values %$conns;
        $self->drop($waiting[0]) if @waiting;
        return @waiting > 0;
    }

    sub accept_from {
        my ($self, $listener, $count) = @_;
        my $options = $self->{options};
        # One at a time where siblings wait for connections too.
        for (1 .. $count // ($self->{multiprocess} ? 1 : ACCEPT_BATCH)) {
            return $self->listen_on(0) if !$self->has_room;
            my $from = accept my $fh, $listener->{fh};
            if (!defined $from || !$from && !defined fileno $fh) {
                return if $! == EAGAIN || $! == EWOULDBLOCK || $! == EINTR;
                Oribi::Pure::say_log(warning => 'a connection cannot be accepted: %s', $!);
                return $self->listen_on(0);    # until the next tick
            }
            Oribi::Pure::Processes::unblock($fh);
            my ($address, $port);
            if (!$listener->{path}) {
                setsockopt $fh, Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1;
                ($address, $port) = Oribi::Pure::Processes::address_of($from);
            }
            my $fd = fileno $fh;
            $self->{conns}{$fd} = {
                fh => $fh, fd => $fd, listener => $listener, address => $address, port => $port, state => HEAD, in => '', parser => {},
                out => '', requests => 0, since => $self->{now}, deadline => $self->{now} + $options->{idle_timeout}, held => 0, filed => 0,
            };
            vec($self->{rmask}, $fd, 1) = 1;
        }
        return;
    }

    # Forgets the connection; closes it unless the application has its socket.
    sub drop {
        my ($self, $c) = @_;
        my $fh = delete $c->{fh} or return;
        vec($self->{rmask}, $c->{fd}, 1) = 0;
        vec($self->{wmask}, $c->{fd}, 1) = 0;
        delete $self->{conns}{ $c->{fd} };
        $self->release($c);
        delete $c->{head} if !$calling || $calling->[1] != $c;
        close $fh if !$c->{detached};
        return;
    }

    # Memory and temporary files of the request and of what is not sent, given back.
    sub release {
        my ($self, $c) = @_;
        $self->{memory} -= $c->{held};
        $self->{files} -= $c->{filed};
        @$c{qw(held filed)} = (0, 0);
        delete @$c{qw(body temp chunks spill source)};
        return;
    }

    sub readable {
        my ($self, $c) = @_;
        return $self->linger($c) if $c->{state} == LINGER;
        my $n = sysread $c->{fh}, $c->{in}, READ_BYTES, length $c->{in};
        if (!defined $n) {
            return if $! == EAGAIN || $! == EWOULDBLOCK || $! == EINTR;
            return $self->drop($c);
        }
        return $self->drop($c) if !$n;    # a request that ends early is never taken for a whole one
        $c->{deadline} = $self->{now} + $self->{options}{body_timeout} if $c->{state} == BODY;
        return $self->advance($c);
    }

    # Takes what has been read as far as it goes: to a complete request, a refusal, or the need for more bytes.
    sub advance {
        my ($self, $c) = @_;
        if ($c->{state} == HEAD) {
            my $result = Oribi::Pure::Head::parse($c->{parser}, $self->{limits}, $c->{in}, \my $head);
            return $self->refuse($c, -$result, $c->{parser}{reason}) if $result < 0;
            if (!$result) {
                return if $c->{begun};
                $c->{begun} = $self->{now};    # the head has so long from its first byte on
                $c->{deadline} = $self->{now} + $self->{options}{head_timeout};
                return;
            }
            $c->{head} = $head;
            $c->{parser} = {};
            if ($result == length $c->{in}) { $c->{in} = '' }
            else { substr $c->{in}, 0, $result, '' }
            return $self->complete($c) if !$head->{length};
            $self->begin_body($c) or return;
        }
        $self->take_body($c);
        return;
    }

    # A complete request: nothing more is read before its answer is sent.
    sub complete {
        my ($self, $c) = @_;
        vec($self->{rmask}, $c->{fd}, 1) = 0;
        @$c{qw(state deadline)} = (READY, 0);
        my $max = $self->{options}{queue_max};
        return $self->refuse($c, 503, 'queue_max') if $max && @{ $self->{ready} } >= $max;
        push @{ $self->{ready} }, $c;
        return;
    }

    # --- bodies of requests ---

    sub begin_body {
        my ($self, $c) = @_;
        my ($head, $options) = ($c->{head}, $self->{options});
        my $length = $head->{length};
        @$c{qw(state begun received left body)} = (BODY, $self->{now}, 0, $length, '');
        $c->{deadline} = $self->{now} + $options->{body_timeout};
        $c->{chunks} = Oribi::Pure::Chunked->new($self->{limits}) if $length < 0;
        return 0 if $length > 0 && $self->wants_file($length) && !$self->to_file($c);
        # A client that has begun its body does not wait for this. The line fits into any socket's buffer.
        send $c->{fh}, "HTTP/1.1 100 Continue\r\n\r\n", NOSIGNAL if $head->{expect} && $c->{in} eq '';
        return 1;
    }

    # Does a body of this length belong into a file? Beside the limit of one, all bodies together have theirs.
    sub wants_file {
        my ($self, $length) = @_;
        my ($max, $all) = @{ $self->{options} }{qw(body_memory_max buffers_memory_max)};
        return 1 if $length > $max;
        return $length > SMALL_BODY_BYTES && $all && $self->{memory} + $length > $all * 3 / 4;
    }

    sub to_file {
        my ($self, $c) = @_;
        my $temp;
        if (!open $temp, '+>', undef) {
            Oribi::Pure::say_log(error => 'a body cannot be stored: no temporary file: %s', $!);
            $self->refuse($c, 503, 'storage');
            return 0;
        }
        binmode $temp;
        $c->{temp} = $temp;
        $self->{memory} -= $c->{held};
        $c->{held} = 0;
        my $body = delete $c->{body};
        return $self->store($c, $body);
    }

    # Appends to the body. False when the request was refused for it.
    sub store {
        my ($self, $c, $bytes) = @_;
        if (!$c->{temp}) {
            $c->{body} .= $bytes;
            $self->{memory} += length $bytes;
            $c->{held} += length $bytes;
            return $self->wants_file($c->{held}) ? $self->to_file($c) : 1;
        }
        my $max = $self->{options}{buffers_file_max};
        if ($max && $self->{files} + length $bytes > $max) {
            $self->refuse($c, 503, 'buffers_file_max');
            return 0;
        }
        return 1 if $bytes eq '' || (syswrite $c->{temp}, $bytes) // -1 == length $bytes && ($self->{files} += length $bytes, $c->{filed} += length $bytes);
        Oribi::Pure::say_log(error => 'a body cannot be stored: %s', $!);
        $self->refuse($c, $!{ENOSPC} ? 507 : 503, 'storage');
        return 0;
    }

    sub take_body {
        my ($self, $c) = @_;
        my $options = $self->{options};
        my $content;
        if (my $chunks = $c->{chunks}) {
            $content = $chunks->decode(\$c->{in});
            return $self->refuse($c, @$chunks{qw(status reason)}) if $chunks->{status};
        } else {
            $content = length $c->{in} <= $c->{left} ? $c->{in} : substr $c->{in}, 0, $c->{left};
            if (length $content == length $c->{in}) { $c->{in} = '' }
            else { substr $c->{in}, 0, $c->{left}, '' }
            $c->{left} -= length $content;
        }
        $c->{received} += length $content;
        $self->store($c, $content) or return;
        return $self->complete($c) if $c->{chunks} ? $c->{chunks}{done} : !$c->{left};
        my $seconds = $self->{now} - $c->{begun};
        return if !$options->{body_rate_min} || $seconds <= $options->{body_timeout} || $c->{received} >= $seconds * $options->{body_rate_min};
        return $self->refuse($c, 408, 'body_rate_min');
    }

    # --- output ---

    # The server's own answer to a request that never reaches the application; then the connection ends.
    sub refuse {
        my ($self, $c, $status, $reason) = @_;
        my $name = $c->{address} // 'a unix socket';
        Oribi::Pure::say_log(warning => 'request from %s refused with %d: %s', $name, $status, $reason) if $status != 408 || $c->{state} == BODY;
        my $is_head = $c->{state} == HEAD ? $c->{in} =~ /\A(?:\r\n){0,2}HEAD / : ($c->{head}{env}{REQUEST_METHOD} // '') eq 'HEAD';
        return $self->own_answer($c, $status, is_head => $is_head, $status == 503 ? (retry_after => 1) : ());
    }

    sub own_answer {
        my ($self, $c, $status, %more) = @_;
        my $options = $self->{options};
        $self->release($c);
        my $bytes = Oribi::Pure::Answer::own($status, date => $self->date, server => $options->{server_header}, added => $options->{added}, %more);
        @$c{qw(state closes lingers complete)} = (ANSWER, 1, 1, 1);
        vec($self->{rmask}, $c->{fd}, 1) = 0;
        $c->{out} .= $bytes;
        $self->log_access($c, $status, 0) if $self->{access_log};
        $self->flush($c);
        return;
    }

    # Sends what the socket takes; what is left is sent when it is writable. The rest of a complete answer that is sent
    # begins the next request, or the end.
    sub flush {
        my ($self, $c) = @_;
        while (1) {
            if ($c->{out} eq '') {
                next if $c->{spill} && $self->unspill($c);
                next if $c->{source} && $self->read_source($c);
                return if !$c->{fh};
                last;
            }
            my $n = send $c->{fh}, $c->{out}, NOSIGNAL;
            if (!defined $n) {
                next if $! == EINTR;
                return $self->drop($c) if $! != EAGAIN && $! != EWOULDBLOCK;
                vec($self->{wmask}, $c->{fd}, 1) = 1;
                $c->{deadline} = $self->{now} + $self->{options}{write_timeout} if !$c->{deadline} || $c->{took};
                $c->{took} = 0;
                return;
            }
            if ($n == length $c->{out}) { $c->{out} = '' }
            else { substr $c->{out}, 0, $n, '' }
            $c->{took} = 1;
        }
        vec($self->{wmask}, $c->{fd}, 1) = 0;
        $c->{deadline} = 0;
        $self->next_request($c) if $c->{complete};
        return;
    }

    # Sends, and moves what one connection should not keep in memory to a temporary file.
    sub push_out {
        my ($self, $c) = @_;
        $self->flush($c);
        my $options = $self->{options};
        return if !$c->{fh} || length $c->{out} <= $options->{response_memory_max};
        my $spill = $c->{spill} //= { pos => 0, end => 0 };
        if (!$spill->{fh}) {
            open $spill->{fh}, '+>', undef or return $self->cut($c, "no temporary file: $!");
            binmode $spill->{fh};
        }
        my ($n, $max) = (length $c->{out}, $options->{buffers_file_max});
        return $self->cut($c, 'buffers_file_max reached') if $max && $self->{files} + $n > $max;
        sysseek $spill->{fh}, $spill->{end}, 0;
        return $self->cut($c, "temporary file: $!") if (syswrite($spill->{fh}, $c->{out}) // -1) != $n;
        $spill->{end} += $n;
        $self->{files} += $n;
        $c->{filed} += $n;
        $c->{out} = '';
        return $self->flush($c);
    }

    # Ends an answer so that nobody takes it for whole.
    sub cut {
        my ($self, $c, $reason) = @_;
        Oribi::Pure::say_log(error => '%s: answer cut: %s', line_of($c), $reason);
        return $self->drop($c);
    }

    sub unspill {
        my ($self, $c) = @_;
        my $spill = $c->{spill};
        if ($spill->{pos} >= $spill->{end}) {
            delete $c->{spill};
            return 1;
        }
        my $want = $spill->{end} - $spill->{pos} < READ_BYTES ? $spill->{end} - $spill->{pos} : READ_BYTES;
        sysseek $spill->{fh}, $spill->{pos}, 0;
        my $n = sysread $spill->{fh}, $c->{out}, $want;
        return $self->cut($c, 'its temporary file cannot be read') if !$n;
        $spill->{pos} += $n;
        return 1;
    }

    # A plain file is read piece by piece, as the client takes it.
    sub read_source {
        my ($self, $c) = @_;
        my $source = $c->{source};
        if (!$source->{left}) {
            delete $c->{source};
            $c->{complete} = 1;
            return 1;
        }
        sysseek $source->{fh}, $source->{pos}, 0;
        my $n = sysread $source->{fh}, $c->{out}, $source->{left} < READ_BYTES ? $source->{left} : READ_BYTES;
        return $self->cut($c, 'its file has become shorter') if !$n;
        $source->{pos} += $n;
        $source->{left} -= $n;
        return 1;
    }

    # All is sent: the next request, which may have been read already, or the end of the connection.
    sub next_request {
        my ($self, $c) = @_;
        $self->release($c);
        if ($c->{closes} || $self->{draining} && $c->{in} eq '') {
            return $self->drop($c) if !$c->{lingers} && $c->{in} eq '' && !($c->{head} && $c->{head}{keep_alive});
            shutdown $c->{fh}, 1;
            @$c{qw(state in deadline linger_end lingered)} = (LINGER, '', $self->{now} + LINGER_SILENCE, $self->{now} + LINGER_MAX, 0);
            vec($self->{rmask}, $c->{fd}, 1) = 1;
            return;
        }
        delete @$c{qw(head begun complete took)};
        @$c{qw(state since deadline)} = (HEAD, $self->{now}, $self->{now} + $self->{options}{idle_timeout});
        vec($self->{rmask}, $c->{fd}, 1) = 1;
        $self->advance($c) if $c->{in} ne '';
        return;
    }

    # Reads and forgets, so that no reset overtakes the last answer.
    sub linger {
        my ($self, $c) = @_;
        my $n = sysread $c->{fh}, my $ignored, READ_BYTES;
        return if !defined $n && ($! == EAGAIN || $! == EWOULDBLOCK || $! == EINTR);
        return $self->drop($c) if !$n || ($c->{lingered} += $n) > LINGER_BYTES_MAX || $self->{now} >= $c->{linger_end};
        $c->{deadline} = $self->{now} + LINGER_SILENCE;
        return;
    }

    # The value of Date, made once a second.
    sub date {
        my ($self) = @_;
        my $time = time;
        return $self->{date} if $time == $self->{second};
        $self->{second} = $time;
        delete $self->{log_time};
        return $self->{date} = Oribi::Pure::Answer::date_of($time);
    }

    # --- the call ---

    sub line_of {
        my ($c) = @_;
        my $env = $c->{head} && $c->{head}{env} or return 'a request';
        return join ' ', map { $_ // '' } @$env{qw(REQUEST_METHOD REQUEST_URI)};
    }

    # Builds the environment, calls the application, answers, and does what comes after an answer.
    sub call {
        my ($self, $c) = @_;
        my $head = $c->{head};
        my $env = $head->{env};
        if (index($env->{PATH_INFO}, '%') >= 0) {
            my $path = Oribi::Pure::Head::decoded($env->{PATH_INFO});
            return $self->refuse($c, 400, 'bad escape in the path') if !defined $path;
            $env->{PATH_INFO} = $path;
        }
        $c->{requests}++;
        $self->{calls}++;
        if (my $path = $self->{options}{health}) {
            return $self->health($c) if $env->{PATH_INFO} eq $path && $env->{REQUEST_METHOD} =~ /\A(?:GET|HEAD)\z/;
        }
        $self->fill_env($c, $env);
        @$c{qw(state answered complete status bytes failed looked_at)} = (ANSWER, 0, 0, 0, 0, 0, 0);
        $calling = [$self, $c];    # not local: exit() would undo that before END blocks run
        my $res;
        my $lived = eval { $res = $self->{app}->($env); 1 };
        my $error = $@;
        exit($lived ? 0 : 255) if $$ != $self->{pid};    # a process that the application has forked ends as a script does
        $self->{now} = clock();
        if (!$lived) { $self->died($c, $error) }
        elsif (!$self->{wants_end} && $env->{'psgix.harakiri.commit'}) { $self->{wants_end} = 1 }
        $self->answer($c, $res, $env) if $lived;
        $self->{now} = clock();
        $self->after($c, $env);
        return;
    }

    sub fill_env {
        my ($self, $c, $env) = @_;
        my ($head, $listener) = @$c{qw(head listener)};
        my $constant = $self->{constant};
        @$env{ @{ $constant->[0] } } = @{ $constant->[1] };
        $env->{'psgi.version'} = [1, 1];
        $env->{'psgi.errors'} = \*STDERR;
        $env->{'psgix.cleanup.handlers'} = [];
        $env->{SERVER_NAME} = $head->{host} ne '' ? $head->{host} : $listener->{host};
        $env->{SERVER_PORT} = $listener->{port} // ($head->{port} ne '' ? $head->{port} : 80);
        @$env{qw(REMOTE_ADDR REMOTE_PORT)} = @$c{qw(address port)} if defined $c->{address};
        if ($c->{chunks}) {
            delete $env->{HTTP_TRANSFER_ENCODING};
            $env->{CONTENT_LENGTH} = $c->{received};
            my ($trailers) = $c->{chunks}->trailers;
            $env->{'oribi.trailers'} = $trailers if %$trailers;
        }
        my $input = $c->{temp};
        if (!$input && !$HAS_SCALAR) {
            open $input, '+>', undef or die "psgi.input: $!";
            syswrite $input, $c->{body} if length($c->{body} // '');
        }
        if ($input) { sysseek $input, 0, 0; seek $input, 0, 0 }
        else { open $input, '<', \($c->{body} // '') or die "psgi.input: $!" }
        $env->{'psgi.input'} = $input;
        tie $env->{'psgix.io'}, 'Oribi::Pure::Socket', $c;
        $env->{'oribi.unread'} = $c->{in} if $head->{upgrade} && $c->{in} ne '';
        $env->{'psgix.informational'} = sub { $self->interim($c, @_) } if $self->{options}{early_hints};
        return;
    }

    sub interim {
        my ($self, $c, $status, $headers) = @_;
        return if !$c->{fh} || $c->{answered} || !$c->{head}{minor} || length $c->{out} > INTERIM_UNSENT_MAX;
        my $bytes = Oribi::Pure::Answer::interim($status, $headers || []) // die "bad interim answer\n";
        $c->{out} .= $bytes;
        $self->flush($c);
        return;
    }

    sub health {
        my ($self, $c) = @_;
        my $status = $self->{draining} || $self->{stops} ? 503 : 200;
        @$c{qw(state answered complete bytes)} = (ANSWER, 0, 0, 0);
        $self->whole($c, $status, ['Content-Type' => 'text/plain'], $status == 200 ? "ok\n" : "stopping\n");
        return;
    }

    sub died {
        my ($self, $c, $error) = @_;
        return if $c->{failed};    # the answer was refused, and that was logged
        $error = eval {"$error"} // 'an exception without text';
        Oribi::Pure::say_log(error => '%s: the application died: %s', line_of($c), $error);
        return $self->fail($c);
    }

    # 500, or the end of an answer that has begun.
    sub fail {
        my ($self, $c) = @_;
        return if !$c->{fh} || $c->{failed};
        return $self->drop($c) if $c->{answered};
        @$c{qw(answered failed)} = (1, 1);
        return $self->own_answer($c, 500, is_head => $c->{head}{env}{REQUEST_METHOD} eq 'HEAD');
    }

    sub bad {
        my ($self, $c, $reason) = @_;
        Oribi::Pure::say_log(error => '%s: bad response: %s', line_of($c), $reason);
        return $self->fail($c);
    }

    # What the application has returned: an answer, or code that gives one.
    sub answer {
        my ($self, $c, $res, $env) = @_;
        if ((Scalar::Util::reftype($res) // '') ne 'CODE') {
            return $self->answer_with($c, $res);
        }
        my $writer;
        my $lived = eval {
            $res->(sub {
                my ($given) = @_;
                die "the response was given already\n" if $c->{answered};
                $writer = $self->answer_with($c, $given, 1);
                return $writer;
            });
            1;
        };
        my $error = $@;
        exit($lived ? 0 : 255) if $$ != $self->{pid};
        return $self->died($c, $error) if !$lived && $c->{fh};
        return if !$c->{fh};
        if (!$c->{answered}) {
            return $self->bad($c, 'no response was given') if !$c->{looked_at};
            $c->{detached} = 1;    # the socket is the application's from now on
            return $self->drop($c);
        }
        return $self->cut($c, 'the writer was not closed') if $writer && !$writer->{closed};
        return;
    }

    sub answer_with {
        my ($self, $c, $res, $may_stream) = @_;
        return $self->bad($c, 'it is no reference to an array') if (Scalar::Util::reftype($res) // '') ne 'ARRAY';
        my ($status, $headers, $body) = @$res;
        return $self->bad($c, 'the headers are no reference to an array') if (Scalar::Util::reftype($headers) // '') ne 'ARRAY';
        $status = Oribi::Pure::Answer::status_of($status);
        return $self->stream($c, $status, $headers) if $may_stream && @$res == 2;
        my $type = Scalar::Util::reftype($body) // '';
        if ($type eq 'ARRAY' && !Scalar::Util::blessed($body)) {
            no warnings 'uninitialized';
            return $self->whole($c, $status, $headers, @$body == 1 ? "$body->[0]" : join '', @$body);
        }
        my $is_handle = $type eq 'GLOB' || Scalar::Util::blessed($body) && $body->can('getline');
        return $self->bad($c, 'the body is neither a list nor a handle') if !$is_handle;
        return $self->handle($c, $status, $headers, $body);
    }

    # The head of an answer, or undef after a 500. Decides whether the connection stays.
    sub head_of {
        my ($self, $c, $status, $headers, $length, $unframed) = @_;
        my ($head, $options) = ($c->{head}, $self->{options});
        my $max = $options->{keepalive_requests_max};
        $self->{on_signal}->($self) if %{ $self->{signals} };    # a stop that came during the call
        $self->{wants_end} = 1 if $self->{calls_max} && $self->{calls} >= $self->{calls_max};
        my $keeps = $head->{keep_alive} && !$self->{draining} && !$self->{stops} && !$self->{wants_end} && !($max && $c->{requests} >= $max) && !is_held($c);
        my $res = {
            status => $status, headers => $headers, minor => $head->{minor}, is_head => $head->{env}{REQUEST_METHOD} eq 'HEAD', keep_alive => $keeps,
            body_len => $length, date => $self->date, server => $options->{server_header}, added => $options->{added}, unframed => $unframed,
        };
        my $bytes = Oribi::Pure::Answer::head($res);
        return $self->bad($c, $res->{reason}) // () if !defined $bytes;
        Oribi::Pure::say_log(warning => '%s: headers put right: %s', line_of($c), join ', ', sort keys %{ $res->{mended} }) if %{ $res->{mended} };
        @$c{qw(answered status closes)} = (1, $status, $res->{closes});
        return ($bytes, $res);
    }

    # Has the application kept the socket? Then the connection ends with this answer.
    sub is_held {
        my ($c) = @_;
        return 0 if !$c->{looked_at};
        return 1 if !$HAS_B;
        return B::svref_2object($c->{fh})->REFCNT > 2;    # the connection, and the value that the environment has
    }

    # Content that the application has framed itself is taken out of its chunks; the server frames anew.
    sub framed_by_app {
        my ($headers) = @_;
        for (my $i = 0; $i < @$headers; $i += 2) {
            return 1 if lc($headers->[$i] // '') eq 'transfer-encoding' && ($headers->[ $i + 1 ] // '') =~ /\A[ \t]*chunked[ \t\r\n]*\z/i;
        }
        return 0;
    }

    sub unframer { return Oribi::Pure::Chunked->new({ body_bytes_max => 1 << 52, fields_max => 256 }) }

    # Undefined when the bytes are not framed as they should be.
    sub unframed {
        my ($chunks, $bytes) = @_;
        my $content = $chunks->decode(\$bytes);
        return $chunks->{status} || $bytes ne '' ? undef : $content;
    }

    # An answer whose body is there. What is longer than Content-Length says is cut; what is shorter ends with the
    # connection.
    sub whole {
        my ($self, $c, $status, $headers, $content) = @_;
        return $self->bad($c, 'characters above 255') if utf8::is_utf8($content) && !utf8::downgrade($content, 1);
        my $is_framed = framed_by_app($headers) && Oribi::Pure::Answer::has_body($status) && $c->{head}{env}{REQUEST_METHOD} ne 'HEAD';
        if ($is_framed) {
            my $chunks = unframer();
            $content = unframed($chunks, $content);
            return $self->bad($c, 'its chunks are malformed') if !defined $content || !$chunks->{done};
        }
        my ($bytes, $res) = $self->head_of($c, $status, $headers, length $content, $is_framed);
        return if !defined $bytes;
        if ($res->{framing} eq 'none') {
            $c->{out} .= $bytes;
        } else {
            my $short = $res->{framing} eq 'length' ? $res->{length} - length $content : 0;
            if ($short) {
                Oribi::Pure::say_log(error => '%s: the body has %d bytes, its Content-Length is %d', line_of($c), length $content, $res->{length});
                substr $content, $res->{length}, -$short, '' if $short < 0;
                @$c{qw(closes lingers)} = (1, 1) if $short > 0;
            }
            $c->{bytes} = length $content;
            $c->{out} .= $bytes . $content;
        }
        $c->{complete} = 1;
        return $self->push_out($c);
    }

    # The writing side of an answer whose length is not known beforehand. Content goes through write_content(), the end
    # through end_content().
    sub stream {
        my ($self, $c, $status, $headers, $length) = @_;
        my ($bytes, $res) = $self->head_of($c, $status, $headers, $length // -1);
        if (!defined $bytes) {
            die "the response was refused, see the log\n";
        }
        @$c{qw(framing length)} = @$res{qw(framing length)};
        $c->{unframe} = $res->{framed} ? unframer() : undef;
        $c->{out} .= $bytes;
        $self->flush($c);
        return bless { worker => $self, conn => $c, pid => $$ }, 'Oribi::Pure::Writer';
    }

    sub write_content {
        my ($self, $c, $content) = @_;
        $content = "$content";
        die "characters above 255\n" if utf8::is_utf8($content) && !utf8::downgrade($content, 1);
        if ($c->{unframe}) {
            $content = unframed($c->{unframe}, $content) // die "its chunks are malformed\n";
        }
        return if $content eq '' || $c->{framing} eq 'none';
        if ($c->{framing} eq 'length') {
            my $left = $c->{length} - $c->{bytes};
            $content = substr $content, 0, $left if length $content > $left;
            return if $content eq '';
        }
        $c->{bytes} += length $content;
        $c->{out} .= $c->{framing} eq 'chunked' ? sprintf("%x\r\n", length $content) . $content . "\r\n" : $content;
        return;
    }

    sub end_content {
        my ($self, $c) = @_;
        return $self->cut($c, 'its chunks are malformed') if $c->{unframe} && !delete($c->{unframe})->{done};
        return $self->cut($c, 'the body is shorter than its Content-Length') if $c->{framing} eq 'length' && $c->{bytes} < $c->{length};
        $c->{out} .= "0\r\n\r\n" if $c->{framing} eq 'chunked';
        $c->{complete} = 1;
        return $self->push_out($c);
    }

    # A handle is read to its end now, so that a slow client does not hold it; a plain file is sent as the client takes
    # it.
    sub handle {
        my ($self, $c, $status, $headers, $body) = @_;
        my $lived = eval {
            my $file = plain_file($body);
            my $is_framed = framed_by_app($headers);
            my $writer = eval { $self->stream($c, $status, $headers, $file && !$is_framed ? $file->{left} : -1) };
            if ($writer && $c->{framing} ne 'none') {
                if ($file && $c->{framing} eq 'length' && $c->{length} == $file->{left}) {
                    $c->{bytes} = $file->{left};
                    $c->{source} = $file;
                    $self->flush($c);
                } else {
                    $self->send_lines($c, $body);
                }
            } elsif ($writer) {
                delete $c->{unframe};
                $self->end_content($c);
            }
            1;
        };
        my $error = $@;
        exit($lived ? 0 : 255) if $$ != $self->{pid};
        eval { close_body($body); 1 } or Oribi::Pure::say_log(error => '%s: closing the body died: %s', line_of($c), $@);
        return $self->died($c, $error) if !$lived && $c->{fh};
        return;
    }

    sub send_lines {
        my ($self, $c, $body) = @_;
        my $is_object = Scalar::Util::blessed($body);
        local $/ = \65536;
        while ($c->{fh} && defined(my $line = $is_object ? $body->getline : readline $body)) {
            $self->write_content($c, $line);
            $self->push_out($c);
        }
        $self->end_content($c) if $c->{fh};
        return;
    }

    sub close_body {
        my ($body) = @_;
        return Scalar::Util::blessed($body) ? $body->can('close') && $body->close : close $body;
    }

    # Of a body that is an open plain file without layers that change bytes, or names one by `path`: { fh, pos, left }.
    sub plain_file {
        my ($body) = @_;
        my $fh = $body;
        if (Scalar::Util::blessed($body) && $body->can('path')) {
            my $path = $body->path;
            return if !defined $path || !open my $named, '<:raw', $path;
            $fh = $named;
        }
        my $fd = eval { (Scalar::Util::reftype($fh) // '') eq 'GLOB' && !tied(*$fh) ? fileno $fh : -1 } // -1;
        return if $fd < 0 || !-f $fh || !-s _ || ((stat _)[12] // '') eq '0';    # no blocks: the size is not the content's, as in /sys
        return if grep { !/\A(?:unix|perlio)\z/ } PerlIO::get_layers($fh);
        my ($size, $pos) = (-s _, tell $fh);
        open my $own, '<&', $fh or return;    # the application may close its own
        return $pos >= 0 && $pos <= $size ? { fh => $own, pos => $pos, left => $size - $pos } : ();
    }

    # Cleanup handlers, the access log, the end of the worker.
    sub after {
        my ($self, $c, $env) = @_;
        $self->log_access($c, $c->{status}, $c->{bytes}, $env) if $self->{access_log} && $c->{status};
        my $handlers = $env->{'psgix.cleanup.handlers'};
        if (ref $handlers eq 'ARRAY' && @$handlers) {
            for (my $i = 0; $i < @$handlers && $i < CLEANUP_MAX; $i++) {
                eval { $handlers->[$i]->($env); 1 } or Oribi::Pure::say_log(error => '%s: a cleanup handler died: %s', line_of($c), $@);
                exit 0 if $$ != $self->{pid};
            }
            @$handlers = ();
        }
        $calling = undef;
        untie $env->{'psgix.io'};
        delete $env->{'psgix.informational'};    # it holds the connection
        delete $c->{head} if !$c->{fh};
        $self->{stops} = 1 if $self->{wants_end} || $env->{'psgix.harakiri.commit'};
        return;
    }

    sub log_access {
        my ($self, $c, $status, $bytes, $env) = @_;
        $env ||= $c->{head} ? $c->{head}{env} : {};
        $self->date;
        $self->{log_time} //= POSIX::strftime('%d/%b/%Y:%H:%M:%S %z', localtime $self->{second});
        my $escape = sub {
            my ($text) = @_;
            return '-' if !defined $text || $text eq '';
            $text =~ s/([\x00-\x1f"\\\x7f-\xff])/sprintf '\\x%02x', ord $1/ge;
            return $text;
        };
        my $line = defined $env->{REQUEST_METHOD} ? "$env->{REQUEST_METHOD} " . $escape->($env->{REQUEST_URI}) . ' ' . ($env->{SERVER_PROTOCOL} // '') : '-';
        my $text = sprintf '%s - - [%s] "%s" %d %d', $c->{address} // '-', $self->{log_time}, $line, $status, $bytes;
        $text .= sprintf ' "%s" "%s"', map { $escape->($env->{$_}) } qw(HTTP_REFERER HTTP_USER_AGENT) if $self->{options}{access_log_format} ne 'common';
        syswrite $self->{access_log}, "$text\n";
        return;
    }

    # exit() inside the application: its client gets 500 if nothing was sent yet.
    END {
        if ($calling && $calling->[0]{pid} == $$) {
            my ($self, $c) = @$calling;
            local ($?, $@, $!);
            if ($c->{fh} && !$c->{complete}) {
                Oribi::Pure::say_log(error => '%s: the application called exit', line_of($c));
                $self->fail($c);
            }
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
        $worker->write_content($c, $content // '');
        $worker->flush($c);
        $worker->turn(1) while $c->{fh} && length $c->{out} > $worker->{options}{response_memory_max};
        die "the client has gone\n" if !$c->{fh};
        return 1;
    }

    sub close {
        my ($self) = @_;
        return if $self->{closed}++ || $self->{pid} != $$;
        $self->{worker}->end_content($self->{conn}) if $self->{conn}{fh};
        return 1;
    }
}

# The value of psgix.io: the client's socket, once somebody looks at it.
package Oribi::Pure::Socket 0.100 {
    sub TIESCALAR { my ($class, $c) = @_; return bless { conn => $c }, $class }
    sub STORE { my ($self, $value) = @_; $self->{value} = $value; return }

    sub FETCH {
        my ($self) = @_;
        return $self->{value} if exists $self->{value};
        my $c = $self->{conn};
        my $fh = $c->{fh} or return undef;    ## no critic: a list would be no value
        return $fh if $c->{looked_at}++;
        my $class = $c->{listener}{path} ? 'IO::Socket::UNIX' : ($c->{address} // '') =~ /:/ ? 'IO::Socket::IP' : 'IO::Socket::INET';
        bless $fh, eval "require $class; 1" ? $class : 'IO::Handle';
        $fh->ungetc(ord) for reverse split //, $c->{in};    # read() gives it back; sysread() does not see it
        return $fh;
    }
}

# --- processes --------------------------------------------------------------------------------------------------------

# The supervisor runs no code of the application. A generation is one mold, which has loaded the application, and its
# workers; the next one is started beside it at a reload, and takes over once its workers have been forked. A process
# notices the end of its parent by the end of a pipe. Without fork, one process serves.
package Oribi::Pure::Processes 0.100 {
    use Config ();
    use Errno qw(EINTR);
    use POSIX ();
    use Socket ();

    use constant { QUICK_DEATH => 1, FIRST_FD => 3 };

    sub new {
        my ($class, $settings, $app) = @_;
        my $options = $settings->options;
        return bless { settings => $settings, options => $options, app => $app, count => $options->{workers}, signals => {}, generation => 0 }, $class;
    }

    sub can_fork { return $^O ne 'MSWin32' && $Config::Config{d_fork} }

    # --- sockets ---

    # Windows has no fcntl for sockets.
    sub unblock {
        my ($fh) = @_;
        my $on = pack 'L', 1;
        return ioctl $fh, 0x8004667e, $on if $^O eq 'MSWin32';
        return IO::Handle::blocking($fh, 0);
    }

    # Numeric host and port of a packed address; of a mapped IPv4 address that of IPv4.
    sub address_of {
        my ($packed) = @_;
        my ($error, $host, $port) = Socket::getnameinfo($packed, Socket::NI_NUMERICHOST() | Socket::NI_NUMERICSERV());
        return if $error;
        $host =~ s/\A::ffff:(?=[0-9.]+\z)//;
        $host =~ s/%.*//;
        return ($host, $port);
    }

    # { fh, host, port or path, shown } of an address as `bind` has it.
    sub open_listener {
        my ($self, $text) = @_;
        my ($address, $query) = split /\?/, $text, 2;
        my %given = map { my ($key, $value) = split /=/, $_, 2; $key => $value // '' } split /&/, $query // '';
        my $is_path = $address =~ s{\Aunix://}{} || $address =~ m{\A[^:]*/(?!/)};
        my @known = $is_path ? qw(umask mode backlog) : qw(backlog ipv6only);
        for my $key (sort keys %given) {
            die qq{address "$text": Oribi::Pure has no "$key" (known: @known)} . "\n" if !grep { $key eq $_ } @known;
        }
        my $backlog = $given{backlog} // $self->{options}{backlog};
        my $listener
            = $address =~ m{\Afd://([0-9]+)\z} ? inherited($1)
            : $is_path ? unix_listener($address, $given{mode} ? 0777 & ~oct $given{mode} : oct($given{umask} // 0))
            : $self->tcp_listener($text, $address =~ s{\Atcp://}{}r, $given{ipv6only} // '');
        listen $listener->{fh}, $backlog || Socket::SOMAXCONN() or die "cannot listen on $text: $!\n";
        unblock($listener->{fh});
        return $listener;
    }

    sub inherited {
        my ($fd) = @_;
        open my $fh, '+<&=', $fd or die "cannot listen on fd://$fd: $!\n";
        my $name = getsockname $fh or die "cannot listen on fd://$fd: $!\n";
        return { fh => $fh, path => "fd://$fd", host => 'localhost', shown => "fd://$fd" } if Socket::sockaddr_family($name) == eval { Socket::AF_UNIX() } // -1;
        my ($host, $port) = address_of($name);
        return { fh => $fh, host => $host, port => $port, shown => "tcp://$host:$port" };
    }

    sub unix_listener {
        my ($path, $umask) = @_;
        my $name = eval { Socket::pack_sockaddr_un($path) } or die "cannot listen on $path: this system has no unix sockets\n";
        socket my $fh, Socket::AF_UNIX(), Socket::SOCK_STREAM(), 0 or die "cannot listen on $path: $!\n";
        if (-S $path) {
            socket my $probe, Socket::AF_UNIX(), Socket::SOCK_STREAM(), 0;
            die "cannot listen on $path: another server listens there\n" if connect $probe, $name;
            unlink $path;
        }
        my $before = umask $umask;
        my $bound = bind $fh, $name;
        my $error = $!;
        umask $before;
        die "cannot listen on $path: $error\n" if !$bound;
        return { fh => $fh, path => $path, inode => (stat $path)[1], host => 'localhost', shown => "unix://$path" };
    }

    sub tcp_listener {
        my ($self, $text, $address, $v6only) = @_;
        $address = ":$address" if $address =~ /\A[0-9]+\z/;
        my ($host, $port) = $address =~ /\A(?:\[([^\]]*)\]|[^:\/\[]*):[0-9]+\z/ ? $address =~ /\A\[?(.*?)\]?:([0-9]+)\z/ : ();
        die qq{address "$text" must be host:port, with brackets around an IPv6 address\n} if !defined $port;
        my ($error, @found) = Socket::getaddrinfo($host eq '' ? '0.0.0.0' : $host, $port, { socktype => Socket::SOCK_STREAM(), flags => Socket::AI_PASSIVE() });
        die "cannot listen on $text: $error\n" if $error;
        my $info = $found[0];
        socket my $fh, $info->{family}, Socket::SOCK_STREAM(), 0 or die "cannot listen on $text: $!\n";
        # On Windows this option lets two servers share a port.
        setsockopt $fh, Socket::SOL_SOCKET(), Socket::SO_REUSEADDR(), 1 if $^O ne 'MSWin32';
        setsockopt $fh, Socket::SOL_SOCKET(), Socket::SO_REUSEPORT(), 1 if $self->{options}{reuse_port};
        if ($info->{family} != Socket::AF_INET()) {
            eval { setsockopt $fh, Socket::IPPROTO_IPV6(), Socket::IPV6_V6ONLY(), $host eq '::' && $v6only ne 'on' ? 0 : 1 };
        }
        bind $fh, $info->{addr} or die "cannot listen on $text: $!\n";
        ($host, $port) = address_of(getsockname $fh);
        return { fh => $fh, host => $host, port => $port, shown => 'tcp://' . ($host =~ /:/ ? "[$host]" : $host) . ":$port" };
    }

    # Sockets of start_server (SERVER_STARTER_PORT) and systemd (LISTEN_FDS) come first.
    sub open_listeners {
        my ($self) = @_;
        my @ready = map { /=([0-9]+)\z/ ? "fd://$1" : () } split /;/, delete $ENV{SERVER_STARTER_PORT} // '';
        my ($fds, $for) = delete @ENV{qw(LISTEN_FDS LISTEN_PID)};
        push @ready, map { 'fd://' . ($_ + FIRST_FD) } 0 .. $fds - 1 if $fds && ($for // 0) == $$;
        my @listeners = map { { %$_ } } @{ $self->{settings}{sockets} };
        push @listeners, map { $self->open_listener($_) } @ready ? @ready : @listeners ? () : $self->{settings}->addresses;
        $self->{owner} = $$;
        return $self->{listeners} = \@listeners;
    }

    sub close_listeners {
        my ($self) = @_;
        for my $listener (@{ $self->{listeners} }) {
            close $listener->{fh};
            unlink $listener->{path} if $listener->{inode} && ((stat $listener->{path})[1] // 0) == $listener->{inode};
        }
        return;
    }

    # --- the start ---

    # Returns the exit code.
    sub run {
        my ($self) = @_;
        my $options = $self->{options};
        $self->{settings}->check_app($self->{app});
        $self->watch(qw(HUP USR1 TTIN TTOU));    # whoever can connect may send one, which would end us
        $self->open_listeners;
        my $alone = $options->{single} || !can_fork();
        my $tell = $options->{daemonize} ? $self->to_background : undef;
        $self->open_logs;
        $self->write_pid_file;
        my $code = $alone ? $self->serve_alone($tell) : $self->supervise($tell);
        $self->close_listeners;
        unlink $options->{pid_file} if length($options->{pid_file}) && $self->{owner} == $$;
        return $code;
    }

    sub open_logs {
        my ($self) = @_;
        my ($access, $error) = @{ $self->{options} }{qw(access_log error_log)};
        if ($error ne '-') {
            open STDERR, '>>', $error or die "error_log $error: $!\n";
        }
        $self->{access} = undef;
        return if $access eq 'off';
        open $self->{access}, $access eq '-' ? '>&' : '>>', $access eq '-' ? \*STDOUT : $access or die "access_log $access: $!\n";
        return;
    }

    sub write_pid_file {
        my ($self) = @_;
        my $file = $self->{options}{pid_file};
        return if !length $file;
        open my $fh, '>', $file or die "pid_file $file: $!\n";
        print {$fh} "$$\n";
        close $fh or die "pid_file $file: $!\n";
        return;
    }

    # The parent ends when the server is up, or with 1 when it does not get there. Gives the pipe to tell it.
    sub to_background {
        my ($self) = @_;
        die "daemonize: there is no fork here\n" if !can_fork();
        pipe my $read, my $write or die "daemonize: $!\n";
        my $pid = fork // die "daemonize: $!\n";
        if ($pid) {
            close $write;
            POSIX::_exit(defined readline $read ? 0 : 1);
        }
        close $read;
        POSIX::setsid();
        $self->{owner} = $$;
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', '/dev/null' if $self->{options}{access_log} ne '-';
        return $write;
    }

    sub announce {
        my ($self, $tell, $what) = @_;
        my ($first) = @{ $self->{listeners} };
        Oribi::Pure::say_log(info => 'Oribi::Pure %s listening on %s, %s', $Oribi::Pure::VERSION, join(', ', map { $_->{shown} } @{ $self->{listeners} }), $what);
        my $hook = $self->{settings}{hooks}{server_ready};
        $hook->({ host => $first->{host}, port => $first->{port}, proto => 'http', server_software => 'Oribi::Pure' }) if $hook;
        syswrite $tell, "up\n" if $tell;
        close $tell if $tell;
        return;
    }

    # Remembers signals until the loop looks; a child does not hear of its parent's.
    sub watch {
        my ($self, @names) = @_;
        $self->{signals} = {} if ($self->{watcher} // 0) != $$;
        $self->{watcher} = $$;
        for my $name (grep { exists $SIG{$_} } @names) {
            $SIG{$name} = $name eq 'CHLD' ? sub { } : sub { $self->{signals}{$name}++ };    # the end of a child only wakes
        }
        return;
    }

    sub take_signals {
        my ($self) = @_;
        my $signals = $self->{signals};
        return map { my $name = $_; ($name) x delete $signals->{$name} } sort keys %$signals;
    }

    # --- one process ---

    sub serve_alone {
        my ($self, $tell) = @_;
        my $app = $self->{settings}->load($self->{app});
        $self->announce($tell, 'one process');
        return $self->serve($app, undef, 0);
    }

    # The life of a worker, or of the one process. Returns the exit code.
    sub serve {
        my ($self, $app, $alive, $index) = @_;
        my $hooks = $self->{settings}{hooks};
        $self->watch(qw(TERM QUIT INT USR1 HUP));
        my $stops = 0;
        my $on_signal = sub {
            my ($worker) = @_;
            for my $name ($self->take_signals) {
                if ($name eq 'USR1') { $self->open_logs; $worker->{access_log} = $self->{access} }
                elsif ($name eq 'HUP') { Oribi::Pure::say_log(warning => 'a reload needs several processes: start the server anew') if !$alive }
                elsif ($name eq 'INT' || $stops++ && !$alive) { $worker->{draining} = $worker->{drain_deadline} = 1 }
                else { $worker->{stops} = $worker->{told} = 1 }
            }
        };
        hook($hooks->{after_fork}, $index, $self->{generation});
        my $worker = Oribi::Pure::Worker->new(
            options => $self->{options}, app => $app, listeners => $self->{listeners}, alive => $alive, multiprocess => $self->{count} > 1 && $alive,
            access_log => $self->{access}, on_signal => $on_signal, signals => $self->{signals}, on_drain => $self->{leaving} && sub { syswrite $self->{leaving}, pack 'N', $$ },
        );
        hook($hooks->{after_worker_ready}, $index, $self->{generation});
        $worker->run;
        hook($hooks->{before_worker_exit}, $self, $app, $index, $self->{generation});
        return 0;
    }

    sub hook {
        my ($code, @arguments) = @_;
        return if !$code || eval { $code->(@arguments); 1 };
        Oribi::Pure::say_log(error => 'a hook died: %s', $@);
        return;
    }

    # --- the mold ---

    # Loads the application, keeps as many workers as there should be, and ends them. Ends the process.
    sub mold {
        my ($self, $ready, $alive) = @_;
        my ($settings, $options) = @$self{qw(settings options)};
        $self->watch(qw(TERM QUIT INT TTIN TTOU USR1 HUP CHLD));
        my $load = sub { $settings->load($self->{app}) };
        my $app = $options->{preload} ? eval { $load->() } : $load;
        if (!$app) {
            syswrite $ready, 'failed ' . ($@ || "no application\n");
            exit 1;
        }
        pipe my $hold, my $held or die "pipe: $!\n";    # the workers see the end of it when this process ends
        pipe my $leavers, my $leaving or die "pipe: $!\n";    # a worker that will end is replaced at once
        @$self{qw(workers hold held load leaving)} = ({}, $hold, $held, $app, $leaving);
        my ($stops, $deadline, $next) = (0, 0, 0);
        my $told = 0;
        while (1) {
            my $now = Oribi::Pure::Worker::clock();
            for my $name ($self->take_signals) {
                if ($name eq 'TTIN') { $self->{count}++ }
                elsif ($name eq 'TTOU') { $self->{count}-- if $self->{count} > 1 }
                elsif ($name eq 'USR1') { $self->signal_workers('USR1') }
                elsif ($name ne 'HUP') {
                    my $is_last = $name eq 'INT';    # a second TERM may be one to the whole group of processes
                    $stops = 1;
                    $deadline = $now + ($is_last ? 0 : $options->{shutdown_timeout} + 1);
                    $self->signal_workers($is_last ? 'KILL' : 'TERM');
                }
            }
            $next = $self->reap_workers($now, $stops) // $next;
            my $workers = $self->{workers};
            exit 0 if $stops && !%$workers;
            $self->signal_workers('KILL') if $stops && $now >= $deadline;
            if (!$stops) {
                my @serving = grep { !$workers->{$_}{leaves} } sort { $workers->{$a}{index} <=> $workers->{$b}{index} } keys %$workers;
                for my $pid (splice @serving, $self->{count} < @serving ? $self->{count} : @serving) {
                    $workers->{$pid}{leaves} = 1;
                    kill TERM => $pid;
                }
                $self->fork_worker($now) while $now >= $next && !$self->{forks_fail} && (grep { !$_->{leaves} } values %$workers) < $self->{count};
                $told = syswrite $ready, "ready\n" if !$told && %$workers;
            }
            my $watched = '';
            vec($watched, fileno $_, 1) = 1 for $leavers, $stops ? () : $alive;
            my $count = select $watched, undef, undef, $stops ? 0.05 : 1;
            if ($count > 0 && vec $watched, fileno $leavers, 1) {
                sysread $leavers, my $pids, 4 * 512;
                $workers->{$_}{leaves} = 1 for grep { $workers->{$_} } unpack 'N*', $pids;
            }
            if ($count > 0 && !$stops && vec $watched, fileno $alive, 1) {
                $stops = 1;    # the supervisor has ended
                $deadline = $now + $options->{shutdown_timeout} + 1;
                $self->signal_workers('TERM');
            }
        }
    }

    sub signal_workers { my ($self, $name) = @_; kill $name => keys %{ $self->{workers} }; return }

    sub fork_worker {
        my ($self, $now) = @_;
        my %used = map { $_->{index} => 1 } values %{ $self->{workers} };
        my ($index) = grep { !$used{$_} } 0 .. keys %used;
        my $settings = $self->{settings};
        hook($settings->{hooks}{before_fork}, $index);
        my $pid = fork;
        if (!defined $pid) {
            Oribi::Pure::say_log(error => 'a worker cannot be forked: %s', $!);
            return $self->{forks_fail} = 1;
        }
        if ($pid) {
            $self->{workers}{$pid} = { index => $index, since => $now };
            return;
        }
        $SIG{CHLD} = 'DEFAULT' if exists $SIG{CHLD};
        srand;    # otherwise all workers draw the same numbers
        close delete $self->{held};
        my $app = $self->{options}{preload} ? $self->{load} : eval { $self->{load}->() };
        if (!$app) {
            Oribi::Pure::say_log(error => '%s', $@);
            exit 1;
        }
        exit $self->serve($app, $self->{hold}, $index);
    }

    # Returns when the next worker may be started, if that is not at once.
    sub reap_workers {
        my ($self, $now, $stops) = @_;
        my $next;
        while ((my $pid = waitpid -1, POSIX::WNOHANG()) > 0) {
            my $worker = delete $self->{workers}{$pid} or next;
            my $status = $?;
            my $how = $status & 127 ? 'signal ' . ($status & 127) : 'exit code ' . ($status >> 8);
            hook($self->{settings}{hooks}{on_worker_exit}, $pid, $status, $how, $worker->{index});
            Oribi::Pure::say_log($status ? 'error' : 'info', 'worker %d (pid %d) ended: %s', $worker->{index}, $pid, $how) if $status || !$stops;
            my $pause = $status && $now - $worker->{since} < QUICK_DEATH ? $self->{options}{err_respawn_interval} : 0;
            $next = $now + $pause;
            delete $self->{forks_fail};
        }
        return $next;
    }

    # --- the supervisor ---

    sub supervise {
        my ($self, $tell) = @_;
        pipe my $alive, my $held or die "pipe: $!\n";
        @$self{qw(alive held molds)} = ($alive, $held, {});
        $self->watch(qw(TERM QUIT INT HUP TTIN TTOU USR1 USR2 CHLD));
        $self->start_mold;
        my ($stops, $retry) = (0, 0);
        while (1) {
            my $now = Oribi::Pure::Worker::clock();
            for my $name ($self->take_signals) {
                if ($name eq 'TTIN' || $name eq 'TTOU') { $self->change_count($name) }
                elsif ($name eq 'USR1') { $self->open_logs; $self->signal_molds('USR1') }
                elsif ($name eq 'USR2') { Oribi::Pure::say_log(warning => 'Oribi::Pure has no upgrade: restart it by start_server or systemd, or take Oribi') }
                elsif ($name eq 'HUP') { $self->reload if !$stops }
                else {
                    $self->signal_molds($name eq 'INT' || $stops ? 'INT' : 'TERM');
                    Oribi::Pure::say_log(info => 'stopping') if !$stops;
                    $stops = 1;
                }
            }
            my @dead = $self->reap_molds;
            return $self->{code} // 0 if $stops && !%{ $self->{molds} };
            for my $mold (@dead) {
                next if $stops || $mold->{leaves};
                if (!$mold->{ready}) {
                    my ($reason) = $mold->{said} =~ /\Afailed (.*)/s;
                    chomp($reason = $reason // 'the process that loads the application ended');
                    die "$reason\n" if !$self->{up};
                    Oribi::Pure::say_log(error => 'reload failed, the old generation goes on serving: %s', $reason);
                    next if grep { $_->{ready} } values %{ $self->{molds} };
                }
                $retry = $now + $self->{options}{err_respawn_interval};
            }
            if ($retry && $now >= $retry) {
                $retry = 0;
                $self->start_mold;
            }
            $self->hear_molds($tell);
        }
    }

    sub signal_molds {
        my ($self, $name) = @_;
        kill $name => keys %{ $self->{molds} };
        return;
    }

    sub change_count {
        my ($self, $name) = @_;
        return if $name eq 'TTOU' && $self->{count} <= 1;
        $self->{count} += $name eq 'TTIN' ? 1 : -1;
        $self->signal_molds($name);
        Oribi::Pure::say_log(info => '%d workers from now on', $self->{count});
        return;
    }

    sub reload {
        my ($self) = @_;
        return if grep { !$_->{ready} } values %{ $self->{molds} };
        Oribi::Pure::say_log(info => 'reload');
        hook($self->{settings}{hooks}{before_reload});
        $self->start_mold;
        return;
    }

    sub start_mold {
        my ($self) = @_;
        pipe my $read, my $write or die "pipe: $!\n";
        $self->{generation}++;
        my $pid = fork // die "fork: $!\n";
        if (!$pid) {
            close $_ for delete $self->{held}, $read, map { $_->{read} } values %{ delete $self->{molds} };
            $self->mold($write, $self->{alive});
        }
        close $write;
        $self->{molds}{$pid} = { pid => $pid, read => $read, said => '', generation => $self->{generation} };
        return;
    }

    sub reap_molds {
        my ($self) = @_;
        my @dead;
        while ((my $pid = waitpid -1, POSIX::WNOHANG()) > 0) {
            my $mold = delete $self->{molds}{$pid} or next;
            sysread $mold->{read}, $mold->{said}, 4096, length $mold->{said} if !$mold->{ready};
            $mold->{ready} ||= $mold->{said} =~ /ready/;
            Oribi::Pure::say_log(error => 'the mold (pid %d) ended', $pid) if $mold->{ready} && !$mold->{leaves} && $?;
            push @dead, $mold;
        }
        return @dead;
    }

    # Waits for what molds tell, a second at most. A new one that serves takes over.
    sub hear_molds {
        my ($self, $tell) = @_;
        my @waiting = grep { !$_->{ready} } values %{ $self->{molds} };
        my $watched = '';
        vec($watched, fileno $_->{read}, 1) = 1 for @waiting;
        my $count = select $watched, undef, undef, @waiting ? 0.05 : 1;
        for my $mold ($count > 0 ? grep { vec $watched, fileno $_->{read}, 1 } @waiting : ()) {
            my $n = sysread $mold->{read}, $mold->{said}, 4096, length $mold->{said};
            next if !$n || $mold->{said} !~ /ready/;
            $mold->{ready} = 1;
            for my $old (grep { $_ != $mold && $_->{ready} } values %{ $self->{molds} }) {
                $old->{leaves} = 1;
                kill TERM => $old->{pid};
            }
            if (!$self->{up}++) { $self->announce($tell, "$self->{count} workers") }
            else { Oribi::Pure::say_log(info => 'generation %d serves', $mold->{generation}) }
        }
        return;
    }
}

# --- settings ---------------------------------------------------------------------------------------------------------

# Options by the core's table: names, bounds, defaults and what they mean are those of oribi-psgi. Beside them what only
# Perl can hold: hooks and sockets that listen already.
package Oribi::Pure::Settings 0.100 {
    # Of the table below, in the order of --help; tools/pure-options reads this list.
    my @SERVED = qw(
        bind host port backlog reuse_port health header workers single preload daemonize pid_file shutdown_timeout err_respawn_interval
        head_timeout body_timeout body_rate_min idle_timeout write_timeout target_bytes_max head_bytes_max fields_max body_bytes_max
        body_memory_max response_memory_max buffers_memory_max buffers_file_max connections_max queue_max keepalive_requests_max
        underscores_allow strict_target connect_allow requests_max requests_jitter age_max access_log access_log_format error_log quiet
        verbose env chdir include require eval child_exit early_hints server_header config check print_config version help
    );

    # What the supervisor's own package says of everything else.
    my $OTHERS_SAY = 'Oribi::Pure cannot do this; the distribution Oribi can, which needs a C compiler (Debian: package oribi-psgi)';

    # Where select takes no descriptor above its set (https://perldoc.perl.org/perlport#select).
    my $SELECT_MAX = $^O eq 'linux' ? 1_000_000 : $^O eq 'MSWin32' ? 60 : 1000;

    my %HOOK = map { $_ => $_ } qw(before_fork after_fork after_worker_ready before_worker_exit before_reload on_worker_exit server_ready);
    @HOOK{qw(child_exit after_exit)} = qw(before_worker_exit on_worker_exit);
    my %RANK = (default => 0, launcher => 1, environment => 2, file => 3, command => 4);

    # --- option table (written by tools/pure-options) ---
    # name|type|least|most|default|flag|argument|aliases|choices|help
    my $SERVED_ROWS = <<'SERVED';
bind|LIST|0|0||b|ADDR|listen l||address to listen on; repeatable: host:port, :port, [::1]:port, [::]:port for every address, tcp://host:port, unix:///path?umask=007, /path, fd://3, tls://host:port?certificate=FILE&key=FILE. ?frontend=on: HTTP/2 without TLS. ?proxy=on: expect a PROXY header from trusted proxies
host|TEXT|0|0||o|HOST|||host to listen on, without bind
port|COUNT|0|65535|9292|p|PORT|||port to listen on, without bind; 0: any free port
backlog|COUNT|0|2147483647|0||N|||connections that may wait to be accepted; 0: the system's maximum
reuse_port|BOOL|0|0|off|||||set SO_REUSEPORT, so that another server may listen on the same address
health|TEXT|0|0|||PATH|||path that answers 200 while the server serves, 503 once a stop begins, without the application
header|LIST|0|0|||NAME:TEXT|||header for every answer that does not have it; repeatable: X-Frame-Options:DENY
workers|COUNT|0|512|auto|w|N|max_workers||worker processes; auto or 0: one for each CPU that this process may use
single|BOOL|0|0|off|||||one process that serves by itself, without forking; a reload or upgrade starts the program anew under its pid
preload|BOOL|0|0|on|||preload_app||load the application before the workers are forked, so that they share its memory
daemonize|BOOL|0|0|off|D||||go to the background once the server is up
pid_file|TEXT|0|0||P|FILE|pid||write the supervisor's process id to this file; removed at the end
shutdown_timeout|TIME|0|86400000|30s||TIME|||time for a graceful stop; what is left then is killed
err_respawn_interval|TIME|0|86400000|1s||TIME|||pause before a failed start is tried again
head_timeout|TIME|1|86400000|10s||TIME|read_timeout||time for a whole request head, from its first byte on; then 408
body_timeout|TIME|1|86400000|10s||TIME|||time to wait for the next bytes of a request body; then 408
body_rate_min|SIZE|0|1073741824|256||SIZE|||least bytes per second of a request body, checked after body_timeout; 0: any
idle_timeout|TIME|1|86400000|75s||TIME|keepalive_timeout||time that a connection may rest between two requests
write_timeout|TIME|1|86400000|30s||TIME|||time without the client taking a byte of an answer; then its connection is closed
target_bytes_max|SIZE|64|1048576|16K||SIZE|||longest request target; beyond it 414
head_bytes_max|SIZE|1024|1048576|64K||SIZE|||longest request head; beyond it 431
fields_max|COUNT|1|256|100||N|||most header fields of a request; beyond it 431
body_bytes_max|SIZE|0|1099511627776|1G||SIZE|||longest request body; beyond it 413
body_memory_max|SIZE|1024|1073741824|16M||SIZE|||longer request bodies go to an unlinked file in TMPDIR; above 128K also when three quarters of buffers_memory_max are in use
response_memory_max|SIZE|1024|1073741824|1M||SIZE|||more unsent output of one connection goes to an unlinked file
buffers_memory_max|SIZE|0|1099511627776|64M||SIZE|||bodies and unsent output that one worker keeps in memory; more goes to unlinked files. 0: no limit
buffers_file_max|SIZE|0|1099511627776|16G||SIZE|||bodies and unsent output that one worker keeps in unlinked files; beyond it requests get 503 and answers are cut. 0: no limit
connections_max|COUNT|1|1000000|10000||N|max_keepalive_connection||open connections of one worker. A further one replaces the longest idle connection, then the oldest unfinished request head, else it waits in the backlog. The soft limit of descriptors is raised as needed
queue_max|COUNT|0|1000000|0||N|||complete requests that may wait in one worker; beyond it 503 with Retry-After. 0: no limit
keepalive_requests_max|COUNT|0|2147483647|0||N|max_keepalive_reqs||requests on one connection; 1: no keep-alive, 0: no limit
underscores_allow|BOOL|0|0|off|||||keep request fields with an underscore in their name, which look like others in the environment
strict_target|BOOL|0|0|off|||||refuse request targets with bytes above 127 or any of \^`{|} unescaped, as browsers send them
connect_allow|BOOL|0|0|off|||||pass CONNECT to the application instead of answering 501
requests_max|RANGE|0|2147483647|0||N[..M]|max_requests max_request_per_child max_reqs_per_child||replace a worker after so many requests; N..M: each worker draws its number. 0: never
requests_jitter|COUNT|0|2147483647|0||N|||add up to so many requests to requests_max, drawn for each worker
age_max|TIME|0|31536000000|0||TIME|||replace a worker that has served for longer, or up to an eighth longer; 0: never
access_log|TEXT|0|0|||FILE|||one line for each answer; -: standard output, off: none
access_log_format|TEXT|0|0|combined||FORMAT|||common, combined, json, dev, or a format of your own in the manner of Apache ('%h %t "%r" %>s %b') or nginx ('$remote_addr "$request" $status')
error_log|TEXT|0|0|-||FILE|||file for standard error of the server and the application; -: leave it
quiet|BOOL|0|0|off|q||||log warnings and errors only
verbose|BOOL|0|0|off|v||||log debugging lines too
env|TEXT|0|0||E|NAME|environment||environment that the application sees; production and deployment change defaults
chdir|TEXT|0|0|||DIR|||directory to change to before anything else is looked for; in the configuration file, before what it names
include|LIST|0|0||I|DIR|||directory to search libraries in; repeatable
require|LIST|0|0||r|NAME|modules M||library or module to load before the application; repeatable
eval|TEXT|0|0||e|CODE|||application given as source text instead of a file
child_exit|TEXT|0|0|||CODE|||source text of a subroutine that each worker calls before it ends
early_hints|BOOL|0|0|off|||||offer rack.early_hints or psgix.informational for 103 and other interim answers; nginx before 1.29 does not understand them
server_header|TEXT|0|0|||TEXT|||value of the Server field, unless the application sets one; not set: none
config|TEXT|0|0||C|FILE|config_file||configuration file; the command line wins over it
check|BOOL|0|0|off|||||load configuration and application, say whether that worked, and end; the command check also reports risks
print_config|BOOL|0|0|off|||||print every option with its value and end
version|BOOL|0|0|off|||||print the version and end
help|BOOL|0|0|off|h||||print the most used options and end; --help all prints every option
SERVED
    # name|type|flag|aliases
    my $OTHER_ROWS = <<'OTHERS';
trusted_proxies|LIST||
proxy_protocol|BOOL||
certificate|LIST||
certificate_password_command|TEXT||
acme|LIST||
acme_terms|BOOL||
acme_directory|TEXT||
acme_dir|TEXT||
acme_command|TEXT||
acme_user|TEXT||
client_ca|TEXT||
client_verify|TEXT||
tls_min|TEXT||
http2|BOOL||
hsts|COUNT||
https_redirect|COUNT||
frontends|COUNT||
frontend_user|TEXT||
frontend_sandbox|BOOL||
static|LIST||
sendfile_root|LIST||
sendfile_map|LIST||
compress|TEXT||
compress_level|COUNT||
compress_min|SIZE||
compress_types|LIST||
compress_private|BOOL||
answer|LIST||
redirect|LIST||
error_page|LIST||
helper|BOOL||
restart_file|TEXT||
user|TEXT||
group|TEXT||
boot_timeout|TIME||
spawn_interval|TIME||
roll_max_unavailable|COUNT||
drain_delay|TIME||
control|TEXT||
status|TEXT||
status_token|TEXT||
agent|TEXT||
metrics_max|COUNT||
call_timeout|TIME|t|
cancel_gone|TEXT||
gone_on|TEXT||
queue_time_max|TIME||
multipart_stream|BOOL||
static_memory_max|SIZE||
static_open_max|COUNT||
memory_max|SIZE||
refork_after|COUNT||
slow_log|TIME||
access_log_skip|LIST||
access_log_sample|COUNT||
request_id|BOOL||
request_id_header|TEXT||
server_timing|BOOL||
error_log_format|TEXT||
warmup|LIST||
dev|BOOL||
watch|LIST||
open|BOOL||
completion|TEXT||
OTHERS
    # --- end of the option table ---

    my (%OPTION, %NAME, @NAMES);
    for my $row (split /\n/, $SERVED_ROWS) {
        my %option;
        @option{qw(name type least most default flag argument aliases choices help)} = split /\|/, $row, 10;
        $OPTION{ $option{name} } = \%option;
        push @NAMES, $option{name};
        $NAME{$_} = $option{name} for $option{name}, split ' ', $option{aliases};
        $NAME{"-$option{flag}"} = $option{name} if length $option{flag};
    }
    for my $row (split /\n/, $OTHER_ROWS) {
        my %option = (refused => 1);
        @option{qw(name type flag aliases)} = split /\|/, $row, 4;
        $OPTION{ $option{name} } = \%option;
        $NAME{$_} = $option{name} for $option{name}, split ' ', $option{aliases};
        $NAME{"-$option{flag}"} = $option{name} if length $option{flag};
    }
    $NAME{$_} = 'eval' for qw(-e);
    $NAME{"-$_"} //= $_ for grep { length == 1 } keys %NAME;

    sub find { my ($name) = @_; return $OPTION{ $NAME{$name} // '' } }
    sub names { return @NAMES }

    sub new {
        my ($class) = @_;
        my %value = map { $_ => $OPTION{$_}{type} eq 'LIST' ? [] : $OPTION{$_}{default} } @NAMES;
        my $self = bless { value => \%value, rank => {}, hooks => {}, hook_rank => {}, sockets => [] }, $class;
        $self->set(environment => port => $ENV{PORT}) if length($ENV{PORT} // '');
        $self->set(environment => env => $ENV{PLACK_ENV}) if length($ENV{PLACK_ENV} // '');
        return $self;
    }

    sub set_all {
        my ($self, $source, %given) = @_;
        delete @given{qw(bind listen host port socket)} if defined $given{listen_sock};
        for my $name (sort keys %given) {
            $self->set($source, $name, $given{$name}) if defined $given{$name};
        }
        return $self;
    }

    # Dies with one line for an unknown name or a bad value. Lists grow within a source; a stronger source replaces
    # them.
    sub set {
        my ($self, $source, $name, $value) = @_;
        (my $plain = $name) =~ tr/-/_/;
        return $self->set_hook($source, $plain, $value) if $HOOK{$plain};
        return $self->add_socket($value) if $plain eq 'listen_sock';
        return $self->{builder} = $value if $plain eq 'psgi_app_builder';
        my $option = find($plain) or die "$name: unknown option\n";
        if ($option->{refused}) {
            return if !ref $value && $value =~ /\A(?:off|false|no|0|none|)\z/i;    # it is off here in any case
            die "$name: $OTHERS_SAY\n";
        }
        my ($rank, $key) = ($RANK{$source}, $option->{name});
        my $before = $self->{rank}{$key} // -1;
        return if $before > $rank;
        my @values = map { read_value($option, $name, $_) } ref $value eq 'ARRAY' ? @$value : $value;
        if ($option->{type} eq 'LIST') {
            $self->{value}{$key} = [] if $before < $rank;
            push @{ $self->{value}{$key} }, @values;
        } else {
            die "$name: takes one value\n" if @values != 1;
            $self->{value}{$key} = $values[0];
        }
        $self->{rank}{$key} = $rank;
        return;
    }

    my %SIZE = ('' => 1, k => 1 << 10, m => 1 << 20, g => 1 << 30);
    my %TIME = ('' => 1, s => 1, ms => 0.001, m => 60, h => 3600);

    # Strict: what is silently read as something else is found out in production. Gives the text.
    sub read_value {
        my ($option, $name, $text) = @_;
        die "$name: a " . ref($text) . " reference is no value for this option\n" if ref $text && !overload::Method($text, '""');
        $text = "$text";
        my $type = $option->{type};
        if ($type eq 'BOOL') {
            return $text =~ /\A(?:on|true|yes|1)\z/i ? 'on' : $text =~ /\A(?:off|false|no|0|)\z/i ? 'off' : die "$name: must be on or off, not \"$text\"\n";
        }
        if (length $option->{choices}) {
            die "$name: must be one of $option->{choices}, not \"$text\"\n" if !grep { $_ eq $text } split ' ', $option->{choices};
        }
        return $text if $type eq 'TEXT' || $type eq 'LIST';
        return 0 if $option->{name} eq 'workers' && $text eq 'auto';
        my $number = number_of($type, $text) // die "$name: no " . lc($type) . ": \"$text\"\n";
        my $scale = $type eq 'TIME' ? 1000 : 1;
        my $unit = $type eq 'TIME' ? ' ms' : '';
        die "$name: at least $option->{least}$unit, not \"$text\"\n" if $number * $scale < $option->{least};
        die "$name: at most $option->{most}$unit, not \"$text\"\n" if $option->{most} && $number * $scale > $option->{most};
        return $text;
    }

    # Seconds, bytes or a count; of a range its second number. Undefined for what is none.
    sub number_of {
        my ($type, $text) = @_;
        return $text =~ /\A[0-9]+\z/ ? 0 + $text : undef if $type eq 'COUNT';
        return $text =~ /\A([0-9]+)([kmg]?)\z/i ? $1 * $SIZE{ lc $2 } : undef if $type eq 'SIZE';
        return $text =~ /\A([0-9]+)(?:\.\.([0-9]+))?\z/ && (!defined $2 || $1 && $1 <= $2) ? $2 // $1 : undef if $type eq 'RANGE';
        return undef if $text !~ /\A([0-9]+(?:\.[0-9]+)?)(ms|[smh]?)\z/i;    ## no critic: a list would be no number
        my $seconds = $1 * $TIME{ lc $2 };
        return $seconds && $seconds < 0.001 ? 0.001 : $seconds;
    }

    # Code, or source text of a subroutine as plackup passes it.
    sub set_hook {
        my ($self, $source, $name, $value) = @_;
        my $hook = $HOOK{$name};
        $value = eval $value // die "$name: " . ($@ || 'is no code reference') . "\n" if !ref $value;    ## no critic: what it is for
        die "$name: is no code reference\n" if (Scalar::Util::reftype($value) // '') ne 'CODE';
        return if ($self->{hook_rank}{$hook} // -1) > $RANK{$source};
        @$self{qw(hook_rank hooks)} = ({ %{ $self->{hook_rank} }, $hook => $RANK{$source} }, { %{ $self->{hooks} }, $hook => $value });
        return;
    }

    sub add_socket {
        my ($self, $fh) = @_;
        my $name = getsockname $fh or die "listen_sock: is no open socket\n";
        my ($host, $port) = Oribi::Pure::Processes::address_of($name);
        push @{ $self->{sockets} }, { fh => $fh, host => $host // 'localhost', port => $port, defined $port ? () : (path => 'listen_sock'), shown => 'a socket that was given' };
        Oribi::Pure::Processes::unblock($fh);
        return;
    }

    sub get { my ($self, $name) = @_; return $self->{value}{$name} }
    sub is_on { my ($self, $name) = @_; return $self->{value}{$name} eq 'on' }

    # Folder and configuration file; then no option changes any more.
    sub prepare {
        my ($self) = @_;
        return if $self->{prepared}++;
        $self->enter_dir;
        my $file = $self->get('config');
        $file = 'config/oribi.pl' if !length $file && -e 'config/oribi.pl';
        $self->read_file($file) if length $file;
        $self->{value}{env} = 'development' if !length $self->get('env');
        $ENV{PLACK_ENV} = $self->get('env');
        $self->{value}{access_log} = $self->is_production ? 'off' : '-' if !length $self->get('access_log');
        my $format = $self->get('access_log_format');
        die "access_log_format: Oribi::Pure has common and combined\n" if $format !~ /\A(?:common|combined)\z/;
        @Oribi::Pure::log{qw(quiet verbose)} = map { $self->is_on($_) } qw(quiet verbose);
        $self->options;
        return;
    }

    sub is_production { my ($self) = @_; return $self->get('env') =~ /\A(?:production|deployment)\z/ }

    sub enter_dir {
        my ($self) = @_;
        my $dir = $self->get('chdir');
        return if !length $dir || $self->{entered}++;
        chdir $dir or die "chdir $dir: $!\n";
        return;
    }

    # What the server works with: numbers for numbers, 1 and 0 for switches.
    sub options {
        my ($self) = @_;
        return $self->{options} if $self->{options} && $self->{prepared};
        my %value = %{ $self->{value} };
        for my $option (map { $OPTION{$_} } @NAMES) {
            my $name = $option->{name};
            $value{$name} = $value{$name} eq 'on' ? 1 : 0 if $option->{type} eq 'BOOL';
            $value{$name} = number_of($option->{type}, $value{$name}) // 0 if $option->{type} =~ /\A(?:COUNT|SIZE|TIME)\z/;
        }
        $value{workers} ||= processors();
        $value{early_hints} = 1 if !defined $self->{rank}{early_hints};
        $value{connections_max} = $SELECT_MAX if $value{connections_max} > $SELECT_MAX;
        $value{added} = [map { added_header($_) } @{ $value{header} }];
        delete $value{added} if !@{ $value{added} };
        return $self->{options} = \%value;
    }

    sub processors {
        my $id = { linux => 84, darwin => 58, freebsd => 58, openbsd => 503, netbsd => 1002 }->{$^O} or return 1;
        return eval { POSIX::sysconf($id) } || 1;
    }

    # Names that frame an answer, are the server's to say, or are true of single answers only.
    my $NOT_ADDED = join '|', qw(
        connection content-encoding content-length content-range content-type date keep-alive location server te trailer
        transfer-encoding upgrade proxy-connection etag last-modified allow vary
    );

    sub added_header {
        my ($line) = @_;
        my ($name, $value) = $line =~ /\A([$Oribi::Pure::Head::TOKEN]+):[ \t]*(.*[^ \t])\z/s or die "header \"$line\" needs to be NAME:TEXT, as X-Frame-Options:DENY\n";
        die "header \"$line\" has a name that the server or the application alone sets\n" if $name =~ /\A(?:$NOT_ADDED)\z/i;
        die "header \"$line\" has a value that no header may have\n" if $value =~ /[^$Oribi::Pure::Head::TEXT]/;
        return ($name, $value);
    }

    sub addresses {
        my ($self) = @_;
        my @bind = @{ $self->get('bind') };
        my ($host, $port) = map { $self->get($_) } qw(host port);
        $host = $self->is_production ? '0.0.0.0' : '127.0.0.1' if !length $host;
        return @bind ? @bind : ($host =~ /:/ && $host !~ /\A\[/ ? "[$host]" : $host) . ":$port";
    }

    # A Perl file that returns a reference to a hash; every option is a word too, before the hash, but Perl's own
    # functions.
    sub read_file {
        my ($self, $file) = @_;
        my $path = File::Spec->rel2abs($file);
        die "config file $file: cannot be read: $!\n" if !open my $fh, '<', $path;
        my ($hash, @mistakes, $called);
        {
            local $Oribi::Pure::Words::set = sub {
                my ($name, @values) = @_;
                my (undef, undef, $line) = caller 1;
                $called = 1;
                eval { $self->set(file => $name, @values == 1 ? $values[0] : \@values); 1 } or push @mistakes, "$file:$line: $@";
                return {};
            };
            local ($@, $!);
            $hash = Oribi::Pure::Words::read($path);
            push @mistakes, "config file $file: $@" if $@;
        }
        die join '', @mistakes if @mistakes;
        die "config file $file: does not return a hash reference\n" if ref $hash ne 'HASH' && !$called;
        for my $name (sort { ($b eq 'chdir') <=> ($a eq 'chdir') || $a cmp $b } ref $hash eq 'HASH' ? keys %$hash : ()) {
            eval { $self->set(file => $name, $hash->{$name}) if defined $hash->{$name}; $self->enter_dir if $name eq 'chdir'; 1 } or push @mistakes, "$file: $@";
        }
        die join '', @mistakes if @mistakes;
        return;
    }

    package    # of a file that is read here alone
        Oribi::Pure::Words {
        our $set;
        for my $name (grep { !/\A(?:bind|chdir|eval|require)\z/ } keys %{ { %OPTION, %HOOK } }) {
            no strict 'refs';    ## no critic: the file calls it by its name
            *$name = sub { $set->($name, @_) };
        }
        sub read { return do $_[0] }
    }

    # --- the application ---

    # Tells the operator of a wrong name before anything is started.
    sub check_app {
        my ($self, $app) = @_;
        return if ref $app || $self->{builder} || length $self->get('eval');
        my $file = $app // $self->{app} // 'app.psgi';
        die "$file: no such file\n" if !-e $file;
        die "$file: is a directory\n" if -d _;
        return;
    }

    # Gives the application's code; dies with one line.
    sub load {
        my ($self, $app) = @_;
        return $app if ref $app;
        return $self->{builder}->() if $self->{builder};
        $ENV{PLACK_ENV} = $self->get('env');
        unshift @INC, @{ $self->get('include') };
        for my $module (@{ $self->get('require') }) {
            my ($name, @import) = split /[=,]/, $module;
            die "-M $name: is no name of a module\n" if $name !~ /\A\w+(?:::\w+)*\z/;
            eval "package main; require $name; $name->import(\@import); 1" or die "module $name: " . first_line($@) . "\n";
        }
        my $source = $self->get('eval');
        return from_source($source) if length $source;
        return from_file($app // $self->{app} // 'app.psgi');
    }

    sub first_line { my ($line) = grep {/\S/} split /\n/, "$_[0]"; return $line // 'unknown error' }
    sub is_code { return ref $_[0] && ((Scalar::Util::reftype($_[0]) // '') eq 'CODE' || overload::Method($_[0], '&{}')) }

    # The inside of a builder block, where there is Plack::Builder.
    sub from_source {
        my ($source) = @_;
        my $code = eval { require Plack::Builder; 1 } ? "Plack::Builder->import; builder { $source }" : $source;
        my $app = eval "package main; no strict; no warnings; $code";
        die '-e: ' . first_line($@) . "\n" if $@;
        die "-e: the code does not give a code reference\n" if !is_code($app);
        return $app;
    }

    sub from_file {
        my ($file) = @_;
        die "$file: no such file\n" if !-e $file;
        my $path = File::Spec->rel2abs($file);
        (my $package = $path) =~ s/([^A-Za-z0-9_])/sprintf '_%02x', ord $1/ge;
        local $0 = $path;    # FindBin looks at it
        open my $readable, '<', $path or die "$file: cannot be read: $!\n";
        my ($app, $error);
        eval "package Oribi::Pure::App::_$package; \$app = do \$path; \$error = \$@; 1" or $error = $@;
        die "$file: " . first_line($error) . "\n" if $error;
        $app = $app->to_app if !is_code($app) && Scalar::Util::blessed($app) && $app->can('to_app');
        die "$file: returns no code reference\n" if !is_code($app);
        return $app;
    }
}

# --- the command line -------------------------------------------------------------------------------------------------

package Oribi::Pure::Command 0.100 {
    # perl Pure.pm [options] [app.psgi]; returns the exit code.
    sub run {
        my (@argv) = @_;
        my $code = eval { start(@argv) };
        return $code if defined $code;
        my $error = $@;
        print STDERR map {"oribi-psgi: $_\n"} grep {/\S/} split /\n/, "$error";
        return 1;
    }

    sub start {
        my (@argv) = @_;
        my $settings = Oribi::Pure::Settings->new;
        parse($settings, @argv);
        @ARGV = ();    # the words are the server's, and the application finds none of them
        return say_text(help()) if $settings->is_on('help');
        return say_text("oribi-psgi $Oribi::Pure::VERSION (Oribi::Pure, perl $^V)\nsystem calls: perl\n") if $settings->is_on('version');
        $settings->prepare;
        return say_text(configuration($settings)) if $settings->is_on('print_config');
        if ($settings->is_on('check')) {
            $settings->check_app;
            $settings->load;
            return say_text("application and configuration load\n");
        }
        return Oribi::Pure::Processes->new($settings)->run;
    }

    sub say_text { local $| = 1; print STDOUT $_[0]; return 0 }

    # --name value, --name=value, --no-name, -n value, -nvalue; one word that is no option is the application.
    sub parse {
        my ($settings, @argv) = @_;
        while (defined(my $word = shift @argv)) {
            my ($name, $value);
            if ($word eq '--') {
                $settings->{app} = shift @argv if @argv;
                next;
            } elsif ($word =~ /\A--([^=]+)(?:=(.*))?\z/s) {
                ($name, $value) = ($1, $2);
                $name =~ tr/-/_/;
                if (!defined $value && $name =~ /\Ano_(.+)/ && !Oribi::Pure::Settings::find($name) && Oribi::Pure::Settings::find($1)) {
                    my $option = Oribi::Pure::Settings::find($1);
                    ($name, $value) = ($1, $option->{type} eq 'BOOL' || $option->{refused} ? 'off' : die "$word: is no switch\n");
                }
            } elsif ($word =~ /\A-([A-Za-z])(.*)\z/s) {
                ($name, $value) = ("-$1", length $2 ? $2 : undef);
            } else {
                die "$word: one application is enough, $settings->{app} was given already\n" if defined $settings->{app};
                $settings->{app} = $word;
                next;
            }
            my $option = Oribi::Pure::Settings::find($name) or die "$word: unknown option\n";
            if (!defined $value) {
                $value = $option->{type} eq 'BOOL' ? 'on' : @argv ? shift @argv : die "$word: needs a value\n";
            }
            $settings->set(command => $option->{name}, $value);
        }
        return;
    }

    sub configuration {
        my ($settings) = @_;
        return join '', map { my $value = $settings->get($_); sprintf "%s = %s\n", $_, ref $value ? "@$value" : $value } Oribi::Pure::Settings::names();
    }

    sub help {
        my $text = "usage: oribi-psgi --pure [options] [app.psgi]\n\nOribi::Pure, in Perl alone. Options:\n\n";
        for my $option (map { Oribi::Pure::Settings::find($_) } Oribi::Pure::Settings::names()) {
            (my $word = $option->{name}) =~ tr/_/-/;
            my $flags = (length $option->{flag} ? "-$option->{flag}, " : '') . "--$word" . ($option->{type} eq 'BOOL' ? '' : " $option->{argument}");
            my $default = length $option->{default} ? " [$option->{default}]" : '';
            my @lines = "$option->{help}$default" =~ /(.{1,90})(?:\s+|\z)/g;
            $text .= "  $flags\n" . join '', map {"      $_\n"} @lines;
        }
        return "$text\nAll other options of Oribi are refused: they need its C core.\n";
    }
}

package Oribi::Pure;

use File::Spec ();
use IO::Handle ();
use overload ();

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

It has no TLS, no HTTP/2, no files without the application, no compression, no deadline of calls, no control socket
and no metrics: options for these are refused with one line. F<doc/pure.md> says when to take it and when not.

=head1 METHODS

=head2 new(%options)

The options that C<oribi-psgi --pure --help> lists, with underscores in their names, the hooks C<before_fork>,
C<after_fork>, C<after_worker_ready>, C<before_worker_exit>, C<on_worker_exit>, C<before_reload> and C<server_ready>, and
C<listen_sock>, a socket that listens already. Dies with one line for an unknown name or a bad value.

=head2 run($app)

Serves the code reference, or loads it from the file of that name. Returns when the server was told to stop.

=head1 THE ENVIRONMENT

PSGI 1.1 with C<psgix.io>, C<psgix.input.buffered>, C<psgix.harakiri>, C<psgix.cleanup>, C<psgix.informational>,
C<oribi.trailers> and C<oribi.unread>, as L<Oribi> describes them. To take the connection over, read C<psgix.io>, return a
delayed response, and return from it without calling its responder.

=head1 SIGNALS

TERM and QUIT end the server when running requests are finished, a second one and INT at once. HUP loads the application
anew, in a fresh process, and replaces the workers. TTIN and TTOU add and remove a worker. USR1 opens the log files anew.

=head1 SEE ALSO

L<Oribi>, L<oribi-psgi>

=cut
