package Oribi;
use 5.016;
use strict;
use warnings;

our $VERSION = '0.100';    # release 0.1.0: the last three digits are one of the middle number and two of the last

require XSLoader;
require IO::File;
require PerlIO::scalar;
XSLoader::load('Oribi', $VERSION);

require Oribi::PartedInput;
require Oribi::Settings;
require Oribi::Supervisor;
require Oribi::WebSocket;
require Oribi::Events;

# Pointers into C: a new thread gets none of them.
sub Oribi::Options::CLONE_SKIP    {1}
sub Oribi::Listeners::CLONE_SKIP  {1}
sub Oribi::Worker::CLONE_SKIP     {1}
sub Oribi::Core::Process::CLONE_SKIP {1}

# What a call dies with that has run for longer than call_timeout. Not caught it becomes a 504. Its text says where the
# call stood, innermost first.
package Oribi::CallTimeout {
    our $VERSION = '0.100';
    use overload '""' => sub { $_[0]{text} }, fallback => 1;

    sub new {
        my ($class, $frames) = @_;
        my ($place) = $frames =~ / (at .* line [0-9]+)$/m;
        my $text = 'Oribi::CallTimeout: the call has run for longer than call_timeout' . (defined $place ? " $place." : '');
        return bless { text => "$text\n$frames" }, $class;
    }
}

# What a call dies with whose client has gone, where cancel_gone says so. Not caught it ends the request without an
# answer and without a line in the error log.
package Oribi::ClientGone {
    our $VERSION = '0.100';
    use overload '""' => sub {'Oribi::ClientGone: the client has left'}, fallback => 1;

    sub new { my ($class) = @_; return bless {}, $class }
}

# What may run code of the application's, which may die: called from C, inside an eval.
sub _text { return "$_[0]" }                                               # of an object that overloads ""
sub _commits { return $_[0]{'psgix.harakiri.commit'} ? 1 : 0 }             # of an environment
sub _list { return [@{ $_[0] }] }                                          # of a tied array

# Publishes a message to all who have subscribed to the channel: see below.
sub publish {
    my ($channel, $data, %how) = @_;
    my ($event, $binary) = delete @how{qw(event binary)};
    require Carp;
    Carp::croak('Oribi: publish takes a channel and data')        unless defined $channel && defined $data;
    Carp::croak('Oribi: publish knows no ' . join ', ', sort keys %how) if %how;
    my ($name, $bytes) = ("$channel", "$data");
    utf8::encode($name);
    if ($binary) {
        utf8::downgrade($bytes, 1) or Carp::croak('Oribi: publish: a binary message with a wide character: encode text before it is published as such');
    }
    else {
        utf8::encode($bytes);
    }
    if (defined $event) {
        $event = "$event";
        utf8::encode($event);
    }
    local $@;
    eval { _publish($name, $event, $bytes, $binary ? 1 : 0); 1 } and return;
    my ($why) = $@ =~ /\A(.*) at \S+ line [0-9]+/s;
    Carp::croak($why // $@);
}

our $process;    # of this worker

# "0.1.0" of "0.100": the number that both languages' releases have.
sub release {
    my ($first, $middle, $last) = $VERSION =~ /\A(\d+)\.(\d)(\d\d)\z/ or return $VERSION;
    return join '.', $first, $middle, 0 + $last;
}

our $RELEASE = release();    # for C

# The process's title, where there is a new one.
sub show_title { my ($text) = @_; _title($text) if defined $text; return }

# True in a worker from the moment a stop of the server is announced.
sub stopping { return $process && $process->stopping ? 1 : 0 }

# `use Oribi` at a command line makes oribi() callable there; modules that need it ask for it in the same way.
sub import {
    my ($class) = @_;
    no strict 'refs';
    *{ caller() . '::oribi' } = \&oribi;
    return;
}

# oribi($app, %options): options may also follow on the command line.
sub oribi {
    my ($app, %options) = @_;
    my $self = Oribi->new(%options);
    my $error = $self->{settings}->core->_parse(@ARGV);
    _die($error) if defined $error;
    return $self->run($app);
}

sub new {
    my ($class, %options) = @_;
    my $settings = Oribi::Settings->new;
    eval { $settings->set_all(command => %options); 1 } or _die($@);
    return bless { settings => $settings }, $class;
}

# Returns when the server was told to stop.
sub run {
    my ($self, $app) = @_;
    require Oribi::Command;
    my $settings = $self->{settings};
    my $code = eval { Oribi::Command::prepare($settings); Oribi::Supervisor::serve($settings, $app) };
    _die($@) unless defined $code;
    exit $code if $code != 0;
    _signals_give_back();
    return;
}

# A line for each mistake, and exit code 1 when it is not caught.
sub _die {
    my ($error) = @_;
    my @lines = Oribi::App::lines_of($error);
    $! = 1;    ## no critic: the exit code of a die that is not caught
    die map {"oribi: $_\n"} @lines;
}

1;

__END__

=encoding utf8

=head1 NAME

Oribi - application server for PSGI on a C core

=head1 SYNOPSIS

    oribi-psgi app.psgi
    plackup -s Oribi app.psgi
    perl -MOribi -e 'oribi "app.psgi"' -- --port 3000

    use Oribi;
    Oribi->new(bind => '127.0.0.1:9292', workers => 4)->run(sub {
        my ($env) = @_;
        return [200, ['Content-Type' => 'text/plain'], ["hello\n"]];
    });

=head1 DESCRIPTION

A pre-forking application server for PSGI, over HTTP/1.1 and HTTP/2, with or without a proxy. A C core reads, parses,
buffers, times out and writes.

No request waits while another worker is idle; keep-alive and slow clients hold no worker. If a new version does not start
at a reload, the old one goes on serving. Every size and every wait has a limit; a call that takes too long ends with 504
and a trace. Metrics, a live page and stack traces answer even while every worker is stuck.

=head1 INSTALLATION

Needs Linux, Perl 5.16 or newer with Plack, and a C compiler with Perl's headers. On Debian or Ubuntu, as root:

    apt-get install build-essential zlib1g-dev libzstd-dev libbrotli-dev libssl-dev libnghttp2-dev pkg-config
    apt-get install cpanminus libperl-dev libplack-perl

Then, in a clone of the repository and in the folder of F<app.psgi>:

    cpanm "$(tools/package-dist)"
    oribi-psgi

From Starman, Starlet, Gazelle or uWSGI: F<moving.md> (L</DOCUMENTS>).

Without a C compiler, C<cpanm --pureperl> installs L<Oribi::Pure>, which serves in Perl alone. Take Twiggy, Feersum or
Mojolicious' own server for applications of the event loop; WebSockets and event streams need none (F<websocket.md>,
F<events.md>).

