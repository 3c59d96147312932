use strict;
use warnings;
use lib 't/lib';
use Cwd ();
use File::Temp ();
use OribiServer;
use OribiTest;
use Test::More;

# Processes of Oribi::Pure: stop, reload, more and fewer workers, replacement; and what it says of options and files.

my $dir = File::Temp->newdir;

sub write_file { my ($name, $text) = @_; open my $fh, '>', "$dir/$name" or die $!; print {$fh} $text; close $fh or die $!; return "$dir/$name" }

sub app { my ($word) = @_; return write_file('app.psgi', qq[sub { my (\$env) = \@_; if (\$env->{PATH_INFO} eq '/slow') { open my \$begun, '>', '$dir/slow'; select undef, undef, undef, 0.3 } [200, [], ["$word \$\$"]] }]) }

sub start { my (@options) = @_; return start_command('tcp', '--pure', '--no-dev', @options, "$dir/app.psgi") }

sub pids { my ($server) = @_; my %seen; for (1 .. 40) { my ($pid) = $server->get('/')->{body} =~ /(\d+)\z/; $seen{$pid}++ } return sort keys %seen }

subtest 'stop' => sub {
    app('one');
    my $server = start();
    is $server->get('/')->{status}, 200;
    my $client = $server->connect;
    $client->send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until('the call to begin', sub { -e "$dir/slow" });
    kill TERM => $server->pid;
    my $res = $client->response;
    is $res->{status}, 200, 'a running call is finished';
    is_deeply $res->{fields}{connection}, ['close'];
    $client->close;
    wait_until('the server to end', sub { $server->ended });
    is $server->{status}, 0, 'in good order';
};

subtest 'reload' => sub {
    app('one');
    my $server = start('--workers', 1);
    my ($old) = $server->get('/')->{body} =~ /\Aone ([0-9]+)/;
    app('two');
    kill HUP => $server->pid;
    wait_until('the new code', sub { $server->get('/')->{body} =~ /\Atwo / });
    wait_until('the old worker to end', sub { !kill 0 => $old });    # it may answer once more before its TERM
    write_file('app.psgi', 'die "no longer\n"');
    kill HUP => $server->pid;
    wait_until('the failure to be told', sub { $server->log_text =~ /reload failed, the old generation goes on serving: .*no longer/ });
    like $server->get('/')->{body}, qr/\Atwo /, 'a version that does not load changes nothing';
    is $server->stop, 0;
};

subtest 'reloads under load lose no request' => sub {
    app('one');
    my $server = start('--workers', 2);
    my ($asked, $answered) = (0, 0);
    for my $round (1 .. 6) {
        kill HUP => $server->pid;
        for (1 .. 60) {
            $asked++;
            $answered += (eval { $server->get('/')->{status} } || 0) == 200;
        }
    }
    is $answered, $asked, "$asked requests";
    is $server->stop, 0;
};

