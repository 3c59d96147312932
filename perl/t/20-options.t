use strict;
use warnings;
use File::Temp ();
use Oribi ();
use Test::More;

our @exits;

# Options: one table in the core; Perl adds hooks, lists and ready sockets.

sub settings { return Oribi::Settings->new->set_all(command => @_)->finish }
sub refusal { my @pairs = @_; return eval { settings(@pairs); 'accepted' } || $@ }

subtest 'names' => sub {
    my %same = (
        workers => [qw(workers max_workers max-workers MaxWorkers)],
        requests_max => [qw(requests_max max_reqs_per_child max-reqs-per-child max_requests)],
        idle_timeout => [qw(idle_timeout keepalive_timeout keepalive-timeout)],
        keepalive_requests_max => [qw(keepalive_requests_max max_keepalive_reqs)],
        preload => [qw(preload preload_app)],
        bind => [qw(bind listen)],
    );
    for my $name (sort keys %same) {
        is +Oribi::Options->find($_), $name, "$_ is $name" for @{ $same{$name} };
    }
    is +Oribi::Options->find('no_such_thing'), undef;
    is settings('max-workers' => 3)->get('workers'), 3;
    is settings(workers => 4, max_reqs_per_child => 1000, min_reqs_per_child => 500)->get('requests_max'), '500..1000';
    is settings(max_reqs_per_child => 100)->get('requests_max'), '100';
    is settings(spawn_interval => 2)->get('spawn_interval'), settings('spawn-interval' => '2s')->get('spawn_interval');
    is settings(err_respawn_interval => 0.5)->get('err_respawn_interval'), settings(err_respawn_interval => '500ms')->get('err_respawn_interval');
    is settings(keepalive => '')->get('keepalive_requests_max'), 1, '--disable-keepalive of plackup';
    my $settings = settings(timeout => 300);
    is $settings->get($_), settings($_ => '300s')->get($_), "timeout is $_" for qw(head_timeout body_timeout write_timeout);
    is settings(preload_app => 1)->get('preload'), 'on';
    is settings(backlog => 128)->get('backlog'), 128;
};

subtest 'values' => sub {
    is_deeply [settings(listen => [':5000', '/tmp/a.sock'])->list('bind')], [':5000', '/tmp/a.sock'], 'an array is a list';
    is_deeply [settings(listen => undef, port => 1234)->list('bind')], ['127.0.0.1:1234'], 'undefined is not given';
    like refusal(wrokers => 2), qr/\Aunknown option [^\n]*wrokers[^\n]*workers\?\n\z/, 'an unknown name gives the nearest';
    like refusal(workers => 'many'), qr/\A[^\n]*workers[^\n]*\n\z/;
    like refusal(workers => -1), qr/workers/;
    like refusal(workers => {}), qr/\Aworkers: a HASH reference is no value/;
    like refusal(after_fork => 'no code'), qr/\Aafter_fork: /;
    like refusal(after_fork => []), qr/\Aafter_fork: is no code reference/;
    like refusal(after_fork => 'sub {'), qr/\Aafter_fork: Missing right curly/;
    like refusal(listen_sock => do { open my $fh, '<', $0; close $fh; $fh }), qr/listen_sock: is no open socket/;
    like +(eval { Oribi->new(wrokers => 1); 1 } ? '' : $@), qr/\Aoribi: unknown option [^\n]*\n\z/, 'Oribi->new says it, too';
    is 0 + $!, 1, 'with the exit code that an uncaught die takes';
};

subtest 'hooks' => sub {
    my @called;
    my $settings = settings(after_fork => sub { push @called, "after_fork @_" }, child_exit => 'sub { push @main::exits, "exit @_" }');
    $settings->run_hook(after_fork => 1, 2);
    $settings->run_hook(before_worker_exit => 3);
    $settings->run_hook('before_fork');
    is_deeply \@called, ['after_fork 1 2'];
    is_deeply \@exits, ['exit 3'], 'child_exit as source text';
    $@ = 'kept';
    settings(before_fork => sub { die "in a hook\n" })->run_hook('before_fork') for 1;
    is $@, 'kept', 'a hook that dies is nobody\'s end';
};

subtest 'ready sockets' => sub {
    require IO::Socket::INET;
    my $socket = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die $!;
    my $settings = settings(listen_sock => $socket, host => '127.0.0.1', port => 1, listen => [':1']);
    is_deeply [$settings->list('bind')], ['fd://' . fileno $socket], 'they are what is listened on';
    my $listeners = Oribi::Listeners->open($settings->core);
    is +($listeners->list)[0]{port}, $socket->sockport;
};

