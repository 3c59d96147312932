package Plack::Handler::Oribi::Pure;
use strict;
use warnings;
use Oribi::Pure ();

our $VERSION = '0.100';

sub new {
    my ($class, %options) = @_;
    return bless { options => \%options }, $class;
}

# plackup gives an address twice, as host and port and as listen. A loader that builds the application later leaves its
# builder in us.
sub run {
    my ($self, $app) = @_;
    my %said = %{ $self->{options} };
    my $listen = delete $said{listen};
    delete @said{qw(socket argv)};
    if ($listen && @$listen && !(@$listen == 1 && $listen->[0] eq join ':', map { $_ // '' } @said{qw(host port)})) {
        delete @said{qw(host port)};
        $said{bind} = $listen;
    }
    $said{host} = '0.0.0.0' if !$said{bind} && !length($said{host} // '');
    @said{qw(psgi_app_builder preload)} = ($self->{psgi_app_builder}, 'off') if $self->{psgi_app_builder};
    my $server = Oribi::Pure->new(%said);
    $server->{settings}->set(launcher => access_log => 'off');    # plackup has one of its own
    return $server->run($app);
}

1;

__END__

=head1 NAME

Plack::Handler::Oribi::Pure - runs a PSGI application with Oribi::Pure from plackup

=head1 SYNOPSIS

    plackup -s Oribi::Pure --workers 4 app.psgi

=head1 DESCRIPTION

Takes the options of L<Oribi::Pure>, with two dashes. The access log is plackup's own. The application is loaded by
C<plackup>, so that HUP starts new workers and loads nothing anew.

=head1 SEE ALSO

L<Oribi::Pure>, L<Plack::Handler::Oribi>

=cut
