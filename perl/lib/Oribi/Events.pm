package Oribi::Events;
use 5.016;
use strict;
use warnings;
use Carp ();
use Oribi ();    # defines _stream, in C

our $VERSION = '0.100';

sub last_event_id { $_[0]{last} }

sub stream {
    my ($self, %how) = @_;
    my ($channels, $retry, $headers, $since) = delete @how{qw(channels retry headers since)};
    Carp::croak('Oribi: stream knows no ' . join ', ', sort keys %how) if %how;
    Carp::croak('Oribi: channels is a reference to an array of names') unless ref $channels eq 'ARRAY';
    my @names = map { defined $_ ? "$_" : '' } @$channels;
    utf8::encode($_) for @names;
    my $from = $since // $self->{last};
    utf8::encode($from) if defined $from;
    _stream($self, $retry, $from, @names);
    my @headers = @{ $headers || [] };
    my %given;
    for (my $i = 0; $i < @headers; $i += 2) { $given{ lc $headers[$i] } = 1 }
    unshift @headers, 'Cache-Control' => 'no-cache' unless $given{'cache-control'};
    unshift @headers, 'Content-Type' => 'text/event-stream' unless $given{'content-type'};
    return [200, \@headers, []];
}

1;
__END__

=encoding utf-8

=head1 NAME

Oribi::Events - server-sent events that the frontend sends

=head1 SYNOPSIS

    my $app = sub {
        my $env = shift;
        my $events = $env->{'oribi.events'} or return [406, [], []];
        return $events->stream(channels => ['news']);
    };

=head1 DESCRIPTION

C<< $env->{'oribi.events'} >> is there where a GET accepts C<text/event-stream>, as C<EventSource> in a browser does. The
frontend (C<tls://>, or C<?frontend=on> in C<bind>) holds the client and sends what is published to its channels. The
call ends at once, and a reload closes nothing.

=head1 METHODS

=head2 $events->stream(channels => \@names, %options)

Makes the request an event stream, and gives the answer for the server. Options: C<retry>, milliseconds after which a
client comes back when the stream has ended; C<headers>, a reference to an array of further headers; C<since>, an id of
this stream in the place of C<Last-Event-ID>, or an empty string: the client gets nothing of what it has missed. Dies
where no frontend holds the client.

=head2 $events->last_event_id

C<Last-Event-ID> of the request, or undef.

=head1 SEE ALSO

L<Oribi>, F<doc/events.md>

=cut
