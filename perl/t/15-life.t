use strict;
use warnings;
use lib 't/lib';
use OribiTest;
use POSIX ();
use Test::More;

# Around the call: cleanup, harakiri, exceptions, exit, fork, signals, memory.

package Exception;
use overload '""' => sub { "exception object: $_[0]{text}" }, bool => sub {0}, fallback => 1;
sub throw { my ($class, $text) = @_; die bless { text => $text }, $class }

package Unprintable;
use overload '""' => sub { die "no text\n" }, fallback => 1;

package TiedList;
use Tie::Array;
our @ISA = 'Tie::StdArray';

package TiedDeaf;
sub TIEARRAY { return bless [] }
sub FETCHSIZE { die "no size\n" }

package Guard;    # how many there are
our $count = 0;
sub new { $count++; return bless [], $_[0] }
sub DESTROY { $count-- }

package main;

my @TEXT = ('Content-Type' => 'text/plain');
my (@log, $alarms) = ();
my @for_all = (sub { push @log, 'for all' });
my %ROUTE = (
    hello => sub { [200, [@TEXT], ['hello']] },
    pid => sub { [200, [@TEXT], [$$]] },
    log => sub { [200, [@TEXT], [join ',', splice @log]] },
    cleanup => sub {
        my ($env) = @_;
        push @{ $env->{'psgix.cleanup.handlers'} }, sub { push @log, 'one ' . ($_[0] == $env ? 'env' : 'other') }, sub { die "in cleanup\n" },
            sub { push @log, 'three' };
        [200, [@TEXT], ['x']];
    },
    cleanup_circle => sub {
        my ($env) = @_;
        $env->{guard} = Guard->new;
        push @{ $env->{'psgix.cleanup.handlers'} }, sub { push @log, "with $env->{PATH_INFO}" };
        [200, [@TEXT], ['x']];
    },
    cleanup_circle_of_its_own => sub {
        my ($env) = @_;
        $env->{guard} = Guard->new;
        $env->{'psgix.cleanup.handlers'} = [sub { push @log, "with $env->{PATH_INFO}" }];
        [200, [@TEXT], ['x']];
    },
    cleanup_for_all => sub { my ($env) = @_; $env->{'psgix.cleanup.handlers'} = \@for_all; [200, [@TEXT], ['x']] },
    cleanup_lets_go => sub {
        my ($env) = @_;
        my $lets_go = sub {
            my @handlers = @{ delete $_[0]{'psgix.cleanup.handlers'} };
            @handlers = ();
            push @log, 'first';
            my @fill = map { [1 .. 8] } 1 .. 500;
            undef $env;
        };
        $env->{'psgix.cleanup.handlers'} = [$lets_go, sub { push @log, 'second' }];
        [200, [@TEXT], ['x']];
    },
    guards => sub { [200, [@TEXT], [$Guard::count]] },
    cleanup_replaced => sub { my ($env) = @_; $env->{'psgix.cleanup.handlers'} = [sub { push @log, 'mine' }]; [200, [@TEXT], ['x']] },
    cleanup_after_death => sub { my ($env) = @_; push @{ $env->{'psgix.cleanup.handlers'} }, sub { push @log, 'after death' }; die "dead\n" },
    cleanup_grows => sub {
        my ($env) = @_;
        my $handlers = $env->{'psgix.cleanup.handlers'};
        push @$handlers, sub { push @log, 'first'; push @$handlers, sub { push @log, 'added' } };
        [200, [@TEXT], ['x']];
    },
    cleanup_slow => sub {
        my ($env) = @_;
        push @{ $env->{'psgix.cleanup.handlers'} }, sub { push @log, 'done' };
        [200, [@TEXT], ['x' x 5_000_000]];
    },
    cleanup_for_ever => sub {
        my ($env) = @_;
        my $again;
        $again = sub { push @log, 'again'; push @{ $env->{'psgix.cleanup.handlers'} }, $again };
        push @{ $env->{'psgix.cleanup.handlers'} }, $again;
        [200, [@TEXT], ['x']];
    },
    cleanup_tied => sub {
        my ($env) = @_;
        tie my @handlers, 'TiedList';
        push @handlers, sub { push @log, 'tied' };
        $env->{'psgix.cleanup.handlers'} = \@handlers;
        [200, [@TEXT], ['x']];
    },
    cleanup_deaf => sub { my ($env) = @_; tie my @handlers, 'TiedDeaf'; $env->{'psgix.cleanup.handlers'} = \@handlers; [200, [@TEXT], ['x']] },
    harakiri => sub { my ($env) = @_; $env->{'psgix.harakiri.commit'} = 1; [200, [@TEXT], ['last']] },
    harakiri_late => sub {
        my ($env) = @_;
        push @{ $env->{'psgix.cleanup.handlers'} }, sub { $_[0]{'psgix.harakiri.commit'} = 1 };
        [200, [@TEXT], ['last']];
    },
    die => sub { die "with words\n" },
    die_lines => sub { die "first line\nsecond line\n" },
    die_object => sub { Exception->throw('printed') },
    die_hash => sub { die { code => 1 } },
    die_unprintable => sub { die bless {}, 'Unprintable' },
    die_empty => sub { die '' },
    next => sub { no warnings; next },
    last => sub { no warnings; last SOMEWHERE },
    errors => sub { [200, [@TEXT], ["[$@][" . ($! + 0) . ']']] },
    spoil => sub { $@ = 'spoilt'; $! = 5; $/ = 'x'; $, = '-'; $_ = 'topic'; [200, [@TEXT], ['x']] },
    exit => sub { exit 3 },
    exit_late => sub { sub { my $w = $_[0]->([200, [@TEXT]]); $w->write('begun'); exit 4 } },
    fork_exit => sub { my $pid = fork; exit 7 if !$pid; waitpid $pid, 0; [200, [@TEXT], [$? >> 8]] },
    fork_die => sub { my $pid = fork; die "child\n" if !$pid; waitpid $pid, 0; [200, [@TEXT], [$? >> 8]] },
    fork_return => sub { my $pid = fork; waitpid $pid, 0 if $pid; [200, [@TEXT], [$pid ? $? : 'from the child']] },
    fork_stream => sub { sub { my $pid = fork; waitpid $pid, 0 if $pid; my $w = $_[0]->([200, [@TEXT]]); $w->write("$?"); $w->close } },
    alarm => sub { local $SIG{ALRM} = sub { die "alarm\n" }; alarm 1; select undef, undef, undef, 20; [200, [@TEXT], ['no alarm']] },
    handler => sub { $SIG{USR2} = sub { $alarms++; die "in a handler\n" }; [200, [@TEXT], ['set']] },
    handled => sub { [200, [@TEXT], [$alarms || 0]] },
);
my $app = sub { my ($env) = @_; $ROUTE{ substr $env->{PATH_INFO}, 1 }->($env) };
my $server = serve($app, lint => 0);

