package Oribi::Development;
use strict;
use warnings;
use Cwd ();
use File::Basename ();
use File::Spec ();
use Oribi ();
use Oribi::App ();
use overload ();
use Scalar::Util ();

our $VERSION = '0.100';

# What a developer sees where an answer fails: a page with the error, the lines around it, the trace and the request.
# The page is the core's (develop/failure_page.h); this gathers the facts: kind, name and value of each.

my $FRAMES_MAX = 200;
my $DEPTH_MAX = 8;    # of parameters within parameters
my $OURS = File::Basename::dirname(__FILE__);
my $NOTE = 'Every request is answered with this page until the application loads: correct the file, and ask again.';

our $theirs;          # the $SIG{__DIE__} that was there before a call
my $noted;            # what a call has died with last: [key, frames]

# --- for Oribi::Supervisor ---

# An application that answers every request with the page of what kept `$path` from loading. `$error` may be the line
# that Oribi::App made of it.
sub load_failure {
    my ($error, $path) = @_;
    $error = $Oribi::App::failure if defined $Oribi::App::failure && !ref $error;
    $error =~ s/\AError while loading [^\n]*?: (?=\S)// if !ref $error;    # Plack's word for it
    return sub {
        my ($env) = @_;
        my $name = defined $path ? $path : 'the application';
        my @facts = (_program(), map { ('root', '', $_) } _roots($path));
        push @facts, title => '', "$name cannot be loaded", note => '', $NOTE;
        push @facts, _error($error, []);
        push @facts, map { ('ask', $_, $env->{$_}) } grep { defined $env->{$_} } qw(HTTP_ACCEPT HTTP_X_REQUESTED_WITH);
        my ($type, $page) = Oribi::Options->failure_page(@facts);
        my @headers = (
            'Content-Type'           => $type,
            'Content-Length'         => length $page,
            'Cache-Control'          => 'no-store',
            'X-Content-Type-Options' => 'nosniff',
        );
        return [500, \@headers, ($env->{REQUEST_METHOD} // '') eq 'HEAD' ? [] : [$page]];
    };
}

# What a worker needs for the pages of failed calls: code that gives content type and page, and $SIG{__DIE__}.
sub for_calls {
    my ($path) = @_;
    my @roots = map { ('root', '', $_) } _roots($path);
    return (sub { _call_failure(\@roots, @_) }, \&_note);
}

# --- a die and its frames ---

# What is thrown again keeps the frames of the first time.
sub _note {
    my ($error) = @_;
    my $key = _key($error);
    $noted = [$key, _frames()] if !$noted || $noted->[0] ne $key;
    my $handler = $theirs;
    return if !defined $handler || !length $handler;
    no strict 'refs';
    $handler = \&{$handler =~ /::|'/ ? $handler : "main::$handler"} if !ref $handler && $handler !~ /\A(?:DEFAULT|IGNORE)\z/;
    $handler->(@_) if ref $handler;
    return;
}

# It holds no exception: objects live no longer for our sake.
sub _key {
    my ($error) = @_;
    return ref $error ? 'object ' . Scalar::Util::refaddr($error) : "text $error";
}

# ["app.psgi:12", "main::buy"], innermost first. Perl names what is called at a line; a page names what the line is in.
sub _frames {
    my @frames;
    for (my $level = 1; @frames < $FRAMES_MAX && (my @caller = caller $level); $level++) {
        $frames[-1][1] = $caller[3] if @frames && $caller[3] ne '(eval)' && !length $frames[-1][1];
        push @frames, ["$caller[1]:$caller[2]", ''] if index($caller[1], $OURS) != 0 && $caller[1] !~ m{/oribi-psgi\z};
    }
    $_->[1] =~ s/\APlack::Sandbox::\w+::// for @frames;    # a package that Plack makes for each file
    return \@frames;
}

# --- facts ---

sub _program { return (program => '', sprintf 'oribi-psgi %s, perl %vd', Oribi::release(), $^V) }

sub _roots {
    my ($path) = @_;
    my %seen;
    my @roots = (Cwd::getcwd(), defined $path && -e $path ? File::Basename::dirname(File::Spec->rel2abs($path)) : ());
    return grep { defined && !$seen{$_}++ } @roots;
}

sub _call_failure {
    my ($roots, $error, $env) = @_;
    my $frames = $noted && $noted->[0] eq _key($error) ? $noted->[1] : [];
    $noted = undef;
    return _of_socket($error, $frames) if !$env;
    my @facts = (_program(), @$roots);
    push @facts, title => '', join '', map { $_ // '' } $env->{REQUEST_METHOD}, ' ', @$env{qw(SCRIPT_NAME PATH_INFO)};
    push @facts, _error($error, $frames), _environment($env);
    return Oribi::Options->failure_page(@facts);
}

# What the client of a WebSocket is told of an exception, and its file and line: "no such room", "Room.pm:12".
sub _of_socket {
    my ($error, $frames) = @_;
    my $class = Scalar::Util::blessed($error);
    my $text = eval {"$error"} // 'the message of this exception cannot be read';
    ($text) = grep {/\S/} split(/\n/, $text), 'no message';
    my $place = @$frames ? $frames->[0][0] : undef;
    $place = "$1:$2" if $text =~ s/ at (\S[^\n]*?) line ([0-9]+)\.?\z//;
    $text = "$class: $text" if defined $class && index($text, $class) < 0;
    return map { _utf8($_) } $text, defined $place ? File::Basename::basename($place) : '';
}

# Texts are characters, or bytes of the source's own encoding.
sub _utf8 {
    my ($text) = @_;
    utf8::encode($text) if utf8::is_utf8($text);
    my $copy = $text;
    utf8::encode($text) if !utf8::decode($copy);
    return $text;
}

# A text names its places itself: " at app.psgi line 3.", and more of them where a module could not be compiled.
sub _error {
    my ($error, $frames) = @_;
    my $class = Scalar::Util::blessed($error);
    my $text = eval { _is_plain($error) ? _dumped($error) : "$error" } // 'the message of this exception cannot be read';
    my @places;
    @places = map { [$_, ''] } _places($text) if !@$frames;
    $text =~ s/\s+\z//;
    $text = 'no message' if !length $text;
    return (
        (defined $class ? (class => '', $class) : ()),
        message => '', $text, map { ('frame', $_->[1], $_->[0]) } @places, @$frames,
    );
}

# A reference to data says nothing as a text, nor does an object without one.
sub _is_plain {
    my ($error) = @_;
    return ref $error && !overload::Method($error, '""') && (Scalar::Util::reftype($error) // '') =~ /\A(?:HASH|ARRAY|SCALAR)\z/;
}

sub _dumped {
    my ($error) = @_;
    require Data::Dumper;
    return Data::Dumper->new([$error])->Terse(1)->Indent(1)->Sortkeys(1)->Maxdepth(3)->Dump;
}

sub _places {
    my ($text) = @_;
    my (@places, %seen);
    while ($text =~ / at ([^\n]*?) line ([0-9]+)/g) {
        my $place = "$1:$2";
        push @places, $place if @places < $FRAMES_MAX && !$seen{$place}++;
    }
    return @places;
}

# Objects of libraries are named by their classes: what they print may be long, and secret.
sub _environment {
    my ($env) = @_;
    my @facts;
    for my $key (sort keys %$env) {
        my $value = $env->{$key};
        push @facts, env => $key, !defined $value ? '' : ref $value ? '(' . ref($value) . ')' : "$value";
    }
    return (@facts, _parameters($env));
}

# Of a body that Plack::Request has read, whichever way it keeps them.
sub _parameters {
    my ($env) = @_;
    my $pairs = $env->{'plack.request.body_parameters'};
    if (ref $pairs eq 'ARRAY') {
        return map { _parameter($pairs->[2 * $_], $pairs->[2 * $_ + 1], 0) } 0 .. @$pairs / 2 - 1;
    }
    my $body = $env->{'plack.request.body'};
    return if (Scalar::Util::reftype($body) // '') ne 'HASH';
    return map { _parameter($_, $body->{$_}, 0) } sort keys %$body;
}

sub _parameter {
    my ($name, $value, $depth) = @_;
    my $kind = Scalar::Util::reftype($value) // '';
    return map { _parameter("$name\[$_]", $value->{$_}, $depth + 1) } sort keys %$value if $kind eq 'HASH' && $depth < $DEPTH_MAX;
    return map { _parameter("$name\[]", $_, $depth + 1) } @$value if $kind eq 'ARRAY' && $depth < $DEPTH_MAX;
    return (param => $name // '', ref $value ? '(' . ref($value) . ')' : $value // '');
}

1;

__END__

=head1 NAME

Oribi::Development - pages of errors in development

=head1 DESCRIPTION

Part of L<Oribi>, and loaded where C<env> is C<development> alone. A call that dies is answered with a page: the message,
the source around the line, the frames of the application and then those of libraries, and the request without its
secrets. Browsers get HTML, C<curl> gets plain text, and who asks for JSON gets that. An application or a middleware
that shows pages of its own keeps them, as L<Plack::Middleware::StackTrace> under C<plackup>.

=head1 FUNCTIONS

=head2 load_failure($error, $path)

A PSGI application that answers every request with the page of what kept C<$path> from loading.

=cut
