use strict;
use warnings;
use File::Basename ();
use lib File::Basename::dirname(__FILE__) . '/lib';
use Chat::Room ();

# The chat of examples/chat in Perl: config/oribi.pl has the server's settings, ../chat/public the pages.
sub { Chat::Room->answer(@_) };
