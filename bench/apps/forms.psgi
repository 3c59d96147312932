use strict;
use warnings;

# Reads one field of a form, of an upload, or one cookie, and answers with it: /form, /upload, /cookie. BENCH_LINE: with
# the one line that lets Oribi's core parse them.
use Plack::Request;

BEGIN {
    if ($ENV{BENCH_LINE}) {
        require Oribi::Plack;
        Oribi::Plack->import;
    }
}

my %texts = (
    '/form' => sub { $_[0]->parameters->{field_name_20} },
    '/cookie' => sub { $_[0]->cookies->{cookie_18} },
    '/upload' => sub { $_[0]->parameters->{field_20} . ' ' . $_[0]->uploads->{file}->size },
);

sub {
    my ($env) = @_;
    my $text = $texts{$env->{PATH_INFO}}->(Plack::Request->new($env));
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => length $text], [$text]];
};
