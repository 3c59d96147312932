use strict;
use warnings;
use lib 't/lib';
use Cwd ();
use File::Temp ();
use IO::Socket::INET ();
use OribiServer qw(free_port);
use POSIX ();
use Test::More;

# Oribi::Pure as one file in an empty folder, with no module but the core's: it serves a board by one command. And
# without what other systems lack: fork, signals, /proc, unix sockets, and a flag for send().

my $pure = Cwd::abs_path((grep {-e} 'lib/Oribi/Pure.pm', '../perl/lib/Oribi/Pure.pm')[0]);
my ($board) = map { Cwd::abs_path($_) } grep {-e} '../examples/board-core/app.psgi', 'examples/board-core/app.psgi';
my $dir = File::Temp->newdir;
my @CORE = grep { !m{\A\.|/site|/vendor|blib|/usr/local|/usr/share/perl5\z|/perl5/5|/x86_64[^/]*/perl5/5} } split /\n/, `$^X -e 'print join "\\n", \@INC'`;

sub copy { my ($from, $name) = @_; open my $in, '<:raw', $from or die "$from: $!"; local $/; my $text = <$in>; write_file($name, $text) }
sub write_file { my ($name, $text) = @_; open my $out, '>:raw', "$dir/$name" or die $!; print {$out} $text; close $out or die $!; return "$dir/$name" }

# A perl that finds modules in its core's folders alone.
write_file('Bare.pm', 'package Bare; BEGIN { @INC = (' . join(', ', map {"'$_'"} @CORE) . ") } 1;\n");
copy($pure, 'Pure.pm');

sub start {
    my (@arguments) = @_;
    my $port = free_port();
    my $pid = fork // die $!;
    if (!$pid) {
        delete @ENV{qw(PERL5LIB PERL5OPT)};
        chdir $dir or POSIX::_exit(9);
        $ENV{BOARD_FILE} = "$dir/board.json";
        open STDERR, '>', "$dir/log" or POSIX::_exit(9);
        open STDOUT, '>', "$dir/out" or POSIX::_exit(9);
        exec $^X, "-I$dir", '-MBare', map { s/PORT/$port/r } @arguments or POSIX::_exit(9);
    }
    for (1 .. 6000) {
        return ($pid, $port) if IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port);
        last if waitpid($pid, POSIX::WNOHANG()) == $pid;
        select undef, undef, undef, 0.02;
    }
    die "no server: " . log_text();
}

sub log_text { open my $in, '<', "$dir/log" or return ''; local $/; return scalar <$in> }

sub ask {
    my ($port, $bytes) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die $!;
    print {$socket} $bytes;
    local $/;
    return scalar <$socket>;
}

sub get { my ($port, $path) = @_; return ask($port, "GET $path HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") }
sub post { my ($port, $path, $form) = @_; return ask($port, "POST $path HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: " . length($form) . "\r\n\r\n$form") }
sub stop { my ($pid) = @_; kill TERM => $pid; waitpid $pid, 0; return $? }

sub use_board {
    my ($port) = @_;
    like get($port, '/'), qr{\AHTTP/1\.1 200 OK\r\n.*0 messages}s, 'the board';
    like post($port, '/messages', 'nick=Ann&body=a+%3Cb%3E+%E2%82%AC'), qr{\AHTTP/1\.1 303 }, 'a message';
    like get($port, '/'), qr{<strong>Ann</strong>.*a &lt;b&gt; \xe2\x82\xac}s, 'is shown';
    like post($port, '/messages', 'nick=Ann'), qr{\AHTTP/1\.1 422 .*both a nick}is, 'a mistake';
    like get($port, '/archive'), qr{Transfer-Encoding: chunked.*Ann.*That was all}s, 'the archive as a stream';
    like post($port, '/messages/1/delete', ''), qr{\AHTTP/1\.1 303 }, 'is deleted';
    like get($port, '/'), qr/0 messages/;
    like get($port, '/none'), qr{\AHTTP/1\.1 404 };
}

subtest 'one command' => sub {
    plan skip_all => 'examples/ is not here' unless $board;
    my ($pid, $port) = start('Pure.pm', '--port', 'PORT', '--workers', 2, $board);
    use_board($port);
    is stop($pid), 0, 'ends in good order';
    like log_text(), qr/listening on tcp:.*, 2 workers/;
};

subtest 'nothing but the core is loaded' => sub {
    my $script = write_file('loaded.pl', q[require './Pure.pm'; print join "\n", map { "$_ $INC{$_}" } sort keys %INC;]);
    my $loaded = do { local @ENV{qw(PERL5LIB PERL5OPT)} = ('', ''); `cd $dir && $^X -I$dir -MBare $script` };
    like $loaded, qr/^POSIX\.pm /m;
    my @strange = grep { my ($path) = / (.*)/; $path !~ m{\A\./Pure\.pm|\A\Q$dir\E} && !grep { index($path, $_) == 0 } @CORE } split /\n/, $loaded;
    is_deeply \@strange, [], 'each module is of a core folder';
    unlike $loaded, qr/\b(?:XSLoader|DynaLoader)\b.*Oribi/, 'no part in C';
};

# Modelled, not run there: what core Perl has on Windows is less than here, and these take it away.
write_file('Less.pm', <<'LESS');
package Less;
BEGIN {
    *CORE::GLOBAL::fork = sub () { die "fork is not there\n" };
    *CORE::GLOBAL::kill = sub { die "kill is not there\n" };
    *CORE::GLOBAL::socketpair = sub (*$$$) { die "socketpair is not there\n" };
    delete @SIG{qw(HUP USR1 USR2 TTIN TTOU CHLD QUIT)};
    require Config;
    require Socket;
    no warnings 'redefine';
    *Socket::pack_sockaddr_un = sub { die "unix sockets are not there\n" };
    *Socket::MSG_NOSIGNAL = *Socket::MSG_DONTWAIT = sub () { die "the flag is not there\n" };
}
1;
LESS

