# Handlers that do odd things, for socket_oddities_test.rb: a message is a command.
use strict;
use warnings;
use Oribi;
use POSIX ();

package Odd;

my $DIR = $ENV{E2E_DIR};
my $kept;
my %COMMANDS = (
    nil               => sub { undef },
    false             => sub { 0 },
    throw             => sub { die { odd => 1 } },
    'raise-empty'     => sub { die '' },
    'raise-nul'       => sub { die "a\0b\n" },
    'throw-false'     => sub { die Odd::Failure->new(0) },
    'throw-odd'       => sub { die Odd::Failure->new(sub { die 'no truth in it' }) },
    'exit!'           => sub { POSIX::_exit(0) },
    interrupt         => sub { kill INT => $$; sleep 1 while 1 },
    fork              => sub { my $pid = fork; POSIX::_exit(0) if defined $pid && !$pid; waitpid $pid, 0 },
    'fork-returns'    => sub { my ($ws) = @_; my $pid = fork; $ws->send($pid ? 'the parent' : 'a child') },
    late              => sub { my ($ws) = @_; $ws->send('early'); $ws->close(4000, 'bye'); $ws->send('late') },
    twice             => sub { my ($ws) = @_; $ws->close(4000, 'one'); $ws->close(4001, 'two') },
    'after-subscribe' => sub { my ($ws) = @_; $ws->close(4000, 'bye'); $ws->subscribe('c'); $ws->publish('c', 'from a closed one') },
    many              => sub { my ($ws, $n) = @_; $ws->subscribe('c'); $ws->publish('c', $_) for 0 .. $n - 1 },
    keep              => sub { $kept = $_[0] },
    use               => sub { use_kept() },
    state             => sub { my ($ws, $what) = @_; $ws->state($what eq 'nil' ? undef : { $what => sub { } }) },
    deep              => sub { my ($ws, $n) = @_; my $deep = 1; $deep = [$deep] for 1 .. $n; $ws->state->{deep} = $deep },
    argument          => sub { my ($ws) = @_; $ws->state->{kept} = 'kept'; $ws->send('kept') },
    inf               => sub { $_[0]->state->{inf} = 9**9**9 },
    text              => sub { $_[0]->state->{text} = "\x{d800}" },
    array             => sub { $_[0]->state([1]) },
    string            => sub { $_[0]->state('text') },
    reason            => sub { $_[0]->close(4000, "\xfc") },
    hang              => sub { sleep 1 while 1 },
    publish           => sub { my ($ws, $text) = @_; Oribi::publish(c => $text); $ws->send('published') },
    kept              => sub { $_[0]->send(length $_[0]->env->{inf}) },
    ask               => sub { my ($ws, $text) = @_; $ws->send($text) },
);

sub use_kept {
    eval { $kept->send('of another call'); 1 } and return;
    my $error = $@;
    open my $file, '>', "$DIR/used" or die "used: $!\n";
    print {$file} $error;
    close $file or die "used: $!\n";
}

sub on_message {
    my ($class, $ws, $data) = @_;
    my ($word, $rest) = split / /, $data, 2;
    $_[1] = 'another' if $word eq 'argument';
    return $COMMANDS{$word}->($ws, $rest);
}

sub on_close {
    my ($class, $ws, $code) = @_;
    $ws->subscribe('c');
    $ws->send('nobody');
    $ws->close(4000);
    $ws->publish('c', "closed $code");
}

# Its methods assign to what they were given.
package Odd::Assigning;

sub on_open {
    my ($class, $ws) = @_;
    $ws->state->{opened} = 'opened';
    @_[0, 1] = ('another', undef);
}

sub on_message { $_[1]->send($_[1]->state->{opened}) }

sub on_close {
    my ($class, $ws) = @_;
    $ws->state->{closed} = 1;
    $ws->publish('c', 'assigned');
    @_[1 .. 3] = ('another', 'code', 'reason');
}

# An exception that is no true value, or dies when it is asked.
package Odd::Failure;
use overload bool => sub { ref $_[0]{truth} ? $_[0]{truth}->() : $_[0]{truth} }, '""' => sub { 'a failure' };
sub new { my ($class, $truth) = @_; return bless { truth => $truth }, $class }

package main;

my %answers = (
    '/twice'       => sub { my ($ws) = @_; $ws->accept('Odd', channels => ['a']); $ws->accept('Odd', channels => ['c']) },
    '/too-large'   => sub {
        my ($ws) = @_;
        my $answer = $ws->accept('Odd');
        eval { $ws->accept('Odd', state => { x => 'x' x 4096 }) };
        $answer;
    },
    '/lengths'     => sub { $_[0]->accept('Odd', headers => ['Content-Length' => 5, 'Transfer-Encoding' => 'chunked', 'X-More' => 'more']) },
    '/and-raises'  => sub { my ($ws) = @_; $ws->accept('Odd'); die "after accept\n" },
    '/and-refuses' => sub { my ($ws) = @_; $ws->accept('Odd'); [403, [], ["refused\n"]] },
    '/nothing'     => sub { my ($ws) = @_; $ws->accept('Odd'); undef },
    '/assigns'     => sub { my ($ws) = @_; $ws->accept('Odd::Assigning') },
    '/infinite'    => sub { my ($ws) = @_; $ws->accept('Odd', state => { inf => 9**9**9 }) },
    '/array'       => sub { $_[0]->accept('Odd', state => [1]) },
    '/keeps'       => sub { my ($ws, $env) = @_; $env->{inf} = 9**9**9; $ws->accept('Odd', keep => ['inf']) },
    '/alone'       => sub { my ($ws) = @_; $ws->accept('Odd') },
    '/forged'      => sub { [101, [], []] },
);

sub {
    my $env = shift;
    return [200, [], [$$]] if $env->{PATH_INFO} eq '/pid';
    my $ws = $env->{'oribi.websocket'} or return [200, [], ['Hello, World!']];
    return ($answers{ $env->{PATH_INFO} } || sub { $_[0]->accept('Odd', channels => ['c']) })->($ws, $env);
};
