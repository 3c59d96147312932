#!/usr/bin/env perl
# What forms, cookies and uploads cost in Perl, beside the modules of CPAN: perl -Mblib=perl bench/forms.pl. The
# contestants take turns in short rounds, and medians are printed; results are compared before anything is timed.
# --json: a line of JSON each, with all rounds.
use strict;
use warnings;
use Cookie::Baker::XS ();
use Oribi::Cookie ();
use HTTP::Entity::Parser ();
use Oribi::Form ();
use JSON::PP ();
use Oribi::Multipart ();
use Time::HiRes ();
use WWW::Form::UrlEncoded::XS ();

my $ROUNDS = 31;
my $SECONDS = 0.02;    # of one round

# The same as in bench/lib/form_bodies.rb.
sub value {
    my ($i) = @_;
    return 'J%C3%B6rg+M%C3%BCller+%26+Co.+KG+in+Z%C3%BCrich' if $i % 5 == 0;
    return '42' if $i % 5 == 1;
    return "Main+Street+$i%2C+Springfield%2C+" . 'x' x 20 if $i % 5 == 2;
    return 'plain-value-without-any-escape-' . 'y' x 14 . $i;
}
my $form = join '&', map { "field_name_$_=" . value($_) } 1 .. 20;
my $plain = join '&', map { "field_name_$_=" . 'plain-value-without-any-escape-' . 'y' x 7 } 1 .. 20;
my $cookies = join '; ', map { "cookie_$_=" . ($_ % 6 ? 'v' x 22 : 'a%20value%3D' . 'z' x 12) } 1 .. 20;
my @pairs = WWW::Form::UrlEncoded::XS::parse_urlencoded($form);

# Bodies of multipart/form-data, with a file of so many bytes unless it is 0.
my $boundary = '----WebKitFormBoundaryABCDEFGHIJKLMNOP';
my $type = "multipart/form-data; boundary=$boundary";
srand 1;

sub body {
    my ($fields, $file_bytes) = @_;
    my $head = "--$boundary\r\nContent-Disposition: form-data; name=";
    my $file = join '', map { chr int rand 256 } 1 .. 65_536;
    my $content = substr $file x ($file_bytes / 65_536 + 1), 0, $file_bytes;
    my $parts = join '', map {"$head\"field_$_\"\r\n\r\nvalue $_\r\n"} 1 .. $fields;
    $parts .= "$head\"file\"; filename=\"a.bin\"\r\nContent-Type: image/png\r\n\r\n$content\r\n" if $file_bytes;
    return "$parts--$boundary--\r\n";
}

# Names with values, or with the sizes of files, which go with the environment.
sub parts_by {
    my ($parser, $class, $body) = @_;
    $parser->register('multipart/form-data', $class);
    return sub {
        open my $input, '<', \$body or die;
        my %env = (CONTENT_TYPE => $type, CONTENT_LENGTH => length $body, 'psgi.input' => $input, 'psgix.input.buffered' => 1);
        my ($params, $uploads) = $parser->parse(\%env);
        return [@$params, map { ref $_ ? $_->{size} : $_ } @$uploads];
    };
}
my $parts = body(1000, 0);
my $upload = body(20, 10 * 1024 * 1024);
my ($ours, $theirs) = ('Oribi::Multipart::MultiPart', 'HTTP::Entity::Parser::MultiPart');

my $form_xs = "WWW::Form::UrlEncoded::XS $WWW::Form::UrlEncoded::XS::VERSION";
my $cookie_xs = "Cookie::Baker::XS $Cookie::Baker::XS::VERSION";
my $entity = "HTTP::Entity::Parser $HTTP::Entity::Parser::VERSION";

# name, bytes, ours, theirs, their name
my @rows = (
    ['form to a list', length $form,
        sub { my @p = Oribi::Form::parse_urlencoded($form); \@p },
        sub { my @p = WWW::Form::UrlEncoded::XS::parse_urlencoded($form); \@p }, $form_xs],
    ['form to an array', length $form,
        sub { Oribi::Form::parse_urlencoded_arrayref($form) },
        sub { WWW::Form::UrlEncoded::XS::parse_urlencoded_arrayref($form) }, $form_xs],
    ['without escapes', length $plain,
        sub { Oribi::Form::parse_urlencoded_arrayref($plain) },
        sub { WWW::Form::UrlEncoded::XS::parse_urlencoded_arrayref($plain) }, $form_xs],
    ['pairs to a form', length $form,
        sub { [Oribi::Form::build_urlencoded(@pairs)] },
        sub { [WWW::Form::UrlEncoded::XS::build_urlencoded(@pairs)] }, $form_xs],
    ['cookies', length $cookies,
        sub { Oribi::Cookie::crush_cookie($cookies) },
        sub { Cookie::Baker::XS::crush_cookie($cookies) }, $cookie_xs],
    ['1,000 small parts', length $parts,
        parts_by(Oribi::Multipart->new, $ours, $parts),
        parts_by(HTTP::Entity::Parser->new, $theirs, $parts), $entity],
    ['20 parts, a file', length $upload,
        parts_by(Oribi::Multipart->new, $ours, $upload),
        parts_by(HTTP::Entity::Parser->new, $theirs, $upload), $entity],
);

sub cpu { return (Time::HiRes::clock()) }

# Microseconds of one call.
sub timed {
    my ($function, $bytes) = @_;
    my ($count, $start, $times) = (0, cpu(), $bytes < 10_000 ? 20 : 1);
    while (1) {
        $function->() for 1 .. $times;
        $count += $times;
        my $spent = cpu() - $start;
        return $spent / $count * 1e6 if $spent > $SECONDS;
    }
}

sub median { return (sort { $a <=> $b } @_)[@_ / 2] }

sub flat {
    my ($of) = @_;
    return join "\0", ref $of eq 'HASH' ? map { $_, $of->{$_} } sort keys %$of : @$of;
}

my $json = @ARGV == 1 && $ARGV[0] eq '--json';
for my $row (@rows) {
    my ($name, $bytes, $ours, $theirs, $beside) = @$row;
    flat($ours->()) eq flat($theirs->()) or die "$name: the results differ\n";
    my (@us, @them);
    for (1 .. $ROUNDS) {
        push @us, timed($ours, $bytes);
        push @them, timed($theirs, $bytes);
    }
    if ($json) {
        my %found = (language => 'Perl', what => $name, bytes => $bytes, us => \@us, beside => $beside, beside_us => \@them);
        print JSON::PP->new->canonical->encode(\%found), "\n";
        next;
    }
    my $ratio = median(map { $them[$_] / $us[$_] } 0 .. $#us);
    printf "perl  %-18s %8d bytes  Oribi %8.2f us  beside it %9.2f us  %5.2f times\n", $name, $bytes, median(@us), median(@them), $ratio;
}
