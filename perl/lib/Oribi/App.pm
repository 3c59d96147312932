package Oribi::App;
use strict;
use warnings;
use Scalar::Util ();

our $VERSION = '0.100';

our $failure;    # what an application died with while it was loaded, before it became a line; Oribi::Development shows it

# Loads the application that options and arguments name, and says in one line why that failed.

# What is worth reading of an exception: its first line, without the list of directories that were searched.
sub first_line {
    my ($error) = @_;
    my $text = eval {"$error"} // ref $error;
    my ($line) = grep {/\S/} split /\n/, $text;
    $line = 'unknown error' unless defined $line;
    $line =~ s/ \(\@INC (?:contains|entries checked):.*?\)(?= at )//;
    $line =~ s/\.\z//;
    return $line;
}

# All lines of mistakes that were found together, the first one of anything else.
sub lines_of {
    my ($error) = @_;
    return ref $error && Scalar::Util::blessed($error) && $error->isa('Oribi::Mistakes') ? @{ $error->{lines} } : first_line($error);
}

sub _is_code {
    my ($app) = @_;
    return 1 if (Scalar::Util::reftype($app) || '') eq 'CODE';
    return Scalar::Util::blessed($app) && overload::Method($app, '&{}');
}

sub _include_and_require {
    my ($settings) = @_;
    if (my @dirs = $settings->list('include')) {
        require lib;
        lib->import(@dirs);
    }
    for my $module ($settings->list('require')) {
        my ($name, @import) = split /[=,]/, $module;
        die "-r $name: is no name of a module; plackup's -r, which watches files, is not there\n" if $name !~ /\A\w+(?:::\w+)*\z/;
        eval "package main; require $name; $name->import(\@import); 1" or _failed("module $name", $@);
    }
    return;
}

sub _plack {
    eval { require Plack::Util; 1 } or die 'Plack is needed to load an application: ' . first_line($@) . "\n";
    return;
}

# As with plackup, the source is the inside of a builder block.
sub _from_source {
    my ($source) = @_;
    _plack();
    require Plack::Builder;
    eval 'package main; Plack::Builder->import; 1' or die $@;
    my $app = eval "package main; no strict; no warnings; builder { $source }";
    _failed('-e', $@) if $@;
    die "-e: the code does not give a code reference\n" unless _is_code($app);
    return $app;
}

sub _is_class { my ($file) = @_; return $file =~ /\A[A-Za-z0-9_:]+\z/ && !-e $file }

# Tells the operator of a wrong name before anything is started.
sub find {
    my ($settings, $app) = @_;
    return if _is_code($app) || $settings->{psgi_app_builder} || length $settings->get('eval');
    my $file = $app // $settings->core->app // 'app.psgi';
    die "$file: no such file" . ($file eq 'app.psgi' ? _hint() : '') . "\n" unless _is_class($file) || -e $file;
    return;
}

sub _from_file {
    my ($file) = @_;
    my $is_class = _is_class($file);
    die "$file: no such file" . ($file eq 'app.psgi' ? _hint() : '') . "\n" unless $is_class || -e $file;
    die "$file: is a directory\n" if -d $file;
    die "$file: is a rackup file: oribi serves those\n" if $file =~ /\.ru\z/;
    die "$file: cannot be read: $!\n" unless $is_class || open my $fh, '<', $file;
    _plack();
    my $app = eval { Plack::Util::load_psgi($file) };
    die "$file: is no PSGI application: " . first_line($@) . "\n" if $@ && !$is_class && !_may_be_perl($file);
    _failed($file, $@) if $@;
    die "$file: is a configuration file: give it with -C\n" if ref $app eq 'HASH';
    die "$file: returns no code reference, but " . (defined $app ? ref $app ? 'a reference to ' . ref $app : "'$app'" : 'nothing') . "\n"
        unless _is_code($app);
    return $app;
}

# By its name, or by the line for the shell; any other may be no program at all.
sub _may_be_perl {
    my ($file) = @_;
    return 1 if $file =~ /\.(?:psgi|pl|pm|cgi|fcgi|t)\z/ || $file !~ m{[^/]\.[^./]*\z};
    open my $fh, '<', $file or return 1;
    my $line = readline $fh;
    return defined $line && $line =~ /\A#!.*perl/;
}

# For whoever gave no file: frameworks have theirs in these places.
sub _hint {
    my ($there) = grep { -f } 'bin/app.psgi', 'script/app.psgi', glob('script/*');
    return '; start oribi-psgi in the folder of the application, or name its file: oribi-psgi ' . ($there // 'PATH/app.psgi');
}

# A module that is not there is the commonest reason of all, and Perl's own line about it is long.
sub _failed {
    my ($file, $error) = @_;
    $failure = $error;
    if (!ref $error) {
        $error =~ s/\AError while loading [^\n]*?: (?=\S)//;
        if ($error =~ /\ACan't locate (\S+)\.pm in \@INC.*? at (\S.*? line \d+)/s) {
            my ($module, $place) = ($1, $2);
            $module =~ s{/}{::}g;
            die "$file: the module $module is not installed ($place)\n";
        }
    }
    die "$file: " . first_line($error) . "\n";
}

# Gives the application's code; dies with one line. Sets what the application may look at.
sub load {
    my ($settings, $app) = @_;
    return $app if _is_code($app);
    return $settings->{psgi_app_builder}->() if $settings->{psgi_app_builder};
    $ENV{PLACK_ENV} = $settings->get('env');
    _include_and_require($settings);
    my $source = $settings->get('eval');
    return _from_source($source) if length $source;
    my $file = defined $app ? $app : $settings->core->app;
    return _from_file(defined $file ? $file : 'app.psgi');
}

1;

__END__

=head1 NAME

Oribi::App - loads a PSGI application

=head1 DESCRIPTION

Part of L<Oribi>. An application is a code reference, a F<.psgi> file, the name of a class that L<Plack::Util/load_psgi> knows how to load, or
source text as with C<plackup -e>.

=cut
