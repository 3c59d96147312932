use strict;
use warnings;
use lib 't/lib';
use Oribi::Pure;
use OribiSpec;
use Test::More;

# The conformance cases of spec/ through the parser, the decoder and the writer of Oribi::Pure, with the core's verdict:
# requests and bodies whole and byte by byte, answers as bytes.

my $folder = folder() or plan skip_all => 'no spec/ here';
my $LONG = 4_000;    # longer inputs are cut into fewer pieces

# Of an application that has taken its socket, which in Perl writes every byte itself; and interim answers.
sub is_absent { my ($case) = @_; return ($case->{detached} // 'no') eq 'yes' || defined $case->{interim} }

# What comes of the bytes when they arrive in pieces of this length: the first verdict, and the head.
sub verdict_of {
    my ($limits, $input, $step) = @_;
    my %state;
    my $buffer = '';
    while (length $input) {
        $buffer .= substr $input, 0, $step, '';
        my $result = Oribi::Pure::Head::parse(\%state, $limits, $buffer);
        return ($result, \%state, $state{reason}) if $result;
    }
    return (0);
}

sub limits_of {
    my ($case) = @_;
    return Oribi::Pure::Head::limits(map { ($_->[0], $_->[1] eq 'yes' ? 1 : $_->[1] eq 'no' ? 0 : $_->[1]) } @{ $case->{limit} });
}

sub key_of {
    my ($name) = @_;
    (my $key = uc $name) =~ tr/-/_/;
    return $key =~ /\ACONTENT_(?:TYPE|LENGTH)\z/ ? $key : "HTTP_$key";
}

sub yes { return $_[0] ? 'yes' : 'no' }

sub check_request {
    my ($case, $step) = @_;
    my ($result, $state, $reason) = verdict_of(limits_of($case), $case->{input}, $step);
    my $name = "$case->{name}, in pieces of $step";
    my $want = $case->{status} eq 'ok' ? 'ok' : $case->{status} eq 'again' ? 0 : -$case->{status};
    is $result > 0 ? 'ok' : $result, $want, "$name: " . ($reason // '') or return;
    return if $result <= 0;
    my ($head, $env) = @$state{qw(head env)};
    is $env->{REQUEST_METHOD}, $case->{method}, "$name: method" if defined $case->{method};
    is $env->{PATH_INFO}, $case->{path}, "$name: path" if defined $case->{path};
    is $env->{QUERY_STRING}, $case->{query}, "$name: query" if defined $case->{query};
    is $env->{REQUEST_URI}, $case->{target}, "$name: target" if defined $case->{target} && $case->{target} =~ m{\A[/*]};
    for my $key (qw(host port minor dropped)) {
        is $head->{$key}, $case->{$key}, "$name: $key" if defined $case->{$key};
    }
    is yes($head->{keep_alive}), $case->{keep_alive}, "$name: keep_alive" if defined $case->{keep_alive};
    is yes($head->{upgrade}), $case->{upgrade}, "$name: upgrade" if defined $case->{upgrade};
    is yes($head->{expect}), $case->{expect_continue}, "$name: expect_continue" if defined $case->{expect_continue};
    my $framing = $head->{length} < 0 ? 'chunked' : $head->{has_body} ? "length $head->{length}" : 'none';
    is $framing, $case->{framing}, "$name: framing" if defined $case->{framing};
    is substr($case->{input}, $result), $case->{rest}, "$name: rest" if defined $case->{rest} && $step > 1;
    is $env->{ key_of($_->[0]) }, $_->[1], "$name: field $_->[0]" for @{ $case->{field} };
    is scalar(grep {/\A(?:HTTP|CONTENT)_/} keys %$env), $case->{fields}, "$name: fields" if defined $case->{fields};
    return;
}

sub check_chunked {
    my ($case, $step) = @_;
    my $chunks = Oribi::Pure::Chunked->new(limits_of($case));
    my ($body, $input, $buffer) = ('', $case->{input}, '');
    while (length $input && !$chunks->{status} && !$chunks->{done}) {
        $buffer .= substr $input, 0, $step, '';
        my $content = $chunks->decode(\$buffer);
        $body .= $content if !$chunks->{status};
    }
    my $name = "$case->{name}, in pieces of $step";
    is $chunks->{status} // ($chunks->{done} ? 'ok' : 'again'), $case->{status}, "$name: " . ($chunks->{reason} // '') or return;
    return if $chunks->{status};
    is $body, $case->{body}, "$name: body" if defined $case->{body};
    is $buffer . $input, $case->{rest}, "$name: rest" if defined $case->{rest};
    my ($trailers, $dropped) = $chunks->trailers;
    is scalar(keys %$trailers), $case->{trailers}, "$name: trailers" if defined $case->{trailers};
    is $trailers->{ $_->[0] }, $_->[1], "$name: trailer $_->[0]" for @{ $case->{trailer} };
    is $dropped, $case->{dropped}, "$name: dropped" if defined $case->{dropped};
    return;
}

sub steps_of {
    my ($input) = @_;
    my $n = length $input;
    return ($n || 1, $n > $LONG ? 997 : 1);
}

for my $kind ([request => \&check_request], [chunked => \&check_chunked]) {
    for my $path (sort glob "$folder/$kind->[0]/*.case") {
        my ($file) = $path =~ m{([^/]+/[^/]+)\z};
        subtest $file => sub {
            my $count = 0;
            for my $case (cases($path)) {
                $kind->[1]->($case, $_) for steps_of($case->{input});
                $count++;
            }
            cmp_ok $count, '>', 0, "$count cases";
        };
    }
}

# --- answers ---

my $DATE = 'Sun, 06 Nov 1994 08:49:37 GMT';

sub check_answer {
    my ($case) = @_;
    my $is = sub { ($case->{ $_[0] } // $_[1]) eq 'yes' ? 1 : 0 };
    my $status = Oribi::Pure::Answer::status_of($case->{code});
    my $headers = [map {@$_} @{ $case->{header} }];
    my ($body_len, $content) = ($case->{body_len} // -1);
    $body_len = length $case->{body} if defined $case->{body} && !$is->('stream', 'no');
    my $res = {
        status => $status, headers => $headers, minor => $case->{minor} // 1, is_head => $is->('head', 'no'), keep_alive => $is->('keep_alive', 'yes'),
        body_len => $body_len, date => $DATE, server => $case->{server},
    };
    my $bytes = $status < 0 ? undef : Oribi::Pure::Answer::head($res);
    if ($body_len >= 0 && $res->{minor} && !$res->{is_head} && !defined $res->{server}) {
        my $usual = Oribi::Pure::Answer::usual($status, $headers, $body_len, $DATE, !$res->{keep_alive});
        is $usual, $bytes, "$case->{name}: the short way" if defined $usual;
    }
    if ($res->{framed} && defined $case->{body} && !$is->('stream', 'no')) {
        my ($chunks, $taken) = (Oribi::Pure::Worker::unframer(), $case->{body});
        if (!Oribi::Pure::Worker::unframe($chunks, \$taken, 1)) {
            like $case->{status}, qr/\A(?:error|cut)\z/, "$case->{name}: not taken for whole";
            return;
        }
        $content = $taken;
        @$res{qw(unframed body_len)} = (1, length $content);
        $bytes = Oribi::Pure::Answer::head($res);
    }
    return if ($case->{status} eq 'cut' || $case->{status} eq 'error') && defined $case->{body} && $is->('stream', 'no');
    is defined $bytes ? 'ok' : 'error', $case->{status}, "$case->{name}: " . ($res->{reason} // '') or return;
    return if !defined $bytes;
    is $bytes, $case->{output}, "$case->{name}: the head" if defined $case->{output};
    for my $key (qw(framing length dropped)) {
        is $res->{$key}, $case->{$key}, "$case->{name}: $key" if defined $case->{$key};
    }
    is $res->{closes} ? 'yes' : 'no', $case->{closes}, "$case->{name}: closes" if defined $case->{closes};
    is join(' ', grep { $res->{mended}{$_} } qw(undefined trimmed folded length)) || 'nothing', $case->{mended} // 'nothing', "$case->{name}: mended";
    is $content, $case->{content}, "$case->{name}: content" if defined $content && defined $case->{content} && $res->{framing} ne 'none';
    return;
}

for my $path (sort glob "$folder/response/*.case") {
    my ($file) = $path =~ m{([^/]+/[^/]+)\z};
    subtest $file => sub {
        my $count = 0;
        for my $case (grep { !is_absent($_) } cases($path)) {
            check_answer($case);
            $count++;
        }
        cmp_ok $count, '>', 0, "$count cases";
    };
}

done_testing;
