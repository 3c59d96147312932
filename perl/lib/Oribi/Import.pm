package Oribi::Import;
use strict;
use warnings;
use Oribi ();
use Oribi::Import::Lines ();
use Oribi::Import::Uwsgi ();

our $VERSION = '0.100';

# oribi-psgi import FILE: command lines of other servers, or an ini file of uWSGI, as a commented config/oribi.pl.
# Nothing of the file is run, and nothing is printed before all of it has been understood. Dies with one line.

# A longer file is no configuration.
my $BYTES_MAX = 64 * 1024;

sub text {
    my ($path) = @_;
    my $source = _read($path);
    die "$path: a file of Ruby's servers: oribi import $path reads it\n" if $path =~ /\.(?:rb|ru)\z/;
    return Oribi::Import::Uwsgi->new($path)->text($source) if $path =~ /\.ini\z/ || $source =~ /^\[uwsgi\]/m;
    return Oribi::Import::Lines->new($path)->text($source);
}

sub _read {
    my ($path) = @_;
    die "$path: is a directory\n" if -d $path;
    open my $fh, '<:raw', $path or die "$path: cannot be read: \l$!\n";
    my $count = read $fh, my $source, $BYTES_MAX + 1;
    die "$path: cannot be read: \l$!\n" unless defined $count;
    close $fh;
    die "$path: is longer than $BYTES_MAX bytes, which no configuration file is\n" if $count > $BYTES_MAX;
    my $copy = $source;
    die "$path: is a binary file\n" if $source =~ /\0/ || !utf8::decode($copy);
    die "$path: is empty\n" if $source !~ /\S/;
    $source =~ s/\r\n/\n/g;
    return $source;
}

1;

__END__

=head1 NAME

Oribi::Import - another server's configuration as Oribi's

=head1 DESCRIPTION

Part of L<Oribi>; see C<oribi-psgi import> in L<oribi-psgi>.

=cut
