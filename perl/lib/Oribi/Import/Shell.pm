package Oribi::Import::Shell;
use strict;
use warnings;

our $VERSION = '0.100';

# A line of a shell, as far as starting a server needs it: commands, and their words.

my $PIECE = qr/'[^']*'|"(?:\\.|\$\([^)]*\)|[^"\\])*"|\\.|\$\([^)]*\)|`[^`]*`|\$\{[^}]*\}/s;
my $OPERATOR = qr/&&|\|\||;|\||(?<![>&])&(?!\d)/;
my $REDIRECTION = qr/\d*(?:>>?|<)(?:&\d|\s*\S+)?/;
my $WORD = qr/(?:$PIECE|[^\s'"`\\])+/s;

# Commands, each with the operator behind it ('' for the last): a list of [text, operator].
sub commands {
    my ($line) = @_;
    my @parts = (['', '']);
    while ($line =~ /\G(?:($PIECE|\d*>>?&\d)|($OPERATOR)|(.))/gcs) {
        if (defined $2) { $parts[-1][1] = $2; push @parts, ['', ''] }
        else { $parts[-1][0] .= defined $1 ? $1 : $3 }
    }
    return @parts;
}

# Words as they stand, and redirections: two array references. Dies with a quote that is not closed.
sub words {
    my ($command) = @_;
    my (@words, @redirections);
    while ($command =~ /\G\s*(?=\S)/gc) {
        if ($command =~ /\G($REDIRECTION)/gc) { push @redirections, $1 }
        elsif ($command =~ /\G($WORD)/gc) { push @words, $1 }
        else { die 'a quote that is not closed: ' . substr($command, pos $command, 60) . "\n" }
    }
    return (\@words, \@redirections);
}

# A word without its quotes; variables stay.
sub plain {
    my ($word) = @_;
    $word =~ s{'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)}{defined $1 ? $1 : defined $2 ? $2 =~ s/\\(["\\\$`])/$1/gr : $3}ges;
    return $word;
}

# Does the shell run something to know this word?
sub runs { return $_[0] =~ /`|\$\(/ }

# For a command line.
sub quoted {
    my ($text) = @_;
    return $text if $text =~ m{\A[\w\@%+=:,./~\[\]?*!\{\}\$"-]+\z};
    $text =~ s/'/'\\''/g;
    return "'$text'";
}

1;

__END__

=head1 NAME

Oribi::Import::Shell - words of a command line

=head1 DESCRIPTION

Part of L<Oribi>; see C<oribi-psgi import> in L<oribi-psgi>.

=cut
