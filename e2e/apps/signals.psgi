# Calls that handle signals themselves, for a while or for good; signals.ru is its twin.
use strict;
use warnings;
use Time::HiRes ();

my @TEXT = ('Content-Type' => 'text/plain');
my %seen;

sub answer { return [200, [@TEXT], ["$_[0]"]] }

# Says that it was entered, and waits until the test opens the gate.
sub gate {
    my ($name) = @_;
    my $file = "$ENV{E2E_DIR}/$name";
    open my $fh, '>', "$file.entered" or die "$file: $!";
    print $fh $$;
    close $fh;
    Time::HiRes::sleep(0.005) until -e "$file.open";
    return;
}

my %HANDLERS = (handler => sub { $seen{ $_[0] } = 1 }, ignore => 'IGNORE', default => 'DEFAULT');

my %CALL = (
    local => sub {
        my ($signal, $kind, $name) = @_;
        local $SIG{$signal} = $HANDLERS{$kind};
        gate($name) if defined $name;
        return answer('passed');
    },
    set => sub {
        my ($signal, $kind, $name) = @_;
        $SIG{$signal} = $HANDLERS{$kind};
        gate($name) if defined $name;
        return answer('passed');
    },
    note => sub {    # each signal in a file
        my ($signal) = @_;
        open my $notes, '>>', "$ENV{E2E_DIR}/notes" or die "notes: $!";
        $SIG{$signal} = sub { syswrite $notes, '.' };
        return answer($$);
    },
    gate => sub { gate($_[0]); return answer('passed') },
    seen => sub { return answer(join ',', sort keys %seen) },
);

sub {
    my ($env) = @_;
    my (undef, $name, @arguments) = split m{/}, $env->{PATH_INFO};
    my $call = $CALL{ defined $name ? $name : '' } || sub { answer($$) };
    return $call->(@arguments);
};
