#!/usr/bin/env perl
# What forms and cookies cost in Perl, beside the XS modules of CPAN: perl -Mblib=perl bench/forms.pl. The contestants
# take turns in short rounds, and medians are printed; results are compared before anything is timed.
use strict;
use warnings;
use Cookie::Baker::XS ();
use Oribi::Cookie ();
use Oribi::Form ();
use Time::HiRes ();
use WWW::Form::UrlEncoded::XS ();

my $ROUNDS = 31;
my $SECONDS = 0.02;    # of one round

# The same as in bench/forms.rb.
sub value {
    my ($i) = @_;
    return 'J%C3%B6rg+M%C3%BCller+%26+Co.+KG+in+Z%C3%BCrich' if $i % 5 == 0;
    return '42' if $i % 5 == 1;
    return "Main+Street+$i%2C+Springfield%2C+" . 'x' x 20 if $i % 5 == 2;
    return 'plain-value-without-any-escape-' . 'y' x 14 . $i;
}
my $form = join '&', map { "field_name_$_=" . value($_) } 1 .. 20;
my $plain = join '&', map { "field_name_$_=" . 'plain-value-without-any-escape-' . 'y' x 7 } 1 .. 20;
my $cookies = join '; ', map { "cookie_$_=" . ($_ % 6 ? 'v' x 21 : 'a%20value%3D' . 'z' x 10) } 1 .. 20;
my @pairs = WWW::Form::UrlEncoded::XS::parse_urlencoded($form);

my @rows = (
    ['form to a list', length $form, sub { my @p = Oribi::Form::parse_urlencoded($form); \@p }, sub { my @p = WWW::Form::UrlEncoded::XS::parse_urlencoded($form); \@p }],
    ['form to an array', length $form, sub { Oribi::Form::parse_urlencoded_arrayref($form) }, sub { WWW::Form::UrlEncoded::XS::parse_urlencoded_arrayref($form) }],
    ['without escapes', length $plain, sub { Oribi::Form::parse_urlencoded_arrayref($plain) }, sub { WWW::Form::UrlEncoded::XS::parse_urlencoded_arrayref($plain) }],
    ['pairs to a form', length $form, sub { [Oribi::Form::build_urlencoded(@pairs)] }, sub { [WWW::Form::UrlEncoded::XS::build_urlencoded(@pairs)] }],
    ['cookies', length $cookies, sub { Oribi::Cookie::crush_cookie($cookies) }, sub { Cookie::Baker::XS::crush_cookie($cookies) }],
);

sub cpu { return (Time::HiRes::clock()) }

# Microseconds of one call.
sub timed {
    my ($function) = @_;
    my ($count, $start) = (0, cpu());
    while (1) {
        $function->() for 1 .. 20;
        $count += 20;
        my $spent = cpu() - $start;
        return $spent / $count * 1e6 if $spent > $SECONDS;
    }
}

sub median { return (sort { $a <=> $b } @_)[@_ / 2] }

sub flat {
    my ($of) = @_;
    return join "\0", ref $of eq 'HASH' ? map { $_, $of->{$_} } sort keys %$of : @$of;
}

for my $row (@rows) {
    my ($name, $bytes, $ours, $theirs) = @$row;
    flat($ours->()) eq flat($theirs->()) or die "$name: the results differ\n";
    my (@us, @them, @ratio);
    for (1 .. $ROUNDS) {
        push @us, timed($ours);
        push @them, timed($theirs);
        push @ratio, $them[-1] / $us[-1];
    }
    printf "perl  %-18s %5d bytes  Oribi %7.2f us  XS %10.2f us  %5.2f times\n", $name, $bytes, median(@us), median(@them), median(@ratio);
}
