use strict;
use warnings;
use lib 't/lib';
use File::Temp ();
use Oribi ();
use Oribi::Import ();
use OribiServer;
use Cwd ();
use Test::More;

# Command lines and ini files of other servers as people have them, and what is printed for them: t/import/ and
# t/import/expected/.

my $here = Cwd::getcwd();
my $dir = File::Temp->newdir;

sub file {
    my ($name, $text) = @_;
    open my $fh, '>:raw', "$dir/$name" or die "$dir/$name: $!";
    print {$fh} $text;
    close $fh;
    return "$dir/$name";
}

sub import_of { my ($name) = @_; chdir 't/import'; my $text = eval { Oribi::Import::text($name) }; my $error = $@; chdir $here; die $error unless defined $text; return $text }

# Options as a server with this file would have them.
sub options_of {
    my ($text) = @_;
    local $ENV{PORT} = 3000;
    my ($code, $out, $err) = run_command('--print-config', '--config', file('oribi.pl', $text));
    is "$code $err", '0 ', 'accepted';
    return $out;
}

my @cases = map {s{\At/import/}{}r} grep {-f} sort glob 't/import/*';
is scalar @cases, 12, 'twelve cases';

for my $name (@cases) {
    subtest $name => sub {
        my $text = import_of($name);
        is $text, slurp("t/import/expected/$name"), 'printed';
        like options_of($text), qr/^workers = /m;
    };
}

subtest 'values arrive' => sub {
    my $out = options_of(import_of('starlet.procfile'));
    like $out, qr/^\Q$_\E$/m, $_ for 'bind = 0.0.0.0:3000', 'workers = 20', 'requests_max = 800..1000', 'idle_timeout = 2s', 'env = deployment';
    $out = options_of(import_of('uwsgi.ini'));
    like $out, qr/^\Q$_\E$/m, $_ for 'bind = 127.0.0.1:5000', 'workers = 8', 'call_timeout = 30s', 'memory_max = 300M', 'backlog = 1024', 'access_log = off';
};

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
    like printed('plackup -r app.psgi'), qr/#   -r\n/, '-r has no value';
    like printed('starman -l "a\'b"'), qr/#   -l a'b\n|bind => 'a\\'b'/, 'quotes';
    like printed('uwsgi --http :5000 --psgi app.psgi --workers=4 --ini x.ini'), qr/bind => ':5000',.*workers => 4,.*oribi-psgi import x\.ini/s;
    like printed('start_server --port 80 -- perl -Ilib -S starman --workers 3'), qr/bind => '0\.0\.0\.0:80',.*include => 'lib',.*workers => 3/s;
    my $text = Oribi::Import::text(file('app.service', "[Service]\nExecStart=-/usr/bin/plackup -p 81\nExecReload=/bin/kill -HUP \$MAINPID\n"));
    like $text, qr/port => 81,/;
    unlike $text, qr/kill/;
};

subtest 'bad input is one line' => sub {
    my @wrong = (
        [Procfile => "web: puma -p 3\n", qr/Procfile: puma serves Ruby: oribi import \S+ reads it/],
        ['puma.rb' => "workers 2\n", qr/puma\.rb: a file of Ruby's servers: oribi import \S+ reads it/],
        [Procfile => "web: thin start\n", qr/Procfile: has no command of plackup, Starman, Starlet, start_server or uWSGI/],
        [Procfile => "web: start_server --port 80 -- thin\n", qr/Procfile: start_server starts thin, which is no server that import knows/],
        [Procfile => "web: start_server --port 80\n", qr/Procfile: start_server starts nothing,/],
        [Procfile => "web: starman -p '3\n", qr/Procfile: a quote that is not closed/],
        [Procfile => "web: starman --workers \$(nproc)\n", qr/Procfile: what the shell would run/],
        [Procfile => "web: starman --workers 3 && true\n", qr/Procfile: import reads one command a line, and this has "&&"/],
        [Procfile => "web: starman --listen :\${PORT%%x}\n", qr/Procfile: cannot tell what the shell makes of/],
        ['uwsgi.ini' => "[uwsgi]\nfoo\n", qr/uwsgi\.ini:2: neither a section nor a line as in name = value/],
        ['uwsgi.ini' => "[other]\na = 1\n", qr/uwsgi\.ini: has no section \[uwsgi\]/],
        ['uwsgi.ini' => "[uwsgi]\nmodule = app\n", qr/uwsgi\.ini: uWSGI serves something else than PSGI with it/],
        [binary => "starman\0", qr/binary: is a binary file/],
        [bytes => "starman # \xff\n", qr/bytes: is a binary file/],
        [empty => "\n", qr/empty: is empty/],
        [long => 'x' x 65_537, qr/long: is longer than 65536 bytes/],
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

subtest 'nothing is run' => sub {
    my $mark = "$dir/was_here";
    my ($code, $out) = run_command('import', file('Procfile', "web: plackup -e 'open my \$f, \">\", \"$mark\"; sub {}'\n"));
    ok !-e $mark;
};

done_testing;
