package Oribi::Redis::Script;
use strict;
use warnings;
use Digest::SHA ();

our $VERSION = '0.100';

# A Lua script: sent by its digest, and whole where the server does not have it.
sub new {
    my ($class, $client, $source) = @_;
    utf8::encode($source) if utf8::is_utf8($source);
    return bless { client => $client, source => $source, sha => Digest::SHA::sha1_hex($source) }, $class;
}

sub sha { return $_[0]{sha} }

sub call {
    my ($self, $keys, @arguments) = @_;
    my @rest  = (scalar @{ $keys // [] }, @{ $keys // [] }, @arguments);
    my $reply = eval { [$self->{client}->command('EVALSHA', $self->{sha}, @rest)] };
    return $reply->[0] if $reply;
    my $error = $@;
    die $error if !Oribi::Redis::_is_error($error) || !$error->isa('Oribi::Redis::Error::Command') || $error->code ne 'NOSCRIPT';
    return $self->{client}->command('EVAL', $self->{source}, @rest);
}

1;
