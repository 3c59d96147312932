# The chat of the examples for browser/chat_test.rb: a call waits while the file "hold" is there, and writes its pid.
use strict;
use warnings;
use File::Basename ();
use lib File::Basename::dirname(__FILE__) . '/../../examples/chat-psgi/lib';
use Chat::Room ();

my $DIR = $ENV{E2E_DIR};
my $on_message = \&Chat::Room::on_message;
{
    no warnings 'redefine';
    *Chat::Room::on_message = sub {
        if (-e "$DIR/hold") {
            open my $file, '>', "$DIR/held" or die "held: $!\n";
            print {$file} $$;
            close $file or die "held: $!\n";
        }
        select undef, undef, undef, 0.005 while -e "$DIR/hold";
        return $on_message->(@_);
    };
}

sub { Chat::Room->answer(@_) };
