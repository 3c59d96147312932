use strict;
use warnings;

use File::Basename qw(dirname);
use lib dirname(__FILE__) . '/lib';
use Digest::SHA ();
use Isucon4::App;
use Plack::Builder;
use Plack::Session::State::Cookie;

builder {
    enable 'Static', path => qr{^/(?:stylesheets|images)/}, root => $ENV{ISUCON4_PUBLIC} // 'public';
    enable 'Session::Cookie', session_key => 'isucon4', secret => 'isucon4 benchmark, nothing worth a secret of its own', httponly => 1;
    Isucon4::App->to_app;
};
