use strict;
use warnings;
use Digest::MD5 ();
use Oribi::Multipart;

# Uploads with multipart_stream: what they are, or the body as it came.

sub {
    my ($env) = @_;
    my @words;
    if ($env->{PATH_INFO} eq '/pid') {
        @words = $$;
    } elsif ($env->{PATH_INFO} eq '/whole') {
        local $/;
        my $input = $env->{'psgi.input'};
        @words = Digest::MD5::md5_hex(scalar <$input>);
    } else {
        my $parser = Oribi::Multipart->new;
        $parser->register('multipart/form-data', 'Oribi::Multipart::MultiPart');
        my ($params, $uploads) = $parser->parse($env);
        for (my $i = 0; $i < @$params;  $i += 2) { push @words, "$params->[$i]=$params->[$i + 1]" }
        for (my $i = 0; $i < @$uploads; $i += 2) { push @words, "$uploads->[$i]:$uploads->[$i + 1]{filename}:$uploads->[$i + 1]{size}" }
    }
    return [200, ['Content-Type' => 'text/plain'], [join ' ', sort @words]];
};