subtest 'configuration file' => sub {
    my $file = File::Temp->new(SUFFIX => '.pl');
    my $write = sub { truncate $file, 0; seek $file, 0, 0; print {$file} @_; $file->flush; return $file->filename };
    $write->('our $seen = 1; { workers => 7, bind => ["127.0.0.1:1", "127.0.0.1:2"], call_timeout => "5s", after_exit => sub { 1 } }');
    my $settings = Oribi::Settings->new;
    $settings->set(command => workers => 2);
    $settings->read_file($file->filename)->finish;
    is $settings->get('workers'), 2, 'the command line wins';
    is_deeply [$settings->list('bind')], ['127.0.0.1:1', '127.0.0.1:2'];
    ok $settings->{hooks}{on_worker_exit}, 'after_exit is on_worker_exit';
    my $refusal = sub { eval { Oribi::Settings->new->read_file($write->(@_)); 'accepted' } || $@ };
    like $refusal->('{ wrokers => 1 }'), qr/\A\S+\.pl:1: unknown option [^\n]*\n\z/;
    like $refusal->('{ workers => 1 '), qr/\Aconfig file \S+: [^\n]*\n\z/;
    like $refusal->('die "told to\n"'), qr/\Aconfig file \S+: told to\n\z/;
    like $refusal->('1'), qr/does not return a hash reference/;
    like +(eval { Oribi::Settings->new->read_file('/no/such/file'); 1 } ? '' : $@), qr{\Aconfig file /no/such/file: cannot be read: [^\n]*\n\z};
};

subtest 'words with several arguments' => sub {
    my $file = File::Temp->new(SUFFIX => '.pl');
    my $read = sub {
        truncate $file, 0;
        seek $file, 0, 0;
        print {$file} @_;
        $file->flush;
        my $settings = eval { Oribi::Settings->new->read_file($file->filename) } or return $@;
        return $settings;
    };
    my $settings = $read->(<<'PERL');
use strict;
use warnings;
static '/assets', 'public/assets', cache => 'public, max-age=31536000 & 100%', nosniff => 0, index => undef;
static 'public', header => { 'X-A' => 'b' }, symlinks => ['/e', '/f'];
static('/g=h?html=on');
static '/i', 'j', { html => 1 };
+{ workers => 3 };
PERL
    is_deeply [$settings->list('static')],
        [
        '/assets=public/assets?cache=public, max-age=31536000 %26 100%25&nosniff=off',
        'public?header=X-A:b&symlinks=/e&symlinks=/f', '/g=h?html=on', '/i=j?html=on'
        ];
    is $settings->get('workers'), 3;
    my $printed = join '', grep {/^static /} split /^/, $settings->core->print;
    like $printed, qr{^static 'public', header => 'X-A:b', symlinks => \['/e', '/f'\];$}m;
    is join('', grep {/^static /} split /^/, $read->($printed)->core->print), $printed, 'what is printed is read again, without a hash behind it';
    is_deeply [settings(static => [['/a', 'b', html => 1], 'c'])->list('static')], ['/a=b?html=on', 'c'], 'from a method call';
    is_deeply [settings(static => ['/a=b', 'c'])->list('static')], ['/a=b', 'c'];
    is_deeply [settings(static => 'c')->list('static')], ['c'];
    my $words = $read->("workers 3;\nquiet;\nwarmup '/a', '/b';\nenv 'test';\nafter_fork sub { 1 };\n{ idle_timeout => 7 }");
    is_deeply [map { $words->get($_) } qw(workers quiet warmup env idle_timeout)], ['3', 'on', "/a\n/b", 'test', '7s'], 'options without arguments of their own';
    ok $words->{hooks}{after_fork}, 'and hooks';
    my %told = (
        q(workers;) => 'workers needs a value',
        q(workers 1, 2;) => 'workers takes one value, not 2: "1", "2"',
        q(check;) => 'check belongs on the command line, not in the configuration file',
        q(after_fork [];) => 'after_fork: is no code reference',
        q(static;) => 'static needs FOLDER: static [PREFIX, ]FOLDER',
        q(static 'a', 'b';) => 'static: PREFIX must begin with a slash, not "a"',
        q(static '/a', undef;) => 'static: FOLDER must be text',
        q(static '/a', [];) => 'static: FOLDER must be text',
        q(static '/a', sub { };) => 'static: FOLDER must be text',
        q(static '/a', 'b', cahce => 'c';) => 'static has no setting "cahce": did you mean cache?',
        q(static '/a', 'b', cache => sub { };) => 'static: cache must be text',
        q(static '/a', 'b', 'c';) => 'static has no setting "b" (known: cache, header, index, html, fallthrough, symlinks, nosniff, etag)',
    );
    is $read->("\n$_\n{}"), $file->filename . ":2: $told{$_}\n", $_ for sort keys %told;
    like $read->("static 'a', 'b';\n{ wrokers => 1 }"), qr/pl:1: static: PREFIX.*pl:2: unknown option wrokers/s, 'with other mistakes';
    like $read->('1'), qr/does not return a hash reference/;
    like +(eval { Oribi::Words::static('a'); 1 } ? '' : $@), qr/\Astatic: is a word of the configuration file/;
};

