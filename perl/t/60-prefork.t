use strict;
use warnings;
use lib 't/lib';
use Cwd ();
use Fcntl ();
use File::Temp ();
use IO::Socket::UNIX ();
use Oribi ();
use OribiServer qw(slurp);
use OribiTest qw(wait_until);
use POSIX ();
use Socket ();
use Test::More;
use Time::HiRes ();

# Oribi::Prefork. Managers are programs of their own; each note of theirs is one line of a file. Waiting ends with a
# condition.

my @PERL = ($^X, map { '-I' . Cwd::abs_path($_) } grep { !ref && -d } @INC);
my $PROC = -e '/proc/self/stat';
my $COMMAND = Cwd::abs_path(-e 'blib/script/oribi-psgi' ? 'blib/script/oribi-psgi' : 'bin/oribi-psgi');

my $PRELUDE = <<'PERL';
use strict; use warnings;
use Oribi::Prefork;
use Time::HiRes ();
sub note { open my $fh, '>>', $ENV{NOTES} or die; syswrite $fh, "@_\n" }
sub now { Time::HiRes::time() }
PERL

# What most programs do: workers that wait for the end, until TERM.
my $LOOP = <<'PERL';
while ($pm->signal_received ne 'TERM') {
    $pm->start(sub {
        my $worker = shift;
        $worker->stopping; # from here on TERM only asks
        note('up', $$, $worker->index, $worker->generation);
        $worker->wait;
        note('down', $$);
    });
    note('back', $pm->signal_received, $pm->num_workers);
}
note('left', $pm->wait_all_children);
PERL

my ($dir, $notes, %running);

sub begin {
    $dir = File::Temp->newdir;
    $notes = "$dir/notes";
    open my $fh, '>', $notes or die;
    close $fh;
    return;
}

sub run_manager {
    my ($source, $file, %env) = @_;
    my $program = $file || "$dir/manager.pl";
    open my $fh, '>', $program or die;
    print {$fh} $PRELUDE, $source;
    close $fh;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        %ENV = (%ENV, NOTES => $notes, %env);
        $SIG{$_} = 'DEFAULT' for qw(INT HUP);    # what these tests were started with (nohup) a manager would take for the program's wish
        POSIX::setpgid(0, 0);
        open STDERR, '>>', "$dir/log" or POSIX::_exit(9);
        open STDOUT, '>&', \*STDERR or POSIX::_exit(9);
        exec @PERL, $program or POSIX::_exit(9);
    }
    $running{$pid} = 1;
    return $pid;
}

sub lines {
    my ($first) = @_;
    return map { my @words = split ' '; shift @words; \@words } grep {/\A\Q$first\E\b/} split /\n/, slurp($notes);
}
sub words { return map {@$_} lines($_[0]) }
sub count { return scalar(() = lines($_[0])) }

sub wait_for {
    my ($code) = @_;
    my $done = eval { wait_until('it', $code); 1 };
    diag slurp($notes), slurp("$dir/log") unless $done;
    ok $done, 'waited for' or die $@;
    return;
}

sub alive {
    my ($pid) = @_;
    my ($state) = $PROC ? slurp("/proc/$pid/stat") =~ /\) (\S)/ : told($pid, 'stat') =~ /(\S)/;
    return defined $state && $state ne 'Z';
}

sub title { my ($pid) = @_; return $PROC ? slurp("/proc/$pid/cmdline") : told($pid, 'command') }
sub group { my ($pid) = @_; return $PROC ? (slurp("/proc/$pid/stat") =~ /\) \S \d+ (\d+)/)[0] : told($pid, 'pgid') + 0 }

# A column of ps for one process; '' when it is gone. A clean Debian has no ps, other systems have no /proc.
sub told {
    my ($pid, $column) = @_;
    return scalar `ps -ww -o $column= -p $pid`;
}

sub reap {
    my ($pid) = @_;
    my $status;
    wait_for(sub { waitpid($pid, POSIX::WNOHANG()) == $pid && defined($status = $?) });
    delete $running{$pid};
    return $status;
}

