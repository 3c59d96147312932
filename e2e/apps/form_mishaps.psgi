# Forms and uploads when something goes wrong; form_mishaps.ru is its twin. The test and the application tell each other
# by files.
use strict;
use warnings;
use Oribi::Plack;
use Plack::Request;

my $DIR = $ENV{E2E_DIR};

sub answer { return [200, ['Content-Type' => 'text/plain'], ["$_[0]"]] }

sub note {
    my ($text) = @_;
    open my $file, '>', "$DIR/noted.new" or die $!;
    print {$file} $text;
    close $file or die $!;
    rename "$DIR/noted.new", "$DIR/noted" or die $!;
    return;
}

sub {
    my $request = Plack::Request->new($_[0]);
    my $path = $request->path;
    return answer('Hello, World!') if $path eq '/';
    return answer($$) if $path eq '/pid';
    return answer(scalar $request->body_parameters->keys) if $path eq '/pairs';
    my $upload = $request->uploads->{file};
    return answer(-s $upload->path) if $path eq '/take';
    note("$$ " . (-s $upload->path) . ' ' . $upload->path);
    sleep 1 while 1;    # it is killed
};
