package Oribi::Settings;
use strict;
use warnings;
use Oribi ();
use Cwd ();
use Oribi::App ();
use Scalar::Util ();

our $VERSION = '0.100';

# Options of the core, which are text, and beside them what only Perl can hold: hooks, an application's builder, ready
# sockets.

# Name => the same hook under the names of other servers.
my %HOOK = (
    before_fork        => [],
    after_fork         => [],
    after_worker_ready => [],
    before_refork      => [],
    before_worker_exit => ['child_exit'],
    before_reload      => [],
    on_worker_exit     => ['after_exit'],
    server_ready       => [],
);
my %HOOK_OF = map { my $hook = $_; map { $_ => $hook } $hook, @{ $HOOK{$hook} } } keys %HOOK;

sub new {
    my ($class) = @_;
    return bless { core => Oribi::Options->_new, hooks => {}, sockets => [], hook_source => {} }, $class;
}

sub core { return $_[0]{core} }
sub get { return $_[0]{core}->get($_[1]) }
sub is_on { return $_[0]{core}->get($_[1]) eq 'on' }
sub list { return split /\n/, $_[0]{core}->get($_[1]) }

sub hook_names { return sort keys %HOOK }

# Options as a method call or plackup gives them: undefined values are not given, lists come as arrays.
sub set_all {
    my ($self, $source, @pairs) = @_;
    my %given = @pairs;
    if (defined $given{listen_sock}) {
        # A ready socket is what to listen on, whatever addresses its opener names beside it.
        delete @given{qw(bind listen host port socket)};
        @pairs = %given;
    }
    while (my ($name, $value) = splice @pairs, 0, 2) {
        $self->set($source, $name, $value) if defined $value;
    }
    return $self;
}

# Dies with one line for an unknown name or a bad value.
sub set {
    my ($self, $source, $name, $value) = @_;
    (my $plain = $name) =~ tr/-/_/;
    return $self->_set_hook($source, $HOOK_OF{$plain}, $plain, $value) if $HOOK_OF{$plain};
    return $self->_add_socket($value) if $plain eq 'listen_sock';
    return $self->_set_builder($value) if $plain eq 'psgi_app_builder';
    return $self->_set_words($source, $name, $value) if Oribi::Options->composed($plain);
    my @values = grep {defined} ref $value eq 'ARRAY' ? @$value : $value;
    for my $one (@values) {
        die "$name: a " . ref($one) . " reference is no value for this option\n" if ref $one && !Scalar::Util::blessed($one);
    }
    return $self unless @values;
    my $error = $self->{core}->set_values($source, $name, map {"$_"} @values);
    die "$error\n" if defined $error;
    return $self;
}

# An option whose word takes several arguments, as a value: a line, a list of lines, a list that ends with a hash of
# settings (the arguments of one word), or a list with the arguments of a word in each item:
# static => [['/assets', 'public/assets', cache => 'no-cache'], 'public'].
sub _set_words {
    my ($self, $source, $name, $value) = @_;
    my @items = grep {defined} ref $value eq 'ARRAY' ? @$value : $value;
    my $is_lists = grep { ref eq 'ARRAY' } @items;
    return $self->set_word($source, $name, @items) if !$is_lists && @items > 1 && ref $items[-1] eq 'HASH';
    return $self->set_word($source, $name, \@items) if @items && !$is_lists;
    $self->set_word($source, $name, ref $_ eq 'ARRAY' ? @$_ : $_) for @items;
    return $self;
}

# One word of the configuration file. Of the arguments for the core to compose, those that count by their place come
# first, then keywords with their values.
sub set_word {
    my ($self, $source, $name, @places) = @_;
    return $self->set($source, $name, @places == 1 ? $places[0] : \@places) if @places && !Oribi::Options->composed($name);
    my @settings = ref $places[-1] eq 'HASH' ? _pairs_of(pop @places) : splice @places, Oribi::Options->places($name, @places);
    my (@flat, $place);
    for my $value (@places) {
        push @flat, undef, undef, _argument_text($_), $place || 0 for ref $value eq 'ARRAY' && @$value ? @$value : $value;
        $place++;
    }
    while (my ($keyword, $value) = splice @settings, 0, 2) {
        next unless defined $value;
        my @values = ref $value eq 'HASH' ? _pairs_of($value) : map { (undef, $_) } ref $value eq 'ARRAY' ? @$value : $value;
        while (my ($key, $one) = splice @values, 0, 2) {
            push @flat, $keyword, $key, _argument_text($one), 0;
        }
    }
    my $error = Oribi::Options->composed($name) ? $self->{core}->set_arguments($source, $name, @flat) : $self->{core}->set_values($source, $name);
    die "$error\n" if defined $error;
    return $self;
}

