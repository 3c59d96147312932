package Oribi::Redis;
use 5.016;
use strict;
use warnings;
use Oribi::Redis::Error;
use Oribi::Redis::Scan;
use Oribi::Redis::Script;
use Oribi::Redis::Subscription;
use Scalar::Util ();
use XSLoader;

our $VERSION = '0.100';

XSLoader::load(__PACKAGE__, $VERSION);

my %KNOWN = map { $_ => 1 } qw(
    url host port path db user password client_name protocol utf8 tls connect_timeout_ms read_timeout_ms write_timeout_ms
    reconnect_attempts reconnect_delay_ms reconnect_delay_max_ms resend sentinels service sentinel_user sentinel_password
);

sub new {
    my ($class, @options) = @_;
    unshift @options, ref $options[0] eq 'HASH' ? %{ shift @options } : (url => shift @options) if @options % 2;
    my %options = @options;
    for my $name (sort keys %options) {
        Oribi::Redis::Error::Usage->throw("Oribi::Redis has no option $name") if !$KNOWN{$name};
    }
    if ($options{sentinels}) {
        my $right = ref $options{sentinels} eq 'ARRAY' && @{ $options{sentinels} } && defined $options{service};
        Oribi::Redis::Error::Usage->throw('sentinels is an array of addresses, and service the name that they know') if !$right;
    }
    $options{url} //= $ENV{REDIS_URL} if !defined $options{host} && !defined $options{path} && !$options{sentinels};
    require Oribi::Redis::TLS if $options{tls} || ($options{url} // '') =~ /\Arediss:/i;
    my $self = bless { options => \%options }, $class;
    $self->_attach(\%options);
    delete $options{password};    # not for dumps; what is sent at a connection's beginning is kept apart
    delete $options{sentinel_password};
    delete $options{url};
    $self->{options}{tls_options} = $options{tls} if ref $options{tls};
    return $self;
}

sub _is_error { my ($value) = @_; return Scalar::Util::blessed($value) && $value->isa('Oribi::Redis::Error') }

# Options for an address: host:port, [address]:port, or the path of a unix socket.
sub _place {
    my ($address, $port_else) = @_;
    return (path => $address) if $address =~ m{/};
    my ($host, $port) = $address =~ /\A(?:\[(.+)\]|([^:]*)):([0-9]+)\z/ ? ($1 // $2, $3) : ($address, $port_else);
    return (host => length $host ? $host : '127.0.0.1', port => $port);
}

# Another client of the same place, with a connection of its own.
sub another {
    my ($self) = @_;
    my $other = bless { options => { %{ $self->{options} } } }, ref $self;
    $other->_attach_as($self);
    return $other;
}

sub hello {
    my ($self, $protocol) = @_;
    return $self->command('HELLO', $protocol // ());
}

# --- transactions ---

sub multi {
    my ($self, @arguments) = @_;
    my $code = pop @arguments;
    my %with = @arguments;
    Oribi::Redis::Error::Usage->throw('multi() takes code last') if ref $code ne 'CODE';
    my $watched = $with{watch} // [];
    my $queue   = bless { commands => [] }, 'Oribi::Redis::Transaction';
    $self->command('WATCH', @$watched) if @$watched;
    if (!eval { $code->($queue, $self); 1 }) {
        my $error = $@;
        eval { $self->command('UNWATCH') } if @$watched;
        die $error;    ## no critic (RequireCarping): it is the caller's own
    }
    if (!@{ $queue->{commands} }) {
        $self->command('UNWATCH') if @$watched;
        return [];
    }
    my @replies = $self->pipeline(['MULTI'], @{ $queue->{commands} }, ['EXEC']);
    my $results = pop @replies;
    if (_is_error($results)) {
        my ($first) = grep { _is_error($_) } @replies;
        die $first // $results;    ## no critic (RequireCarping)
    }
    return $results;    # undef: a watched key has changed
}

# --- iterators, scripts, subscriptions ---

sub _options {
    my (%options) = @_;
    return map { (uc $_ => $options{$_}) } sort keys %options;
}

sub scan  { my ($self, @options)       = @_; return Oribi::Redis::Scan->new($self, 1, 'SCAN', _options(@options)) }
sub sscan { my ($self, $key, @options) = @_; return Oribi::Redis::Scan->new($self, 1, 'SSCAN', $key, _options(@options)) }
sub hscan { my ($self, $key, @options) = @_; return Oribi::Redis::Scan->new($self, 2, 'HSCAN', $key, _options(@options)) }
sub zscan { my ($self, $key, @options) = @_; return Oribi::Redis::Scan->new($self, 2, 'ZSCAN', $key, _options(@options)) }

sub script { my ($self, $source) = @_; return Oribi::Redis::Script->new($self, $source) }

sub subscribe  { my ($self, @channels) = @_; return Oribi::Redis::Subscription->new($self->another, 'SUBSCRIBE',  @channels) }
sub psubscribe { my ($self, @patterns) = @_; return Oribi::Redis::Subscription->new($self->another, 'PSUBSCRIBE', @patterns) }
sub ssubscribe { my ($self, @channels) = @_; return Oribi::Redis::Subscription->new($self->another, 'SSUBSCRIBE', @channels) }

package Oribi::Redis::Transaction;
our $VERSION = '0.100';

sub command { my ($self, @words) = @_; push @{ $self->{commands} }, \@words; return $self }

package Oribi::Redis;

1;

__END__

=encoding utf-8

=head1 NAME

Oribi::Redis - client of Redis that never gives a wrong answer

=head1 SYNOPSIS

    use Oribi::Redis;

    my $redis = Oribi::Redis->new;                             # REDIS_URL, or 127.0.0.1:6379
    my $redis = Oribi::Redis->new('rediss://:secret@redis.example:6380/2');
    my $redis = Oribi::Redis->new(path => '/run/redis/redis.sock', read_timeout_ms => 200);

    $redis->command('SET', 'key', 'value');                    # 'OK'
    my $value = $redis->command('GET', 'key');                 # 'value'; undef when there is none
    my ($n, $list) = $redis->pipeline(['INCR', 'n'], ['LRANGE', 'list', 0, -1]);
    $redis->noreply(['INCR', 'hits'], ['EXPIRE', 'hits', 60]); # replies are read and counted later
    my ($count, @errors) = $redis->settle;

=head1 THE CONTRACT

=over

=item *

B<A reply is the reply to its command.> A connection that saw a time limit, an exception in the middle of a command (C<die>
in a signal handler), a fork or bytes that are no reply is closed; the next command opens a new one. So is a connection with
a reply that nobody asked for: behind another reply, or before a command that is sent 2 ms or more after the last one. What a
broken server sends in between cannot be told from an answer.

=item *

B<A command that may have been carried out is not sent again>, unless a second time changes nothing (commands that only
read, C<SET> without options; C<retry.h> has the rule) or C<< resend => 'always' >>. A command that was certainly not sent is
tried again, C<reconnect_attempts> times, after a growing and partly random time. After a time limit nothing is sent again.

=item *

B<Every wait has a limit in milliseconds>: C<connect_timeout_ms>, C<write_timeout_ms> (without progress), C<read_timeout_ms>
(for each reply; anew with each 64 KiB). Looking a name up (getaddrinfo(3)) has none. Signal handlers run during a wait, at
the latest a second after a signal that came right before it.

=item *

B<A child has a connection of its own>, and so has a new thread. A child's end changes nothing for the parent: the client
sends no C<QUIT>.

=item *

B<A failure is an exception with a class>; an error of the server within a pipeline or an array is an object in its place.

=item *

B<Everything has a maximum>: 1,048,576 arguments of a command, 512 MiB of a string, 128 arrays within arrays, 64 KiB of a
line, 10,000 unread replies of C<noreply>, 16 of their errors.

=back

=head1 METHODS

=head2 new(URL), new(NAME => VALUE, ...), new(\%options)

Does not connect: the first command does.

    url                     redis://[[user]:password@]host[:port][/db], rediss:// (TLS), unix://[[user]:password@]/path[?db=N].
                            $ENV{REDIS_URL} without it, host and path
    host, port, path, db, user, password     each instead of the URL's part
    client_name             what CLIENT LIST shows
    protocol                3: HELLO 3 begins each connection, maps are hashes. 2: for servers before 6.0
    utf8                    arguments are characters, and replies that are UTF-8 become characters
    tls                     1, or a hash of IO::Socket::SSL's options. The name of the server is verified
    connect_timeout_ms, read_timeout_ms, write_timeout_ms     1000 each; 0 is none
    reconnect_attempts      3 after the first
    reconnect_delay_ms, reconnect_delay_max_ms                50, doubled each time up to 1000; of that a half is random
    resend                  safe, always or never; see above
    sentinels, service      addresses of Sentinels (host:port), and the name of the master that they watch
    sentinel_user, sentinel_password                          for these

The client asks the C<sentinels> for the master before each connection, one after the other, and adds those that they name.
It does not use a server that does not say it is the master, and leaves one that answers C<READONLY>, C<LOADING>,
C<MASTERDOWN>, C<NOREPLICAS> or C<UNBLOCKED> before the next command. Without a master, a command fails after its
C<reconnect_attempts>: to wait for a fail-over, which takes seconds, set more than 3. Writes that a master answered right
before its end may be missing on the new one.

=head2 command(NAME, ARGUMENT, ...)

The reply. Strings, statuses and big numbers are strings, integers and doubles numbers, booleans 1 and C<''>, nothing is
C<undef>; arrays and sets are array references, maps hash references. An error dies.

Arguments are strings, numbers, or objects with an overloaded text. C<undef> and other references die before anything is
sent, as does a wide character in a client without C<utf8>. Long arguments and replies are not copied.

C<SELECT>, C<AUTH> and C<HELLO> that were sent here are repeated on the next connection. After C<WATCH> and C<MULTI> a lost
connection is an error until C<EXEC>, C<DISCARD> or C<UNWATCH>. Refused, because they do not have one reply: C<SUBSCRIBE> and
the like, C<MONITOR>, C<RESET>, C<CLIENT REPLY OFF>. Pushes of C<CLIENT TRACKING> are read and dropped.

=head2 blocking(MILLISECONDS, NAME, ARGUMENT, ...)

The same with another C<read_timeout_ms>, for C<BLPOP> and its like. 0 is none.

=head2 pipeline(COMMAND, ...)

Sends all commands at once and gives their replies, with errors of the server in their places. A command is an array reference, or a name alone.

=head2 noreply(NAME, ARGUMENT, ...), noreply(COMMAND, ...)

Sends one command, or several as C<pipeline> takes them, and does not wait: their replies are read before those of later
commands, and counted. Gives the number of commands sent. A failure of the connection dies, or C<settle> tells it.

=head2 settle

Waits for the replies to C<noreply>. In list context gives how many have come since the last time, and their errors: the
server's, and one of class Connection when replies were lost with their connection. In scalar context gives the number, and
dies when there are errors. A client that goes warns of errors that nobody asked for.

=head2 multi(watch => [KEY, ...], sub { my ($queue, $redis) = @_; ... })

A transaction: C<< $queue->command(...) >> queues; C<MULTI>, what was queued and C<EXEC> are sent at once. Gives the replies as an array reference, or
C<undef> when a watched key has changed. C<watch> may be left out; with it C<$redis> may be asked in the code.

=head2 scan(match => ..., count => ..., type => ...), sscan(KEY, ...), hscan(KEY, ...), zscan(KEY, ...)

Iterators: C<next> gives an element, of C<hscan> and C<zscan> two (field and value, member and score); the empty list at the end. C<all> gives all.

=head2 script(LUA)

C<< $script->call([KEY, ...], ARGUMENT, ...) >> sends it by its digest (C<EVALSHA>), and whole where the server does not know it. C<sha> is the digest.

=head2 subscribe(CHANNEL, ...), psubscribe(PATTERN, ...), ssubscribe(CHANNEL, ...)

A subscription on a connection of its own. C<< $subscription->next($milliseconds) >> gives C<< { channel, message } >>, with
C<pattern> for patterns; C<undef> when the time is over. C<next_event> gives confirmations too. C<subscribe>, C<unsubscribe>
and so on change the channels, C<close> ends it. It dies when the connection is lost; messages until the next subscription
are missed.

=head2 hello(PROTOCOL), connect, is_connected, close

C<HELLO>; opens a connection now; whether there is one; closes it until the next command.

=head1 EXCEPTIONS

Objects of these classes, each an C<Oribi::Redis::Error>; as a string they are their C<message>.

    Oribi::Redis::Error::Command      what the server said; code is its first word: WRONGTYPE, LOADING, READONLY, OOM, NOPERM, ...
    Oribi::Redis::Error::Connection   cannot be made, or has ended
    Oribi::Redis::Error::Timeout      a time limit
    Oribi::Redis::Error::Protocol     no reply, too long or too deep a reply, or one that nobody asked for
    Oribi::Redis::Error::Usage        the caller's mistake: nothing was sent, and the connection goes on

=head1 SIGNAL HANDLERS

They may die, and may use a client of their own, but not the one that waits: it is in the middle of a command.

=head1 SEE ALSO

L<Oribi::Redis::Jet>, the interface of Redis::Jet. The server Oribi and its documents: L<Oribi>.

=head1 LICENSE

MIT.

=cut
