use strict;
use warnings;

BEGIN { $ENV{MOJO_MODE} = 'production' }
use Mojolicious::Lite -signatures;
use Mojo::Server::PSGI;

app->log->level('fatal');
app->secrets(['a benchmark keeps none']);

get '/' => sub ($c) { $c->render(text => 'Hello, World!', format => 'txt') };

Mojo::Server::PSGI->new(app => app)->to_psgi_app;
