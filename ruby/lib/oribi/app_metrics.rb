# frozen_string_literal: true

module Oribi
  # Metrics of the application's own, which the status listener shows beside the server's: doc/monitoring.md. Values are
  # in memory that all processes of the server share; they outlive workers, reloads and upgrades. In another server they
  # are kept nowhere, and standard error says so once.
  #
  #   ORDERS = Oribi.counter(:orders_total, "Orders placed", labels: [:shop])
  #   ORDERS.increment(labels: {shop: "north"})
  #   NORTH = ORDERS.with(shop: "north") # faster: its place is found once
  #   NORTH.increment(by: 2)
  module Metrics
    @declared = {}

    class << self
      # @private the one object for each name; raises ArgumentError where the name was declared otherwise
      def declare(kind, name, help, labels, buckets: nil, aggregate: nil)
        metric = make(kind, name.to_s, help.to_s, Array(labels).map(&:to_s), buckets&.map { |bound| Float(bound) }, aggregate&.to_s)
        @declared[metric.name] ||= metric
      end

      # Upper bounds of +count+ buckets: start, start + width …
      # @return [Array<Float>]
      def linear_buckets(start:, width:, count:) = Array.new(count) { |i| Float(start) + (i * width) }

      # Upper bounds of +count+ buckets: start, start * factor …
      # @return [Array<Float>]
      def exponential_buckets(start:, count:, factor: 2) = Array.new(count) { |i| Float(start) * (factor**i) }
    end
  end

  class << self
    # Declares a counter, or gives the one that was declared so before. Its samples are called NAME_total.
    #
    # @param name [Symbol, String] letters, digits, underscores and colons; not beginning with oribi_
    # @param help [String] what it counts, in a few words
    # @param labels [Array<Symbol>] names of its labels, at most 8
    # @return [Metrics::Counter]
    # @raise [ArgumentError] for names that Prometheus does not take, or one that is declared otherwise
    def counter(name, help, labels: []) = Metrics.declare("counter", name, help, labels)

    # Declares a gauge. +aggregate+ is what one gauge of several workers is: +:last+, one value for all, the last that
    # was set; or +:sum+, +:max+, +:min+ of a value for each worker, which goes with its worker.
    #
    # @return [Metrics::Gauge]
    # @raise [ArgumentError] as #counter
    def gauge(name, help, labels: [], aggregate: :last) = Metrics.declare("gauge", name, help, labels, aggregate:)

    # Declares a histogram. +buckets+ are upper bounds, ascending, at most 32; without them those for times of requests
    # in seconds that other clients have.
    #
    # @return [Metrics::Histogram]
    # @raise [ArgumentError] as #counter
    def histogram(name, help, labels: [], buckets: nil) = Metrics.declare("histogram", name, help, labels, buckets:)
  end
end
