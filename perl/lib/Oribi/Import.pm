package Oribi::Import;
use strict;
use warnings;
use Oribi ();
use Oribi::Import::Lines ();
use Oribi::Import::Shell ();
use Oribi::Import::Uwsgi ();

our $VERSION = '0.100';

# oribi-psgi import FILE: command lines of other servers, or an ini file of uWSGI, as a commented config/oribi.pl.
# Nothing of the file is run, and nothing is printed before all of it has been read. Dies with one line.

# A longer file is no configuration.
my $BYTES_MAX = 1024 * 1024;
my $CONFIG = 'config/oribi.pl';
my $COMMAND = 'the command line';

my $HELP = <<'TEXT';
Usage: oribi-psgi import [-o FILE [--force]] FILE
       oribi-psgi import [-o FILE [--force]] -- COMMAND ...

Prints a configuration file made from another server's: an ini file of uWSGI with psgi, a Procfile, a unit of systemd,
a program of supervisord, a Dockerfile, or a command line of starman, plackup (Starlet, Starman, Gazelle, Monoceros,
Twiggy), start_server or uwsgi. "-" reads standard input. Nothing of it is run; what Oribi does not take over stays as a
comment with the reason.

  -o, --output FILE   write to FILE, which must not exist; stands before the command, which may have a -o of its own
      --force         overwrite it
TEXT

# What to print, for the words behind import.
sub run {
    my (@words) = @_;
    my ($output, $force, @files);
    while (@words && $words[0] ne '--') {
        my $word = shift @words;
        return $HELP if $word eq '-h' || $word eq '--help';
        if ($word eq '--force') { $force = 1 }
        elsif ($word eq '-o' || $word eq '--output') { $output = shift @words; die "import: $word needs a file\n" unless defined $output }
        elsif ($word =~ /\A--output=(.+)/s) { $output = $1 }
        elsif ($word !~ /\A-./) { push @files, $word }
        else { die "import: unknown option $word: there are -o FILE, --force and --help\n" }
    }
    my $config = defined $output ? $output : $CONFIG;
    my $made;
    if (@words > 1 && !@files) {
        shift @words;
        $made = _of($COMMAND, join(' ', map { Oribi::Import::Shell::quoted($_) } @words), $config);
    } else {
        die "import takes one file, as in: oribi-psgi import Procfile\n" if @files != 1 || @words;
        $made = _of(read_file($files[0]), $config);
    }
    return defined $output ? _write($output, $made, $force) : $made->text;
}

# The configuration file's text.
sub text {
    my ($path) = @_;
    return _of(read_file($path), $CONFIG)->text;
}

# What is made of a text: Oribi::Import::Words.
sub _of {
    my ($path, $source, $config) = @_;
    die "$path: a file of Ruby's servers: oribi import $path reads it\n" if $path =~ /\.(?:rb|ru)\z/;
    return Oribi::Import::Uwsgi->new($path, $config)->file($source) if $path =~ /\.ini\z/ || $source =~ /^\[uwsgi\]/m;
    return Oribi::Import::Lines->new($path, $config)->file($source);
}

# Its name for messages, and the text in UTF-8 with line feeds.
sub read_file {
    my ($path) = @_;
    my ($fh, $name) = (undef, $path);
    if ($path eq '-') { ($fh, $name) = (\*STDIN, 'standard input') }
    else {
        die "$path: is a directory\n" if -d $path;
        open $fh, '<:raw', $path or die "$path: cannot be read: \l$!\n";
    }
    my $count = read $fh, my $source, $BYTES_MAX + 1;
    die "$name: cannot be read: \l$!\n" unless defined $count;
    close $fh unless $path eq '-';
    die "$name: is longer than $BYTES_MAX bytes, which no configuration file is\n" if $count > $BYTES_MAX;
    die "$name: is a binary file\n" if $source =~ /[\x00-\x08\x0e-\x1a\x1c-\x1f]/;
    $source =~ s/\A\xef\xbb\xbf//;
    die "$name: is empty\n" if $source !~ /\S/;
    my $copy = $source;
    utf8::encode($source) unless utf8::decode($copy);    # Latin-1, then
    $source =~ s/\r\n?/\n/g;
    return ($name, $source);
}

sub _write {
    my ($path, $made, $force) = @_;
    require Fcntl;
    mkdir 'config' if $path eq $CONFIG;    # it may be there, and what keeps it from being made is told below
    my $mode = Fcntl::O_WRONLY() | Fcntl::O_CREAT() | ($force ? Fcntl::O_TRUNC() : Fcntl::O_EXCL());
    if (!sysopen my $fh, $path, $mode) {
        die "$path: exists already; --force overwrites it\n" if $!{EEXIST};
        die "$path: cannot be written: \l$!\n";
    } elsif (!print({$fh} $made->text) || !close $fh) {
        die "$path: cannot be written: \l$!\n";
    }
    return "$path: " . $made->counts . '. Next: oribi-psgi check' . ($path eq $CONFIG ? '' : " --config $path") . "\n";
}

1;

__END__

=head1 NAME

Oribi::Import - another server's configuration as Oribi's

=head1 DESCRIPTION

Part of L<Oribi>; see C<oribi-psgi import> in L<oribi-psgi>.

=cut
