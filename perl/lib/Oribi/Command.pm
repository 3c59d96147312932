package Oribi::Command;
use strict;
use warnings;
use Oribi ();
use Oribi::App ();
use Oribi::Supervisor ();
use Oribi::Settings ();

our $VERSION = '0.100';

# The command line: bin/oribi-psgi is a call of run().

my $DEFAULT_CONFIG = 'config/oribi.pl';

# Returns the exit code. What users do wrong is a line each on standard error and 1.
sub run {
    my (@argv) = @_;
    my $code = eval { _run(@argv) };
    return $code if defined $code;
    my @lines = Oribi::App::lines_of($@);
    Oribi::_start_failed(join "\n", @lines) or print STDERR map {"oribi-psgi: $_\n"} @lines;
    return 1;
}

sub _version {
    return 'oribi-psgi ' . Oribi::release() . " (Oribi $Oribi::VERSION, perl $^V)\ncompression: " . Oribi::Options->codings . "\nsystem calls: " . Oribi::Options->_layer . "\nfrontend: " . Oribi::Options->_frontend . "\n";
}

# -Mmodule, -Idir and -ecode are cuddled by old habit; the core's parser knows that for every short flag.
sub _run {
    my (@argv) = @_;
    return _control(@argv[1 .. $#argv]) if @argv && $argv[0] eq 'ctl';
    return _publish(@argv[1 .. $#argv]) if @argv && $argv[0] eq 'publish';
    return _import(@argv[1 .. $#argv]) if @argv && $argv[0] eq 'import';
    return _check_all(@argv[1 .. $#argv]) if @argv && $argv[0] eq 'check';
    return _init(@argv[1 .. $#argv]) if @argv && $argv[0] eq 'init';
    my $settings = Oribi::Settings->new;
    my $error = $settings->core->_parse(@argv);
    die "$error\n" if defined $error;
    my @command = Oribi::Supervisor::command_line();
    my $all = grep { $_ eq 'all' } @argv;
    @ARGV = ();    # the words are ours, and the application finds none of them
    return _say(Oribi::Options->help(scalar $all)) if $settings->is_on('help');
    return _say(_version()) if $settings->is_on('version');
    return _say(Oribi::Options->completion($settings->get('completion'))) if length $settings->get('completion');
    prepare($settings);
    return _say($settings->core->print) if $settings->is_on('print_config');
    return _check($settings) if $settings->is_on('check');
    return Oribi::Supervisor::serve($settings, undef, @command);
}

# oribi-psgi ctl: the core knows the words, and the configuration file the socket.
sub _control {
    my (@argv) = @_;
    my $settings = Oribi::Settings->new;
    my $command = $settings->core->_parse_control(@argv);
    return _say(Oribi::Options->control_help) if $settings->is_on('help');
    $settings->enter_dir;
    _find_control($settings) unless length $settings->get('control');
    return $settings->core->_control($command);
}

# oribi-psgi publish: the same, for a message. A second reading of the words changes no option.
sub _publish {
    my (@argv) = @_;
    my $settings = Oribi::Settings->new;
    $settings->core->_parse_publish(@argv);
    return _say(Oribi::Options->publish_help) if $settings->is_on('help');
    $settings->enter_dir;
    _find_control($settings, 'publish') unless length $settings->get('control');
    return $settings->core->_publish(@argv);
}

# Whoever has to stop a server need not mend its configuration file first: without it, the server is that of the folder,
# or that of the file's `control` if it stands before the mistake.
sub _find_control {
    my ($settings, $command) = @_;
    $command //= 'ctl';
    my $why;
    {
        local $@;
        $why = $@ unless eval { _read_config($settings); 1 };
    }
    return unless defined $why;
    my ($line) = split /\n/, $why;
    my $control = $settings->get('control');
    my $where = length $control ? $control : 'the server of this folder';
    print STDERR "oribi-psgi: $command: going on to $where, since the configuration file cannot be read: $line\n";
    return;
}

# oribi-psgi import: the modules are loaded for it alone.
sub _import {
    my (@argv) = @_;
    require Oribi::Import;
    return _say(Oribi::Import::run(@argv));
}

# oribi-psgi check: everything that is wrong or risky, and 1 when something is wrong.
sub _check_all {
    my (@argv) = @_;
    require Oribi::Check;
    my $settings = Oribi::Settings->new;
    my ($json, $strict) = $settings->core->_parse_check(@argv);
    return _say(Oribi::Options->check_help) if $settings->is_on('help');
    my ($text, $code) = Oribi::Check::report($settings, \&_read_config, $json, $strict);
    _say($text);
    return $code;
}

# oribi-psgi init: what was done before it failed is said as well.
sub _init {
    my (@argv) = @_;
    my ($text, $failure) = Oribi::Options->_init_files(@argv);
    _say($text);
    die "$failure\n" if defined $failure;
    return 0;
}

sub _read_config {
    my ($settings) = @_;
    my $config = $settings->get('config');
    $config = $DEFAULT_CONFIG if !length $config && -e $DEFAULT_CONFIG;
    $settings->read_file($config) if length $config;
    return;
}

# Working directory, configuration file, defaults.
sub prepare {
    my ($settings) = @_;
    $settings->enter_dir;
    _read_config($settings);
    $settings->finish;
    $ENV{PLACK_ENV} = $settings->get('env');
    return;
}

sub _say {
    my ($text) = @_;
    local $| = 1;
    print STDOUT $text;
    return 0;
}

sub _check {
    my ($settings) = @_;
    my $error = $settings->core->_check_files;
    die "$error\n" if defined $error;
    ($error, my $advice) = $settings->core->_check_certificates;
    die "$error\n" if defined $error;
    _say($advice);
    require Oribi::Check;
    my ($failure) = Oribi::Trial::run(sub { Oribi::Check::failure($settings) });
    die "$failure\n" if defined $failure;
    my $name = length $settings->get('eval') ? '-e' : $settings->core->app;
    return _say((defined $name ? $name : 'app.psgi') . ": application and configuration load\n");
}

1;

__END__

=head1 NAME

Oribi::Command - the oribi-psgi command

=head1 DESCRIPTION

Part of L<Oribi>; see L<oribi-psgi>.

=cut
