package Oribi::Redis::Sentinel;
use strict;
use warnings;

our $VERSION = '0.100';

# Where the master of a service is: asked of one Sentinel after the other before each connection. Gives its host and
# port, or a text alone that says why nobody knows. The one that answers is asked first the next time, and those that it
# knows of are asked, too.
sub find {
    my ($client) = @_;
    my $options = $client->{options};
    my ($sentinels, $service) = @{$options}{qw(sentinels service)};
    my @told;
    for my $place (my @now = @$sentinels) {
        my ($master, $others, $why) = _ask($options, $place, $service);
        push(@told, "$place: $why"), next if !$master;
        my %known = map { $_ => 1 } @$sentinels;
        @$sentinels = ($place, grep { $_ ne $place } @$sentinels);
        push @$sentinels, grep { !$known{$_}++ } @$others;
        return @$master;
    }
    return join '; ', @told;
}

sub _ask {
    my ($options, $place, $service) = @_;
    my @answers = eval {
        my $sentinel = Oribi::Redis->new(
            Oribi::Redis::_place($place, 26_379),
            protocol           => 2,
            reconnect_attempts => 0,
            user               => $options->{sentinel_user},
            password           => $options->{sentinel_password},
            (map { defined $options->{connect_timeout_ms} ? ($_ => $options->{connect_timeout_ms}) : () } qw(connect_timeout_ms read_timeout_ms)),
        );
        $sentinel->pipeline(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', $service], ['SENTINEL', 'SENTINELS', $service]);
    };
    if (!@answers) {
        die $@ if !Oribi::Redis::_is_error($@);    # of a signal handler
        return (undef, undef, $@->message);
    }
    my ($master, $others) = @answers;
    return (undef, undef, $master->message) if Oribi::Redis::_is_error($master);
    return (undef, undef, "knows no master of $service") if ref $master ne 'ARRAY';
    my @others = map { my %of = @$_; $of{ip} =~ /:/ ? "[$of{ip}]:$of{port}" : "$of{ip}:$of{port}" } ref $others eq 'ARRAY' ? @$others : ();
    return ($master, \@others);
}

1;
