use strict;
use warnings;
use lib 't/lib';
use Data::Dumper ();
use File::Temp ();
use Hash::Util ();
use IO::Handle ();
use OribiTest;
use Scalar::Util qw(blessed readonly reftype weaken);
use Test::More;

# Some values of the environment are lent to one request after the other instead of being made anew. Whatever a request
# does to one of them, and keeps of it, the next finds them as the first one did.

{
    package Tied;
    sub TIEHANDLE { return bless {} }
    sub TIEARRAY { return bless {} }
    sub TIESCALAR { return bless {} }
    sub READLINE { return 'tied' }
    sub FETCH { return 'tied' }
    sub FETCHSIZE { return 3 }
    sub STORE { }
    sub EOF { return 1 }
    sub CLOSE { }
}

{
    package Ends;
    our $count = 0;
    sub DESTROY { $count++; die 'not heard' }
}

my @LENT = qw(psgi.input psgi.version psgi.errors psgix.cleanup.handlers psgix.io psgix.informational oribi.extend_deadline oribi.gone?);

# A glob's slots, before anything here brings them to life.
sub slots {
    my ($glob) = @_;
    return join ' ', map {"$_=" . (*{$glob}{$_} ? describe(*{$glob}{$_}) : 'none')} qw(ARRAY HASH CODE FORMAT);
}

sub describe {
    my ($ref) = @_;
    my $type = reftype $ref;
    return $type . ($type eq 'ARRAY' ? '(' . @$ref . ')' : $type eq 'HASH' ? '(' . keys(%$ref) . ')' : '');
}

sub state_of_handle {
    my ($handle) = @_;
    my %seen = (slots => slots($handle), scalar => defined ${ *{$handle}{SCALAR} } ? 'set' : 'empty', io => ref *{$handle}{IO}, tied => ref tied *$handle);
    $seen{tell} = tell $handle;
    $seen{layers} = join ',', PerlIO::get_layers($handle);
    my $selected = select $handle;
    @seen{qw(top name page length)} = ($^, $~, $%, $=);
    select $selected;
    $seen{directory} = defined telldir $handle ? 'open' : 'none';
    return \%seen;
}

sub state_of_input {
    my ($input) = @_;
    my $seen = state_of_handle($input);
    $seen->{eof} = eof $input ? 1 : 0;
    { local $/; $seen->{content} = <$input>; }
    $seen->{lines} = $.;
    return $seen;
}

# Everything that can be seen of them, as text.
sub state_of {
    my ($env) = @_;
    my %seen;
    for my $key (@LENT) {
        my $ref = ref \$env->{$key};
        $seen{$key} = { scalar => $ref, tied => ref tied $env->{$key}, readonly => readonly($env->{$key}) ? 1 : 0, blessed => blessed(\$env->{$key}) };
    }
    my ($version, $handlers) = @$env{qw(psgi.version psgix.cleanup.handlers)};
    $seen{version} = [ref $version, ref tied @$version, Internals::SvREADONLY(@$version), map { ref \$_, $_, readonly($_) ? 1 : 0 } @$version];
    $seen{handlers} = [ref $handlers, ref tied @$handlers, Internals::SvREADONLY(@$handlers), scalar @$handlers];
    $seen{input} = [ref $env->{'psgi.input'}, state_of_input($env->{'psgi.input'})];
    my $errors = state_of_handle($env->{'psgi.errors'});
    $seen{errors} = [ref $env->{'psgi.errors'}, @$errors{qw(slots scalar io)}];
    $seen{lazy} = [map { ref $env->{$_} } qw(psgix.io psgix.informational oribi.extend_deadline)];
    local ($Data::Dumper::Sortkeys, $Data::Dumper::Indent, $Data::Dumper::Terse, $Data::Dumper::Useqq) = (1, 1, 1, 1);
    return Data::Dumper::Dumper(\%seen);
}

our ($kept, @handled);
my $secret = 'a secret of another request';