subtest 'more and fewer workers' => sub {
    app('one');
    my $server = start('--workers', 1);
    my ($first) = pids($server);
    kill TTIN => $server->pid;
    wait_until('another worker', sub { my @busy = map { my $client = $server->connect; $client->send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"); $client } 1 .. 4; my %pid = map { $_->response->{body} => 1 } @busy; keys %pid > 1 });
    kill TTOU => $server->pid;
    wait_until('one alone', sub { my @pids = pids($server); @pids == 1 });
    pass 'one, two, one';
    is $server->stop, 0;
};

subtest 'signals that are for another process end none' => sub {
    app('one');
    for my $single ('--single', '--no-single') {
        my $server = start('--workers', 1, $single, '--verbose');
        my ($pid) = $server->get('/')->{body} =~ /(\d+)\z/;
        kill $_ => $pid for qw(TTIN TTOU USR2);
        select undef, undef, undef, 0.1;    # nothing tells that a signal was let pass
        is $server->get('/')->{body}, "one $pid", "$single: the process that serves goes on";
        is $server->stop, 0;
    }
};

subtest 'replacement' => sub {
    app('one');
    my $server = start('--requests-max', 5);
    my %pid;
    for (1 .. 20) { my $body = wait_until('an answer', sub { eval { $server->get('/')->{body} } }); $pid{$body}++ }
    cmp_ok scalar keys %pid, '>=', 4, 'after requests_max';
    my ($worker) = $server->get('/')->{body} =~ /(\d+)\z/;
    kill KILL => $worker;
    wait_until('another worker', sub { (eval { $server->get('/')->{body} } || "one $worker") ne "one $worker" });
    wait_until('its death to be logged', sub { $server->log_text =~ /worker [0-9]+ \(pid $worker\) ended: signal 9/ });
    is $server->stop, 0;
};

subtest 'the process that loads is killed' => sub {
    app('one');
    my $server = start('--workers', 1);
    my $first = $server->get('/')->{body};
    write_file('app.psgi', "open my \$out, '>', '$dir/loads.new'; print {\$out} \$\$; close \$out; rename '$dir/loads.new', '$dir/loads'; while (1) { sleep 1 }");
    kill HUP => $server->pid;
    wait_until('the load to begin', sub { -e "$dir/loads" });
    kill TTIN => $server->pid;
    wait_until('two workers', sub { my @pids = pids($server); @pids == 2 });
    kill TTOU => $server->pid;
    wait_until('one worker', sub { my @pids = pids($server); @pids == 1 });
    pass 'workers come and go during a reload';
    kill KILL => slurp("$dir/loads");
    wait_until('that to be told', sub { $server->log_text =~ /reload failed, the old generation goes on serving: / });
    is $server->get('/')->{body}, $first, 'the old generation serves';
    app('two');
    kill TTIN => $server->pid;
    kill HUP => $server->pid;
    wait_until('the new code', sub { $server->get('/')->{body} =~ /\Atwo / });
    wait_until('two workers of it', sub { my @pids = pids($server); @pids == 2 });
    pass 'the next generation has the number that was asked for';
    is $server->stop, 0;
};

subtest 'no process outlives its parent' => sub {
    app('one');
    my $server = start('--workers', 2);
    my @workers = pids($server);
    kill KILL => $server->pid;
    wait_until('the supervisor to end', sub { $server->ended });
    wait_until("worker $_ to end", sub { !kill 0 => $_ or slurp("/proc/$_/stat") =~ /\) Z / }) for @workers;
    pass 'the workers end with the supervisor';
};

subtest 'mistakes end the start with one line' => sub {
    my $run = sub { my ($code, $out, $said) = run_command('--pure', '--port', free_port(), @_); chomp $said; return "$code $said" };
    app('one');
    is $run->('--certificate', 'a.pem', "$dir/app.psgi"), '1 oribi-psgi: certificate: Oribi::Pure cannot do this; the distribution Oribi can, which needs a C compiler (Debian: package oribi-psgi)';
    is $run->('--listen-sock', 3, "$dir/app.psgi"), '1 oribi-psgi: listen_sock: Oribi::Pure cannot do this; the distribution Oribi can, which needs a C compiler (Debian: package oribi-psgi)';
    is $run->($_, 'x', "$dir/app.psgi"), '1 oribi-psgi: ' . s/\A--//r . ': Oribi::Pure cannot do this; the distribution Oribi can, which needs a C compiler (Debian: package oribi-psgi)' for qw(--eval);
    like $run->('--early-hints', "$dir/app.psgi"), qr{\A1 oribi-psgi: early_hints: Oribi::Pure cannot do this; the distribution Oribi can};
    like $run->('--bind', 'tls://:443', "$dir/app.psgi"), qr{\A1 oribi-psgi: tls://:443: Oribi::Pure cannot do this; the distribution Oribi can};
    is $run->('--teapots', "$dir/app.psgi"), '1 oribi-psgi: --teapots: unknown option';
    is $run->('--fields-max', 0, "$dir/app.psgi"), '1 oribi-psgi: fields_max: at least 1, not "0"';
    is $run->('--head-timeout', '1x', "$dir/app.psgi"), '1 oribi-psgi: head_timeout: no time: "1x"';
    is $run->("$dir/none.psgi"), "1 oribi-psgi: $dir/none.psgi: no such file";
    like $run->(write_file('bad.psgi', 'die "no\n"')), qr/\A1 oribi-psgi: .*bad\.psgi: no\z/;
    is $run->('--check', "$dir/app.psgi"), '0 ';
    my ($code, undef, $said) = run_command('ctl', '--pure', 'status');
    is "$code $said", "1 oribi-psgi: ctl needs the part of Oribi in C\n";
};

subtest 'configuration file' => sub {
    app('one');
    my $port = free_port();
    my $config = write_file('oribi.pl', qq[{ server_header => 'Ours', keepalive_requests_max => 1, after_fork => sub { \$ENV{FORKED} = 1 } }]);
    my $server = start('-C', $config);
    my $res = $server->get('/');
    is_deeply [map { $res->{fields}{$_}[0] } qw(server connection)], ['Ours', 'close'], 'a hash';
    is $server->stop, 0;
    my ($code, undef, $said) = run_command('--pure', '-C', write_file('bad.pl', "{ workers => 'many', teapots => 1 }"), "$dir/app.psgi");
    is "$code $said", "1 oribi-psgi: $dir/bad.pl: teapots: unknown option\noribi-psgi: $dir/bad.pl: workers: no count: \"many\"\n", 'mistakes are told';
    ($code, undef, $said) = run_command('--pure', '-C', write_file('words.pl', "server_header 'Ours';\n{}"), "$dir/app.psgi");
    like "$code $said", qr/\A1 .*oribi-psgi: options as words: Oribi::Pure cannot do this; the distribution Oribi can/s, 'options as words are refused';
};

subtest 'one process' => sub {
    app('one');
    my $server = start('--single');
    is $server->get('/')->{body}, 'one ' . $server->pid, 'serves by itself';
    is $server->stop, 0;
};

subtest 'log files are opened anew, also for workers to come' => sub {
    app('one');
    my $logs = "$dir/logs";
    mkdir $logs or die $!;
    my $server = start('--access-log', "$logs/access", '--error-log', "$logs/error");
    is $server->get('/?first')->{status}, 200;
    rename "$logs/$_", "$logs/$_.1" or die "$_: $!" for qw(access error);
    kill USR1 => $server->pid;
    wait_until('the worker to open it', sub { $server->get('/?second'); slurp("$logs/access") =~ /second/ });
    my ($worker) = $server->get('/')->{body} =~ /(\d+)\z/;
    kill KILL => $worker;
    wait_until('another worker', sub { (eval { $server->get('/?third')->{body} } || "one $worker") ne "one $worker" });
    wait_until('its request in the new file', sub { slurp("$logs/access") =~ /third/ });
    like slurp("$logs/error"), qr/pid $worker\) ended: signal 9/, 'and the end of the old one';
    unlike slurp("$logs/$_.1"), qr/third|signal 9/, "nothing more in the old $_" for qw(access error);
    rename $logs, "$dir/moved" or die $!;
    kill USR1 => $server->pid;
    wait_until('the failure to be told', sub { slurp("$dir/moved/error") =~ m{error_log $logs/error: No such file} });
    is $server->get('/')->{status}, 200, 'where a folder has gone the server goes on';
    is $server->stop, 0;
};

subtest 'an application that changes its folder' => sub {
    write_file('app.psgi', q[chdir '/'; sub { [200, [], ["one $$"]] }]);
    mkdir "$dir/home" or die $!;
    for my $single (0, 1) {
        my $server = start('--chdir', "$dir/home", '--access-log', 'access', '--pid-file', 'pid', $single ? '--single' : ());
        is $server->get('/')->{status}, 200;
        rename "$dir/home/access", "$dir/home/access.1" or die $!;
        kill USR1 => $server->pid;
        ok eval { wait_until('the new log', sub { $server->get('/?new'); slurp("$dir/home/access") =~ /new/ }) }, 'logs are opened anew where they were';
        is $server->stop, 0;
        ok !-e "$dir/home/pid", 'and the pid file is removed';
    }
};

subtest 'what a failed start leaves' => sub {
    write_file('app.psgi', 'die "no\n"');
    my ($code) = run_command('--pure', '--pid-file', "$dir/pid", '--bind', "unix://$dir/socket", "$dir/app.psgi");
    is $code, 1;
    ok !-e "$dir/$_", "no $_" for qw(pid socket);
    my $taken = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die $!;
    write_file('pid', 'of another');
    app('one');
    ($code) = run_command('--pure', '--pid-file', "$dir/pid", '--bind', "unix://$dir/socket", '--bind', '127.0.0.1:' . $taken->sockport, "$dir/app.psgi");
    is $code, 1;
    ok !-e "$dir/socket", 'no socket where another address is taken';
    is slurp("$dir/pid"), 'of another', "another server's pid file stays";
};

subtest 'a load that does not end' => sub {
    write_file('app.psgi', "open my \$begun, '>', '$dir/begun'; while (1) { sleep 1 }");
    for my $signal (qw(INT TERM)) {
        my $server = start('--shutdown-timeout', '100ms');
        wait_until('the load to begin', sub { -e "$dir/begun" });    # who ignores INT inherits that until then
        unlink "$dir/begun";
        kill $signal => $server->pid;
        ok eval { wait_until("the server to end after $signal", sub { $server->ended }) }, $signal or kill KILL => $server->pid;
    }
};

subtest 'a log that nobody reads any more' => sub {
    app('one');
    pipe my $log, my $written or die $!;
    my $port = free_port();
    my $pid = fork // die $!;
    if (!$pid) {
        open STDERR, '>&', $written;
        exec $^X, (map {"-I$_"} @INC), -e 'blib/script/oribi-psgi' ? 'blib/script/oribi-psgi' : 'bin/oribi-psgi', '--pure', '--no-dev', '--workers', 1, '--access-log', 'off', '--port', $port, "$dir/app.psgi";
    }
    close $written;
    my $told = '';
    1 until $told =~ /listening/ || !sysread $log, $told, 1024, length $told;
    close $log;
    my $get = sub {
        my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or return '';
        print {$socket} "GET / HTTP/1.0\r\n\r\n";
        return join '', readline $socket;
    };
    my $first = $get->();
    like $first, qr/one \d+\z/;
    kill HUP => $pid;
    ok eval { wait_until('a new generation', sub { my $now = $get->(); $now =~ /one \d+\z/ && $now ne $first }) }, 'a reload that is logged ends nothing';
    kill TERM => $pid;
    waitpid $pid, 0;
    is $?, 0, 'nor does the stop';
};

done_testing;