sub _pairs_of { my ($hash) = @_; return map { ($_ => $hash->{$_}) } sort keys %$hash }

# Undefined for what is no text.
sub _argument_text { return defined $_[0] && (!ref $_[0] || Scalar::Util::blessed($_[0])) ? "$_[0]" : undef }

# What builds the application later builds it in each worker.
sub _set_builder {
    my ($self, $builder) = @_;
    $self->{psgi_app_builder} = $builder;
    return $self->set(command => preload => 'off');
}

# Code, or source text of a subroutine as plackup passes it.
sub _set_hook {
    my ($self, $source, $hook, $name, $value) = @_;
    if (!ref $value) {
        my $code = eval $value;    ## no critic: this is what the option is for
        die "$name: " . ($@ ? Oribi::App::first_line($@) : 'is no code reference') . "\n" if ref $code ne 'CODE';
        $value = $code;
    }
    die "$name: is no code reference\n" if (Scalar::Util::reftype($value) || '') ne 'CODE';
    my $rank = Oribi::Options->rank($source);
    return $self if ($self->{hook_source}{$hook} || 0) > $rank;
    $self->{hook_source}{$hook} = $rank;
    $self->{hooks}{$hook} = $value;
    return $self;
}

# A socket that listens already: kept open by us, found by the core through its number.
sub _add_socket {
    my ($self, $socket) = @_;
    my $fd = fileno $socket;
    die "listen_sock: is no open socket\n" unless defined $fd && $fd >= 0;
    push @{ $self->{sockets} }, $socket;
    return $self->set(command => bind => "fd://$fd");
}

# A Perl file that returns a hash reference of options and hooks; words stand before it, and the last of them may stand
# for an empty one. What the command line said wins. Dies with all mistakes of the file.
sub read_file {
    my ($self, $file) = @_;
    require File::Spec;
    my $path = File::Spec->rel2abs($file);
    die "config file $file: is a directory\n" if -d $path;
    if ($file =~ m{(?:\.(ru|rb)|\.ini|\.service|(?:\A|/)(?:Procfile|Dockerfile)[^/]*)\z}) {
        die "config file $file: is no file in Perl; `" . (defined $1 ? 'oribi' : 'oribi-psgi') . " import $file` makes Oribi's from another server's\n";
    }
    die "config file $file: cannot be read: $!\n" unless open my $fh, '<', $path;
    close $fh;
    my @mistakes;
    my $hash = do { local ($@, $!); my $value = Oribi::Words::read_file($self, $path, \@mistakes); $self->{file_error} = $@ || ''; $value };
    die "config file $file: " . Oribi::App::first_line($self->{file_error}) . "\n" if $self->{file_error};
    die "config file $file: does not return a hash reference\n" unless ref $hash eq 'HASH';
    my $line_of = _lines_of_names($path);
    for my $name (sort { ($line_of->{$a} || 0) <=> ($line_of->{$b} || 0) || $a cmp $b } keys %$hash) {
        next if eval { $self->set_all(file => $name, $hash->{$name}); $self->enter_dir if $name eq 'chdir'; 1 };
        push @mistakes, join(':', $path, grep {defined} $line_of->{$name}) . ': ' . Oribi::App::first_line($@);
    }
    die bless { lines => \@mistakes }, 'Oribi::Mistakes' if @mistakes;
    return $self;
}

# Changes to the directory that `chdir` names, once.
sub enter_dir {
    my ($self) = @_;
    my $error = $self->{core}->_enter_dir;
    die "$error\n" if defined $error;
    return $self;
}

