package Oribi::Import::Words;
use strict;
use warnings;
use Oribi ();
use Oribi::Import::Shell ();
use Oribi::Settings ();

our $VERSION = '0.100';

# What a configuration file is made of: settings that Oribi takes, with the name that they had, and comments. Names come
# from the core's tables; what it refuses becomes a comment with the reason.

sub new {
    my ($class, $path, $config) = @_;
    return bless { path => $path, config => $config, entries => [], place_of => {}, taken => 0, left => 0 }, $class;
}

my %TYPE = map { $_->{name} => $_->{type} } Oribi::Options->table;

# Does a flag of this name take a value, as far as the tables tell?
sub takes_value {
    my ($name) = @_;
    my $here = here($name);
    return $name !~ /\A(?:no|disable|enable)_/ && (!defined $here || ($TYPE{$here} || '') ne 'bool');
}

# The name of the option here, or undef.
sub here {
    my ($name) = @_;
    my $found = Oribi::Options->find($name);
    return $found if defined $found;
    return (Oribi::Options->find_foreign($name))[1];
}

# One setting: the words that it was, its name there, its value (undef for a switch), the name here where the caller
# knows better.
sub setting {
    my ($self, $words, $name, $value, $note) = @_;
    return $self->leave($words, 'a value that import cannot tell') if ref $value && !defined $$value;
    my ($server, $here, $advice) = defined Oribi::Options->find($name) ? () : _foreign($name);
    return $self->leave($words, $advice) if defined $server && !defined $here;
    my $option = Oribi::Options->find($name);
    $here = defined $option ? $option : $name unless defined $here;
    my $refusal = _refusal($here, $value);
    return $self->leave($words, $refusal) if defined $refusal;
    return $self->take($here, $value, join '; ', $words, grep {defined} $note);
}

# Also for a name with no_ or disable_ before it, where there is none of that here.
sub _foreign {
    my ($name) = @_;
    my @found = Oribi::Options->find_foreign($name);
    return @found if @found || $name !~ /\A(?:no|disable)_(.*)\z/s;
    @found = Oribi::Options->find_foreign($1);
    return @found && !defined $found[1] ? @found : ();
}

# An unknown value cannot be looked at before it is there.
sub _refusal {
    my ($here, $value) = @_;
    local $@;
    my $given = !defined $value ? 1 : ref $value ? undef : $value;
    return if eval { Oribi::Settings->new->set(file => $here, defined $given ? $given : _example($here)); 1 };
    chomp(my $text = $@);
    return $text =~ /\Aunknown option/ ? 'not an option that import knows' : $text;
}

sub _example {
    my ($here) = @_;
    my $type = $TYPE{$here} || '';
    return $type =~ /\A(?:count|size|time|range|bool)\z/ ? 1 : $here eq 'bind' ? ':9292' : '/x';
}

# Values of a list are kept together, at the first one's place.
sub take {
    my ($self, $here, $value, $note) = @_;
    my $source = !defined $value ? 1 : ref $value ? $$value : quoted($value);
    $self->{taken}++;
    if (($TYPE{$here} || '') eq 'list' && defined(my $place = $self->{place_of}{$here})) {
        push @{ $self->{entries}[$place]{values} }, $source;
        push @{ $self->{entries}[$place]{notes} }, $note;
        return;
    }
    if (defined(my $place = $self->{place_of}{$here})) {
        $self->{entries}[$place]{values} = [$source];    # the last one counts, as on command lines
        push @{ $self->{entries}[$place]{notes} }, $note;
        return;
    }
    $self->{place_of}{$here} = @{ $self->{entries} };
    push @{ $self->{entries} }, { name => $here, values => [$source], notes => [$note] };
    return;
}

sub has { my ($self, @names) = @_; return scalar grep { defined $self->{place_of}{$_} } @names }

sub leave {
    my ($self, $words, $reason) = @_;
    $self->{left}++;
    push @{ $self->{entries} }, { comment => "Not taken over: $reason", kept => $words };
    return;
}

sub remark {
    my ($self, $text) = @_;
    push @{ $self->{entries} }, { comment => $text };
    return;
}

# A comment of the file's author, as it stands.
sub said {
    my ($self, $text) = @_;
    push @{ $self->{entries} }, { said => $text };
    return;
}

# A comment about the other server, which began at this line of its file.
sub left_out {
    my ($self, $number) = @_;
    push @{ $self->{left_out} }, $number;
    return;
}

