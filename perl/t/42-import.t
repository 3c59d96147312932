use strict;
use warnings;
use lib 't/lib';
use File::Temp ();
use Oribi ();
use Oribi::Import ();
use OribiServer;
use Cwd ();
use Test::More;

# Command lines and ini files of other servers as people have them, and what is printed for them: t/import.cases has
# each file behind a line "==== NAME", and behind "---- printed" the configuration that it becomes.

my $here = Cwd::getcwd();
my $dir = File::Temp->newdir;

sub file {
    my ($name, $text) = @_;
    open my $fh, '>:raw', "$dir/$name" or die "$dir/$name: $!";
    print {$fh} $text;
    close $fh;
    return "$dir/$name";
}

my (undef, %files) = split /^==== (.+)\n/m, slurp('t/import.cases');
my %printed;
for my $name (keys %files) {
    (my $given, $printed{$name}) = split /^---- printed\n/m, $files{$name};
    file($name, $given);
}

sub import_of { my ($name) = @_; chdir $dir; my $text = eval { Oribi::Import::text($name) }; my $error = $@; chdir $here; die $error unless defined $text; return $text }

# Options as a server with this file would have them.
sub options_of {
    my ($text) = @_;
    local $ENV{PORT} = 3000;
    my ($code, $out, $err) = run_command('--print-config', '--config', file('oribi.pl', $text));
    is "$code $err", '0 ', 'accepted';
    return $out;
}

my @cases = sort keys %files;
cmp_ok scalar @cases, '>=', 12, 'at least twelve cases';

# Case => what --print-config says of the configuration that is printed for it.
my %values = (
    'movabletype.service' => ['bind = 127.0.0.1:5001', 'workers = 3', 'preload = on', 'keepalive_requests_max = 1', 'include = /srv/mt/lib'],
    'gazelle.dockerfile' => ['host = 0.0.0.0', 'port = 5000', 'workers = 20', 'requests_max = 4000..5000'],
    'starlet.dockerfile' => ['bind = 0.0.0.0:3000', 'workers = 8', 'env = production', 'requests_max = 500'],
    'starlet.procfile' => ['bind = 0.0.0.0:3000', 'workers = 20', 'requests_max = 800..1000', 'idle_timeout = 2s', 'env = deployment'],
    'starman.service' => ['workers = 10', 'requests_max = 500', 'user = www-data', 'pid_file = /run/board.pid'],
    'starman-bare' => ['port = 5000', 'host = 0.0.0.0', 'workers = 5', 'env = deployment'],
    'uwsgi.ini' => ['bind = 127.0.0.1:5000', 'workers = 8', 'call_timeout = 30s', 'memory_max = 300M', 'backlog = 1024', 'access_log = off'],
    'uwsgi-socket.ini' => ['bind = /run/uwsgi/shop.sock?umask=113', 'workers = 4', 'age_max = 1h', 'call_timeout = 1m'],
    'uwsgi-run.procfile' => ['bind = :3000', 'workers = 4', 'requests_max = 500', 'body_memory_max = 64K'],
    'plackup-eval' => ['host = 127.0.0.1', 'port = 3001', 'workers = 1'],
    'starlet-run' => ['workers = 10', 'chdir = /', 'require = Shop::Log'],
);

for my $name (@cases) {
    subtest $name => sub {
        my $text = import_of($name);
        is $text, $printed{$name}, 'printed';
        my $out = options_of($text);
        like $out, qr/^\Q$_\E/m, $_ for @{ $values{$name} || ['workers = '] };
    };
}

subtest 'an environment that lacks what the line asks for' => sub {
    delete local $ENV{PORT};
    my ($code, undef, $err) = run_command('--print-config', '--config', file('oribi.pl', import_of('starman.procfile')));
    is $code, 1;
    like $err, qr/\Aoribi-psgi: config file .*: PORT is not set\n\z/;
};

