# Calls of chosen durations, and some that do not end; placement.ru is its twin.
use strict;
use warnings;
use POSIX ();
use Time::HiRes ();

sub answer { my ($text, @headers) = @_; return [200, ['Content-Type' => 'text/plain', @headers], ["$text"]] }

# What the load driver takes off an answer's time to know how long the request has waited, and when the call began.
sub timed {
    my ($work) = @_;
    my $started = Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC());
    $work->();
    my $took = Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) - $started;
    return answer('done', 'X-Service-Us' => int($took * 1e6), 'X-Begun-Us' => int($started * 1e6));
}

sub nap { my ($seconds) = @_; return sub { Time::HiRes::sleep($seconds) } }

# For so long of the processor's time, not of the clock's: a busy machine makes it no shorter.
sub computing {
    my ($seconds) = @_;
    my $clock = Time::HiRes::CLOCK_PROCESS_CPUTIME_ID();
    return sub {
        my $until = Time::HiRes::clock_gettime($clock) + $seconds;
        1 while Time::HiRes::clock_gettime($clock) < $until;
    };
}

# Lives until the test says so, holding whatever it has inherited.
sub fork_child {
    my $pid = fork;
    return $pid if $pid;
    Time::HiRes::sleep(0.01) until -e "$ENV{E2E_DIR}/child.stop";
    POSIX::_exit(0);
}

# Half an hour in a function of the C library's: no handler of Perl's runs meanwhile.
my $ROUNDS = 999_999_999;    # not a constant: Perl would compute the result while it compiles
sub stuck { return crypt 'password', "\$6\$rounds=$ROUNDS\$salt\$" }

# No signal at all comes through: the helper must see to it.
sub deaf {
    my $all = POSIX::SigSet->new;
    $all->fillset;
    POSIX::sigprocmask(POSIX::SIG_BLOCK(), $all);
    1 while 1;
}

sub rescue {
    return answer('slept') if eval { sleep 10; 1 };
    return answer(ref $@);
}

sub part {
    my ($respond) = @_;
    my $writer = $respond->([200, ['Content-Type' => 'text/plain']]);
    $writer->write("begun\n");
    sleep 10;
    $writer->close;
    return;
}

my %CALL = (
    exp   => sub { timed(nap(-log(1 - rand) * $_[1] / 1000)) },
    sleep => sub { timed(nap($_[1] / 1000)) },
    compute => sub { timed(computing($_[1] / 1000)) },
    spin  => sub { 1 while 1 },
    stuck => sub { answer(stuck()) },
    deaf  => sub { deaf() },
    rescue => sub { rescue() },
    part   => sub { \&part },
    extend => sub {
        my ($env, $seconds) = @_;
        $env->{'oribi.extend_deadline'}->($seconds);
        sleep 1;
        return answer('extended');
    },
    fork  => sub { answer(fork_child()) },
);

sub {
    my ($env) = @_;
    my (undef, $name, $number) = split m{/}, $env->{PATH_INFO};
    my $call = $CALL{ defined $name ? $name : '' } || sub { answer($$) };
    return $call->($env, $number);
};