# What Debian's smallest systems have of Perl.
my ($base) = grep { m{/perl-base\z} } @CORE;

subtest 'with the base of Perl alone' => sub {
    plan skip_all => 'this perl has no perl-base' unless $base;
    write_file('Base.pm', "package Base; BEGIN { \@INC = ('$base') } 1;\n");
    write_file('app.psgi', 'sub { my ($env) = @_; local $/; my $in = $env->{"psgi.input"}; my $io = defined $env->{"psgix.io"}; [200, [], [scalar(<$in>) // "none"]] }');
    my $start = write_file('base.pl', "BEGIN { require './Base.pm' } require './Pure.pm'; exit Oribi::Pure::main(\@ARGV);\n");
    my ($pid, $port) = start($start, '--port', 'PORT', '--workers', 2, "$dir/app.psgi");
    like post($port, '/', 'a=b'), qr{\AHTTP/1\.1 200 .*a=b}s, 'a body';
    like get($port, '/'), qr{\AHTTP/1\.1 200 }, 'none';
    is stop($pid), 0;
    ok !(grep { log_text() =~ /\Q$_\E/ } 'uninitialized', "Can't"), 'without a warning' or diag log_text();
};

subtest 'a system that forks no more for a while' => sub {
    write_file('app.psgi', 'sub { [200, [], [$$]] }');
    my $start = write_file('nofork.pl', "BEGIN { *CORE::GLOBAL::fork = sub () { \$! = 11; -e '$dir/full' ? undef : CORE::fork() } } require './Pure.pm'; exit Oribi::Pure::main(\@ARGV);\n");
    my ($pid, $port) = start($start, '--port', 'PORT', '--workers', 1, "$dir/app.psgi");
    my $worker = sub { (split /\r\n\r\n/, get($port, '/'))[1] };    # its pid; the head has the time of day
    my $first = $worker->();
    write_file('full', '');
    kill HUP => $pid;
    select undef, undef, undef, 0.05 until log_text() =~ /cannot be forked/ || waitpid($pid, POSIX::WNOHANG()) == $pid;
    is $worker->(), $first, 'the server goes on' or return;
    unlink "$dir/full";
    my $until = time + 120;
    select undef, undef, undef, 0.05 until $worker->() ne $first || time > $until;
    isnt $worker->(), $first, 'and reloads when it can';
    is stop($pid), 0;
};

subtest 'a first start and a worker that cannot be forked at once' => sub {
    write_file('app.psgi', 'sub { [200, [], [$$]] }');
    my $start = write_file('late.pl', "my \$top = \$\$; BEGIN { *CORE::GLOBAL::fork = sub () { \$! = 11; -e '$dir/full' || -e '$dir/mold-full' && \$\$ != \$top ? undef : CORE::fork() } } require './Pure.pm'; exit Oribi::Pure::main(\@ARGV);\n");
    my $await = sub { my ($text) = @_; my $until = time + 30; select undef, undef, undef, 0.05 until log_text() =~ $text || time > $until; return like log_text(), $text };
    write_file($_, '') for qw(full mold-full);
    my ($pid, $port) = start($start, '--port', 'PORT', '--workers', 2, "$dir/app.psgi");    # the socket is there at once
    $await->(qr/the mold cannot be forked/);
    unlink "$dir/full";
    $await->(qr/worker 0 cannot be forked/);
    unlink "$dir/mold-full";
    my ($first) = get($port, '/') =~ /([0-9]+)\z/;
    ok $first, 'it serves once it can fork';
    $await->(qr/2 workers/);
    write_file('mold-full', '');
    my $failures = () = log_text() =~ /worker [01] cannot be forked/g;
    kill KILL => $first;
    $await->(qr/(?:worker [01] cannot be forked.*){@{[ $failures + 1 ]}}/s);
    isnt +(get($port, '/') =~ /([0-9]+)\z/)[0], $first, 'the other worker serves';
    unlink "$dir/mold-full";
    my %seen;
    my $until = time + 30;
    while (keys %seen < 2 && time < $until) { $seen{ (get($port, '/') =~ /([0-9]+)\z/)[0] }++ }
    is scalar keys %seen, 2, 'then there are two again';
    is stop($pid), 0;
};

subtest 'without fork, signals, unix sockets' => sub {
    plan skip_all => 'examples/ is not here' unless $board;
    my $start = write_file('less.pl', "BEGIN { require './Less.pm' } require './Pure.pm'; no warnings; *Oribi::Pure::Processes::can_fork = sub { 0 }; exit Oribi::Pure::main(\@ARGV);\n");
    my ($pid, $port) = start($start, '--port', 'PORT', '--workers', 4, $board);
    use_board($port);
    like get($port, '/'), qr/ 200 OK/ for 1 .. 3;
    my $gone = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die $!;
    print {$gone} "GET /archive HTTP/1.1\r\nHost: a\r\n\r\n" x 50;
    close $gone;
    like get($port, '/'), qr/ 200 OK/, 'a client that has gone ends nothing';
    like log_text(), qr/listening on tcp:.*, one process/, 'one process serves';
    kill TERM => $pid;
    waitpid $pid, 0;
    is $?, 0, 'and ends in good order';
    ok !eval { start($start, '--bind', "unix://$dir/socket", $board); 1 }, 'a unix socket';
    like log_text(), qr/this system has no unix sockets/, 'is refused with a line';
    open my $in, '<', $pure or die $!;
    ok !(grep {m{/proc}} <$in>), 'and nothing asks /proc';
};

done_testing;
