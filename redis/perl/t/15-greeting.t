use strict;
use warnings;
use Test::More;
use lib 't/lib';
use RedisServer;
use Oribi::Redis;

# Users, passwords and names, asked of a server that wants them.

my $server = RedisServer->start(requirepass => 'ge:heim/1') or plan skip_all => 'redis-server is not installed';
my @place  = (path => $server->path, reconnect_attempts => 0);
my $admin  = Oribi::Redis->new(@place, password => 'ge:heim/1');
is $admin->command('PING'), 'PONG', 'a password';
$admin->command('ACL', 'SETUSER', 'reader', 'on', '>word', '~*', '+@read', '+ping', '+select', '+hello', '+client');

for my $protocol (2, 3) {
    my @all = (@place, protocol => $protocol, user => 'reader', password => 'word', client_name => 'name', db => 2);
    my $reader = Oribi::Redis->new(@all);
    is $reader->command('GET', 'k'), undef, "protocol $protocol: user, password, name and database";
    is $reader->command('CLIENT', 'GETNAME'), 'name';
    like $reader->command('CLIENT', 'INFO'), qr/ db=2 .* user=reader /;
    ok !eval { $reader->command('SET', 'k', 'v'); 1 };
    is $@->code, 'NOPERM';
    is $reader->command('GET', 'k'), undef, 'the next command is right';

    for my $wrong ([user => 'reader', password => 'wrong'], [user => 'nobody', password => 'word'], [password => 'wrong']) {
        my $refused = Oribi::Redis->new(@place, protocol => $protocol, @$wrong);
        ok !eval { $refused->command('GET', 'k'); 1 };
        isa_ok $@, 'Oribi::Redis::Error::Connection';
        like $@, qr/refuses the connection: WRONGPASS/;
        unlike $@, qr/wrong\b/, 'without the password';
    }
    my $without = Oribi::Redis->new(@place, protocol => $protocol);
    ok !eval { $without->command('GET', 'k'); 1 };
    like $@, qr/NOAUTH/;
    ok !eval { Oribi::Redis->new(@place, protocol => $protocol, password => 'ge:heim/1', db => 1000)->command('GET', 'k'); 1 };
    like $@, qr/DB index is out of range/;
}

my $path = $server->path;
is(Oribi::Redis->new("unix://:ge%3Aheim%2F1\@$path?db=3")->command('CLIENT', 'INFO') =~ / db=3 / ? 1 : 0, 1, 'a URL with escapes');
is(Oribi::Redis->new('redis://reader:word@127.0.0.1:' . $server->port . '/2')->command('GET', 'k'), undef, 'a URL with a user');

my $later = Oribi::Redis->new(@place, protocol => 2);
ok !eval { $later->command('GET', 'k'); 1 };
is $@->code, 'NOAUTH';
is $later->command('AUTH', 'ge:heim/1'), 'OK', 'AUTH as a command';
$later->close;
is $later->command('GET', 'k'), undef, '... is repeated on the next connection';

done_testing;
