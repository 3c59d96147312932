use strict;
use warnings;
use Plack::Builder;

# Answers to be compressed, also behind the middleware that does the same or compares tags; compress.ru is its twin.

my $JSON = '[' . join(',', map { sprintf '{"id":%d,"name":"item %d","open":%s}', $_, $_, $_ % 2 ? 'false' : 'true' } 1 .. 600) . ']';
my @TEXT = ('Content-Type' => 'text/plain');
my @JSON_TYPE = ('Content-Type' => 'application/json');

sub handle {
    my ($path) = @_;
    open my $fh, '<', $path or die "$path: $!\n";
    return $fh;
}

# Each step waits until the test has seen the one before.
sub steps {
    my (@type) = @_;
    return sub {
        my $writer = $_[0]->([200, [@type]]);
        for my $i (0 .. 2) {
            $writer->write("step $i\n");
            select undef, undef, undef, 0.01 until -e "$ENV{E2E_DIR}/step$i";
        }
        $writer->close;
    };
}

my %PLAIN = (
    '/json'       => sub { [200, [@JSON_TYPE], [$JSON]] },
    '/large'      => sub { [200, [@TEXT], [$JSON x 20]] },
    '/image'      => sub { [200, ['Content-Type' => 'image/png'], [$JSON]] },
    '/cookie'     => sub { [200, [@TEXT, 'Set-Cookie' => 'a=b'], [$JSON]] },
    '/file'       => sub { [200, [@TEXT], handle($ENV{E2E_FILE})] },
    '/small-file' => sub { [200, [@TEXT], handle("$ENV{E2E_DIR}/small.txt")] },
    '/strong'     => sub { [200, [@JSON_TYPE, ETag => '"one"'], [$JSON]] },
    '/weak'       => sub { [200, [@JSON_TYPE, ETag => 'W/"one"'], [$JSON]] },
    '/steps'      => sub { steps(@TEXT) },
    '/events'     => sub { steps('Content-Type' => 'text/event-stream') },
);

my $app = sub {
    my ($env) = @_;
    return [200, [@TEXT], [defined $env->{HTTP_IF_NONE_MATCH} ? $env->{HTTP_IF_NONE_MATCH} : '']] if $env->{PATH_INFO} eq '/seen';
    my $plain = $PLAIN{ $env->{PATH_INFO} };
    return $plain ? $plain->() : [200, [@TEXT], ['Hello, World!']];
};

builder {
    enable 'Lint' if $ENV{E2E_LINT};
    mount '/deflater' => builder { enable 'Deflater', content_type => ['application/json', 'text/plain']; $app };
    mount '/conditional' => builder { enable 'ConditionalGET'; $app };
    mount '/' => $app;
};