=head1 METHODS

=head2 new(%options)

Every option of L<oribi-psgi> with underscores in its name, the hooks below, and

=over 4

=item listen_sock

A socket that listens already.

=item server_ready

Code that is called once the server listens, with a hash reference of C<host>, C<port>, C<proto> and C<server_software>.

=back

Dies with one line for an unknown name or a bad value.

=head2 run($app)

Serves the code reference, or loads it from the F<.psgi> file of that name. Returns when the server has stopped. When it
cannot serve, it dies with one line or ends the process with exit code 1.

=head1 FUNCTIONS

=head2 oribi($app, %options)

Exported. The same in one call; options on the command line win.

=head2 Oribi::stopping()

True in a worker from the moment a stop of the server is announced: for a readiness check, with C<drain_delay>. Not
exported.

=head1 HOOKS

Code references, given to new() or in the configuration file. One that dies is logged; where it is
C<after_fork>, the worker does not serve, and its start has failed.

    before_fork($index)                            in the mold, before each worker
    after_fork($index, $generation)                in a new worker
    after_worker_ready($index, $generation)        in a worker that serves
    before_refork($index, $generation)             in a worker that a mold is to be forked off (refork_after)
    before_worker_exit($server, $app, $index, $generation)   in a worker that ends in good order; also named child_exit
    on_worker_exit($pid, $status, $reason, $index) in the supervisor; also named after_exit
    before_reload, server_ready                    in the supervisor

C<$index> is the worker's place: 0, 1, 2 and so on, and beyond C<workers> where new workers start beside old ones, as
at a reload. The I<mold> is the process that has loaded the application. Open connections to databases and the like in
C<after_fork> or at first use: all workers share what is opened before the fork.
Each worker has its own C<rand>, also where C<srand> ran before the fork.

=head1 THE ENVIRONMENT

PSGI 1.1, with

=over 4

=item psgi.streaming, psgi.multiprocess, psgi.multithread, psgi.nonblocking, psgi.run_once

The first two are true (C<psgi.multiprocess> is false with C<single>), the others false.

=item PATH_INFO, REQUEST_URI

The path is decoded once; a path whose percent escapes are no bytes is answered with 400. C<REQUEST_URI> is raw, without scheme and host. C<OPTIONS *>
has the path C<*>.

=item REMOTE_ADDR, REMOTE_PORT