sub stop {
    my ($pid) = @_;
    kill TERM => $pid;
    is reap($pid), 0, 'ends well' or diag slurp("$dir/log");
    return;
}

# What each of three workers notes may be late, and never early.
sub is_paced {
    my ($seconds, $began, @at) = @_;
    @at = sort { $a <=> $b } @at;
    return is scalar(grep { $at[$_] - $began < $seconds * $_ - 0.01 } 0 .. 2), 0, "$began: @at";
}

# Processes that know of our file of notes.
sub marked { return grep { slurp("/proc/$_/environ") =~ /NOTES=\Q$notes\E\0/ && alive($_) } map {m{(\d+)}} glob '/proc/[0-9]*' }

# One behaviour: whatever its manager has left behind would show at the end. A mold reads its manager's end from a pipe,
# so that it ends a moment later.
sub behaves {
    my ($what, $code) = @_;
    subtest $what => sub {
        begin();
        my $done = eval { $code->(); 1 };
        diag $@ unless $done;
        ok $done, 'to its end';
        for my $pid (keys %running) { kill KILL => $pid; waitpid $pid, 0; delete $running{$pid} }
        eval { wait_until('nothing left', sub { !marked() }) };
        my @left = marked();
        kill KILL => @left if @left;
        is "@left", '', 'nothing left behind';
    };
    return;
}

behaves 'names, defaults and callbacks of the predecessor' => sub {
    my $pid = run_manager(<<'PERL');
my $pm = Oribi::Prefork->new;
note('defaults', $pm->max_workers, $pm->spawn_interval, $pm->err_respawn_interval, join(' ', %{ $pm->trap_signals }), "<@{[$pm->signal_received]}>");
$pm = Oribi::Prefork->new({
    max_workers => 1, trap_signals => { TERM => undef }, before_fork => sub { note('before', $$, ref shift) },
    after_fork => sub { my ($m, $worker) = @_; note('after', $$, $worker) },
    on_child_reap => sub { my ($m, $worker, $status) = @_; note('reap', $worker, $status); die 'swallowed' },
});
note('said', $pm->start(sub { note('up', $$, getppid()); sleep 100 }));
note('trapped', $pm->signal_received, $pm->num_workers, $pm->manager_pid == $$);
note('sent', $pm->signal_all_children('TERM'));
note('count', $pm->wait_all_children);
PERL
    wait_for(sub { count('after') && count('up') });
    my ($worker, $above) = words('up');
    stop($pid);
    is_deeply [words('defaults')], [qw(10 0 1 TERM TERM <>)], 'defaults';
    is_deeply [words('before'), words('after')], [$pid, 'Oribi::Prefork', $pid, $worker], 'around the fork, in the manager';
    is $above, $pid, 'the manager is the parent';
    is_deeply [words('trapped'), words('sent'), words('count'), words('said')], [qw(TERM 1 1 1 0 1)], 'nothing is sent for undef';
    is_deeply [words('reap')], [$worker, 15], 'a worker that asks nothing is ended by TERM as any program';
    like slurp("$dir/log"), qr/on_child_reap died: swallowed/, 'and what the callback dies with is only logged';
};

behaves 'a second start is a new generation within the same number' => sub {
    my $pid = run_manager("my \$pm = Oribi::Prefork->new(max_workers => 2, trap_signals => { TERM => 'TERM', HUP => 'TERM' });\n$LOOP");
    wait_for(sub { count('up') == 2 });
    kill HUP => $pid;
    wait_for(sub { count('up') == 4 });
    stop($pid);
    is_deeply [map { $_->[2] } lines('up')], [1, 1, 2, 2], 'generations';
    is_deeply [lines('back')], [[qw(HUP 2)], [qw(TERM 2)]], 'what start ended with';
    is_deeply [words('left')], [0], 'nobody left';
};

behaves 'spawn_interval' => sub {
    my $pid = run_manager("note('at', now());\nmy \$pm = Oribi::Prefork->new(max_workers => 3, spawn_interval => 0.3, after_fork => sub { note('at', now()) });\n$LOOP");
    wait_for(sub { count('up') == 3 });
    stop($pid);
    is_paced(0.3, words('at'));
};