sub quoted {
    my ($text) = @_;
    return $text if $text =~ /\A(?:0|[1-9][0-9]{0,14})\z/;
    $text =~ s/([\\'])/\\$1/g;
    return "'$text'";
}

# A setting whose value is a word of a command line (undefined for a switch).
sub from_shell {
    my ($self, $was, $name, $word) = @_;
    return $self->setting($was, $name) unless defined $word;
    return $self->leave($was, 'only the shell can tell what that is') if Oribi::Import::Shell::runs($word);
    my $value = $self->value_of(Oribi::Import::Shell::plain($word));
    return $self->setting($was, $name, $value);
}

# $NAME, ${NAME}, ${NAME:-other} and $(NAME) as a reference to Perl's source text (to undef: in another form), any other
# text as it is.
sub value_of {
    my ($self, $text) = @_;
    return $text if !defined $text || $text !~ /\$/;
    my @parts;
    while ($text =~ /\G(?:\$(?:(\w+)|\{(\w+)(?::?-([^}\$]*))?\}|\((\w+)\))|([^\$]+))/gc) {
        my ($name, $other, $plain) = (defined $1 ? $1 : defined $2 ? $2 : $4, $3, $5);
        push @parts, defined $plain ? quoted_text($plain) : "(\$ENV{$name} // " . (defined $other ? quoted($other) : qq{die "$name is not set\\n"}) . ')';
    }
    return \undef if (pos $text || 0) < length $text;
    my $source = join ' . ', @parts;
    return \$source;
}

sub quoted_text { my ($text) = @_; $text =~ s/([\\'])/\\$1/g; return "'$text'" }

# The server's name, and the new command line, which may be undefined.
sub started {
    my ($self, $server, $command) = @_;
    @$self{qw(server command)} = ($server, $command);
    return $self;
}

# What else is to be done, one sentence each.
sub step { my ($self, $text) = @_; push @{ $self->{steps} }, $text; return }

sub counts {
    my ($self) = @_;
    my $left = $self->{left} ? ", $self->{left} left as " . ($self->{left} == 1 ? 'a comment' : 'comments') : '';
    return "$self->{taken} " . ($self->{taken} == 1 ? 'setting' : 'settings') . " taken over$left";
}

# The file's text.
sub text {
    my ($self) = @_;
    my $keep =
        $self->{config} eq 'config/oribi.pl'
        ? "Keep it as $self->{config}, which oribi-psgi reads by itself, and try it: oribi-psgi check"
        : "Try it: oribi-psgi check --config $self->{config}";
    my $text = "# Configuration of Oribi, made by `oribi-psgi import` from $self->{path} ($self->{server}).\n# "
        . $self->counts . ($self->{left} ? ": look for \"Not taken over\".\n" : ".\n") . join '', _comment($keep, '# ');
    $text .= '# Start: ' . $self->{command} =~ s/\n/\n#   /gr . "\n" if defined $self->{command};
    $text .= join '', map { _comment($_, '# ') } @{ $self->{steps} || [] };
    $text .= "\n+{\n";
    $text .= _entry($_) for @{ $self->{entries} };
    my @out = @{ $self->{left_out} || [] };
    my ($comments, $lines) = @out == 1 ? ('comment', 'line') : ('comments', 'lines');
    $text .= join '', "\n", _comment('Left out: ' . @out . " $comments about $self->{server} ($lines " . join(', ', @out) . ').') if @out;
    return "$text}\n";
}

sub _entry {
    my ($entry) = @_;
    return "    # $entry->{said}" =~ s/\s+\z//r . "\n" if defined $entry->{said};
    if (!defined $entry->{name}) {
        my $kept = $entry->{kept};
        return join '', _comment($entry->{comment}), defined $kept ? map {"    #   $_\n"} split /\n/, $kept : ();
    }
    my @values = @{ $entry->{values} };
    my $value = @values > 1 ? '[' . join(', ', @values) . ']' : $values[0];
    return join '', (map { _comment($_) } @{ $entry->{notes} }), "    $entry->{name} => $value,\n";
}

sub _comment {
    my ($text, $start) = @_;
    $start = '    # ' unless defined $start;
    $text =~ s/\s+/ /g;
    my @lines;
    push @lines, "$start$1\n" while $text =~ /\G\s*(\S.{0,110}(?=\s|\z)|\S+)/gc;
    return @lines;
}

1;

__END__

=head1 NAME

Oribi::Import::Words - the configuration file that import makes

=head1 DESCRIPTION

Part of L<Oribi>; see C<oribi-psgi import> in L<oribi-psgi>.

=cut