Numeric text for IPv4 and IPv6. On a unix socket both keys are absent, unless a trusted proxy names the client: set
C<trusted_proxies> to C<unix>, and let the proxy write C<X-Forwarded-For> (F<operations.md>).

=item psgi.input

A seekable handle on the body, which has been read before the application is called. Small bodies are in memory, longer
ones in an unlinked file. It gives bytes, whatever C<-C> or C<PERL_UNICODE> say. A chunked body is decoded: C<CONTENT_LENGTH>
is its length, and C<HTTP_TRANSFER_ENCODING> is absent. With C<multipart_stream> a long form is tied to L<Oribi::PartedInput>.

=item psgi.errors

A handle of its own on what STDERR writes to. Like all values here it is the request's: the next request sees nothing
that an application does to it (blessing, tying, opening C<psgi.input> anew, changing C<psgi.version>, keeping a
reference). STDERR itself is the process's.

=item psgix.io

The client's socket, made when it is first read; non-blocking until C<< $io->blocking(1) >>. After an application that has
read it answers as usual, the connection closes. To take the connection over, return a delayed response and return from it
without calling its responder: the socket is then the application's, and closes with its last handle. C<read> and
C<readline> first give what the client has sent behind the request; C<sysread> does not. Behind a frontend (C<tls://>) the
socket ends with one answer unless that is an upgrade (101).

=item oribi.unread

The bytes behind an C<Upgrade> request whose client did not wait for the answer, for C<sysread>.

=item psgix.informational

Code that sends an interim answer: C<< $env->{'psgix.informational'}->(103, [Link => '</style.css>; rel=preload']) >>.
Does nothing for HTTP/1.0 clients and once the answer has begun. Absent with C<early_hints> off, for proxies that do not
understand interim answers (nginx before 1.29).

=item oribi.websocket, oribi.events

There for the handshake of a WebSocket, and for a request for an event stream (F<websocket.md>, F<events.md>).

=item oribi.queue_us

Microseconds that the request has waited for its call.

=item oribi.gone?

C<< ->() >>: true when the client has left; false once the answer is complete. With C<cancel_gone> a call whose client has
left dies with an C<Oribi::ClientGone>; not caught, it ends the request without an answer and without a line in the error
log (F<monitoring.md>).

=item oribi.extend_deadline

C<< ->($seconds) >>: the running call may take so long from now. A call longer than C<call_timeout> dies with an
C<Oribi::CallTimeout>, whose text says where the call stood; not caught, it is a 504. A call that does not return to Perl
for two more seconds is answered with 504, and its worker is replaced; the error log shows where it stood.

=item oribi.trailers

Fields behind a chunked body, a hash reference with lower-case names; absent without any. Fields that decide framing, routing or access, or speak
of the content, are dropped.

=item psgix.harakiri, psgix.harakiri.commit

A true C<psgix.harakiri.commit>, set before the answer or in a cleanup handler, ends this worker with this request; a new
one takes its place. Waiting and pipelined requests and kept connections go to other workers, so the answer needs no
C<Connection: close>. A value that dies when asked whether it is true is logged, and the worker goes on.

=item psgix.cleanup, psgix.cleanup.handlers

Code that is pushed there is called with the environment after the answer was handed over. Handlers may push others; 1,024
at most run. One that dies is logged, and the others run. Meanwhile the worker takes no call: the connection's next request
goes to an idle worker. Then the array is emptied, so that a handler may hold the environment; an array of the application's own stays
if anything else refers to it.

=item psgix.input.buffered

True.

=back

=head1 RESPONSES

Answers to C<HEAD>, and those of 204 and 304, have no body, whatever the application gives.

Arrays of strings are sent without a copy. The kernel sends handles on files and objects with a C<path> method; files whose
size is not that of their content (F</proc>, F</sys>) are read. Other handles and objects with C<getline> are read in
records of 64 KiB. C<close> is called in every case. Delayed responses and streaming writers work as the PSGI specification
says; there is no C<poll_cb>. C<< $writer->write >> waits while the client is slow, and dies when the client has gone.
Both end with the call: keep neither responder nor writer for later, but wait inside (C<< $cv->recv >> of AnyEvent). A
responder that was not called is a 500, unless C<psgix.io> was taken; a writer that is still open is closed.

An application that dies gets its client a 500 and its message into the log. So does an answer that is none: a status that
is no number, headers in odd number, CR, LF or NUL in a header value, a body that is a reference to something else,
characters above 255. The log line says which. An L<Oribi::Form::Error> is answered with its own status, 400 or 413, and
one line of the level info.

A body that the application has framed itself (C<Transfer-Encoding: chunked>, as Plack::Middleware::Chunked does it) is
decoded, and its content framed anew; trailer fields are dropped.

These mistakes are mended, and logged as warnings at a limited rate: a header with an undefined value is left out, white
space and line ends at the end of a value are cut off, a folded value is joined with spaces, a C<Content-Length> that is
empty or has white space around it is counted anew, and of a status like C<200 OK> the number is taken.

C<exit> inside the application ends the worker: its client gets 500 if nothing was sent yet, C<END> blocks run, and a new
worker takes its place. A child that the application forks in code that the server calls (the call, C<getline>, C<close>,
cleanup handlers, signal handlers, destructors) ends when it returns from there. It has no connection, and writing to a
writer dies there.

=head1 COMPILING TEMPLATES BEFORE THE FORK

With C<preload> (the default) all workers share what F<app.psgi> loads: let it load the templates too.

Text::Xslate, which keeps compiled templates in the object:

    my $xslate = Text::Xslate->new(path => ['templates'], cache => 1);
    find({ no_chdir => 1, wanted => sub {
        $xslate->load_file(File::Spec->abs2rel($_, 'templates')) if /\.tx\z/;
    } }, 'templates');

Template Toolkit, which keeps them in its provider:

    my $tt = Template->new(INCLUDE_PATH => 'templates', STAT_TTL => 60);
    find({ no_chdir => 1, wanted => sub {
        $tt->context->template(File::Spec->abs2rel($_, 'templates')) if /\.tt\z/;
    } }, 'templates');

Mojo::Template, one object for each file:

    my %template = map { $_ => Mojo::Template->new->parse(path($_)->slurp) } glob 'templates/*.ep';

=head1 PUBLISHING

    Oribi::publish(news => 'hello', event => 'note');
    Oribi::publish($channel => $bytes, binary => 1);

Publishes a message to all who have subscribed to the channel, WebSockets and event streams: F<publish.md>
(L</DOCUMENTS>). Text is characters. From a call, from a job that the application has forked, and from another program of
the same user, which finds the server by the folder it runs in, or by the control socket that C<ORIBI_CONTROL> names. Dies
where the message is not possible, no server answers, or there was no room for a second.

=head1 PROCESSES

See L<Oribi::Supervisor>. C<END> blocks and destructors run when a worker ends (C<TERM>, C<QUIT>, reload, recycling, C<exit>),
unless it is killed or stopped at once (C<INT>). The title of a process says what it is; C<$0> keeps the value that the application knows.

=head1 DOCUMENTS

The pages of F<doc/> in the distribution are installed beside this module, in F<Oribi/doc>; C<oribi-psgi --help> ends with the path:

    tutorial-perl.md  from cpanm to a systemd service with reloads, step by step
    tutorial-websocket.md  a page whose visitors talk to each other, in ten minutes
    options.md        every option, what wins over what, names of other servers
    operations.md     signals, reload, upgrade, recycling, logs, who the client is
    packages.md       Debian packages: building, installing, upgrading and removing them
    monitoring.md     metrics, the application's own metrics, where calls stand, alerts, what to do about them
    moving.md         from other servers, step by step
    logs.md           access log, error log, request ids, rotation
    forms.md          forms, cookies and uploads; Plack::Request with Oribi's parsers
    http-parser.md    heads of requests and responses from strings
    platforms.md      systems that the server runs on, and what is missing elsewhere
    files.md          files without the application, with recipes
    compression.md    compressed answers
    streaming.md      streams, server-sent events, sockets that the application takes
    websocket.md      WebSockets
    events.md         server-sent events
    publish.md        messages to all who have subscribed to a channel
    deployment.md     systemd, start_server, containers, nginx
    tls.md            TLS and HTTP/2 without a proxy
    fleet.md          several nodes behind HAProxy, nginx or Kubernetes
    prefork.md        the supervisor as a library
    pure.md           serving without a compiler
    redis.md          a client of Redis, a distribution of its own
    compatibility.md  what was tried with what, and what was changed for whom
    conformance.md    HTTP: what was tried, and what is left to the application
    development.md    pages of errors, the request log, Ctrl-C and debuggers in development
    benchmarks.md     how fast it is, beside others, and how that was measured

=head1 SEE ALSO

L<oribi-psgi>, L<Oribi::Metrics>, L<Oribi::Form>, L<Oribi::Cookie>, L<Oribi::Multipart>, L<Oribi::Plack>,
L<Oribi::HTTPParser>, L<Oribi::Prefork>, L<Plack::Handler::Oribi>, L<PSGI>, L<PSGI::Extensions>

=head1 LICENSE

MIT.

=cut