behaves 'a paced signal, and counts while waiting' => sub {
    my $pid = run_manager(<<'PERL');
my $pm = Oribi::Prefork->new(max_workers => 3, trap_signals => { TERM => ['TERM', 1] });
$pm->start(sub { my $w = shift; $w->stopping; note('up', $$); $w->wait; note('down', now()) });
my $left = 1;
note('count', $left = $pm->wait_all_children(0.05)) while $left;
PERL
    wait_for(sub { count('up') == 3 });
    my $began = Time::HiRes::time();
    stop($pid);
    is_paced(1, $began, words('down'));
    my %seen = map { $_ => 1 } words('count');
    is_deeply [sort grep { $_ < 3 } keys %seen], [0, 1, 2], 'each count was seen';
};

behaves 'a worker that fails at once is paced, one that ends well is not' => sub {
    my $pid = run_manager(<<'PERL');
my $pm = Oribi::Prefork->new(max_workers => 1, err_respawn_interval => 0.3, on_child_reap => sub { note('reap', $_[2]) });
$pm->start(sub { note('at', now()); exit 3 });
$pm->wait_all_children;
PERL
    wait_for(sub { count('at') >= 3 });    # more on a machine that is slow to look
    stop($pid);
    my @at = words('at');
    cmp_ok $at[1] - $at[0], '>=', 0.29, 'the first time';
    cmp_ok $at[2] - $at[1], '>=', 0.58, 'doubled while workers do not even last a second';
    is((words('reap'))[0], 3 << 8, 'status');
    $pid = run_manager("my \$pm = Oribi::Prefork->new(max_workers => 1, err_respawn_interval => 600);\n\$pm->start(sub { note('well') });\$pm->wait_all_children;");
    wait_for(sub { count('well') >= 5 });
    stop($pid);
};

behaves 'a callback that dies ends the worker only' => sub {
    my $pid = run_manager(<<'PERL');
my $pm = Oribi::Prefork->new(max_workers => 1, err_respawn_interval => 600, on_child_reap => sub { note('reap', $_[2]) });
eval { $pm->start(sub { die "no queue\n" }) };
note('back', $$);
$pm->wait_all_children;
PERL
    wait_for(sub { count('reap') == 1 });
    stop($pid);
    is_deeply [words('reap'), words('back')], [255 << 8, $pid], 'also inside an eval of the program';
    like slurp("$dir/log"), qr/no queue/, 'and says why';
};

behaves 'TERM lets a job end, a second one does not' => sub {
    my $program = <<'PERL';
my $pm = Oribi::Prefork->new(max_workers => 1);
$pm->start(sub {
    my $worker = shift;
    until ($worker->stopping) {
        $worker->job(long => sub { note('begun'); select undef, undef, undef, 0.01 until -e "$ENV{NOTES}.go"; note('done') });
    }
});
note('trapped');
note('left', $pm->wait_all_children);
PERL
    my $pid = run_manager($program);
    wait_for(sub { count('begun') == 1 });
    kill TERM => $pid;
    wait_for(sub { count('trapped') == 1 });
    is count('done'), 0, 'still at it';
    open my $fh, '>', "$notes.go" or die;
    close $fh;
    is reap($pid), 0, 'ends well';
    is_deeply [count('begun'), count('done'), words('left')], [1, 1, 0], 'the job was done';
    unlink "$notes.go";
    $pid = run_manager($program);
    wait_for(sub { count('begun') == 2 });
    kill TERM => $pid;
    wait_for(sub { count('trapped') == 2 });
    kill TERM => $pid;
    is reap($pid), 0, 'ends well';
    is count('done'), 1, 'the second job was not';
};

