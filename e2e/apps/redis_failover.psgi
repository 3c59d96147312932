use strict;
use warnings;
use File::Basename ();
use File::Spec ();
my $built;
BEGIN { $built = File::Spec->rel2abs(File::Basename::dirname(__FILE__) . '/../../redis/perl/blib') }
use lib "$built/lib", "$built/arch";
use Oribi::Redis;

# Keeps a session for each visitor and counts all visits, in the master that the Sentinels name; redis_failover.ru is
# its twin, and says what is answered.

my $redis = Oribi::Redis->new(sentinels => [split /,/, $ENV{E2E_SENTINELS} // ''], service => 'main', connect_timeout_ms => 300);

sub replies {
    my (@commands) = @_;
    my @found = $redis->pipeline(@commands);
    for my $error (grep { ref && $_->isa('Oribi::Redis::Error') } @found) { die $error }
    return "@found";
}

sub visit {
    my ($lines, $visitor, $number, $kept) = @_;
    my $session = "$visitor:$number";
    push @$lines, 'echo ' . $redis->command('ECHO', $session);
    my @set = ('SET', "session:$visitor", $session);
    push @$lines, 'set ' . ($kept ? replies(\@set, ['WAIT', 1, 200]) : $redis->command(@set));
    push @$lines, 'get ' . ($redis->command('GET', "session:$visitor") // '');
    push @$lines, 'incr ' . $redis->command('INCR', 'visits');
    return;
}

sub {
    my ($env) = @_;
    my %query = map { split /=/, $_, 2 } split /&/, $env->{QUERY_STRING};
    my @lines;
    if ($env->{PATH_INFO} eq '/visit' && !eval { visit(\@lines, $query{visitor}, $query{n}, $query{kept}); 1 }) {
        my $error = $@;
        die $error if !ref $error || !$error->isa('Oribi::Redis::Error');
        push @lines, join ' ', 'failed', ref $error, $error->can('code') ? $error->code : '', $error->message;
    }
    return [200, ['Content-Type' => 'text/plain'], [join '', map { "$_\n" } @lines]];
};
