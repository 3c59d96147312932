use strict;
use warnings;
use File::Basename ();
use lib File::Basename::dirname(__FILE__) . '/lib';
use Board ();

Board->to_app;