# A hash does not know where it was written: the line is the first on which the name stands before a comma or a fat one.
sub _lines_of_names {
    my ($path) = @_;
    open my $fh, '<', $path or return {};
    my %line_of;
    while (my $line = <$fh>) {
        $line =~ s/(?:\A|\s)#.*//s;
        $line_of{$2} ||= $. while $line =~ /(?<![\w\$\@%>-])(['"]?)([\w-]+)\1\s*(?:=>|,)/g;
    }
    close $fh;
    return \%line_of;
}

# Line by line, as under perl -d; profilers do without.
my $PERLDB_LINE = 0x02;

# The documents: installed beside the modules, or of the source tree.
sub pages {
    require File::Spec;
    my @here = File::Spec->splitpath(File::Spec->rel2abs(__FILE__));
    my $dir = File::Spec->catpath(@here[0, 1], '');
    my @up = (File::Spec->updir) x 3;
    my ($found) = grep {-d} File::Spec->catdir($dir, 'doc'), File::Spec->catdir($dir, @up, 'doc'), File::Spec->catdir($dir, @up, File::Spec->updir, 'doc');
    return defined $found ? Cwd::realpath($found) : 'doc';
}

sub Oribi::Options::help { return $_[0]->_help(pages(), $_[1] // 0) }

# After this the options are final. Under the debugger no call has a deadline: its prompt may be a C library's, which no
# handler of Perl's interrupts.
sub finish {
    my ($self) = @_;
    $self->set(command => call_timeout => 0) if $^P & $PERLDB_LINE;
    my $error = $self->{core}->_finish;
    die "$error\n" if defined $error;
    my $child_exit = $self->get('child_exit');
    $self->_set_hook(file => before_worker_exit => child_exit => $child_exit) if length $child_exit && !$self->{hooks}{before_worker_exit};
    return $self;
}

# Runs a hook if there is one. One that dies is logged, nothing more.
sub run_hook {
    my ($self, @call) = @_;
    local ($@, $!);
    eval { $self->call_hook(@call); 1 } or Oribi::_log(3, Oribi::App::first_line($@));
    return;
}

# The same; dies with a line where the hook does.
sub call_hook {
    my ($self, $name, @arguments) = @_;
    my $hook = $self->{hooks}{$name} or return;
    eval { $hook->(@arguments); 1 } or die "hook $name died: " . Oribi::App::first_line($@) . "\n";
    return;
}

# Configuration files are read in this package: it has a function for each option and each hook whose name is not one
# of Perl's own functions, and bind, which no such file calls for its sockets. A function of another package's making
# stands before Perl's own there.
package Oribi::Words {
    our $VERSION = '0.100';
    our ($settings, $mistakes, $called);

    my %name = map { $_ => 1 } keys %HOOK_OF, map { $_->{name} } Oribi::Options->table;
    delete @name{qw(bind chdir eval require)};
    for my $name (keys %name) {
        no strict 'refs';    ## no critic: the file calls it by its name
        *$name = sub { _set($name, @_) };
    }

    # A mistake is noted with its line, and the file goes on. The value of a word is that of a file that ends with one.
    sub _set {
        my ($name, @arguments) = @_;
        my (undef, $file, $line) = caller 1;
        die "$name: is a word of the configuration file, and that has been read\n" unless $settings;
        $called = 1;
        local $@;
        eval { $settings->set_word(file => $name, @arguments); 1 } or push @$mistakes, "$file:$line: " . Oribi::App::first_line($@);
        return {};
    }

    # Returns what the file returns; $@ tells what ended it.
    sub read_file {
        local ($settings, $mistakes, $called) = (@_[0, 2], 0);
        my $value = do $_[1];
        return $called && ref $value ne 'HASH' ? {} : $value;
    }
}

{
    no warnings 'once';    ## no critic: files call it
    *Oribi::Words::bind = sub { Oribi::Words::_set('bind', @_) };
}

# More than one mistake at a time; as text, a line each.
package Oribi::Mistakes {
    our $VERSION = '0.100';
    use overload '""' => sub { join '', map {"$_\n"} @{ $_[0]{lines} } }, fallback => 1;
}

1;

__END__

=head1 NAME

Oribi::Settings - options and hooks of a server

=head1 DESCRIPTION

Part of L<Oribi>; see there for the options, the hooks and the configuration file.

=cut
