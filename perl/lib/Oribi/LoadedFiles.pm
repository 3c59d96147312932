package Oribi::LoadedFiles;
use strict;
use warnings;
use Config ();
use Cwd ();
use File::Basename ();

our $VERSION = '0.100';

# The files that an application was loaded from, which the supervisor watches in development. Perl's own library,
# modules that are installed and this server do not count.

my @LIBRARIES = map {"$_/"} grep { defined && length } @Config::Config{qw(privlibexp archlibexp sitelibexp sitearchexp vendorlibexp vendorarchexp)},
    '/etc/perl', (map {"$_/lib/perl5"} split /:/, $ENV{PERL_LOCAL_LIB_ROOT} // ''), File::Basename::dirname(__FILE__);

# `tell` takes the list; `named` are the application's file and the configuration file.
sub new {
    my ($class, $tell, @named) = @_;
    return bless { tell => $tell, named => [grep { defined && length } @named], count => 0 }, $class;
}

# Names the files. `error`: what kept the application from loading; the files that it speaks of count too.
sub tell_all {
    my ($self, $error) = @_;
    $self->{count} = keys %INC;
    my @paths = (@{ $self->{named} }, (grep { defined && !ref } values %INC), $self->_of_error($error));
    my $here = Cwd::getcwd() // '/';
    my %paths;
    for my $path (@paths) {
        $path = "$here/$path" if $path !~ m{\A/};
        1 while $path =~ s{/\./}{/} || $path =~ s{/[^/]+(?<!/\.\.)/\.\./}{/};
        $paths{$path} = 1 if !grep { index($path, $_) == 0 } @LIBRARIES;
    }
    $self->{tell}->(join '', map {"$_\0"} sort keys %paths);
    return;
}

# The same, where a call has loaded more.
sub around {
    my ($self, $app) = @_;
    return sub {
        my $response = $app->(@_);
        $self->tell_all if keys %INC != $self->{count};
        return $response;
    };
}

# The file of a mistake stands in the message alone, and is in %INC with no value where it did not compile.
sub _of_error {
    my ($self, $error) = @_;
    return if !defined $error;
    my $text = eval {"$error"} // '';
    my @paths = $text =~ / at (\S+) line \d+/g;
    return grep { -f || m{\A/} } @paths;
}

1;

__END__

=head1 NAME

Oribi::LoadedFiles - names the files that an application was loaded from

=head1 DESCRIPTION

Part of L<Oribi>; see C<dev> in L<oribi-psgi>.

=cut
