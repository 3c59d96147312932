package Plack::Handler::Oribi;
use strict;
use warnings;
use Oribi ();

our $VERSION = '0.100';

sub new {
    my ($class, %options) = @_;
    return bless { options => \%options }, $class;
}

# A loader that builds the application later leaves its builder in us.
sub run {
    my ($self, $app) = @_;
    my ($said, $launcher) = _sort_out(%{ $self->{options} });
    if ($self->{psgi_app_builder}) {
        $said->{psgi_app_builder} = $self->{psgi_app_builder};
        $said->{preload} = 'off';
    }
    my $server = Oribi->new(%$said);
    # plackup has an access log of its own
    my $settings = $server->{settings}->set_all(launcher => access_log => 'off', %$launcher);
    $settings->set(environment => env => $_) for grep {defined} _framework_env();
    return $server->run($app);
}

# plackup gives an address twice, as host and port and as listen, and its own port where its user has given none: that
# one must not win over the configuration file. Returns what the user has said, and plackup's defaults.
sub _sort_out {
    my (%said) = @_;
    my %launcher;
    my ($host, $port, $listen) = @said{qw(host port listen)};
    $host = '' unless defined $host;
    if ($listen && @$listen == 1 && defined $port && $listen->[0] eq "$host:$port" && !_flag(qw(l listen))) {
        delete @said{qw(listen socket)};
        $launcher{host} = '0.0.0.0';
        $launcher{port} = delete $said{port} if $port eq '5000' && !_flag(qw(p port));
    } elsif ($listen && @$listen) {
        delete @said{qw(host port socket)};
    }
    return \%said, \%launcher;
}

# Has the user of plackup given one of these flags?
sub _flag {
    my $names = join '|', @_;
    return scalar grep {/\A--?(?:$names)(?:=|\z)/} @ARGV;
}

# plackup sets PLACK_ENV to development where neither option nor variable is set; the framework's own variable
# knows better.
sub _framework_env {
    my $frame = 0;
    while (my $package = caller $frame++) {
        next unless $package eq 'Plack::Runner';
        return if ($ENV{PLACK_ENV} || '') ne 'development' || _flag(qw(E env));
        return (grep { defined && length } @ENV{qw(DANCER_ENVIRONMENT MOJO_MODE)})[0];
    }
    return;
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

Flags win over the configuration file (F<config/oribi.pl>, or C<--config FILE>), and the file over what C<plackup> fills in by itself: port 5000 on
every address. C<PORT> in the environment is weaker than the file. Where C<plackup> has found no environment and means C<development>,
C<DANCER_ENVIRONMENT> and C<MOJO_MODE> are asked.

The access log is plackup's own, C<--access-log FILE>. C<USR1> does not open it anew, and C<access_log_format> does not
concern it: rotate it with C<HUP>, or set C<access_log> in F<config/oribi.pl>, which is the server's. The application is loaded by C<plackup> and shared by all workers. With C<-L Delayed> each worker loads it for itself, after the fork.

=head1 SEE ALSO

L<Oribi>, L<oribi-psgi>, L<Plack::Runner>

=cut
