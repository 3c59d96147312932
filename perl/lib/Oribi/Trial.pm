package Oribi::Trial;
use strict;
use warnings;
use POSIX ();

our $VERSION = '0.100';

# Runs what an application may end (exit, a crash of an extension, kill) in a child, so that the caller outlives it.

my $BYTES_MAX = 48 * 1024;    # less than a pipe holds: the child never waits for the caller
my $COMPLETE = "\0complete";

# Calls the code in a child and gives the texts that it gives, without NUL, together cut at $BYTES_MAX. What it prints
# to standard output goes to standard error. Dies with one line where the process ended before the code did.
sub run {
    my ($code) = @_;
    pipe my $reader, my $writer or die "pipe: $!\n";
    { local $| = 1; print STDOUT '' }
    defined(my $pid = fork) or die "fork: $!\n";
    _answer($writer, $code) if !$pid;
    close $writer;
    waitpid $pid, 0;
    my $status = $?;
    $reader->blocking(0);
    my $text = '';
    sysread $reader, $text, $BYTES_MAX + length $COMPLETE;
    die 'the application ended the process while it was loaded (' . _fate($status) . ")\n" if $text !~ s/\Q$COMPLETE\E\z//;
    my (undef, @texts) = split /\0/, $text, -1;
    return @texts;
}

sub _answer {
    my ($writer, $code) = @_;
    if (open STDOUT, '>&', \*STDERR) {
        my $text = join '', map {"\0$_"} $code->();
        utf8::encode($text) if utf8::is_utf8($text);
        syswrite $writer, substr($text, 0, $BYTES_MAX) . $COMPLETE;
    }
    { local $| = 1; print STDOUT '' }
    POSIX::_exit(0);    # without what the application has left for the end
}

sub _fate {
    my ($status) = @_;
    return $status & 127 ? 'signal ' . ($status & 127) : 'exit code ' . ($status >> 8);
}

1;

__END__

=head1 NAME

Oribi::Trial - loads an application in a child process

=head1 DESCRIPTION

Part of L<Oribi>; see L<oribi-psgi/check>.

=cut
