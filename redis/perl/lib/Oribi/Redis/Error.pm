package Oribi::Redis::Error;
use strict;
use warnings;
use overload '""' => sub { $_[0]{message} }, bool => sub {1}, fallback => 1;

our $VERSION = '0.100';

# What has failed, without the place: "WRONGTYPE Operation against a key holding the wrong kind of value".
sub message { return $_[0]{message} }

sub throw { my ($class, $message) = @_; die bless { message => $message }, $class }

package Oribi::Redis::Error::Connection;
our @ISA     = ('Oribi::Redis::Error');
our $VERSION = '0.100';

package Oribi::Redis::Error::Timeout;
our @ISA     = ('Oribi::Redis::Error');
our $VERSION = '0.100';

package Oribi::Redis::Error::Protocol;
our @ISA     = ('Oribi::Redis::Error');
our $VERSION = '0.100';

package Oribi::Redis::Error::Usage;
our @ISA     = ('Oribi::Redis::Error');
our $VERSION = '0.100';

package Oribi::Redis::Error::Command;
our @ISA     = ('Oribi::Redis::Error');
our $VERSION = '0.100';

# The first word of what the server said: ERR, WRONGTYPE, READONLY, OOM, NOPERM, LOADING, ...
sub code { return $_[0]{message} =~ /\A([A-Z]+)/ ? $1 : '' }

1;
