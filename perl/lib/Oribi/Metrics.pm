package Oribi::Metrics;
use 5.016;
use strict;
use warnings;
use Carp ();
use Oribi ();

our $VERSION = '0.100';
our @CARP_NOT = map {"Oribi::Metrics::$_"} qw(Metric Counter Gauge Histogram);

@Oribi::Metrics::Counter::ISA = @Oribi::Metrics::Gauge::ISA = @Oribi::Metrics::Histogram::ISA = ('Oribi::Metrics::Metric');

# Pointers into C: a new thread gets none of them.
sub Oribi::Metrics::Metric::CLONE_SKIP {1}

my %DECLARED;    # the one object for each name

for my $kind (qw(counter gauge histogram)) {
    no strict 'refs';
    *$kind = sub {
        my ($class, $name, $help, @options) = @_;
        Carp::croak("Oribi::Metrics->$kind(NAME, HELP, labels => [...])") if @options % 2 || !defined $help;
        my %options = @options;
        my ($labels, $buckets, $aggregate) = delete @options{qw(labels buckets aggregate)};
        Carp::croak('Oribi::Metrics: no option is called ' . (sort keys %options)[0]) if %options;
        my $metric = eval { _make($kind, $name, $help, $labels, $buckets, $aggregate) };
        Carp::croak($@ =~ s/ at \S+ line \d+\.?\n\z//r) unless $metric;
        return $DECLARED{ $metric->name } //= $metric;
    };
}

# Upper bounds of buckets.
sub linear_buckets {
    my ($class, $start, $width, $count) = @_;
    return [map { $start + $_ * $width } 0 .. $count - 1];
}

sub exponential_buckets {
    my ($class, $start, $factor, $count) = @_;
    return [map { $start * $factor**$_ } 0 .. $count - 1];
}

1;

__END__

=encoding utf8

=head1 NAME

Oribi::Metrics - metrics of the application's own, for Prometheus

=head1 SYNOPSIS

  use Oribi::Metrics;

  my $orders = Oribi::Metrics->counter('orders_total', 'Orders placed', labels => ['shop']);
  my $busy   = Oribi::Metrics->gauge('imports_under_way', 'Imports under way', aggregate => 'sum');
  my $times  = Oribi::Metrics->histogram('search_seconds', 'Time of a search', buckets => [0.01, 0.1, 1]);

  my $north = $orders->with(shop => 'north');

  my $app = sub {
      $orders->increment(labels => { shop => 'south' });
      $north->increment;    # faster: its place is found once
      $north->increment(by => 2);
      $busy->set(3);
      $times->observe(0.25);
      ...
  };

=head1 DESCRIPTION

Oribi's status listener (option C<status>) shows these metrics beside the server's own, at C</metrics> and
C</status.json>. All processes of the server share one value: it is exact even when a worker is killed, and outlives
workers, reloads and upgrades. A change is an atomic operation, without files and locks. A restart begins with 0
(F<monitoring.md>).

Metrics can be declared and changed anywhere: while the application is loaded, in calls, and in children that it forks.
Without Oribi the same code runs and keeps nothing; standard error says so once.

C<metrics_max> (1000) is the maximum of series; a series is a metric with one set of label values. Changes of further ones
are dropped: the log has a line for the first, and C<oribi_app_changes_dropped_total> counts them.

=head1 CLASS METHODS

They die for a name that Prometheus does not take, or that is already declared otherwise. Declared again in the same way, a
metric is the same object.

=head2 counter($name, $help, labels => [...])

What only goes up. Its samples end in C<_total>, whether or not the name does. Names have letters, digits, underscores
and colons, no digit first, and do not begin with C<oribi_>. Labels, at most eight, have the same but colons.

=head2 gauge($name, $help, labels => [...], aggregate => $word)

What goes up and down. The aggregate is what the gauge of several workers is:

=over 4

=item last

One value for all, which is the default: the last that any process has set. It stays when that process ends.

=item sum, max, min

Each worker has a value of its own, which goes with its worker: right for connections to a database or calls under way.
What is set while the application is loaded, before there are workers (C<preload>), is a part of its own, which stays. Each
worker that sets it takes one more series.

=back

=head2 histogram($name, $help, labels => [...], buckets => [...])

How values are distributed. Buckets are upper bounds, ascending, at most 32; the default is that of Prometheus' clients,
times in seconds from 0.005 to 10.

=head2 linear_buckets($start, $width, $count), exponential_buckets($start, $factor, $count)

References to arrays of such bounds.

=head1 METHODS

Methods die for a value that cannot be, as a counter's C<by> below 0, and for labels other than those declared. Values of
labels are text: characters, or bytes of UTF-8; a byte that is none becomes a question mark. All of one series have room
for 320 bytes together.

=head2 with($label => $value, ...)

The series with these values, an object of the same class. It appears in the metrics with the value 0.

=head2 increment(by => $number, labels => {...})

Of a counter or a gauge; by 1 if not told.

=head2 decrement(by => $number, labels => {...}), set($number, labels => {...})

Of a gauge.

=head2 observe($number, labels => {...})

Of a histogram.

=head2 get(labels => {...})

The value now, of all processes; of a gauge with a value for each worker, this worker's. Of a histogram: a reference to a
hash with the counts up to each bound, C<+Inf> and C<sum>.

=head2 name, help, type, labels

What was declared.

=head1 SEE ALSO

L<oribi-psgi>, L<Net::Prometheus>

=cut
