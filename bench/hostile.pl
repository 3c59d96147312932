#!/usr/bin/env perl
# What hostile forms, cookies and uploads cost for each byte, in sizes of n, 2n and 4n: perl -Mblib=perl
# bench/hostile.pl [BYTES] (n, 512 KiB). As bench/hostile.rb: more than $GROWTH_MAX times from n to 4n is said, and the
# exit code is 1.
use strict;
use warnings;
use List::Util ();
use Oribi::Cookie ();
use Oribi::Form ();
use Oribi::Multipart ();
use Time::HiRes ();

my $N = shift // 512 * 1024;
my ($ROUNDS, $GROWTH_MAX, $COOKIE_SHARE) = (7, 2.0, 8);
my $boundary = 'b' x 70;
my $almost = "\r\n--" . 'b' x 69;
my $type = "multipart/form-data; boundary=$boundary";
my $head = 'Content-Disposition: form-data; name=';
my $entity = Oribi::Multipart->new;
$entity->register('multipart/form-data', 'Oribi::Multipart::MultiPart', {parts_max => 1 << 20, files_max => 1 << 20});

my %parser = (
    pairs => sub { my $pairs = Oribi::Form::parse_urlencoded_arrayref($_[0]); return },
    cookies => sub { my $cookies = Oribi::Cookie::crush_cookie($_[0]); return },
    parts => sub {
        open my $input, '<', \$_[0] or die;
        my %env = (CONTENT_TYPE => $type, CONTENT_LENGTH => length $_[0], 'psgi.input' => $input, 'psgix.input.buffered' => 1);
        $entity->parse(\%env);
        return;
    },
);

# So many bytes of what the function makes of 0, 1, 2, ...
sub many {
    my ($bytes, $make) = @_;
    my ($text, $i) = ('', 0);
    $text .= $make->($i++) while length $text < $bytes;
    return $text;
}

sub repeat { my ($unit, $bytes) = @_; return $unit x ($bytes / length $unit) }
sub field { return "--$boundary\r\n$head\"a\"\r\n\r\n$_[0]\r\n--$boundary--\r\n" }

# what, the parser, text of so many bytes, and by how much less than n are to be made, so that 4n is below the maximum
# of 65,536 pairs; refused ones are timed, too.
my @rows = (
    ['pairs: sequential names', 'pairs', sub { many($_[0], sub {"k$_[0]=v&"}) }, 4],
    ['pairs: one name', 'pairs', sub { repeat('a=1&', $_[0]) }, 9],
    ['pairs: more than 65,536', 'pairs', sub { repeat('a=1&', $_[0]) }],
    ['pairs: &', 'pairs', sub { repeat('&', $_[0]) }, 33],
    ['pairs: ;', 'pairs', sub { repeat(';', $_[0]) }, 33],
    ['pairs: = in one value', 'pairs', sub { repeat('=', $_[0]) }],
    ['pairs: + in one value', 'pairs', sub { 'a=' . repeat('+', $_[0]) }],
    ['pairs: escapes in one value', 'pairs', sub { 'a=' . repeat('%41', $_[0]) }],
    ['pairs: % that are none', 'pairs', sub { 'a=' . repeat('%', $_[0]) }],
    ['cookies: ;', 'cookies', sub { repeat(';', $_[0]) }],
    ['cookies: blanks', 'cookies', sub { repeat('; ', $_[0]) }],
    ['cookies: sequential names', 'cookies', sub { many($_[0], sub {"k$_[0]=v; "}) }],
    ['cookies: one name', 'cookies', sub { repeat('a=1; ', $_[0]) }],
    ['cookies: % that are none', 'cookies', sub { 'a=' . repeat('%', $_[0]) }],
    ['cookies: escapes', 'cookies', sub { 'a=' . repeat('%41', $_[0]) }],
    ["parts: the boundary's byte", 'parts', sub { field(repeat('b', $_[0])) }],
    ['parts: almost delimiters', 'parts', sub { field(repeat($almost, $_[0])) }],
    ['parts: delimiters within a line', 'parts', sub { field(repeat("--$boundary", $_[0])) }],
    ['parts: CR', 'parts', sub { field(repeat("\r", $_[0])) }],
    ['parts: empty lines and dashes', 'parts', sub { field(repeat("\r\n--", $_[0])) }],
    ['parts: small ones, sequential names', 'parts', sub {
        return many($_[0], sub {"--$boundary\r\n$head\"$_[0]\"\r\n\r\nv\r\n"}) . "--$boundary--\r\n";
    }],
    ['parts: a preamble of almost delimiters', 'parts', sub { repeat($almost, $_[0]) . field('x') }],
    ['parts: a head that never ends', 'parts', sub { "--$boundary\r\n" . repeat("a: b\r\n", $_[0]) }],
);

sub outcome {
    my ($parser, $text) = @_;
    return 'taken' if eval { $parser{$parser}->($text); 1 };
    return ref $@ && $@->can('status') ? $@->status : 'died';
}

# Nanoseconds for each byte, the least of the rounds: what else the machine does only adds to it.
sub cost {
    my ($parser, $text) = @_;
    my @spent = map {
        my $start = Time::HiRes::clock();
        outcome($parser, $text);
        Time::HiRes::clock() - $start;
    } 1 .. $ROUNDS;
    return List::Util::min(@spent) / length($text) * 1e9;
}

my $grown = 0;
printf "%-46s %7s %23s %7s\n", 'ns for a byte of n, 2n and 4n', '', '', 'growth';
for my $row (@rows) {
    my ($what, $parser, $make, $share) = @$row;
    my $base = int($N / ($share // ($parser eq 'cookies' ? $COOKIE_SHARE : 1)));
    my @texts = map { $make->($base * $_) } 1, 2, 4;
    my $said = outcome($parser, $texts[-1]);
    my @costs = map { cost($parser, $_) } @texts;
    # What is refused at once costs less for each byte of a longer one, and too little to be told from nothing.
    my $growth = $costs[0] > 0 ? $costs[-1] / $costs[0] : 0;
    my $grows = $growth > $GROWTH_MAX && $costs[-1] > 0.5;
    printf "%-46s %7s %7.2f %7.2f %7.2f %7.2f%s\n", $what, $said, @costs, $growth, $grows ? '  grows' : '';
    $grown += $grows;
}
die "bench/hostile.pl: $grown of ${\ scalar @rows} cost more for each byte the longer they are\n" if $grown;