behaves 'INT that is not trapped ends the workers and then strikes; a handler of the program stays its own' => sub {
    my $pid = run_manager("my \$pm = Oribi::Prefork->new(max_workers => 2);\n$LOOP");
    wait_for(sub { count('up') == 2 });
    kill INT => $pid;
    is reap($pid), POSIX::SIGINT(), 'by its signal';
    is scalar(grep { alive($_->[0]) } lines('up')), 0, 'after its workers';
    $pid = run_manager("\$SIG{HUP} = sub { note('own') };\nmy \$pm = Oribi::Prefork->new(max_workers => 1);\n$LOOP");
    wait_for(sub { count('up') == 3 });
    kill HUP => $pid;
    wait_for(sub { count('own') == 1 });
    stop($pid);
};

behaves 'start without a callback, finish, and no workers at all' => sub {
    my $pid = run_manager(<<'PERL');
my $pm = Oribi::Prefork->new(max_workers => 1, err_respawn_interval => 600, on_child_reap => sub { note('reap', $_[2]) });
unless ($pm->start) {
    note('child', $pm->worker->index);
    eval { $pm->start } or note('nested', $@);
    $pm->finish(7);
}
eval { $pm->finish; 1 } or note('manager', $@);
$pm->wait_all_children;
note('none', defined Oribi::Prefork->new(max_workers => 0)->start(sub { note('never') }) ? 1 : 0);
PERL
    wait_for(sub { count('reap') == 1 });
    stop($pid);
    is_deeply [words('child'), words('reap'), words('none'), count('never')], [0, 7 << 8, 0, 0], 'as ever';
    is_deeply [count('nested'), count('manager')], [1, 1], 'refused in the wrong process';
};

behaves 'workers leave when the manager is killed' => sub {
    my $pid = run_manager("my \$pm = Oribi::Prefork->new(max_workers => 2);\n\$pm->start(sub { my \$w = shift; note('up', \$\$); \$w->index ? sleep 100 : \$w->wait });");
    wait_for(sub { count('up') == 2 });
    kill KILL => $pid;
    reap($pid);
    wait_for(sub { !grep { alive($_) } words('up') });
};

behaves 'a killed worker is replaced, more and fewer are possible' => sub {
    my $pid = run_manager("my \$pm = Oribi::Prefork->new(max_workers => 1, err_respawn_interval => 0.1, on_child_reap => sub { note('reap', \@_[1, 2]) });\n$LOOP");
    wait_for(sub { count('up') == 1 });
    my ($worker) = words('up');
    kill KILL => $worker;
    wait_for(sub { count('up') == 2 });
    is_deeply [(lines('reap'))[0]], [[$worker, 9]], 'reaped';
    kill TTIN => $pid;
    wait_for(sub { count('up') == 3 });
    kill TTOU => $pid;
    wait_for(sub { count('down') == 1 });
    stop($pid);
};

behaves 'jobs_max' => sub {
    my $pid = run_manager(<<'PERL');
my $pm = Oribi::Prefork->new(max_workers => 1, jobs_max => 3);
$pm->start(sub { my $w = shift; $w->job(sub { note('job', $$) }) until $w->stopping; note('down', $$) });
$pm->wait_all_children;
PERL
    wait_for(sub { count('down') >= 1 });
    stop($pid);
    my ($first) = words('down');
    is scalar(grep { $_ eq $first } words('job')), 3, 'jobs';
};

SKIP: {
    skip 'the portable build has no memory of other processes', 1 if Oribi::Options->_layer eq 'portable';

    behaves 'memory_max looks between jobs' => sub {
        my $pid = run_manager(<<'PERL');
my $pm = Oribi::Prefork->new(max_workers => 1, memory_max => '60M');
my @hoard;
$pm->start(sub {
    my $w = shift;
    note('big', $$);
    until ($w->stopping) {
        $w->job(sub { push @hoard, 'x' x (20_000_000 + @hoard) if @hoard < 6 }); # a constant would be shared
        $w->wait(0.02);
    }
    note('gone', $$);
});
$pm->wait_all_children;
PERL
        wait_for(sub { count('gone') >= 1 });
        stop($pid);
        is((words('gone'))[0], (words('big'))[0], 'the first one');
    };
}

