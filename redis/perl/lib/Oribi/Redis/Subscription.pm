package Oribi::Redis::Subscription;
use strict;
use warnings;
use Time::HiRes ();

our $VERSION = '0.100';

# A connection that listens: made by Oribi::Redis::subscribe and psubscribe.
sub new {
    my ($class, $connection, @words) = @_;
    $connection->_listen(@words);
    return bless { connection => $connection }, $class;
}

# A connection that is made anew would not listen to what the first one did: a subscription ends with its own.
sub listen {    ## no critic (ProhibitBuiltinHomonyms)
    my ($self, @words) = @_;
    Oribi::Redis::Error::Connection->throw("the subscription has ended, or is another process's") if !$self->{connection}->is_connected;
    $self->{connection}->_listen(@words);
    return $self;
}

for my $name (qw(subscribe unsubscribe psubscribe punsubscribe ssubscribe sunsubscribe)) {
    no strict 'refs';    ## no critic (ProhibitNoStrict)
    *{$name} = sub { my ($self, @channels) = @_; return $self->listen(uc $name, @channels) };
}

# The next message within so many milliseconds (none: any time), as Redis has sent it: ['message', CHANNEL, TEXT],
# ['pmessage', PATTERN, CHANNEL, TEXT], ['subscribe', CHANNEL, COUNT], ... undef: the time is over.
sub next_event {
    my ($self, $limit_ms) = @_;
    return $self->{connection}->_next_push($limit_ms // -1);
}

# The same without what only confirms: { channel, message } and for patterns { pattern } too.
sub next {    ## no critic (ProhibitBuiltinHomonyms)
    my ($self, $limit_ms) = @_;
    my $until = defined $limit_ms ? Time::HiRes::time() * 1000 + $limit_ms : undef;
    while (1) {
        my $left  = defined $until ? $until - Time::HiRes::time() * 1000 : undef;
        my $event = $self->next_event(defined $left ? ($left > 0 ? $left : 0) : undef);
        return undef if !$event;    ## no critic (ProhibitExplicitReturnUndef): a value for lists, too
        my ($kind, @rest) = @$event;
        return { channel => $rest[0], message => $rest[1] } if $kind eq 'message' || $kind eq 'smessage';
        return { pattern => $rest[0], channel => $rest[1], message => $rest[2] } if $kind eq 'pmessage';
    }
}

sub close { my ($self) = @_; $self->{connection}->close; return }    ## no critic (ProhibitBuiltinHomonyms)

1;