# What a request does, and what the next one does with what was kept before it is looked at.
my @CASES = (
    ['psgi.input is opened on something else' => sub { open $_[0]{'psgi.input'}, '<', \$secret }],
    ['… and read in part' => sub { open $_[0]{'psgi.input'}, '<', \$secret; read $_[0]{'psgi.input'}, my $some, 2 }],
    ['… after it was closed' => sub { close $_[0]{'psgi.input'}; open $_[0]{'psgi.input'}, '<', \$secret }],
    ['… and closed again' => sub { open $_[0]{'psgi.input'}, '<', \$secret; close $_[0]{'psgi.input'} }],
    ['… and opened on nothing' => sub { open $_[0]{'psgi.input'}, '<', \'' }],
    ['… on a file' => sub { open $_[0]{'psgi.input'}, '<', __FILE__ }],
    ['… to be written' => sub { open $_[0]{'psgi.input'}, '+>', \my $text; print { $_[0]{'psgi.input'} } $secret }],
    ['… many times' => sub { my ($env) = @_; for (1 .. 50) { close $env->{'psgi.input'}; open $env->{'psgi.input'}, '<', \$secret } }],
    ['psgi.input is closed' => sub { close $_[0]{'psgi.input'} }],
    ['psgi.input gets a layer' => sub { binmode $_[0]{'psgi.input'}, ':encoding(UTF-16)' }],
    ['psgi.input gets :utf8' => sub { binmode $_[0]{'psgi.input'}, ':utf8' }],
    ['psgi.input gets :crlf' => sub { binmode $_[0]{'psgi.input'}, ':crlf' }],
    ['psgi.input loses its layer' => sub { binmode $_[0]{'psgi.input'}, ':pop' }],
    ['bytes are put back into psgi.input' => sub { $_[0]{'psgi.input'}->ungetc(ord 'x') for 1 .. 3 }],
    ['psgi.input is read behind its end' => sub { my $input = $_[0]{'psgi.input'}; my @lines = (<$input>, <$input>); seek $input, 100, 0 }],
    ['psgi.input is read and sought' => sub { read $_[0]{'psgi.input'}, my $some, 10; seek $_[0]{'psgi.input'}, 5, 1 }],
    ['psgi.input is blessed' => sub { bless $_[0]{'psgi.input'}, 'Some::Class' }],
    ['the handle in psgi.input is blessed' => sub { bless *{ $_[0]{'psgi.input'} }{IO}, 'Some::Class' }],
    ['psgi.input is tied' => sub { tie *{ $_[0]{'psgi.input'} }, 'Tied' }],
    ['the scalar of psgi.input' => sub { ${ *{ $_[0]{'psgi.input'} } } = $secret }],
    ['the array of psgi.input' => sub { @{ *{ $_[0]{'psgi.input'} } } = ($secret) }],
    ['the hash of psgi.input' => sub { ${ *{ $_[0]{'psgi.input'} } }{secret} = $secret }],
    ['the code of psgi.input' => sub { *{ $_[0]{'psgi.input'} } = sub {$secret} }],
    ['a glob is assigned to psgi.input' => sub { *{ $_[0]{'psgi.input'} } = *STDOUT }],
    ['psgi.input becomes a directory' => sub { my $input = $_[0]{'psgi.input'}; close $input; opendir $input, '.' or die "opendir: $!" }],
    ['the format variables of psgi.input' => sub { my $old = select $_[0]{'psgi.input'}; ($^, $~, $%, $=) = ('TOP', 'NAME', 7, 70); select $old }],
    ['psgi.input is selected' => sub { $kept = select $_[0]{'psgi.input'} }, sub { select $kept }],
    ['psgi.input is kept' => sub { $kept = $_[0]{'psgi.input'} }, sub { open $kept, '<', \$secret }],
    ['psgi.input is kept weakly' => sub { weaken($kept = $_[0]{'psgi.input'}) }, sub { open $kept, '<', \$secret if $kept }],
    ['the handle in psgi.input is kept' => sub { $kept = *{ $_[0]{'psgi.input'} }{IO} }, sub { open $kept, '<', \$secret }],
    ['psgi.input gets a second name' => sub { no warnings 'once'; *Some::NAME = $_[0]{'psgi.input'} }, sub { open Some::NAME, '<', \$secret }],
    ['what is below psgi.input is written to' => sub { eval { ${ (PerlIO::get_layers($_[0]{'psgi.input'}, details => 1))[1] } = $secret } }],
    ['what is below psgi.input is kept' => sub { $kept = (PerlIO::get_layers($_[0]{'psgi.input'}, details => 1))[1] }, sub { eval { $$kept = $secret } }],
    ['psgi.input is made read-only' => sub { Internals::SvREADONLY(${ $_[0]{'psgi.input'} }, 1) }],
    ['psgi.version is changed' => sub { $_[0]{'psgi.version'}[1] = 2 }],
    ['psgi.version grows' => sub { push @{ $_[0]{'psgi.version'} }, $secret }],
    ['psgi.version is emptied' => sub { @{ $_[0]{'psgi.version'} } = () }],
    ['psgi.version is blessed' => sub { bless $_[0]{'psgi.version'}, 'Some::Class' }],
    ['psgi.version is tied' => sub { tie @{ $_[0]{'psgi.version'} }, 'Tied' }],
    ['an element of psgi.version is tied' => sub { tie $_[0]{'psgi.version'}[0], 'Tied' }],
    ['an element of psgi.version is a string' => sub { my $text = "$_[0]{'psgi.version'}[0]"; $_[0]{'psgi.version'}[0] = '1' }],
    ['psgi.version is made read-only' => sub { Internals::SvREADONLY(@{ $_[0]{'psgi.version'} }, 1) }],
    ['an element of psgi.version is made read-only' => sub { Internals::SvREADONLY($_[0]{'psgi.version'}[0], 1) }],
    ['psgi.version is kept' => sub { $kept = $_[0]{'psgi.version'} }, sub { push @$kept, $secret }],
    ['psgi.version is kept weakly' => sub { weaken($kept = $_[0]{'psgi.version'}) }, sub { push @$kept, $secret if $kept }],
    ['an element of psgi.version is kept' => sub { $kept = \$_[0]{'psgi.version'}[0] }, sub { $$kept = $secret }],
    ['psgi.errors is blessed' => sub { bless $_[0]{'psgi.errors'}, 'Some::Class' }],
    ['the array of psgi.errors' => sub { @{ *{ $_[0]{'psgi.errors'} } } = ($secret) }],
    ['the hash of psgi.errors' => sub { ${ *{ $_[0]{'psgi.errors'} } }{secret} = $secret }],
    ['the scalar of psgi.errors' => sub { ${ *{ $_[0]{'psgi.errors'} } } = $secret }],
    ['the code of psgi.errors' => sub { *{ $_[0]{'psgi.errors'} } = sub {$secret} }],
    ['psgi.errors is kept' => sub { $kept = $_[0]{'psgi.errors'} }, sub { ${*$kept}{secret} = $secret if $kept }],
    ['psgi.errors is kept weakly' => sub { weaken($kept = $_[0]{'psgi.errors'}) }, sub { ${*$kept}{secret} = $secret if $kept }],
    ['psgi.errors gets a second name' => sub { no warnings 'once'; *Some::ERRORS = $_[0]{'psgi.errors'} }, sub { $Some::ERRORS{secret} = $secret }],
    ['a cleanup handler' => sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { } }],
    ['the cleanup handlers are blessed' => sub { bless $_[0]{'psgix.cleanup.handlers'}, 'Some::Class' }],
    ['the cleanup handlers are tied' => sub { tie @{ $_[0]{'psgix.cleanup.handlers'} }, 'Tied' }],
    ['the cleanup handlers are read-only' => sub { Internals::SvREADONLY(@{ $_[0]{'psgix.cleanup.handlers'} }, 1) }],
    ['the cleanup handlers are kept' => sub { $kept = $_[0]{'psgix.cleanup.handlers'} }, sub { push @$kept, sub { } }],
    ['the cleanup handlers are kept weakly' => sub { weaken($kept = $_[0]{'psgix.cleanup.handlers'}) }, sub { push @$kept, sub { } if $kept }],
    (map {
        my $key = $_;
        ["$key is read" => sub { my $value = $_[0]{$key} }],
        ["$key is assigned" => sub { $_[0]{$key} = $secret }],
        ["$key is tied" => sub { tie $_[0]{$key}, 'Tied' }],
        ["$key is blessed" => sub { bless \$_[0]{$key}, 'Some::Class' }],
        ["$key is read-only" => sub { Internals::SvREADONLY($_[0]{$key}, 1) }],
        ["$key is kept" => sub { $kept = \$_[0]{$key} }, sub { $$kept = $secret }],
        ["$key is kept weakly" => sub { weaken($kept = \$_[0]{$key}) }, sub { $$kept = $secret if $kept }],
        ["$key has a position" => sub { pos($_[0]{$key}) = 0 }],
    } qw(psgix.io psgix.informational oribi.extend_deadline)),
    ['every string of the environment is changed' => sub { my ($env) = @_; for (values %$env) { $_ .= $secret if !ref } }],
    ['… in place' => sub { my ($env) = @_; for (values %$env) { tr/a-z0-9/A-ZA-J/ if !ref } }],
    ['… kept and changed later' => sub { my ($env) = @_; $kept = [map { \$_ } grep { !ref } values %$env] }, sub { $$_ .= $secret for @$kept }],
    ['… assigned' => sub { my ($env) = @_; for (values %$env) { $_ = $secret if !ref } }],
    ['… by slot' => sub { my ($env) = @_; $env->{$_} = $secret for grep { !ref $env->{$_} } keys %$env }],
    ['… as characters' => sub { my ($env) = @_; for (values %$env) { utf8::upgrade($_) if !ref } }],
    ['… read as a number' => sub { my ($env) = @_; my $sum = 0; $sum += $_ for grep { !ref } values %$env }],
    ['… read as a text' => sub { my ($env) = @_; my $all = join '', grep { !ref } values %$env }],
    ['… with a position' => sub { my ($env) = @_; pos($_) = 0 for grep { !ref } values %$env }],
    ['… shortened in front' => sub { my ($env) = @_; for (values %$env) { s/\A.// if !ref } }],
    ['… shortened by substr' => sub { my ($env) = @_; for (values %$env) { substr($_, 0, 1, '') if !ref && length } }],
    ['… matched' => sub { my ($env) = @_; for (values %$env) { $kept = $1 if !ref && /(.+)/s } }],
    ['… made references' => sub { my ($env) = @_; for (values %$env) { $_ = [$secret] if !ref } }],
    ['… blessed' => sub { my ($env) = @_; for (values %$env) { bless \$_, 'Some::Class' if !ref } }],
    ['… blessed objects' => sub { my ($env) = @_; for (values %$env) { $_ = bless [], 'Ends' if !ref } }],
    ['… tied' => sub { my ($env) = @_; for (values %$env) { tie $_, 'Tied' if !ref } }],
    ['… globs' => sub { my ($env) = @_; for (values %$env) { $_ = *STDOUT if !ref } }],
    ['… read-only' => sub { my ($env) = @_; for (values %$env) { Internals::SvREADONLY($_, 1) if !ref } }],
    ['… version objects' => sub { my ($env) = @_; for (values %$env) { $_ = v1.2.3 if !ref } }],
    ['… long' => sub { my ($env) = @_; for (values %$env) { $_ = 'x' x 5000 if !ref } }],
    ['… kept weakly' => sub { my ($env) = @_; $kept = []; for (grep { !ref } values %$env) { push @$kept, \$_; weaken $kept->[-1] } }, sub { for (@$kept) { $$_ = $secret if $_ } }],
    ['… kept as copies' => sub { my ($env) = @_; $kept = [grep { !ref } values %$env] }, sub { $_ .= $secret for @$kept }],
    ['numbers are counted up' => sub { my ($env) = @_; $env->{$_}++ for grep {/multi|run_once|nonbl|harakiri|cleanup\z/} keys %$env }],
    ['references are exchanged' => sub { my ($env) = @_; @$env{qw(psgi.errors psgi.version)} = @$env{qw(psgi.version psgi.errors)} }],
    ['a reference is weak' => sub { weaken($_[0]{'psgi.errors'}); weaken($_[0]{'psgi.version'}) }],
    ['references are kept' => sub { $kept = \$_[0]{'psgi.version'} }, sub { $$kept = $secret }],
    ['references refer to something else' => sub { $_[0]{'psgi.errors'} = \$secret; $_[0]{'psgi.version'} = sub { }; $_[0]{'psgi.input'} = [] }],
    ['references are undefined' => sub { $_[0]{$_} = undef for qw(psgi.errors psgi.version psgi.input psgix.cleanup.handlers) }],
    ['references to an object with an end' => sub { $_[0]{$_} = bless {}, 'Ends' for qw(psgi.errors psgi.version psgi.input psgi.run_once) }],
    ['the environment is emptied' => sub { %{ $_[0] } = () }],
    ['the environment is blessed and kept' => sub { $kept = bless $_[0], 'Some::Class' }, sub { $kept->{'psgi.version'}[0] = 5 }],
    ['a key is deleted' => sub { delete $_[0]{'psgi.version'} }],
    ['a key is deleted and stored again' => sub { my $old = delete $_[0]{SERVER_NAME}; $_[0]{SERVER_NAME} = $old }],
    ['a key is added' => sub { $_[0]{secret} = $secret }],
    ['a key is added, another is deleted' => sub { delete $_[0]{SERVER_NAME}; $_[0]{secret} = $secret }],
    ['a key is added and deleted' => sub { $_[0]{secret} = $secret; delete $_[0]{secret} }],
    ['a thousand keys are added and deleted' => sub { my ($env) = @_; my @keys = map {"secret$_"} 1 .. 1000; @$env{@keys} = @keys; delete @$env{@keys} }],
    ['a key is local' => sub { local $_[0]{SERVER_NAME} = $secret; local $_[0]{secret} = $secret }],
    ['values are undefined' => sub { my ($env) = @_; undef $env->{$_} for qw(SERVER_NAME psgi.version psgix.io PATH_INFO) }],
    ['the keys are locked' => sub { Hash::Util::lock_ref_keys($_[0]) }],
    ['the hash is locked' => sub { Hash::Util::lock_hashref($_[0]) }],
    ['… unlocked after a key was deleted' => sub { Hash::Util::lock_ref_keys($_[0]); delete $_[0]{SERVER_NAME}; Hash::Util::unlock_ref_keys($_[0]) }],
    ['an iterator stands in the environment' => sub { my @pair = each %{ $_[0] } }],
    ['… on a key that was deleted' => sub { my ($key) = each %{ $_[0] }; delete $_[0]{$key} }],
    ['the environment is kept' => sub { $kept = $_[0] }, sub { $kept->{SERVER_NAME} = $secret; $kept->{secret} = $secret }],
    ['the environment is kept weakly' => sub { weaken($kept = $_[0]) }, sub { $kept->{SERVER_NAME} = $secret if $kept }],
    ['the environment is kept by a value of its own' => sub { $_[0]{SERVER_NAME} = $_[0] }],
    ['the environment is kept by a closure' => sub { my ($env) = @_; $kept = sub { $env->{SERVER_NAME} = $secret } }, sub { $kept->() if $kept }],
    ['the environment is blessed' => sub { bless $_[0], 'Some::Class' }],
    ['a value is an object whose end looks for the environment' => sub { $_[0]{SERVER_NAME} = bless [$_[0]{PATH_INFO}], 'Ends' }],
    ['the environment is tied' => sub { require Tie::Hash; tie %{ $_[0] }, 'Tie::StdHash' }],
);

# /NUMBER does what a case does; /NUMBER?look does its second part and tells what it finds.
my $app = sub {
    my ($env) = @_;
    my ($number) = $env->{PATH_INFO} =~ /(\d+)/;
    my $case = defined $number ? $CASES[$number] : undef;
    if ($env->{QUERY_STRING} ne 'look') {
        no warnings;
        $case->[1]->($env);
        return [200, ['Content-Type' => 'text/plain'], ['done']];
    }
    if ($case && $case->[2]) { no warnings; $case->[2]->() }
    no warnings;
    my $state = state_of($env) . join '', map {"$_=$env->{$_}\n"} sort grep { !ref $env->{$_} && !/PATH_INFO|REQUEST_URI|queue_us|REMOTE_PORT|psgix?\.(?:io|in)|oribi/ } keys %$env;
    undef $kept;
    return [200, ['Content-Type' => 'text/plain'], [$state]];
};

my $server = serve($app, lint => 0);
my $first = get($server, '/?look')->{body};
like $first, qr/content/, 'what the first request finds' or diag $first;

for my $number (0 .. $#CASES) {
    is get($server, "/$number")->{body}, 'done', "$CASES[$number][0]: done";
    for my $round (1 .. 2) {
        my $found = get($server, "/$number?look")->{body};
        is $found, $first, "$CASES[$number][0]: not seen by request $round behind it" or last;
    }
}
is get($server, '/?look')->{body}, $first, 'the last one';

subtest 'values end with their request, and what is kept of an environment stays' => sub {
    my @kept;
    my %turn = (
        '/object' => sub { $_[0]{'psgi.url_scheme'} = bless [], 'Ends' },
        '/keep' => sub { push @kept, $_[0] },
        '/value' => sub { push @kept, \$_[0]{QUERY_STRING} },
        '/kept' => sub { join ' ', map { ref eq 'HASH' ? "$_->{PATH_INFO}$_->{QUERY_STRING}$_->{'psgi.url_scheme'}" : $$_ } @kept },
        '/die' => sub { die "now\n" },
    );
    my $app = sub { my ($env) = @_; my $ended = $Ends::count; my $said = $turn{ $env->{PATH_INFO} }->($env); [200, ['Content-Type' => 'text/plain'], ["$ended $said"]] };
    my $server = serve($app, lint => 0);
    get($server, "/object?$_") for 1 .. 3;
    get($server, '/die');
    get($server, "/keep?$_") for 1 .. 2;
    get($server, "/value?$_") for 3 .. 4;
    get($server, '/object?4');
    is get($server, '/kept')->{body}, '4 /keep1http /keep2http 3 4';
    is $server->stop, 0;
};

# What is left alone goes to the next request, and only that.
subtest 'scalars are used again' => sub {
    my @keys = qw(REQUEST_METHOD PATH_INFO QUERY_STRING SERVER_NAME REMOTE_PORT HTTP_HOST HTTP_X_ONE psgi.version psgi.errors psgi.run_once psgi.input);
    my (@kept, @copies);
    my %turn = (
        '/keep' => sub { push @kept, \$_[0]{$_} for qw(PATH_INFO QUERY_STRING HTTP_ACCEPT) },
        '/copy' => sub { push @copies, @{ $_[0] }{qw(PATH_INFO QUERY_STRING HTTP_ACCEPT)} },
        '/kept' => sub { join ' ', map {$$_} @kept },
        '/copies' => sub { join ' ', @copies },
    );
    my $app = sub {
        my ($env) = @_;
        my $said = ($turn{ $env->{PATH_INFO} } || sub { join ' ', map { 0 + \$env->{$_} } grep { exists $env->{$_} } @keys })->($env);
        return [200, ['Content-Type' => 'text/plain'], [join '|', $said, @$env{qw(PATH_INFO REQUEST_URI QUERY_STRING HTTP_ACCEPT)}]];
    };
    my $server = serve($app, lint => 0);
    my $client = $server->connect;
    my $ask = sub {
        my ($path, $query, $accept) = @_;
        $client->send("GET $path?$query HTTP/1.1\r\nHost: test\r\nAccept: $accept\r\n\r\n");
        my ($said, @values) = split /\|/, $client->response->{body}, -1;
        (my $decoded = $path) =~ s/%41/A/;
        is_deeply \@values, [$decoded, "$path?$query", $query, $accept], "$path: its own values";
        return $said;
    };
    $ask->('/warm', $_, 'a') for 1 .. 3;
    my $places = $ask->('/x', 1, 'b');
    is $ask->("/x$_", $_ x 3, "b$_"), $places, 'the same scalars' for 1 .. 3;
    for my $length (1, 14, 15, 16, 17, 100, 500, 511, 512, 513, 4000, 1) {
        $ask->('/' . 'p' x $length, 'q' x $length, 'a' x $length) for 1 .. 2;
    }
    $ask->('/%41', 'q', 'a');
    $ask->('/B', 'q', 'a');
    $ask->('/keep', "q$_", "a$_") for 1 .. 2;
    $ask->('/copy', "q$_" x 1000, "a$_") for 1 .. 2;
    $ask->('/after', 'x' x $_, 'y' x $_) for 1, 2000;
    is $ask->('/kept', '', ''), '/keep q1 a1 /keep q2 a2';
    is $ask->('/copies', '', ''), join ' ', map { ('/copy', "q$_" x 1000, "a$_") } 1 .. 2;
    is $server->stop, 0;
};

# The handle in psgi.errors is STDERR's, also when the application gives STDERR another.
subtest 'psgi.errors is STDERR' => sub {
    my $dir = File::Temp->newdir;
    my %turn = (
        '/open' => sub { open STDERR, '>>', "$dir/open" or die },
        '/assign' => sub { open my $new, '>>', "$dir/assign" or die; *STDERR = $new },
        '/local' => sub { local *STDERR; open STDERR, '>>', "$dir/local" or die; print STDERR "local\n" },
        '/print' => sub { my ($env) = @_; $env->{'psgi.errors'}->print("line $env->{QUERY_STRING}\n"); $env->{'psgi.errors'}->flush },
    );
    my $server = serve(sub { my ($env) = @_; $turn{ $env->{PATH_INFO} }->($env); [200, ['Content-Type' => 'text/plain'], ["$env->{'psgi.errors'}"]] }, lint => 0);
    my $read = sub { open my $fh, '<', "$dir/$_[0]" or return ''; local $/; scalar <$fh> };
    like get($server, $_)->{body}, qr/\AGLOB/, $_ for qw(/print?1 /local /print?2 /open /print?3 /assign /print?4);
    is $read->('open'), "line 3\n";
    is $read->('assign'), "line 4\n";
    is $read->('local'), "local\n";
    is join(' ', $server->log_text =~ /^line (\d)/mg), '1 2';
    is $server->stop, 0;
};
done_testing;
