# Calls that take long for reasons that differ, and code that runs after the answer; deadlines.ru is its twin.
use strict;
use warnings;
use Time::HiRes ();

my @TEXT = ('Content-Type' => 'text/plain');

sub answer { return [200, [@TEXT], ["$_[0]"]] }

{
    # A body that is done, and what else the application does when it is closed.
    package Closing;
    sub new { my ($class, $block) = @_; return bless { block => $block, parts => ['answered'] }, $class }
    sub getline { return shift @{ $_[0]{parts} } }
    sub close { return $_[0]{block}->() }
}

# Half an hour in a function of the C library's: no handler of Perl's runs meanwhile.
my $ROUNDS = 999_999_999;    # not a constant: Perl would compute the result while it compiles
sub stuck { return crypt 'password', "\$6\$rounds=$ROUNDS\$salt\$" }

# A call that is held back from within, in so many calls: a trace shows the innermost.
sub deep { my ($count, $code) = @_; return $count ? deep($count - 1, $code) : $code->() }

sub backtrack { my $text = 'x' x 60; return $text =~ /^(x+x+)+\1y/ ? 1 : 0 }
sub spin { 1 while 1 }
sub block_on_a_pipe { pipe my $reader, my $writer or die; return scalar <$reader> }
sub block_in_select { pipe my $reader, my $writer or die; vec(my $bits = '', fileno $reader, 1) = 1; return select $bits, undef, undef, undef }
sub block_in_sleep { return sleep }

sub nap { Time::HiRes::sleep($_[0]); return }

sub streaming {
    my ($code) = @_;
    return sub {
        my ($respond) = @_;
        my $writer = $respond->([200, [@TEXT]]);
        $code->($writer);
    };
}

sub closing { my ($code) = @_; return [200, [@TEXT], Closing->new($code)] }

my %CALL = (
    trickle => sub {
        my ($env, $count) = @_;
        return streaming(sub { my ($writer) = @_; for (1 .. $count) { $writer->write('.'); nap(0.05) } $writer->close });
    },
    flood => sub {
        my ($env, $mib) = @_;
        return streaming(sub { my ($writer) = @_; $writer->write('x' x 1_048_576) for 1 .. $mib; $writer->close });
    },
    stuck  => sub { answer(stuck()) },
    regex  => sub { answer(backtrack()) },
    deep   => sub { answer(deep(100, \&stuck)) },
    spin   => sub { answer(spin()) },
    read   => sub { answer(block_on_a_pipe()) },
    select => sub { answer(block_in_select()) },
    sleep  => sub { answer(block_in_sleep()) },
    'slow-close'    => sub { closing(sub { nap(20) }) },
    'stuck-close'   => sub { closing(sub { stuck() }) },
    'patient-close' => sub {
        my ($env) = @_;
        return closing(sub { $env->{'oribi.extend_deadline'}->(20); nap(2); $env->{'psgi.errors'}->print("closed\n") });
    },
    'caught' => sub {
        eval { select undef, undef, undef, 60 while 1 };
        return [503, ['Content-Type' => 'text/plain'], ['sorry']];
    },
    'slow-finish' => sub {
        my ($env) = @_;
        push @{ $env->{'psgix.cleanup.handlers'} }, sub { nap(20) };
        return answer('answered');
    },
    'goes-on' => sub {
        return streaming(sub { my ($writer) = @_; $writer->write('answered'); $writer->close; nap(20) });
    },
);

sub {
    my ($env) = @_;
    my (undef, $name, $number) = split m{/}, $env->{PATH_INFO};
    my $call = $CALL{ defined $name ? $name : '' } || sub { answer($$) };
    return $call->($env, $number);
};