sub body { return get($server, "/$_[0]")->{body} }

subtest 'cleanup handlers' => sub {
    is body('cleanup'), 'x';
    is body('log'), 'one env,three', 'all run, whatever one of them does';
    like $server->log_text, qr{GET /cleanup: a cleanup handler died: in cleanup};
    is body('cleanup_replaced'), 'x';
    is body('log'), 'mine';
    is get($server, '/cleanup_after_death')->{status}, 500;
    is body('log'), 'after death';
    is body('cleanup_grows'), 'x';
    is body('log'), 'first,added';
    is body('hello'), 'hello';
    is body('log'), '', 'and none of them twice';
    is body('cleanup_for_ever'), 'x';
    is scalar(split /,/, body('log')), 1024, 'those that go on adding come to an end';
    like $server->log_text, qr{GET /cleanup_for_ever: 1024 cleanup handlers of one request have run, the others are left out};
    for my $route (qw(cleanup_circle cleanup_circle_of_its_own)) {
        is body($route), 'x' for 1 .. 3;
        is body('log'), join(',', ("with /$route") x 3), "$route: a handler with the environment in its closure";
        is body('guards'), 0, 'keeps no environment when it has run';
    }
    is body('cleanup_for_all'), 'x' for 1, 2;
    is body('log'), 'for all,for all', "a list that the application keeps stays the application's";
    is body('cleanup_lets_go'), 'x';
    is body('log'), 'first,second', 'a handler that takes the list away';
    is body('cleanup_tied'), 'x';
    is body('log'), 'tied', 'a tied list';
    my $pid = body('pid');
    is body('cleanup_deaf'), 'x';
    is body('pid'), $pid, 'a tied list that dies ends no worker';
    like $server->log_text, qr{GET /cleanup_deaf: psgix\.cleanup\.handlers cannot be read: no size};
    my $client = $server->connect;
    $client->send("GET /cleanup_slow HTTP/1.1\r\nHost: a\r\n\r\n");
    $client->fill;
    is body('log'), 'done', 'they do not wait until a slow client has read everything';
    is length $client->response->{body}, 5_000_000;
};

