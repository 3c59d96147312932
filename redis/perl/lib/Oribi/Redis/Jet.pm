package Oribi::Redis::Jet;
use 5.016;
use strict;
use warnings;
use Carp ();
use Exporter 'import';
use Oribi::Redis;

our $VERSION   = '0.100';
our @EXPORT_OK = qw(parse_message parse_message_utf8);

# What is missing has Redis::Jet's defaults; times are seconds.
my %DEFAULTS = (
    server             => '127.0.0.1:6379',
    connect_timeout    => 5,
    io_timeout         => 1,
    utf8               => 0,
    noreply            => 0,
    reconnect_attempts => 0,
    reconnect_delay    => 0.1,
);

sub _ms { return int($_[0] * 1000 + 0.5) }

sub new {
    my ($class, @arguments) = @_;
    my %options = (%DEFAULTS, ref $arguments[0] ? %{ $arguments[0] } : @arguments);
    for my $name (grep { $_ ne 'server' } sort keys %DEFAULTS) {
        Carp::croak("$name must be larger than zero") if $options{$name} < 0;
    }
    my $self = bless { server => $options{server}, noreply => $options{noreply}, options => \%options }, $class;
    $self->Oribi::Redis::_attach({
        Oribi::Redis::_place($options{server}, 6379),
        protocol               => 2,
        lax                    => 1,
        resend                 => 'never',
        utf8                   => $options{utf8},
        connect_timeout_ms     => _ms($options{connect_timeout}),
        read_timeout_ms        => _ms($options{io_timeout}),
        write_timeout_ms       => _ms($options{io_timeout}),
        reconnect_attempts     => $options{reconnect_attempts},
        reconnect_delay_ms     => _ms($options{reconnect_delay}),
        reconnect_delay_max_ms => _ms($options{reconnect_delay}),
    });
    return $self;
}

sub get_server             { return $_[0]{options}{server} }
sub get_connect_timeout    { return $_[0]{options}{connect_timeout} }
sub get_io_timeout         { return $_[0]{options}{io_timeout} }
sub get_utf8               { return $_[0]{options}{utf8} }
sub get_noreply            { return $_[0]{options}{noreply} }

1;

__END__

=encoding utf-8

=head1 NAME

Oribi::Redis::Jet - the interface of Redis::Jet over Oribi::Redis

=head1 SYNOPSIS

    use Oribi::Redis::Jet;

    my $jet = Oribi::Redis::Jet->new(server => 'localhost:6379');
    $jet->command(qw(set redis data-server));          # 'OK'
    my ($value, $error) = $jet->command(qw(get redis)); # ('data-server')
    my @values = $jet->pipeline([qw(get redis)], [qw(get a b)], 'ping');
    # (['data-server'], [undef, "ERR wrong number of arguments for 'get' command"], ['PONG'])

=head1 DESCRIPTION

For programs that use Redis::Jet: the same options, methods and return values, over the connections of L<Oribi::Redis>. A
failure is a text beside C<undef>, not an exception; only arguments that cannot be sent (undef, references) die, as an
C<Oribi::Redis::Error::Usage>.

=head2 Options of new

C<server> (C<127.0.0.1:6379>; with a slash it is the path of a unix socket), C<connect_timeout> (5), C<io_timeout> (1), C<utf8> (0), C<noreply> (0),
C<reconnect_attempts> (0), C<reconnect_delay> (0.1). Times are seconds, and 0.5 is half of one.

=head2 Methods

=over

=item command(NAME, ARGUMENT, ...)

The value; with an error C<undef> and its text, in list context. The beginnings of the client's own texts are those of Redis::Jet: C<failed to connect
server>, C<failed to send message>, C<failed to read message>, C<failed to parse message: corrupted message found>.

=item pipeline(COMMAND, ...)

Each command is an array or a name. One C<[VALUE]> or C<[undef, TEXT]> for each. Where the connection fails, the replies that had come stay, and the rest
has its text.

=back

With C<noreply> both send, and give C<0 but true>. Replies are read and counted later, so that none is taken for another's.

=head2 Functions

C<parse_message($bytes, \@messages)> and C<parse_message_utf8> append what lies complete in C<$bytes> and give the number of bytes that it takes, or
C<undef> when they are no replies. They are exported on request.

=head2 What differs

Replies may be nested and hold integers and errors. A connection that saw a time limit, an exception in a signal handler or a fork is closed and not used
again. C<utf8> marks a reply as characters only where it is UTF-8. C<set_socket> and C<get_bucket> are not there.

=head1 LICENSE

MIT.

=cut
