use strict;
use warnings;
use Test::More;
use lib 't/lib';
use RedisServer;
use B ();
use Oribi::Redis;

my $server = RedisServer->start or plan skip_all => 'redis-server is not installed';
my $redis  = Oribi::Redis->new($server->place);
my $chars  = Oribi::Redis->new($server->place, utf8 => 1);

package Tied {
    sub TIESCALAR { my ($class, $code) = @_; return bless $code, $class }
    sub FETCH { return $_[0]->() }
}

package TiedArray {
    require Tie::Array;
    BEGIN { our @ISA = ('Tie::StdArray') }
    sub TIEARRAY { my ($class, @items) = @_; return bless [@items], $class }
}

package Text {
    use overload '""' => sub { $_[0]{code}->() }, fallback => 1;
}

package main;

sub dies_with {
    my ($pattern, $name, @command) = @_;
    ok !eval { $redis->command(@command); 1 }, $name;
    isa_ok $@, 'Oribi::Redis::Error::Usage';
    like "$@", $pattern, "$name: the words";
    is $redis->command('ECHO', 'next'), 'next', "$name: the next command is right";
    return;
}

subtest 'what is no string' => sub {
    my ($integer, $number) = (5, 1.5);
    is $redis->command('ECHO', $integer), '5';
    is $redis->command('ECHO', $number),  '1.5';
    is $redis->command('ECHO', -7),       '-7';
    is $redis->command('ECHO', 18446744073709551615), '18446744073709551615';
    is $redis->command('ECHO', !!1), '1';
    is $redis->command('ECHO', !!0), '';
    is $redis->command('ECHO', "a\0b\r\n"), "a\0b\r\n", 'any byte';
    my $flags = B::svref_2object(\$integer)->FLAGS;
    ok !($flags & B::SVf_POK()), "the caller's number stays a number";
};

subtest 'tied and overloaded' => sub {
    my $fetched = 0;
    tie my $tied, 'Tied', sub { $fetched++; 'tied' };
    is $redis->command('ECHO', $tied), 'tied';
    is $fetched, 1, 'fetched once';
    is $redis->command('ECHO', bless { code => sub {'text'} }, 'Text'), 'text';
    is $redis->command('ECHO', bless { code => sub {"\x{e9}"} }, 'Text'), "\xe9";
    is_deeply [$redis->pipeline(['ECHO', $tied], ['ECHO', 'plain'])], ['tied', 'plain'];

    tie my $inner, 'Tied', sub { $redis->command('ECHO', 'inner') };
    is $redis->command('ECHO', $inner), 'inner', 'a value that asks the same client';
    is_deeply [$redis->pipeline(['ECHO', $inner], ['ECHO', 2])], ['inner', 2], '... in a pipeline';

    tie my $dying, 'Tied', sub { die "own\n" };
    ok !eval { $redis->command('ECHO', $dying); 1 };
    is $@, "own\n";
    is $redis->command('ECHO', 'next'), 'next';

    no warnings 'recursion';    ## no critic (ProhibitNoWarnings)
    my @deep = (1 .. 50);
    my $recurse;
    $recurse = sub { my ($n) = @_; return $n ? $recurse->($n - 1, @deep) : 'grown' };
    is $redis->command('ECHO', bless { code => sub { $recurse->(500) } }, 'Text'), 'grown', "perl's stack grew meanwhile";
    is_deeply [$redis->pipeline(['ECHO', bless { code => sub { $recurse->(2000) } }, 'Text'], ['ECHO', 2])], ['grown', 2];

    my @fleeting = ('ECHO', 'here', 'x');
    $fleeting[2] = bless { code => sub { @fleeting = (); 'y' } }, 'Text';
    is ref((eval { $redis->pipeline(\@fleeting) })[0]), 'Oribi::Redis::Error::Command', 'an array that is emptied meanwhile';

    tie my @array, 'TiedArray', 'ECHO', 'of a tied array';
    is_deeply [$redis->pipeline(\@array)], ['of a tied array'];
};

subtest 'what cannot be sent' => sub {
    dies_with(qr/argument 2 of SET is undef/,       'undef',          'SET', 'k', undef);
    dies_with(qr/argument 1 of GET is a reference/, 'a reference',    'GET', []);
    dies_with(qr/argument 1 of GET is a reference/, 'an object',      'GET', bless {}, 'Plain');
    dies_with(qr/wide character/,                   'wide character', 'SET', 'k', "\x{263a}");
    dies_with(qr/a name at least/,                  'nothing');
    my @holes = ('SET', 'k');
    $#holes = 2;
    ok !eval { $redis->pipeline(['PING'], \@holes); 1 };
    like $@, qr/argument 2 of SET is undef/;
    ok !eval { $redis->pipeline(['PING'], []); 1 };
    like $@, qr/a name at least/;
    is $redis->command('ECHO', 'next'), 'next';
};

subtest 'bytes and characters' => sub {
    my $upgraded = "caf\xe9";
    utf8::upgrade($upgraded);
    is $redis->command('ECHO', $upgraded), "caf\xe9", 'a flag changes no bytes';
    ok utf8::is_utf8($upgraded), '... and stays';
    is $chars->command('ECHO', "\x{263a}"), "\x{263a}";
    is $chars->command('ECHO', "caf\xe9"), "caf\xe9", 'bytes are characters, with utf8';
    $chars->command('SET', 'k', "\x{263a}\xe9");
    is $redis->command('GET', 'k'), "\xe2\x98\xba\xc3\xa9", 'as they lie there';
    $redis->command('SET', 'k', "\xff\xfe");
    is $chars->command('GET', 'k'), "\xff\xfe", 'what is no UTF-8 stays bytes';
    my $long = "\x{263a}" x 100_000;
    $chars->command('SET', 'k', $long);
    ok $chars->command('GET', 'k') eq $long, 'a long one';
    $chars->command('HSET', 'h', "\x{e9}", "\x{263a}");
    is_deeply $chars->command('HGETALL', 'h'), { "\x{e9}" => "\x{263a}" }, 'in a hash';
};

subtest 'the caller is not touched' => sub {
    my $value = 'v' x 100_000;
    my $same  = $value;
    $redis->command('SET', 'k', $value);
    ok $value eq $same;
    my $got = $redis->command('GET', 'k');
    $got .= 'more';
    is length $redis->command('GET', 'k'), 100_000;
    my @command = ('SET', 'k', 5);
    $redis->pipeline(\@command);
    is_deeply \@command, ['SET', 'k', 5];
};

subtest 'options' => sub {
    for my $wrong ([prot => 3], [port => 0], [port => 65_536], [protocol => 4], [resend => 'maybe'], [read_timeout_ms => -1], [url => 'http://x'], [path => 'x' x 108], [db => 'x']) {
        ok !eval { Oribi::Redis->new(@$wrong); 1 }, "@$wrong";
        isa_ok $@, 'Oribi::Redis::Error::Usage';
    }
    ok(Oribi::Redis->new(path => 'x' x 107), 'a path of 107 bytes');
    my $secret = Oribi::Redis->new(url => 'redis://:geheim@127.0.0.1/', password => 'geheim');
    require Data::Dumper;
    unlike Data::Dumper::Dumper($secret), qr/geheim/, 'a dump does not tell the password';
    ok !eval { Oribi::Redis::command({}, 'PING'); 1 }, 'no object';
    ok !eval { Oribi::Redis->command('PING'); 1 }, 'a class';
};

done_testing;
