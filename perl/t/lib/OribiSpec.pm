package OribiSpec;
use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(cases folder);

# The conformance cases of spec/, which is beside us in a checkout and inside the distribution in a package. The format
# is in its README.

my %single = (r => "\r", n => "\n", t => "\t", 0 => "\0", s => ' ', '\\' => '\\');
my $escape = qr/\\(?:x([0-9a-f]{2})|([rnts0\\]))/;

sub folder { return (grep {-d} 'spec', '../spec')[0] }

sub unescape {
    my ($text) = @_;
    # Quoted, so that they are copies: a match inside changes $1 and $2.
    $text =~ s/(?:\\\{(\d+)\*($escape|.)\})|$escape/defined $1 ? _repeat("$1", "$2") : defined $5 ? chr hex $5 : $single{$6}/ge;
    return $text;
}

sub _repeat {
    my ($count, $unit) = @_;
    return unescape($unit) x $count;
}

# A case as a hash: texts unescaped, `input`, `output` and `body` joined, `field`, `trailer`, `header` and `limit` as
# lists of pairs.
sub _case {
    my (@lines) = @_;
    my %case = (field => [], trailer => [], header => [], limit => []);
    for my $line (@lines) {
        my ($key, $value) = $line =~ /\A([a-z_]+):(?: (.*))?\z/ or die "no case line: $line\n";
        $value = '' unless defined $value;
        if ($key =~ /\A(?:field|trailer|header)\z/) {
            my ($name, $rest) = $value =~ /\A(.*?):(?: (.*))?\z/;
            push @{ $case{$key} }, [unescape($name), unescape(defined $rest ? $rest : '')];
        } elsif ($key eq 'undefined') {
            push @{ $case{header} }, [unescape($value), undef];
        } elsif ($key eq 'limit') {
            push @{ $case{limit} }, [split ' ', $value];
        } else {
            $case{$key} = (exists $case{$key} && $key =~ /\A(?:input|output|body|parts)\z/ ? $case{$key} : '') . unescape($value);
        }
    }
    return \%case;
}

sub cases {
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!\n";
    local $/ = '';
    return map { _case(@$_) } grep {@$_} map { [grep { !/\A#/ } split /\n/] } <$in>;
}

1;
