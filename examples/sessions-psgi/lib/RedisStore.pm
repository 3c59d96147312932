package RedisStore;
use strict;
use warnings;
use JSON::PP ();
use Oribi::Redis;

our $VERSION = '0.100';

# Sessions of Plack::Middleware::Session in Redis, as JSON: RedisStore->new(redis => $client, ttl_s => 3600). A session
# that is not used for ttl_s seconds is gone. Without Redis a request dies; it does not go on as nobody's.
sub new {
    my ($class, %options) = @_;
    return bless { redis => $options{redis} // Oribi::Redis->new, ttl_s => $options{ttl_s} // 3600, json => JSON::PP->new->utf8->canonical }, $class;
}

sub key { my ($id) = @_; return "session:$id" }

sub fetch {
    my ($self, $id) = @_;
    my $text = $self->{redis}->command('GETEX', key($id), 'EX', $self->{ttl_s});
    return defined $text ? $self->{json}->decode($text) : undef;
}

sub store {
    my ($self, $id, $session) = @_;
    $self->{redis}->command('SET', key($id), $self->{json}->encode($session), 'EX', $self->{ttl_s});
    return;
}

sub remove {
    my ($self, $id) = @_;
    $self->{redis}->command('DEL', key($id));
    return;
}

1;
