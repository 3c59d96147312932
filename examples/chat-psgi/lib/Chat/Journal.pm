package Chat::Journal;
use strict;
use warnings;
use Fcntl qw(O_WRONLY O_APPEND O_CREAT);
use File::Basename ();
use File::Path ();
use JSON::PP ();

# What was said, one JSON object a line. The file is all that the processes share: who says something appends a line,
# who listens looks whether the file has grown. A message's id is the place behind its line, so that a client can ask
# for what came after.

use constant {NICK_CHARS_MAX => 40, TEXT_CHARS_MAX => 500, TAIL_BYTES => 4096};

my $JSON = JSON::PP->new->utf8->canonical;

sub new {
    my ($class, $path) = @_;
    File::Path::make_path(File::Basename::dirname($path));
    sysopen my $file, $path, O_WRONLY | O_CREAT or die "$path: $!\n";
    return bless {path => $path}, $class;
}

sub size { return -s $_[0]{path} || 0 }

sub _clean {
    my ($value, $max) = @_;
    return '' if !defined $value || ref $value;
    $value =~ s/\A\s+|\s+\z//g;
    return substr $value, 0, $max;
}

# Takes the bytes that a client sent; false if they are not a message.
sub add {
    my ($self, $bytes) = @_;
    my $said = eval { $JSON->decode($bytes) };
    return 0 if ref $said ne 'HASH';
    my ($nick, $text) = (_clean($said->{nick}, NICK_CHARS_MAX), _clean($said->{text}, TEXT_CHARS_MAX));
    return 0 if $nick eq '' || $text eq '';
    sysopen my $file, $self->{path}, O_WRONLY | O_APPEND or die "$self->{path}: $!\n";
    # One write(2) in append mode: lines of several processes never mix.
    defined syswrite $file, $JSON->encode({nick => $nick, text => $text, at => time}) . "\n" or die "$self->{path}: $!\n";
    return 1;
}

sub _read {
    my ($self, $place, $length) = @_;
    open my $file, '<:raw', $self->{path} or die "$self->{path}: $!\n";
    seek $file, $place, 0;
    read $file, my ($bytes), $length;
    return $bytes;
}

# [id, JSON with that id] of each message behind $place.
sub after {
    my ($self, $place) = @_;
    my @found;
    for my $line ($self->_read($place, $self->size) =~ /[^\n]*\n/g) {
        $place += length $line;
        chomp $line;
        push @found, [$place, "{\"id\":$place," . substr $line, 1];
    }
    return @found;
}

# Where a listener starts: behind the message that it has, or some messages before the end.
sub place_for {
    my ($self, $id) = @_;
    my $size = $self->size;
    my $known = defined $id && $id =~ /\A[0-9]{1,15}\z/ && $id > 0 && $id <= $size;
    return 0 + $id if $known && $self->_read($id - 1, 1) eq "\n";
    my $from = $size - TAIL_BYTES;
    return $from <= 0 ? 0 : $from + 1 + index $self->_read($from, TAIL_BYTES), "\n";
}

1;
