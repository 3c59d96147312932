# WebSockets for websocket_test.rb: a message is a command.
use strict;
use warnings;

package Chat;
my $DIR = $ENV{E2E_DIR};

sub on_open {
    my ($class, $ws) = @_;
    $ws->send('open ' . (defined $ws->protocol ? '"' . $ws->protocol . '"' : 'nil') . ' ' . $ws->env->{REMOTE_ADDR}) if $ws->state->{greets};
}

sub on_message {
    my ($class, $ws, $data, $binary) = @_;
    return $ws->send($data, binary => 1) if $binary;
    my ($word, $rest) = split / /, $data, 2;
    $word //= '';
    if    ($word eq 'count')   { $ws->send(++$ws->state->{n}) }
    elsif ($word eq 'pid')     { $ws->send($$) }
    elsif ($word eq 'id')      { $ws->send($ws->id) }
    elsif ($word eq 'die')     { die "said to die\n" }
    elsif ($word eq 'exit')    { exit 3 }
    elsif ($word eq 'kill')    { kill KILL => $$ }
    elsif ($word eq 'sleep')   { select undef, undef, undef, $rest }
    elsif ($word eq 'wait')    { wait_for($ws, $rest) }
    elsif ($word eq 'close')   { $ws->close($rest, 'as you wish') }
    elsif ($word eq 'state')   { $ws->state->{filler} = 'x' x $rest }
    elsif ($word eq 'send')    { my ($count, $size) = split /x/, $rest; $ws->send('y' x $size) for 1 .. $count }
    elsif ($word eq 'both')    { $ws->send('one'); $ws->send("\xff", binary => 1) }
    elsif ($word eq 'badtext') { $ws->send("\x{d800}") }
    elsif ($word eq 'assign')  { $ws->send('assigned'); $_[$_] = $rest for 0 .. 3 }
    elsif ($word eq 'badcode') { $ws->close($rest) }
    else                       { $ws->send($data) }
    return;
}

sub on_close {
    my ($class, $ws, $code, $reason) = @_;
    open my $file, '>>', "$DIR/closed" or die "closed: $!\n";
    syswrite $file, $ws->id . " $code $reason\n";
    close $file or die "closed: $!\n";
}

# Says that the call runs, and ends it once the test has written the file.
sub wait_for {
    my ($ws, $name) = @_;
    open my $file, '>', "$DIR/$name.in" or die "$name: $!\n";
    print {$file} $$;
    close $file or die "$name: $!\n";
    select undef, undef, undef, 0.005 until -e "$DIR/$name";
    $ws->send($name);
}

# A handler that a reload takes away.
package Leaves;
BEGIN {
    no strict 'refs';
    *{'Leaves::on_message'} = sub { my ($class, $ws, $data) = @_; $ws->send($data) } if !-e "$ENV{E2E_DIR}/without";
}

package main;

my %answers = (
    '/greets' => sub {
        my $ws = shift;
        $ws->accept('Chat', protocol => scalar(($ws->protocols)[0]), state => { greets => 1 }, headers => ['X-Room' => 7], keep => [qw(REMOTE_ADDR HTTP_COOKIE)]);
    },
    '/leaves'   => sub { $_[0]->accept('Leaves') },
    '/object'   => sub { $_[0]->accept(bless {}, 'Chat') },
    '/none'     => sub { $_[0]->accept('Nothing::Here') },
    '/protocol' => sub { $_[0]->accept('Chat', protocol => 'not offered') },
    '/state'    => sub { $_[0]->accept('Chat', state => { s => 'x' x 4096 }) },
    '/refused'  => sub { [403, [], ["refused\n"]] },
    '/delayed'  => sub { my $ws = shift; sub { $_[0]->($ws->accept('Chat')) } },
);

my $app = sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    return [200, [], [$$]] if $path eq '/pid';
    return [200, [], ['Hello, World!']] if $path eq '/';
    my $ws = $env->{'oribi.websocket'} or return [426, [], ["no WebSocket is asked for\n"]];
    return ($answers{$path} || sub { $_[0]->accept('Chat') })->($ws);
};

if ($ENV{E2E_LINT}) {
    require Plack::Middleware::Lint;
    $app = Plack::Middleware::Lint->wrap($app);
}
$app;
