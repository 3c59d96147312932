use strict;
use warnings;
use Oribi::Check ();
use Test::More;

# What Perl adds to the findings of the core.

is_deeply [Oribi::Check::plack_finding('1.0')], [], 'the least version';
is_deeply [Oribi::Check::plack_finding('1.0050')], [], 'a newer one';
is_deeply [(Oribi::Check::plack_finding('0.9989'))[0, 1]], [qw(wrong plack)], 'an older one';
is_deeply [(Oribi::Check::plack_finding(undef))[0, 1]], [qw(risk plack)], 'none';

my @finding = qw(risk x what why do);
my ($text, $code) = Oribi::Options->_check_report(0, 0, 1, oribi => 1, @finding);
is $text, "risk   x: what\n       why: why\n       do:  do\n\noribi 1: 0 wrong, 1 risk\n", 'text';
is $code, 0, 'a risk is no failure';
($text, $code) = Oribi::Options->_check_report(1, 1, 0, @finding);
is $code, 1, 'with strict it is';
like $text, qr/\A\{"command":"oribi-psgi","ok":false,/, 'JSON';

done_testing;
