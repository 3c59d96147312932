package Oribi::Deadline;
use strict;
use warnings;
use Oribi ();
use Scalar::Util ();

our $VERSION = '0.100';

# A call that runs for longer than call_timeout dies here, and with cancel_gone one whose client has gone.

# The core raises the signal when a call has run for longer than call_timeout, or its client has gone; Perl runs the
# handler between two operations. Where the signal has waited until the call was over, nothing happens.
sub watch {
    my ($worker) = @_;
    Scalar::Util::weaken($worker);
    $SIG{ Oribi::_deadline_signal() } = sub {
        return unless $worker;
        my $gone = $worker->_take_gone;
        my $overdue = $worker->_overdue or $gone or return;
        if (_at_prompt()) {
            $worker->_begin_anew if $overdue;
            return;
        }
        die Oribi::CallTimeout->new($worker->_stands) if $overdue;
        die Oribi::ClientGone->new;
    };
    return;
}

# True when a developer has stopped the call, in perl's debugger or another that reads what is typed.
sub _at_prompt {
    for (my $i = 1; my $package = caller $i; $i++) {
        return 1 if $package =~ /\A(?:DB|Reply|Devel::REPL|Carp::REPL|Enbugger|Pry)\b/;
    }
    return 0;
}

1;

__END__

=head1 NAME

Oribi::Deadline - ends calls that run for longer than call_timeout, or whose client has gone

=head1 DESCRIPTION

Part of L<Oribi>; see C<call_timeout> and C<cancel_gone> in L<oribi-psgi>.

=cut
