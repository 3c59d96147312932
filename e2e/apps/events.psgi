# Event streams for events_test.rb; POST publishes.
use strict;
use warnings;
use Oribi;

my %answers = (
    '/last' => sub { my ($events) = @_; [200, ['Content-Type' => 'text/plain'], [defined $events->last_event_id ? '"' . $events->last_event_id . '"' : 'nil']] },
    '/refused'   => sub { my ($events, $name) = @_; $events->stream(channels => $name eq 'none' ? [] : ["with\ncontrols"]) },
    '/forbidden' => sub { [403, [], ["refused\n"]] },
    '/since'     => sub { my ($events, $name, $since) = @_; $events->stream(channels => [$name], since => defined $since ? $since : '') },
    '/retry'     => sub {
        my ($events, @names) = @_;
        $events->stream(channels => \@names, retry => 1234, headers => ['X-Room' => 7, 'Cache-Control' => 'no-store']);
    },
    '/wrapped' => sub { my ($events, @names) = @_; sub { $_[0]->($events->stream(channels => \@names)) } },
    '/forged'  => sub { my ($events, $name) = @_; [200, ['Oribi-Events' => "- - $name"], []] },
    '/again' => sub {
        my ($events, @names) = @_;
        my $answer = $events->stream(channels => \@names);
        eval { $events->stream(channels => ["with\ncontrols"]) };
        $answer;
    },
    '/dies'    => sub { my ($events, @names) = @_; $events->stream(channels => \@names); die "said to die\n" },
);

sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    my @names = split /&/, $env->{QUERY_STRING};
    return [200, [], [$$]] if $path eq '/pid';
    return [200, ['Content-Type' => 'text/plain'], ['Hello, World!']] if $path eq '/';
    if ($path eq '/publish') {
        my ($channel, $event) = @names;
        my $data = do { local $/; readline $env->{'psgi.input'} };
        $data = '' if !defined $data;
        my $binary = defined $event && $event eq 'binary';
        utf8::decode($data) if !$binary;
        Oribi::publish($channel => $data, $binary ? (binary => 1) : (event => $event));
        return [204, [], []];
    }
    my $events = $env->{'oribi.events'} or return [406, ['Content-Type' => 'text/plain'], ["no event stream is asked for\n"]];
    return ($answers{$path} || sub { my ($stream, @channels) = @_; $stream->stream(channels => \@channels) })->($events, @names);
};
