# Calls whose client may leave; gone.ru is its twin. The test and the application tell each other by files.
use strict;
use warnings;
use Time::HiRes ();

my $DIR = $ENV{E2E_DIR};

sub answer { return [200, ['Content-Type' => 'text/plain'], ["$_[0]"]] }
sub nap { Time::HiRes::sleep($_[0]); return }
sub await { my ($name) = @_; nap(0.001) until -e "$DIR/$name"; return }

sub note {
    my ($name, $text) = @_;
    open my $file, '>', "$DIR/$name" or die $!;
    print {$file} defined $text ? $text : '';
    close $file or die $!;
    rename "$DIR/$name", "$DIR/$name.done" or die $!;
    return;
}

sub word { return $_[0] ? 'true' : 'false' }

# How often a millisecond passed until the client had gone; at most so many.
sub looks {
    my ($env, $max) = @_;
    for (1 .. $max) { return $_ if $env->{'oribi.gone?'}->(); nap(0.001) }
    return 'never';
}

{
    package Guard;
    sub new { my ($class, $code) = @_; return bless { code => $code }, $class }
    sub DESTROY { local $@; $_[0]{code}->(); return }
}

my %CALL = (
    looks => sub {    # from the moment on that the test says that the client has done what it does
        my ($env, $name) = @_;
        my $before = $env->{'oribi.gone?'}->();
        note("$name-entered");
        await("$name-left");
        my $seen = looks($env, 30);
        note("$name-seen", word($before) . " $seen");
        return answer($seen);
    },
    cancel => sub {
        my ($env, $name) = @_;
        my $guard = Guard->new(sub { note("$name-ensured", 'Oribi::ClientGone') });
        note("$name-entered");
        if ($name =~ /\Aspin/) { 1 while 1 }
        my $end = Time::HiRes::time() + 20;
        nap(1) while Time::HiRes::time() < $end;
        return answer('not cancelled');
    },
    rescues => sub {
        my ($env, $name) = @_;
        # Inside: once the client knows that the call has begun, the call may end.
        eval { note("$name-entered"); nap(20); 1 } or note("$name-ensured", ref $@);
        return answer('rescued');
    },
    'makes-500' => sub {    # as frameworks do
        my ($env, $name) = @_;
        eval { note("$name-entered"); nap(20); 1 } and return answer('not cancelled');
        note("$name-ensured", '500');
        return [500, [], ['error']];
    },
    finishes => sub {    # not to be cancelled
        my ($env, $name) = @_;
        note("$name-entered");
        await("$name-left");
        nap(0.2);
        note("$name-ensured", word($env->{'oribi.gone?'}->()));
        return answer('finished');
    },
    raises => sub {
        my ($env, $name) = @_;
        # First: where cancel_gone is on, the call may end as soon as its client has left.
        push @{ $env->{'psgix.cleanup.handlers'} }, sub { note("$name-ensured", 'nil Oribi::ClientGone') };
        note("$name-entered");
        await("$name-left");
        die Oribi::ClientGone->new if $env->{'oribi.gone?'}->();
        return answer('still there');
    },
    stream => sub {
        my ($env, $name) = @_;
        return sub {
            my ($respond) = @_;
            my $writer = $respond->([200, ['Content-Type' => 'text/plain']]);
            my $guard = Guard->new(sub { note("$name-ensured", 'Oribi::ClientGone') });
            $writer->write('begun');
            note("$name-entered");
            nap(20);
        };
    },
    io => sub {    # talks to its client itself
        my ($env, $name) = @_;
        my $io = $env->{'psgix.io'};
        return sub {
            note("$name-entered");
            vec(my $bits = '', fileno $io, 1) = 1;
            my $ready = select $bits, undef, undef, 20;
            my $slept = select undef, undef, undef, 0.15;    # a signal would break this off
            note("$name-ensured", join ' ', $ready, $slept, sysread $io, my $byte, 1);
        };
    },
    late => sub {    # the answer is complete, and its client has gone then
        my ($env, $name) = @_;
        my $gone = $env->{'oribi.gone?'};
        push @{ $env->{'psgix.cleanup.handlers'} }, sub {
            await("$name-left");
            nap(0.05);
            note("$name-ensured", word($gone->()));
        };
        return answer('complete');
    },
    brief => sub { nap(0.008 + rand(0.006)); return answer('brief') },
);

sub {
    my ($env) = @_;
    my (undef, $path, $name) = split m{/}, $env->{PATH_INFO};
    my $call = $CALL{ defined $path ? $path : '' } || sub { answer($$) };
    return $call->($env, $name);
};
