use strict;
use warnings;

# Answers of every size and shape, forms and uploads: /string/N, /parts/N (a thousand parts), /file/N, /stream (100
# chunks), /form, /upload.
use File::Temp;
use Plack::Request;
use Plack::Util;

my @sizes   = (1024, 65_536, 102_400, 1_048_576);
my $pattern = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_';
my $folder  = File::Temp->newdir('bodiesXXXXXX', TMPDIR => 1);
my @hundred = map { sprintf "%-1023d\n", $_ } 0 .. 99;
my %answers;

sub headers { return ['Content-Type' => 'text/plain', 'Content-Length' => $_[0]] }

for my $size (@sizes) {
    my $text = substr $pattern x ($size / length($pattern) + 1), 0, $size;
    my @at   = map { int($_ * $size / 1000) } 0 .. 1000;
    # A thousand parts as equal as they can be; together the same bytes as the string.
    my @parts = map { substr $text, $at[$_], $at[$_ + 1] - $at[$_] } 0 .. 999;
    my $path  = "$folder/$size";
    open my $out, '>', $path or die "$path: $!\n";
    print {$out} $text;
    close $out or die "$path: $!\n";
    $answers{"/string/$size"} = sub { [200, headers($size), [$text]] };
    $answers{"/parts/$size"}  = sub { [200, headers($size), \@parts] };
    $answers{"/file/$size"}   = sub {
        open my $file, '<:raw', $path or die "$path: $!\n";
        Plack::Util::set_io_path($file, $path);
        return [200, headers($size), $file];
    };
}

# No length: the server delimits it, and has each chunk before the next is there. Servers that cannot stream get the
# parts at once.
$answers{'/stream'} = sub {
    my ($env) = @_;
    return [200, ['Content-Type' => 'text/plain'], \@hundred] unless $env->{'psgi.streaming'};
    return sub {
        my ($respond) = @_;
        my $writer = $respond->([200, ['Content-Type' => 'text/plain']]);
        $writer->write($_) for @hundred;
        $writer->close;
    };
};

$answers{'/form'} = sub {
    my ($env) = @_;
    my $fields = Plack::Request->new($env)->body_parameters;
    my ($count, $bytes) = (0, 0);
    $fields->each(sub { $count++; $bytes += length($_[0]) + length($_[1]) });
    my $text = "$count $bytes";
    return [200, headers(length $text), [$text]];
};

$answers{'/upload'} = sub {
    my ($env) = @_;
    my $left = $env->{CONTENT_LENGTH};
    my ($size, $last) = (0, '');
    while ($left > 0) {
        my $n = $env->{'psgi.input'}->read(my $buffer, $left < 65_536 ? $left : 65_536);
        last unless $n;
        $left -= $n;
        $size += $n;
        $last = substr $buffer, -1;
    }
    my $text = "$size $last";
    return [200, headers(length $text), [$text]];
};

# The folder lives as long as the application that names it.
$answers{'/folder'} = sub { [200, headers(length "$folder"), ["$folder"]] };

sub { my ($env) = @_; return $answers{$env->{PATH_INFO}}->($env) };
