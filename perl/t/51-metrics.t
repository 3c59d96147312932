use strict;
use warnings;
use Test::More;
use Oribi::Metrics;

# The application's own metrics, without a server: what can be declared, what dies. The store is tested in C, a running
# server in e2e.

my $FILE = quotemeta __FILE__;

sub dies_ok(&$$) {
    my ($code, $words, $name) = @_;
    my $lived = eval { $code->(); 1 };
    ok !$lived, $name;
    like $@, qr/$words at $FILE line \d+\.?\n\z/, "$name: why and where";
    return;
}

sub dies {
    my ($words, $code) = @_;
    return dies_ok { $code->() } $words, $words;
}

my $orders = Oribi::Metrics->counter('perl_orders_total', 'Orders placed', labels => [qw(shop kind)]);
isa_ok $orders, 'Oribi::Metrics::Counter';
is_deeply [$orders->name, $orders->help, $orders->type, $orders->labels],
    ['perl_orders_total', 'Orders placed', 'counter', [qw(shop kind)]], 'a metric knows what was declared';
is(Oribi::Metrics->gauge('perl_users', 'Users')->type, 'gauge', 'a gauge');
is(Oribi::Metrics->histogram('perl_times', 'Times', buckets => [0.5, 1])->type, 'histogram', 'a histogram');

is(Oribi::Metrics->counter('perl_orders', 'Other words', labels => [qw(shop kind)]), $orders, 'declared again: the same object');
dies('there is a counter perl_orders with shop, kind already', sub { Oribi::Metrics->gauge('perl_orders', 'Orders') });
dies('"9" is no name of a metric.*', sub { Oribi::Metrics->counter('9', 'Help') });
dies('oribi_x: .* the server\'s own', sub { Oribi::Metrics->counter('oribi_x', 'Help') });
dies('no option is called label', sub { Oribi::Metrics->counter('perl_a', 'Help', label => []) });
dies('labels takes a reference to an array', sub { Oribi::Metrics->counter('perl_a', 'Help', labels => 'shop') });
dies('perl_a: a histogram\'s buckets have the label le', sub { Oribi::Metrics->histogram('perl_a', 'Help', labels => ['le']) });
dies('perl_a: aggregate takes last, sum, max or min, not "mean"', sub { Oribi::Metrics->gauge('perl_a', 'Help', aggregate => 'mean') });

my $small = Oribi::Metrics->counter('perl_small', 'Small', labels => ['shop']);
my $north = $small->with(shop => 'north');
ok !defined $north->increment, 'a series is changed';
$small->increment(by => 2, labels => { shop => "\x{263a}" });
is $north->with, $north, 'with, without labels';
my $these = 'perl_small: it has these labels, each with a value, and no others: shop';
dies($these, sub { $small->increment });
dies($these, sub { $small->increment(labels => { place => 1 }) });
dies($these, sub { $small->increment(labels => { shop => 1, place => 1 }) });
dies($these, sub { $small->increment(labels => { shop => undef }) });
dies($these, sub { $small->with });
dies('perl_small: this object takes no labels', sub { $north->with(shop => 1) });
dies('no option is called of', sub { $north->increment(of => 1) });
dies('options come in pairs.*', sub { $north->increment(1) });
dies('this is no number: x', sub { $north->increment(by => 'x') });
dies('perl_small: a counter only goes up.*', sub { $north->$_ }) for qw(decrement);
dies('perl_small: a counter only goes up.*', sub { $north->increment(by => -1) });
dies('perl_times: a histogram observes values', sub { Oribi::Metrics->histogram('perl_times', 'Times', buckets => [0.5, 1])->increment });

# Text of an object is Perl code, which may grow the stack that the arguments are on.
package Name {
    use overload '""' => sub { my @much = map { $_ } 1 .. 100_000; 'north' }, fallback => 1;
}
$small->increment(by => 1, labels => { shop => bless [], 'Name' });
$small->with(shop => bless [], 'Name')->increment(by => 1);

# Objects that are numbers, and tied variables, whose code may free the others.
package Number {
    use overload '0+' => sub { $_[0][0]->() }, fallback => 1;
    sub TIESCALAR { return $_[1] }
    sub FETCH     { return $_[0][0]->() }
}
sub number_is { my ($value) = @_; return bless [ref $value ? $value : sub {$value}], 'Number' }
my $level = Oribi::Metrics->gauge('perl_level', 'Level');
for my $value (2.5, '1e3', ' 7 ') {
    ok eval { $level->set(number_is($value)); 1 }, "an object that is $value";
}
dies('this is no number: x', sub { $level->set(number_is('x')) });
dies('this is no number: undef', sub { $level->set(number_is(undef)) });
dies('this is no number: ARRAY.*', sub { $level->set([]) });
dies('this is no number: Text=.*', sub { $level->set(bless [], 'Text') });
is eval { $level->set(number_is(sub { die "gone\n" })); 1 }, undef;
is $@, "gone\n", 'an object that dies';
my @read;
tie my $tied, 'Number', number_is(sub { push @read, 1; 5 });
$level->set($tied);
$north->increment(by => $tied);
$small->increment(labels => { shop => $tied });
$small->with(shop => $tied);
is scalar @read, 4, 'a tied variable is read each time, once';
tie my $nothing, 'Number', number_is(undef);
dies('this is no number: undef', sub { $level->set($nothing) });
dies($these, sub { $small->with(shop => $nothing) });
my %labels;
%labels = (shop => number_is(sub { %labels = (); 'x' }), kind => 'y' x 100);
$orders->increment(labels => \%labels);
is_deeply \%labels, {}, 'labels that go while they are read';
for my $bound ('x', undef, [], '') {
    dies('this is no number.*', sub { Oribi::Metrics->histogram('perl_b', 'B', buckets => [$bound]) });
}

is_deeply(Oribi::Metrics->linear_buckets(1, 2, 3), [1, 3, 5], 'linear buckets');
is_deeply(Oribi::Metrics->exponential_buckets(1, 10, 3), [1, 10, 100], 'exponential buckets');
is_deeply [sort keys %{ Oribi::Metrics->histogram('perl_times', 'Times', buckets => [0.5, 1])->get }], ['+Inf', '0.5', '1', 'sum'],
    'a histogram\'s buckets';

my $program = <<'PERL';
use Oribi::Metrics;
my $counter = Oribi::Metrics->counter('orders', 'Orders');
print STDERR "declared\n";
$counter->increment for 1 .. 3;
Oribi::Metrics->gauge('users', 'Users')->set(3);
my $pid = fork // die;
if (!$pid) { $counter->increment; exit 0 }
waitpid $pid, 0;
print STDERR $counter->get, "\n";
PERL
my @lines = do {
    open my $fh, '-|', "$^X " . join(' ', map {"-I$_"} grep { !ref } @INC) . " -we '" . ($program =~ s/'/'\\''/gr) . "' 2>&1" or die;
    <$fh>;
};
is shift @lines, "declared\n", 'nothing is said before the first change';
like shift @lines, qr/ warn: no Oribi server runs in this process yet: /, 'elsewhere nothing is kept';
is_deeply \@lines, ["0\n"], 'which is said once';

done_testing;
