package Oribi::Redis::TLS;
use strict;
use warnings;
use IO::Socket::SSL ();
use IO::Socket::IP  ();

our $VERSION = '0.100';

# What the C of Oribi::Redis calls for encrypted connections. Results of get and put: bytes, or these, or a text that
# says what is wrong. Exceptions are those of signal handlers, and pass.
use constant { WANTS_READ => -1, WANTS_WRITE => -2, AT_END => 0 };

# A handle over a copy of the descriptor, after the handshake, or a text.
sub start {
    my ($client, $fd) = @_;
    my $options = $client->{options};
    my $host    = $client->_host;
    open my $copy, '+<&', $fd or return "$!";
    my $socket  = IO::Socket::IP->new_from_fd(fileno $copy, '+<') or return "$!";
    my $seconds = ($options->{connect_timeout_ms} // 1000) / 1000;
    my $tls     = IO::Socket::SSL->start_SSL(
        $socket,
        SSL_verify_mode => IO::Socket::SSL::SSL_VERIFY_PEER(),
        ($host eq '' ? () : (SSL_hostname => $host, SSL_verifycn_name => $host, SSL_verifycn_scheme => 'default')),
        ($seconds ? (Timeout => $seconds) : ()),
        %{ $options->{tls_options} // {} },
    ) or return "$IO::Socket::SSL::SSL_ERROR";
    $tls->blocking(0);
    ${*$tls}{oribi_copy} = $copy;    # its number stays taken
    return $tls;
}

sub outcome {
    return WANTS_READ  if $IO::Socket::SSL::SSL_ERROR == IO::Socket::SSL::SSL_WANT_READ();
    return WANTS_WRITE if $IO::Socket::SSL::SSL_ERROR == IO::Socket::SSL::SSL_WANT_WRITE();
    return "$IO::Socket::SSL::SSL_ERROR";
}

# A reference to at most $most bytes.
sub get {
    my ($tls, $most) = @_;
    my $got = $tls->sysread(my $bytes, $most);
    return defined $got ? $got ? \$bytes : AT_END : outcome();
}

sub put {
    my ($tls, $bytes) = @_;
    my $sent = $tls->syswrite($bytes);
    return $sent || outcome();
}

# Without a word to the peer where the connection is another process's.
sub stop {
    my ($tls, $quietly) = @_;
    $tls->close(SSL_fast_shutdown => 1, SSL_no_shutdown => $quietly);
    return;
}

1;