sub printed {
    my ($line) = @_;
    return Oribi::Import::text(file('Procfile', "web: $line\n")) =~ s/\A.*?\n\+\{\n//sr;
}

subtest 'lines' => sub {
    like printed('starman -p 80 --no-default-middleware a.psgi'), qr/Not taken over: not there and not needed: no middleware is added.*\n    #   --no-default/;
    like printed('plackup -s Gazelle -workers=20 -E test'), qr/workers => 20,.*env => 'test',/s, 'one dash';
    like Oribi::Import::text(file('shop.conf', "[program:shop]\ncommand=/srv/env.sh carton exec -- start_server --port 80 -- plackup -s Starlet a.psgi\nuser=x\n")),
        qr/^# Start: command=\/srv\/env\.sh carton exec -- oribi-psgi a\.psgi\n/m, 'supervisord';
    like printed('starman ${OPTS} --workers 2 a.psgi'), qr/the shell makes more words.*\n    #   \$\{OPTS\}\n/, 'flags in a variable';
    like Oribi::Import::text(file('c.ini', "[uwsgi]\nif-env = PORT\nhttp = :80\nendif =\nworkers = 2\n")),
        qr/does not decide "if-env = PORT".*\n    #   if-env = PORT\n.*    #   http = :80\n.*workers => 2,/s, 'conditions';
    unlike printed($_), qr/env =>/, "$_: the environment is plackup's" for 'plackup -s Starman a.psgi', 'start_server --port 80 -- plackup -s Starman a.psgi';
    like printed('start_server --port 80 -- starman a.psgi'), qr/env => \$ENV\{PLACK_ENV\} \|\| 'deployment'/;
    like printed('plackup -r app.psgi'), qr/#   -r\n/, '-r has no value';
    like printed('starman -l "/a\'b"'), qr/bind => '\/a\\'b',/, 'quotes';
    like printed('starman --workers $(nproc) --port ${PORT%%x}'), qr/only the shell can tell.*\$\(nproc\)\n.*a value that import cannot tell/s;
    like printed('uwsgi --http :5000 --psgi app.psgi --workers=4 --ini x.ini'), qr/oribi-psgi import x\.ini.*bind => ':5000',.*workers => 4,/s;
    like printed('start_server --port 80 -- perl -Ilib -S starman --workers 3'), qr/bind => '0\.0\.0\.0:80',.*include => 'lib',.*workers => 3/s;
    my $text = Oribi::Import::text(file('app.service', "[Service]\nExecStart=-/usr/bin/plackup -p 81\nExecReload=/bin/kill -HUP \$MAINPID\n"));
    like $text, qr/port => 81,/;
    unlike $text, qr{/bin/kill -HUP.*/bin/kill -HUP}s;
};

subtest 'bad input is one line' => sub {
    my @wrong = (
        [Procfile => "web: puma -p 3\n", qr/Procfile: puma serves Ruby: oribi import \S+ reads it/],
        ['puma.rb' => "workers 2\n", qr/puma\.rb: a file of Ruby's servers: oribi import \S+ reads it/],
        [Procfile => "web: hypnotoad app\n", qr/Procfile: starts no server that import knows, which are Starman, .*; its first command is hypnotoad app/],
        [Procfile => "# web: starman\n", qr/Procfile: has no command$/m],
        [Procfile => "web: plackup -s Feersum\n", qr/Procfile: Feersum is no server that import knows, which are Starman, /],
        [Procfile => "web: start_server --port 80 -- thin\n", qr/Procfile: start_server starts thin, which is no server that import knows \(Starman, .*; if it is a script, import that/],
        [Dockerfile => qq{CMD ["sh", "-c", "a\\nb"]\n}, qr/its first command is sh -c 'a b'$/m],
        [Dockerfile => qq{CMD ["nginx"]\n}, qr/Dockerfile: starts no server that import knows/],
        [Procfile => "web: start_server --port 80\n", qr/Procfile: start_server starts nothing,/],
        [Procfile => "web: starman -p '3\n", qr/Procfile: a quote that is not closed/],
        ['uwsgi.ini' => "[uwsgi]\nfoo\n", qr/uwsgi\.ini:2: neither a section nor a line as in name = value/],
        ['uwsgi.ini' => "[other]\na = 1\n", qr/uwsgi\.ini: has no section \[uwsgi\]/],
        ['uwsgi.ini' => "[uwsgi]\nmodule = app\n", qr/uwsgi\.ini: uWSGI serves something else than PSGI with it/],
        [binary => "starman\0", qr/binary: is a binary file/],
        [empty => "\n", qr/empty: is empty/],
        [empty => "\xef\xbb\xbf\n", qr/empty: is empty/],
        [long => 'x' x 1_048_577, qr/long: is longer than 1048576 bytes/],
    );
    for my $case (@wrong) {
        my ($name, $text, $pattern) = @$case;
        my ($code, $out, $err) = run_command('import', file($name, $text));
        is "$code $out", '1 ', "$name: exit code, nothing printed";
        like $err, qr/\Aoribi-psgi: [^\n]*$pattern[^\n]*\n\z/, 'one line';
    }
    my ($code, $out, $err) = run_command('import', '/nowhere/Procfile');
    is "$code $out$err", "1 oribi-psgi: /nowhere/Procfile: cannot be read: no such file or directory\n";
    ($code, $out, $err) = run_command('import');
    is "$code $out$err", "1 oribi-psgi: import takes one file, as in: oribi-psgi import Procfile\n";
    like +(run_command('import', "$dir"))[2], qr/: is a directory$/;
};

subtest 'the new line' => sub {
    my %start = (
        'web: cd /app && carton exec -- starman -p 80 app.psgi 2>&1' => 'web: cd /app && carton exec -- oribi-psgi app.psgi 2>&1',
        'web: FOO=1 perl -Ilib -S plackup -s Gazelle -a x.psgi | tee log' => 'web: FOO=1 oribi-psgi x.psgi | tee log',
        "web: sh -c 'exec /opt/bin/starman a.psgi'" => "web: sh -c 'exec /opt/bin/oribi-psgi a.psgi'",
        'web: envdir env start_server --port 80 -- carton exec plackup -s Starlet a.psgi' => 'web: envdir env carton exec oribi-psgi a.psgi',
    );
    like Oribi::Import::text(file('Procfile', "$_\njobs: x\n")), qr/^# Start: \Q$start{$_}\E\n# Left as it is: jobs: x\n/m, $_ for sort keys %start;
    like Oribi::Import::text(file('x.service', "[Service]\nExecStart=/usr/bin/starman -D -p %i a.psgi\n")),
        qr/^# Start: ExecStart=\/usr\/bin\/oribi-psgi a\.psgi\n# In the unit: Type=notify,.*keeps it in the foreground.*a specifier of systemd/ms;
};

subtest 'an ini file that a line names is read with it' => sub {
    file('x.ini', "[uwsgi]\nhttp = :81\npsgi = i.psgi\nworkers = 2\n");
    my $text = Oribi::Import::text(file('Procfile', "web: uwsgi --ini x.ini --workers 3\n"));
    like $text, qr/^# Start: web: oribi-psgi i\.psgi\n# Read with it: /m;
    like options_of($text), qr/^bind = :81\n.*^workers = 3\n/ms;
};

subtest 'line ends, marks and encodings' => sub {
    like Oribi::Import::text(file('a.procfile', "\xef\xbb\xbfweb: starman\r\n# caf\xe9\r\njobs: caf\xe9\r\n")), qr/^# Left as it is: jobs: caf\xc3\xa9\n/m;
    like Oribi::Import::text(file('a.procfile', "web: starman -p 81\n#" . 'x' x 1_048_556)), qr/port => 81,/, 'of the largest size';
};

subtest 'arguments' => sub {
    my ($code, $out, $err) = run_command('import', '--', 'starman', '--listen', '/tmp/a b.sock', 'a.psgi');
    is "$code $err", '0 ';
    like $out, qr/^# Start: oribi-psgi a\.psgi$/m;
    like $out, qr/bind => '\/tmp\/a b\.sock',/;
    my $procfile = file('Procfile', "web: starman\n");
    my $new = "$dir/new.pl";
    ($code, $out, $err) = run_command('import', $procfile, '-o', $new);
    is "$code $out$err", "0 $new: 4 settings taken over. Next: oribi-psgi check --config $new\n";
    like slurp($new), qr/^# Try it: oribi-psgi check --config \Q$new\E\n# Start: web: oribi-psgi --config \Q$new\E\n/m;
    is +(run_command('import', '-o', $new, $procfile))[2], "oribi-psgi: $new: exists already; --force overwrites it\n";
    is +(run_command('import', '--force', "--output=$new", $procfile))[0], 0;
    is +(run_command('import', '-o', "$dir/none/x", $procfile))[2], "oribi-psgi: $dir/none/x: cannot be written: no such file or directory\n";
    is +(run_command('import', '-x', $procfile))[2], "oribi-psgi: import: unknown option -x: there are -o FILE, --force and --help\n";
    like +(run_command('import', '--help'))[1], qr/\AUsage: oribi-psgi import/;
};

subtest 'a configuration file of another server' => sub {
    like +(run_command('--check', '--config', file('uwsgi.ini', "[uwsgi]\n")))[2],
        qr/\Aoribi-psgi: config file \S+: is no file in Perl; `oribi-psgi import \S+uwsgi\.ini` makes Oribi's from another server's\n\z/;
    like +(run_command('--check', '--config', file('puma.rb', "workers 2\n")))[2], qr/`oribi import \S+puma\.rb`/;
};

subtest 'nothing is run' => sub {
    my $mark = "$dir/was_here";
    my ($code, $out) = run_command('import', file('Procfile', "web: plackup -e 'open my \$f, \">\", \"$mark\"; sub {}'\n"));
    ok !-e $mark;
};

done_testing;
