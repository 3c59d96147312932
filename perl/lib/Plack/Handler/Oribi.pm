package Plack::Handler::Oribi;
use strict;
use warnings;
use Oribi ();

sub new {
    my ($class, %options) = @_;
    return bless { options => \%options }, $class;
}

# plackup names the address twice, as host and port and as listen; a loader that builds the application later leaves its builder in us.
sub run {
    my ($self, $app) = @_;
    my %options = (access_log => 'off', %{ $self->{options} });    # plackup has an access log of its own
    delete @options{qw(host port socket)} if $options{listen} && @{ $options{listen} };
    if ($self->{psgi_app_builder}) {
        $options{psgi_app_builder} = $self->{psgi_app_builder};
        $options{preload} = 'off';
    }
    return Oribi->new(%options)->run($app);
}

1;

__END__

=head1 NAME

Plack::Handler::Oribi - runs a PSGI application with Oribi from plackup

=head1 SYNOPSIS

    plackup -s Oribi --workers 4 -E production app.psgi
    PLACK_SERVER=Oribi plackup --listen :5000 --listen /run/app.sock app.psgi

=head1 DESCRIPTION

Every option of L<oribi-psgi> may be given to C<plackup>, with two dashes and its value after C<=> or a blank: C<--call-timeout=20s>. Options
of Gazelle, Starlet, Starman and Monoceros are understood by their names there.

The access log is plackup's own, C<--access-log FILE>. The application is loaded by C<plackup> and shared by all workers. With C<-L Delayed> each worker loads it for itself, after the fork.

=head1 SEE ALSO

L<Oribi>, L<oribi-psgi>, L<Plack::Runner>

=cut
