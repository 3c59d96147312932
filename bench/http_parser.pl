#!/usr/bin/env perl
# What the heads of a request and of a response cost in Perl, beside HTTP::Parser::XS: perl -Mblib=perl
# bench/http_parser.pl. The contestants take turns in short rounds, and medians are printed; results are compared before
# anything is timed.
use strict;
use warnings;
use HTTP::Parser::XS ();
use Oribi::HTTPParser qw(HEADERS_AS_ARRAYREF HEADERS_AS_HASHREF);
use Time::HiRes ();

my $ROUNDS = 31;
my $TIMES = 3000;    # calls of one round

# The same as in bench/http_parser.rb.
my @browser = (
    'Host: pictures.example.org',
    'User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:121.0) Gecko/20100101 Firefox/121.0 Feedreader/1.9 Extra/0.1',
    'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    'Accept-Language: de-ch,en-us;q=0.7,en;q=0.3',
    'Accept-Encoding: gzip, deflate, br',
    'Cache-Control: max-age=0',
    'Connection: keep-alive',
    'Referer: https://pictures.example.org/2026',
    'Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; visits=42; last=0123456789',
);
my @proxied = ('X-Request-Start: t=1700000000', 'X-Forwarded-For: 203.0.113.7', 'X-Trace: 4bf92f3577b34da6a3ce929d0e0e4736', 'X-Tenant: seven');
my @answer = (
    'Date: Sun, 06 Nov 1994 08:49:37 GMT', 'Server: example', 'Content-Type: text/html; charset=utf-8', 'Content-Length: 4711',
    'ETag: "0123456789abcdef"', 'Cache-Control: private, max-age=60', 'Set-Cookie: session=0123456789abcdef', 'Set-Cookie: theme=dark',
);

sub head { return join("\r\n", @_) . "\r\n\r\n" }
my $line = 'GET /pictures/2026/lighthouse.html?size=large HTTP/1.1';
my @rows = (
    ['no field', head('GET /pictures HTTP/1.0')],
    ['4 fields', head($line, @browser[0 .. 3])],
    ['9 fields of a browser', head($line, @browser)],
    ['13 behind a proxy', head($line, @browser, @proxied)],
    ['response, a hash', head('HTTP/1.1 200 OK', @answer), HEADERS_AS_HASHREF],
    ['response, a list', head('HTTP/1.1 200 OK', @answer), HEADERS_AS_ARRAYREF],
);

# Parses the head; what came of it.
sub function_of {
    my ($class, $text, $form) = @_;
    no strict 'refs';
    my $parse = \&{ "${class}::" . (defined $form ? 'parse_http_response' : 'parse_http_request') };
    return sub { my @parts = $parse->($text, $form); return \@parts } if defined $form;
    return sub { my %env; $parse->($text, \%env) > 0 or die "it is refused\n"; return \%env };
}

# Nanoseconds of one call.
sub timed {
    my ($function) = @_;
    my $start = Time::HiRes::clock();
    $function->() for 1 .. $TIMES;
    return (Time::HiRes::clock() - $start) / $TIMES * 1e9;
}

sub median { return (sort { $a <=> $b } @_)[@_ / 2] }

sub flat {
    my ($of) = @_;
    return ref $of eq 'HASH' ? map { $_, flat($of->{$_}) } sort keys %$of : ref $of ? map { flat($_) } @$of : $of;
}

for my $row (@rows) {
    my ($name, $text, $form) = @$row;
    my ($ours, $theirs) = map { function_of($_, $text, $form) } 'Oribi::HTTPParser', 'HTTP::Parser::XS';
    join("\0", flat($ours->())) eq join("\0", flat($theirs->())) or die "$name: the results differ\n";
    my (@us, @them, @ratio);
    for (1 .. $ROUNDS) {
        push @us, timed($ours);
        push @them, timed($theirs);
        push @ratio, $them[-1] / $us[-1];
    }
    printf "perl  %-22s %5d bytes  Oribi %6d ns  HTTP::Parser::XS %6d ns  %5.2f times\n", $name, length $text, median(@us), median(@them), median(@ratio);
}