# The names of Starman and uWSGI in one file, and what is wrong with each.
subtest 'all mistakes of a configuration file' => sub {
    my $file = File::Temp->new(SUFFIX => '.pl');
    print {$file} <<'PERL';
my $n = 2;    # workers => 1
{
    workers => [2, 7],
    processes => $n,
    'enable_ssl' => 1,
    user => ['nobody', 'www-data'],
    bind => ':80', "harakiri" => 30,
    listen => ['/tmp/a.sock', { backlog => 64 }],
    host => undef,
    after_fork => 'no code',
    idle_timeout => 'soon',
    chdir => '/nowhere/at/all',
}
PERL
    $file->flush;
    my $name = $file->filename;
    my $said = eval { Oribi::Settings->new->read_file($name); 'accepted' } || $@;
    my @expected = (
        [3, qr/: workers takes one value, not 2: "2", "7"\z/],
        [4, qr/: unknown option processes \(uWSGI\): here it is workers\z/],
        [5, qr/: unknown option enable_ssl \(Starman\): bind tls:/],
        [6, qr/: user takes one value, not 2: .* group "www-data"\z/],
        [7, qr/: unknown option harakiri \(uWSGI\): here it is call_timeout\z/],
        [8, qr/: listen has no setting "backlog" \(known: certificate, /],
        [10, qr/: after_fork: /],
        [11, qr/: idle_timeout must be a time/],
        [12, qr/: chdir \/nowhere\/at\/all: no such file or directory\z/],
    );
    my @lines = split /\n/, "$said";
    is_deeply [map {/:(\d+): /} @lines], [map { $_->[0] } @expected], 'each has its line' or diag $said;
    like $lines[$_], $expected[$_][1] for 0 .. $#expected;
    is scalar @{ [Oribi::App::lines_of($said)] }, 9, 'the command prints all';
};

# bind is a function of Perl's own everywhere else.
subtest 'addresses with files' => sub {
    my @lists = qw(bind certificate);
    my $read = sub {
        my $file = File::Temp->new(SUFFIX => '.pl');
        print {$file} @_;
        $file->flush;
        my $settings = Oribi::Settings->new;
        $settings->read_file($file->filename);
        return [map { $settings->list($_) } @lists];
    };
    my $address = 'tls://:443?certificate=a%26b%25.pem&key=k';
    is_deeply $read->(q{bind 'tls://:443', certificate => 'a&b%.pem', key => 'k'; bind ':1', ':2'; certificate 'c', key => 'k', ocsp => 'o';}),
        [$address, ':1', ':2', 'c?key=k&ocsp=o'], 'as words';
    is_deeply $read->(q[{ bind => ['tls://:443', { certificate => 'a&b%.pem', key => 'k' }], certificate => [['c', 'k']] }]), [$address, 'c,k'], 'as values';
    is_deeply $read->(q[{ bind => [':1', ':2'], certificate => 'c,k,o' }]), [':1', ':2', 'c,k,o'], 'lines as they were';
    @lists = 'acme';
    is_deeply $read->(q{acme 'a.org', 'b.org', email => 'x+y@a.org';}), ['a.org,b.org?email=x+y@a.org'], 'names are joined';
    is_deeply $read->(q[{ acme => [['a.org', 'b.org', { email => 'x@a.org' }], ['c.org']] }]), ['a.org,b.org?email=x@a.org', 'c.org'], 'in a hash';
    like eval { $read->(q{bind 'tls://:443', certificat => 'a';}) } || $@, qr/:1: bind has no setting "certificat": did you mean certificate\?/;
    like eval { $read->(q{bind ':443', key => 'a';}) } || $@, qr/:1: .*key/, 'no files without tls://';
};

subtest 'the table, its help and its text' => sub {
    my @table = Oribi::Options->table;
    cmp_ok scalar @table, '>', 30;
    my $help = Oribi::Options->help(1);
    for my $entry (@table) {
        (my $dashed = $entry->{name}) =~ tr/_/-/;
        like $help, qr/--(?:\[no-\])?\Q$dashed\E\b/, "$entry->{name} is in --help";
    }
    ok !grep({ $_->{name} eq 'threads' } @table), 'what only the other language has is not ours';
    is settings(workers => 3)->core->print =~ /^workers = 3$/m, 1;
};

done_testing;