subtest 'exceptions' => sub {
    my %want = (
        die => qr/the application died: with words$/m,
        die_lines => qr/the application died.*?first line.*?second line/s,
        die_object => qr/the application died: \w+: exception object: printed$/m,
        die_hash => qr/the application died: HASH/,
        die_unprintable => qr/the application died: an exception of class Unprintable that cannot be printed/,
        die_empty => qr/the application died: Died at /,
        next => qr/the application died: Can't "next" outside a loop block/,
        last => qr/the application died: Label not found for "last SOMEWHERE"/,
    );
    for my $route (sort keys %want) {
        my $mark = length $server->log_text;
        is get($server, "/$route")->{status}, 500, $route;
        like substr($server->log_text, $mark), $want{$route};
        like substr($server->log_text, $mark), qr{GET /$route: };
    }
    is body('errors'), '[][0]', 'the next request finds $@ and $! empty';
    is body('spoil'), 'x';
    is body('errors'), '[][0]';
    is body('hello'), 'hello';
};

subtest 'fork' => sub {
    my $client = $server->connect;
    for my $case ([fork_exit => 7], [fork_die => 255], [fork_return => 0], [fork_stream => 255 << 8]) {
        my ($route, $status) = @$case;
        $client->send("GET /$route HTTP/1.1\r\nHost: a\r\n\r\n");
        my $res = $client->response;
        is $res->{body}, $status, "$route: the child ends as a script would and says nothing to our client";
    }
    $client->send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    is $client->response->{body}, 'hello', 'and the connection is as before';
    like $server->log_text, qr/^child$/m, 'what the child died of is on standard error';
};

subtest 'signals of the application' => sub {
    is get($server, '/alarm')->{status}, 500;
    like $server->log_text, qr{GET /alarm: the application died: alarm};
    is body('handler'), 'set';
    kill USR2 => $server->pid;
    wait_until('the handler', sub { body('handled') });
    is body('handled'), 1, 'a handler runs while the worker waits';
    like $server->log_text, qr/a signal handler died: in a handler/;
};

subtest 'harakiri' => sub {
    my $last = serve($app, lint => 0);
    my $res = get($last, '/harakiri');
    is $res->{body}, 'last';
    is_deeply $res->{fields}{connection}, ['close'], 'announced';
    wait_until('the worker to end', sub { $last->ended });
    is $last->{status}, 0;
    $last = serve($app, lint => 0);
    is get($last, '/harakiri_late')->{body}, 'last';
    wait_until('the worker to end', sub { $last->ended });
    is $last->{status}, 0;
};

subtest 'exit' => sub {
    my $last = serve($app, lint => 0);
    is get($last, '/exit')->{status}, 500, 'the client of an application that exits is told';
    wait_until('the worker to end', sub { $last->ended });
    is $last->{status} >> 8, 3, 'the process ends as the application said';
    like $last->log_text, qr{GET /exit: the application called exit};
    $last = serve($app, lint => 0);
    my $res = get($last, '/exit_late');
    is $res->{complete}, 0, 'a begun answer is cut';
    wait_until('the worker to end', sub { $last->ended });
    is $last->{status} >> 8, 4;
};

is $server->stop, 0;
done_testing;
