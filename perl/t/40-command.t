use strict;
use warnings;
use lib 't/lib';
use Cwd ();
use File::Temp ();
use Oribi ();
use OribiServer;
use OribiTest;
use POSIX ();
use Test::More;

# The command, plackup, and the ways from Perl; what is wrong is one line and exit code 1.

my $dir = File::Temp->newdir;
my $cwd = Cwd::getcwd();

sub file {
    my ($name, $text) = @_;
    open my $fh, '>', "$dir/$name" or die "$dir/$name: $!";
    print {$fh} $text;
    close $fh;
    return "$dir/$name";
}

sub is_line {
    my ($text, $words, $what) = @_;
    like $text, $words, $what;
    is scalar(() = $text =~ /\n/g), 1, "$what: one line" or diag $text;
    unlike $text, qr/ at \S+Oribi\S* line/, "$what: nothing of our insides";
}

my $hello = file('hello.psgi', 'sub { [200, ["Content-Type" => "text/plain"], ["hello from $$"]] }');

subtest 'what is not serving' => sub {
    my ($code, $out, $err) = run_command('--version');
    is $code, 0;
    like $out, qr/\Aoribi-psgi 0\.1\.0 \(Oribi \Q$Oribi::VERSION\E, perl v/;
    like $out, qr/^compression: (?:gzip \(zlib .*\)|no gzip), (?:zstd .*|no zstd), (?:br \(.*\)|no br)$/m;
    like $out, qr/^system calls: (?:linux|bsd|portable)$/m;
    ($code, $out) = run_command('--help');
    is $code, 0;
    like $out, qr/^Usage: oribi-psgi \[options\] \[app\.psgi\]$/m;
    ($code, $out) = run_command('--completion', 'bash');
    is $code, 0;
    like $out, qr/^complete -o filenames -F _oribi_psgi oribi-psgi$/m;
    open my $bash, '|-', 'bash', '--norc', '-c', 'eval "$(cat)"; COMP_WORDS=(oribi-psgi ctl re); COMP_CWORD=2; _oribi_psgi; [[ "${COMPREPLY[*]}" == "reload reopen" ]]'
        or die "bash: $!\n";
    print {$bash} $out;
    ok close $bash, 'bash completes the commands of ctl';
    ($code, undef, $err) = run_command('--completion', 'tcsh');
    is "$code $err", qq{1 oribi-psgi: --completion must be one of: bash zsh fish; not "tcsh"\n};
    ($code, $out) = run_command('--print-config', '--workers', 3, $hello);
    is $code, 0;
    like $out, qr/^workers = 3$/m;
    ($code, $out, $err) = run_command('--check', $hello);
    is "$code $err", '0 ';
    is $out, "$hello: application and configuration load\n";
};

subtest 'user mistakes' => sub {
    my $dancer = "$dir/dancer";
    mkdir $_ or die "$_: $!" for $dancer, "$dancer/bin";
    file('dancer/bin/app.psgi', 'sub { }');
    my $no_code = file('no_code.psgi', '"text"');
    my $false = file('false.psgi', '0');
    my $dies = file('dies.psgi', 'die "told to\n";');
    my $dies_object = file('dies_object.psgi', 'package E; use overload q("") => sub { "an object\nwith more" }; die bless {};');
    my $syntax = file('syntax.psgi', "sub {\n");
    my $module = file('module.psgi', "use No::Such::Module;\nsub { }");
    my $config = file('config.pl', '{ wrokers => 2 }');
    my @cases = (
        ['an unknown option' => qr/--wrokers.*--workers/, '--wrokers', 2],
        ['a bad value' => qr/workers.*many/, '--workers', 'many'],
        ['no such file' => qr/no\.psgi: no such file/, 'no.psgi'],
        ['no file given' => qr/app\.psgi: no such file; .*: oribi-psgi PATH\/app\.psgi$/m, '--chdir', "$dir"],
        ['a framework\'s file' => qr/app\.psgi: no such file; .*: oribi-psgi bin\/app\.psgi$/m, '--chdir', $dancer],
        ['a rackup file' => qr/config\.ru: is a rackup file: oribi serves those/, file('config.ru', 'run ->(env) { }')],
        ['a configuration file' => qr/settings\.pl: is a configuration file: give it with -C/, file('settings.pl', '{ workers => 2 }')],
        ['a directory' => qr/is a directory/, "$dir"],
        ['no code' => qr/no_code\.psgi: returns no code reference, but 'text'/, $no_code],
        ['a false value' => qr/false\.psgi: /, $false],
        ['an exception' => qr/dies\.psgi: told to/, $dies],
        ['an exception object' => qr/dies_object\.psgi: an object/, $dies_object],
        ['a syntax error' => qr/syntax\.psgi: Missing right curly.* line /, $syntax],
        ['no program' => qr/notes\.txt: is no PSGI application: /, file('notes.txt', "These are notes.\nNothing else; really.\n")],
        ['a missing module' => qr/module\.psgi: the module No::Such::Module is not installed \(\S*module\.psgi line 1\)/, $module],
        ['-e that fails' => qr/-e: Global symbol|-e: Can't locate object method|-e: /, '-e', 'No::Such->app'],
        ['-e that gives no code' => qr/-e: /, '-e', '1'],
        ['-M that is missing' => qr/No::Such::Module is not installed/, '-M', 'No::Such::Module', $hello],
        ['a bad config file' => qr/config\.pl:1: unknown option/, '--config', $config, $hello],
        ['a directory for a config file' => qr/config file \S+: is a directory/, '--config', "$dir", $hello],
        ['no config file' => qr/cannot be read/, '--config', "$dir/none.pl", $hello],
        ['chdir to nowhere' => qr/chdir.*none/, '--chdir', "$dir/none", $hello],
    );
    for my $case (@cases) {
        my ($what, $words, @arguments) = @$case;
        my ($code, $out, $err) = run_command('--check', @arguments);
        is $code, 1, "$what: exit code 1";
        is_line $err, $words, $what;
        is $out, '';
    }
    for my $preload ('--preload', '--no-preload') {
        my ($code, $out, $err) = run_command('--no-dev', '--bind', '127.0.0.1:0', $preload, '--workers', 1, '--err-respawn-interval', '10ms', $dies);
        is $code, 1, "serving, $preload: exit code 1";
        like $err, qr/dies\.psgi: told to/;
    }
    my $socket = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die $!;
    my ($code, $out, $err) = run_command('--bind', '127.0.0.1:' . $socket->sockport, $hello);
    is $code, 1;
    is_line $err, qr/in use/, 'an address in use';
};

subtest 'serving' => sub {
    for my $transport (qw(tcp unix)) {
        my $server = start_command($transport, $hello);
        like get($server, '/')->{body}, qr/\Ahello from \d+\z/, $transport;
        is $server->stop, 0, 'TERM ends it with 0';
        ok !-e "$server->{dir}/socket", 'and its socket file is gone' if $transport eq 'unix';
    }
};

subtest 'what the application sees' => sub {
    file('Lib.pm', 'package Lib; sub import { shift; $Lib::got = "@_" } 1;');
    my $seen = file('seen.psgi', <<'PSGI');
        use FindBin ();
        my $at_load = "$0 $FindBin::Bin @ARGV";
        sub {
            my ($env) = @_;
            my %is = (load => $at_load, title => $0, env => $ENV{PLACK_ENV}, lib => $Lib::got, mp => $env->{'psgi.multiprocess'});
            [200, ['Content-Type' => 'text/plain'], [$is{ substr $env->{PATH_INFO}, 1 }]];
        };
PSGI
    my $server = start_command('tcp', '-I', "$dir", '-MLib=a,b', '-E', 'staging', $seen);
    my $ask = sub { get($server, "/$_[0]")->{body} };
    is $ask->('load'), "$seen $dir ", '$0 and FindBin are those of the application\'s file, @ARGV is empty';
    unlike $ask->('title'), qr/worker/, 'the process title does not reach $0';
    is $ask->('env'), 'staging';
    is $ask->('lib'), 'a b';
    is $ask->('mp'), 1;
    is $server->stop, 0;
};

subtest 'configuration file and hooks' => sub {
    my $config = file('hooks.pl', <<"CONFIG");
        sub note { open my \$fh, '>>', '$dir/hooks' or die; syswrite \$fh, "\@_\\n" }
        {
            env => 'fromfile',
            before_fork => sub { note("before_fork \@_") },
            after_fork => sub { note("after_fork \@_"); \$main::forked = 'forked' },
            after_worker_ready => sub { note("after_worker_ready \@_") },
            before_worker_exit => sub { note('before_worker_exit ' . ref(\$_[0]) . ' ' . ref \$_[1]) },
            after_exit => sub { note('after_exit ' . (\$_[0] > 1) . " \$_[1] \$_[3]") },
            server_ready => sub { note("server_ready \$_[0]{host} \$_[0]{proto}") },
            before_reload => sub { die "hook that dies\\n" },
        };
CONFIG
    my $app = file('forked.psgi', 'sub { [200, ["Content-Type" => "text/plain"], ["$main::forked $ENV{PLACK_ENV}"]] }');
    my $server = start_command('tcp', '--config', $config, $app);
    is get($server, '/')->{body}, 'forked fromfile';
    wait_until('server_ready', sub { slurp("$dir/hooks") =~ /server_ready/ });
    is $server->stop, 0;
    my %times;
    $times{$_}++ for split /\n/, slurp("$dir/hooks");
    is_deeply \%times, {
        'before_fork 0' => 1, 'after_fork 0 1' => 1, 'after_worker_ready 0 1' => 1, 'before_worker_exit Oribi::Supervisor CODE' => 1,
        'after_exit 1 0 0' => 1, 'server_ready 127.0.0.1 http' => 1,
    };
};

subtest 'workers that end are replaced' => sub {
    my $app = file('ends.psgi', <<'PSGI');
        my $loaded = $$;
        END { syswrite STDERR, "END of $$\n" }
        sub {
            my ($env) = @_;
            exit 0 if $env->{PATH_INFO} eq '/exit';
            $env->{'psgix.harakiri.commit'} = $env->{PATH_INFO} eq '/harakiri';
            [200, ['Content-Type' => 'text/plain'], ["$$ $loaded"]];
        };
PSGI
    my $server = start_command('tcp', '--err-respawn-interval', '10ms', $app);
    my $pids = sub { my $res = eval { get($server, '/') } or return; split ' ', $res->{body} };
    my %seen;
    my ($first, $loaded) = $pids->();
    isnt $first, $loaded, 'the application was loaded before the fork';
    $seen{$first} = 1;
    for my $way (qw(/harakiri /exit kill)) {
        my ($now) = @{ wait_until('an answer', sub { my @pair = $pids->(); @pair && \@pair }) };
        if ($way eq 'kill') { kill KILL => $now }
        else { eval { get($server, $way) } }
        my ($next, $of) = @{ wait_until("a new worker after $way", sub { my @pair = $pids->(); @pair && !$seen{ $pair[0] } && \@pair }) };
        $seen{$next} = 1;
        is $of, $loaded, "$way: the new worker shares the same application";
    }
    is $server->stop, 0;
    my %ended = map { $_ => 1 } $server->log_text =~ /^END of (\d+)$/mg;
    ok $ended{$first}, 'END blocks run in a worker';
};

subtest 'reload' => sub {
    my $app = file('reload.psgi', 'sub { [200, ["Content-Type" => "text/plain"], ["old"]] }');
    my $server = start_command('tcp', '--no-dev', $app);
    is get($server, '/')->{body}, 'old';
    wait_until('the supervisor', sub { $server->log_text =~ /listening on/ });
    file('reload.psgi', 'sub { [200, ["Content-Type" => "text/plain"], ["new"]] }');
    kill HUP => $server->pid;
    wait_until('the new code', sub { get($server, '/')->{body} eq 'new' });
    file('reload.psgi', 'die "broken\n"');
    kill HUP => $server->pid;
    wait_until('the refusal', sub { $server->log_text =~ /broken/ });
    is get($server, '/')->{body}, 'new', 'new code that does not load leaves the old one serving';
    is $server->stop, 0;
};

subtest '-e, plackup, Oribi.pm' => sub {
    my $server = start_command('tcp', '-e', 'enable "Runtime"; sub { [200, ["Content-Type" => "text/plain"], ["inline"]] }');
    my $res = get($server, '/');
    is $res->{body}, 'inline';
    ok $res->{fields}{'x-runtime'}, 'with the functions of Plack::Builder';
    is $server->stop, 0;

    my @perl = ($^X, map {"-I$_"} @INC);
    my ($plackup) = grep {-x} map {"$_/plackup"} split /:/, $ENV{PATH};
    my %ways = (
        'perl -MOribi' => sub { [@perl, '-MOribi', '-e', "oribi '$hello'", '--', '--port', $_[0], '--host', '127.0.0.1'] },
        'Oribi->new->run' => sub { [@perl, '-MOribi', '-e', "Oribi->new(bind => '127.0.0.1:$_[0]', workers => 1)->run(sub { [200, [], ['hello from code']] })"] },
        'plackup' => sub { $plackup && [@perl, $plackup, '-s', 'Oribi', '--host', '127.0.0.1', '--port', $_[0], '--max-workers', 1, $hello] },
        'plackup, listen' => sub { $plackup && [@perl, $plackup, '-s', 'Oribi', '--listen', "127.0.0.1:$_[0]", '--timeout=300', $hello] },
        'plackup, Delayed' => sub { $plackup && [@perl, $plackup, '-s', 'Oribi', '-L', 'Delayed', '--listen', "127.0.0.1:$_[0]", $hello] },
        'plackup, disable' => sub { $plackup && [@perl, $plackup, '-s', 'Oribi', '--disable-keepalive', '--listen', "127.0.0.1:$_[0]", $hello] },
    );
    for my $way (sort keys %ways) {
        my $port = free_port();
        my $line = $ways{$way}->($port) or next;
        my $logs = File::Temp->newdir;
        my $pid = OribiServer::_spawn($logs, sub { exec @$line });
        my $by = OribiServer::_object($logs, 'tcp', $port, $pid);
        my $res = get($by, '/');
        like $res->{body}, qr/\Ahello from/, $way;
        is_deeply $res->{fields}{connection}, ['close'] if $way =~ /disable/;
        # A worker may answer before plackup is told.
        ok eval { wait_until('the line', sub { $by->log_text =~ m{Accepting connections at http://127\.0\.0\.1:$port/} }) }, 'plackup hears that we are ready'
            if $way eq 'plackup';
        is $by->stop, 0, "$way: ends with 0";
    }
    if ($plackup) {
        my $logs = File::Temp->newdir;
        my $pid = OribiServer::_spawn($logs, sub { exec @perl, $plackup, '-s', 'Oribi', '--wrokers', 1, $hello });
        wait_until('plackup to end', sub { waitpid($pid, POSIX::WNOHANG()) == $pid });
        is $? >> 8, 1, 'an option that plackup does not know';
        is_line slurp("$logs/log"), qr/unknown option .*wrokers/, 'the reason';
    }
};

subtest 'ready sockets' => sub {
    my $socket = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die $!;
    my $logs = File::Temp->newdir;
    my $pid = OribiServer::_spawn($logs, sub {
        Oribi->new(listen_sock => $socket, workers => 1)->run(sub { [200, ['Content-Type' => 'text/plain'], ['handed']] });
        syswrite STDERR, "returned in $$\n";
        0;
    });
    my $by = OribiServer::_object($logs, 'tcp', $socket->sockport, $pid);
    is get($by, '/')->{body}, 'handed';
    is $by->stop, 0;
    is join(',', $by->log_text =~ /^returned in (\d+)$/mg), $pid, 'run() returns in the process that called it, and in no other';
    my $again = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $socket->sockport);
    ok $again, 'a socket that was handed to us is not shut down';
};

is Cwd::getcwd(), $cwd;
done_testing;
