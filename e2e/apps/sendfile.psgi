use strict;
use warnings;

# Files that applications answer with and files that they only name; sendfile.ru is its twin.
use JSON::PP;
use Plack::App::File;
use Plack::Builder;
use Plack::Util;

my $FILES = $ENV{E2E_FILES};

# A body that the server may send straight from the file, and that must be closed.
package E2E::PathBody {
    sub new { my ($class, $path) = @_; open my $fh, '<:raw', $path or die "$path: $!"; bless { path => $path, fh => $fh }, $class }
    sub path    { $_[0]{path} }
    sub getline { readline $_[0]{fh} }
    sub close   { print {*STDERR} "closed $_[0]{path}\n" }
}

sub files { my ($name, @headers) = @_; [200, ['Content-Type' => 'text/plain', @headers], E2E::PathBody->new("$FILES/$name")] }

sub content { my ($env) = @_; open my $fh, '<:raw', "$FILES/$env->{QUERY_STRING}" or die; local $/; scalar readline $fh }

sub stream {
    my ($env) = @_;
    sub {
        my $writer = $_[0]->([200, ['Content-Type' => 'text/plain']]);
        my $text = content($env);
        $writer->write(substr $text, 0, 30_000, '') while length $text;
        $writer->close;
    };
}

sub unescaped { my ($text) = @_; $text =~ s/%([0-9a-f]{2})/chr hex $1/gei; $text }

sub named {
    my ($env) = @_;
    ['X-Named' => 'yes', $env->{HTTP_X_WAY} => unescaped($env->{QUERY_STRING}), 'Content-Length' => 4];
}

my $framework = eval {
    package Downloads;
    require Dancer2;
    Dancer2->import(appname => 'Downloads');
    set(logger => 'null');
    get('/' => sub { send_file("$FILES/a.txt", system_path => 1) });
    Downloads->to_app;
};

builder {
    mount '/to_path' => sub { files($_[0]{QUERY_STRING}) };
    mount '/tagged'  => sub { files($_[0]{QUERY_STRING}, ETag => '"v1"') };
    mount '/whole'   => sub { files($_[0]{QUERY_STRING}, 'Accept-Ranges' => 'none') };
    mount '/handle'  => sub { open my $fh, '<:raw', "$FILES/$_[0]{QUERY_STRING}" or die; [200, ['Content-Type' => 'text/plain'], $fh] };
    mount '/string'  => sub { [200, ['Content-Type' => 'text/plain'], [content($_[0])]] };
    mount '/stream'  => \&stream;
    mount '/named'   => sub { [200, named($_[0]), E2E::PathBody->new("$FILES/a.txt")] };
    mount '/middleware' => builder { enable 'XSendfile'; sub { files($_[0]{QUERY_STRING}) } };
    mount '/accel'      => builder { enable 'XSendfile', variation => 'X-Accel-Redirect'; sub { files($_[0]{QUERY_STRING}) } };
    mount '/static'     => builder { enable 'XSendfile'; Plack::App::File->new(root => $FILES)->to_app };
    mount '/deflated'   => builder { enable 'Deflater'; enable 'XSendfile'; sub { files($_[0]{QUERY_STRING}) } };
    mount '/framework'  => $framework if $framework;
    mount '/plain'      => sub { [200, named($_[0]), ['body']] };
    mount '/delayed'    => sub { my ($env) = @_; sub { $_[0]->([200, named($env), ['body']]) } };
    mount '/env' => sub { my ($env) = @_; [200, ['Content-Type' => 'application/json'], [encode_json({ map { ref $env->{$_} ? () : ($_ => "$env->{$_}") } keys %$env })]] };
    mount '/' => sub { [200, ['Content-Type' => 'text/plain'], ['Hello, World!']] };
};