behaves 'age_max waits for the job' => sub {
    my $pid = run_manager(<<'PERL');
my $pm = Oribi::Prefork->new(max_workers => 1, age_max => 1);
$pm->start(sub {
    my $w = shift;
    note('up', $$);
    $w->job(sub { select undef, undef, undef, 0.01 until -e "$ENV{NOTES}.go"; note('done', $$) });
    $w->wait;
    note('down', $$);
});
$pm->wait_all_children;
PERL
    wait_for(sub { count('up') >= 2 });    # each second one more
    is count('done'), 0, 'its successor came while it was in a job';
    open my $fh, '>', "$notes.go" or die;
    close $fh;
    my ($old) = words('up');
    wait_for(sub { grep { $_ == $old } words('down') });
    is scalar(grep { $_ == $old } words('done')), 1, 'done';
    stop($pid);
};

behaves 'user and group are those of the workers' => sub {
    return pass 'only root can become somebody else' if $>;
    my ($uid, $gid) = (getpwnam 'nobody')[2, 3];
    my $group = getgrgid $gid;
    chmod 0711, "$dir" or die;
    chmod 0666, $notes or die;
    my $pid = run_manager(<<"PERL" . <<'PERL');
my \$pm = Oribi::Prefork->new(max_workers => 1, user => 'nobody', group => '$group');
PERL
$pm->start(sub { my $w = shift; $w->stopping; note('up', $<, $>, $( + 0, scalar grep { $_ == 0 } split ' ', $(); $w->wait; note('down') });
note('manager', $>);
$pm->wait_all_children;
PERL
    wait_for(sub { count('up') == 1 });
    stop($pid);
    is_deeply [words('up')], [$uid, $uid, $gid, 0], 'nobody, in no group of root';
    is_deeply [words('manager'), count('down')], [0, 1], 'the manager is root still';
};

behaves 'a service manager hears what is going on' => sub {
    my $socket = IO::Socket::UNIX->new(Type => Socket::SOCK_DGRAM(), Local => "$dir/notify") or die $!;
    $socket->blocking(0);
    my $told = '';
    my $hear = sub {
        my ($text) = @_;
        wait_for(sub { while (defined $socket->recv(my $part, 4096)) { $told .= "$part\n" } index($told, $text) >= 0 });
    };
    my $pid = run_manager("my \$pm = Oribi::Prefork->new(max_workers => 1);\n$LOOP", undef, NOTIFY_SOCKET => "$dir/notify");
    $hear->('READY=1');
    wait_for(sub { count('up') == 1 });    # told as its code begins
    $told = '';
    kill HUP => $pid;
    $hear->('RELOADING=1');
    $hear->('READY=1');
    unlike $told, qr/STOPPING=1/, 'no end';
    stop($pid);
    $hear->('STOPPING=1');
};

behaves 'daemonize' => sub {
    my $pid = run_manager("my \$pm = Oribi::Prefork->new(max_workers => 1, daemonize => 1, pid_file => '$dir/pid');\n$LOOP");
    is reap($pid), 0, 'the starter leaves when it is up';
    my $daemon = slurp("$dir/pid") + 0;
    isnt $daemon, $pid, 'another process';
    wait_for(sub { count('up') == 1 });
    my ($ours, $its) = map { group($_) } $$, $daemon;
    ok $its && $its != $ours, 'a session of its own, which is a group of its own';
    kill TERM => $daemon;
    wait_for(sub { count('left') == 1 && !alive($daemon) });
    is_deeply [words('left')], [0], 'nobody left';
    ok !-e "$dir/pid", 'pid file is removed';
};

behaves 'a reload starts the program anew and replaces its workers' => sub {
    my $source = sub { "my \$VERSION = $_[0];\nmy \$pm = Oribi::Prefork->new(max_workers => 2);\n" . ($LOOP =~ s/'up', \$\$/'up', \$VERSION/r) };
    my $pid = run_manager($source->(1), "$dir/program.pl");
    wait_for(sub { count('up') == 2 });
    open my $fh, '>', "$dir/program.pl" or die;
    print {$fh} $PRELUDE, $source->(2);
    close $fh;
    kill HUP => $pid;
    wait_for(sub { count('down') == 2 && count('up') == 4 });
    open $fh, '>', "$dir/program.pl" or die;
    print {$fh} "die 'broken';\n";
    close $fh;
    kill HUP => $pid;
    wait_for(sub { slurp("$dir/log") =~ /reload failed/ });
    is count('down'), 2, 'a broken program changes nothing';
    stop($pid);
    is_deeply [map { $_->[0] } lines('up')], [1, 1, 2, 2], 'versions';
};

behaves 'pid file, control socket, titles' => sub {
    my $pid = run_manager(
        "my \$pm = Oribi::Prefork->new(max_workers => 1, program => 'eater', pid_file => '$dir/pid', control => '$dir/ctl');\n"
            . ($LOOP =~ s/\$worker->wait/\$worker->job(carrots => sub { select undef, undef, undef, 0.01 until -e "\$ENV{NOTES}.go" }); \$worker->wait/r));
    wait_for(sub { count('up') == 1 && -e "$dir/pid" });
    is slurp("$dir/pid") + 0, $pid, 'pid file';
    my $ctl = sub { open my $out, '-|', @PERL, $COMMAND, 'ctl', '--control', "$dir/ctl", @_ or die; local $/; return scalar <$out> };
    wait_for(sub { $ctl->('status') =~ /\Aeater, pid $pid, serving.*busy [^\n]*carrots/s });
    open my $fh, '>', "$notes.go" or die;
    close $fh;
    my ($worker) = words('up');
    wait_for(sub { title($worker) =~ /eater worker 0, generation 1, idle, 1 jobs/ });
    $ctl->('stop');
    is reap($pid), 0, 'ends well';
    is_deeply [lines('back')], [[qw(TERM 1)]], 'stop is TERM';
    ok !-e "$dir/pid" && !-e "$dir/ctl", 'files are removed';
};

behaves 'a failed fork waits and is tried again' => sub {
    my $pid = run_manager(<<'PERL' . $LOOP);
my $fails;
BEGIN { $fails = 2; *CORE::GLOBAL::fork = sub { note('fork', now()); return $fails-- > 0 ? do { $! = 11; undef } : CORE::fork() } }
delete $INC{'Oribi/Prefork.pm'};
{ no warnings 'redefine'; require Oribi::Prefork }
my $pm = Oribi::Prefork->new(max_workers => 1, err_respawn_interval => 0.2);
PERL
    wait_for(sub { count('up') == 1 });
    stop($pid);
    my @at = words('fork');
    cmp_ok $at[1] - $at[0], '>=', 0.19, 'the first time';
    cmp_ok $at[2] - $at[1], '>=', 0.38, 'doubled';
    like slurp("$dir/log"), qr/cannot fork worker 0: .*unavailable/, 'told';
};

behaves 'what no option is called is kept and logged' => sub {
    my $pid = run_manager(<<'PERL');
my $pm = Oribi::Prefork->new(fork_delay => 0, process => 'mine', max_workers => 1);
note('made', $pm->{fork_delay}, $pm->max_workers);
PERL
    is reap($pid), 0;
    is_deeply [words('made')], [0, 1];
    like slurp("$dir/log"), qr/warn: Oribi::Prefork: no option is called fork_delay: it is kept and changes nothing/;
};

behaves 'mistakes are told' => sub {
    my %message = (
        'max_worker => 3'                        => qr/unknown option max_worker: did you mean max_workers\?/,
        'idle_timeout => 3'                      => qr/idle_timeout is an option of the server/,
        'spawn_interval => "soon"'               => qr/spawn_interval/,
        'trap_signals => { KILL => "TERM" }'     => qr/KILL cannot be trapped/,
        'trap_signals => { TERM => "NONESUCH" }' => qr/no signal NONESUCH/,
    );
    for my $setting (sort keys %message) {
        is reap(run_manager("eval { Oribi::Prefork->new($setting)->start(sub { }) }; note('error', \$@);")), 0, $setting;
        like slurp($notes), $message{$setting}, 'told';
    }
};

done_testing;
