use strict;
use warnings;

# Says much before it answers; interim.ru is its twin.
sub {
    my ($env) = @_;
    my $link = '</' . 'x' x 4000 . '.css>; rel=preload';
    $env->{'psgix.informational'}->(103, [Link => $link]) for 1 .. 20_000;
    open my $said, '>', "$ENV{E2E_DIR}/said" or die "said: $!\n";
    close $said;
    return [200, ['Content-Type' => 'text/plain'], ['answered']];
};
