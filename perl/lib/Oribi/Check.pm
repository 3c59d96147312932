package Oribi::Check;
use strict;
use warnings;
use Oribi ();
use Oribi::App ();
use Oribi::Trial ();

our $VERSION = '0.100';

# oribi-psgi check: what the core finds of the machine and the settings, and here of configuration file, application and
# versions. A finding is five texts: "wrong" or "risk", id, what, why, what to do.

my $NO_START = 'The server does not start';
my $PLACK_LEAST = '1.0';

# Gives the report and the exit code. `$read_config` reads the configuration file.
sub report {
    my ($settings, $read_config, $json, $strict) = @_;
    my @findings = _aside(sub { _look($settings, $read_config) });
    my @versions = (
        'oribi-psgi' => Oribi::release(),
        'perl'       => sprintf('%vd', $^V),
        'plack'      => _plack_version() || 'missing',
        'codings'    => Oribi::Options->codings,
    );
    return Oribi::Options->_check_report($json, $strict, @versions / 2, @versions, @findings);
}

sub _look {
    my ($settings, $read_config) = @_;
    my @findings;
    my $configured = _configure(\@findings, sub { $settings->enter_dir });
    _configure(\@findings, sub { $read_config->($settings) }) if $configured;
    my $finished = $configured && _configure(\@findings, sub { $settings->finish });
    push @findings, $settings->core->_check_machine if $finished;
    push @findings, plack_finding(_plack_version());
    push @findings, _application($settings) if $finished;
    return @findings;
}

# Every mistake of the file is a finding.
sub _configure {
    my ($findings, $code) = @_;
    return 1 if eval { $code->(); 1 };
    push @$findings, wrong => configuration => $_, $NO_START, 'correct it: oribi-psgi --help, doc/options.md' for Oribi::App::lines_of($@);
    return 0;
}

# In a child, which an application may end.
sub _application {
    my ($settings) = @_;
    my @error = eval { Oribi::Trial::run(sub { failure($settings) }) };
    return (wrong => application => Oribi::App::first_line($@), $NO_START, 'see what it printed above; an application is not to end the process')
        if $@;
    return map { (wrong => application => $_, $NO_START, 'correct it') } @error;
}

# What keeps the application from loading, if something does.
sub failure {
    my ($settings) = @_;
    $ENV{PLACK_ENV} = $settings->get('env');
    return eval { Oribi::App::load($settings, undef); 1 } ? () : Oribi::App::first_line($@);
}

sub _plack_version { return eval { require Plack; Plack->VERSION } }

sub plack_finding {
    my ($version) = @_;
    my $todo = 'install a newer Plack';
    return (risk => plack => 'Plack is not installed', 'Applications in files and middleware need it', 'install Plack') unless defined $version;
    return if $version >= $PLACK_LEAST;
    return (wrong => plack => "Plack $version is older than $PLACK_LEAST", 'Its interface is another one, and calls fail', $todo);
}

# What files print while they are loaded goes to standard error: standard output has the report alone.
sub _aside {
    my ($code) = @_;
    open my $kept, '>&', \*STDOUT or return $code->();
    open STDOUT, '>&', \*STDERR or return $code->();
    my @result = $code->();
    { local $| = 1; print STDOUT '' }
    open STDOUT, '>&', $kept or die "standard output: $!\n";
    return @result;
}

1;

__END__

=head1 NAME

Oribi::Check - the command oribi-psgi check

=head1 DESCRIPTION

Part of L<Oribi>; see L<oribi-psgi/check>.

=cut
