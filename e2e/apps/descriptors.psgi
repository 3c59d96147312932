use strict;
use warnings;
use POSIX ();
use Plack::Request ();

# An application that does with descriptors what libraries do that believe to be alone in their process; descriptors.ru
# is its twin.

sub range { my ($request) = @_; return $request->param('from') .. $request->param('to') }

# ?from=3&to=200: closes them all, whoever they belong to.
sub close_them { return scalar grep { POSIX::close($_) } range($_[0]) }

# The same, and something of the application's gets each number that was taken.
my $file;

sub occupy {
    my ($request) = @_;
    open $file, '>>', $request->param('path') or die $!;
    my @fds = grep { $_ != fileno $file && -e "/proc/self/fd/$_" } range($request);
    POSIX::dup2(fileno $file, $_) for @fds;
    return scalar @fds;
}

sub slow_close {
    my ($request) = @_;
    my $count = close_them($request);
    select undef, undef, undef, $request->param('seconds');
    return $count;
}

my %routes = (
    '/pid'        => sub {$$},
    '/close'      => \&close_them,
    '/occupy'     => \&occupy,
    '/slow-close' => \&slow_close,
    '/raise'      => sub { die "told to fail\n" },
);

sub {
    my ($env) = @_;
    my $route = $routes{ $env->{PATH_INFO} } || sub {'Hello, World!'};
    return [200, ['Content-Type' => 'text/plain'], [$route->(Plack::Request->new($env))]];
}
