use strict;
use warnings;
use lib 't/lib';
use OribiTest;
use Test::More;

# Nothing is left behind by a request: objects are destroyed, descriptors closed, resident memory stays flat.

plan skip_all => 'needs /proc' unless -r '/proc/self/statm';

package Counted;
my $alive = 0;
sub new { $alive++; return bless {@_[1 .. $#_]}, $_[0] }
sub DESTROY { $alive-- }
sub getline { my ($self) = @_; return $self->{n}++ < 3 ? 'x' x 1000 : die_or_end($self) }
sub die_or_end { die "in the body\n" if $_[0]{dies}; return undef }
sub close { }

package main;

my @TEXT = ('Content-Type' => 'text/plain');
my $path = __FILE__;

my %ROUTE = (
    array => sub { [200, [@TEXT, 'X-A' => 'b'], ['x', undef, 'y' x 100]] },
    flagged => sub { my $s = "\xe9" x 100; utf8::upgrade($s); [200, [@TEXT, 'X-A' => $s], [$s]] },
    object => sub { [200, [@TEXT], Counted->new] },
    object_dies => sub { [200, [@TEXT], Counted->new(dies => 1)] },
    handle => sub { open my $fh, '<', $path or die; [200, [@TEXT], $fh] },
    delayed => sub { my $o = Counted->new; sub { $_[0]->([200, [@TEXT], [$o ? 'x' : '']]) } },
    stream => sub { my $o = Counted->new; sub { my $w = $_[0]->([200, [@TEXT]]); $w->write($o ? 'x' : ''); $w->close } },
    never => sub { sub { } },
    dies => sub { my ($env) = @_; $env->{object} = Counted->new; die "on purpose\n" },
    dies_object => sub { die Counted->new },
    bad => sub { [200, [@TEXT], {object => Counted->new}] },
    slurp => sub { my ($env) = @_; local $/; my $input = $env->{'psgi.input'}; my $body = <$input>; [200, [@TEXT], [length $body]] },
    cleanup => sub { my ($env) = @_; my $o = Counted->new; push @{ $env->{'psgix.cleanup.handlers'} }, sub { $o = undef }; [200, [@TEXT], ['x']] },
    hint => sub { my ($env) = @_; $env->{'psgix.informational'}->(103, [Link => '</a>']); [200, [@TEXT], ['x']] },
    io => sub { my ($env) = @_; my %copy = %$env; [200, [@TEXT], ['x']] },
    env => sub { my ($env) = @_; $env->{"key.$_"} = Counted->new for 1 .. 40; [200, [@TEXT], ['x']] },
    close_input => sub { my ($env) = @_; close $env->{'psgi.input'}; [200, [@TEXT], ['x']] },
    lent => sub {
        my ($env) = @_;
        open $env->{'psgi.input'}, '<', \'other text';
        bless $env->{$_}, 'Some::Class' for qw(psgi.errors psgi.version psgix.cleanup.handlers);
        ${ *{ $env->{'psgi.errors'} } }{object} = Counted->new;
        push @{ $env->{'psgi.version'} }, Counted->new;
        $env->{$_} = Counted->new for qw(psgix.io psgix.informational);
        return [200, [@TEXT], ['x']];
    },
    alive => sub { [200, [@TEXT], [$alive]] },
    memory => sub {
        open my $fh, '<', '/proc/self/statm' or die;
        my $pages = (split ' ', <$fh>)[1];
        my @fds = glob '/proc/self/fd/*';
        [200, [@TEXT], [$pages * 4096 . ' ' . @fds]];
    },
);
# The helper thread has a descriptor of its own, once a worker and not once a request; it comes with the first slow
# call, whenever that is.
my $server = serve(sub { my ($env) = @_; $ROUTE{ substr $env->{PATH_INFO}, 1 }->($env) }, lint => 0, verbose => 0, body_memory_max => '4K', helper => 'off');

my $client = $server->connect;

sub ask {
    my ($path, $body) = @_;
    $client->send(
        defined $body
        ? "POST /$path HTTP/1.1\r\nHost: a\r\nX-Own-Field: c\r\nContent-Length: " . length($body) . "\r\n\r\n$body"
        : "GET /$path HTTP/1.1\r\nHost: a\r\nX-Own-Field: c\r\n\r\n"
    );
    my $res = $client->response;
    $res = $client->response if $res->{status} < 200;
    $client = $server->connect if !$res->{complete} || $res->{fields}{connection};
    return $res->{body};
}

my @routes = grep { !/\A(?:alive|memory)\z/ } sort keys %ROUTE;
for my $route (@routes) {
    for my $body (undef, 'small', 'l' x 10_000) {
        ask($route, $body) for 1 .. 3;
        is ask('alive'), 0, "$route: nothing of it is alive";
    }
}

# 10,000 requests of every kind, after as many as it takes for pools and caches to fill.
sub round {
    my ($count) = @_;
    for my $i (1 .. $count) {
        my $route = $routes[$i % @routes];
        ask($route, $i % 3 ? undef : 'b' x ($i % 2 ? 100 : 5000));
    }
}
# A connection that we have left is closed when the server hears of it, which is soon and not at once: asked until
# nothing changes any more.
sub settled {
    my ($memory, $fds, $same) = (0, 0, 0);
    my $end = time + 10;
    while ($same < 10 && time < $end) {
        ($memory, my $now) = split ' ', ask('memory');
        $same = $now == $fds ? $same + 1 : 0;
        $fds  = $now;
        select undef, undef, undef, 0.005;
    }
    return ($memory, $fds);
}
round(2_000);
my ($memory_before, $fds_before) = settled();
round(10_000);
my ($memory_after, $fds_after) = settled();
is $fds_after, $fds_before, 'descriptors';
cmp_ok $memory_after - $memory_before, '<', 200 * 1024, 'resident memory stays flat over 10,000 requests'
    or diag "$memory_before -> $memory_after";

is $server->stop, 0;
done_testing;
