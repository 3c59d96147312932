use strict;
use warnings;

package Hello;
use Dancer2;

set log => 'error';
set content_type => 'text/plain';
set charset => '';

get '/' => sub { 'Hello, World!' };

__PACKAGE__->to_app;
