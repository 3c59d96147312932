# frozen_string_literal: true

module Bench
  # What bench/run measures: one class a workload, in a file of bench/workloads/ (all of them are loaded), registered by
  # a name.
  #
  #     class Hello < Bench::Workload
  #       register "hello", about: "13 bytes over 32 kept-alive connections"
  #
  #       def results
  #         servers(:rack, :psgi).each do |peer|
  #           running = Running.new(peer, context, app: { rack: RUBY_APP, psgi: PERL_APP }).start
  #           ...
  #           yield result(peer, "requests_per_second", values, unit: "1/s", better: "higher")
  #         end
  #       end
  #     end
  #
  # A result is a hash; bench/run adds run, machine and time and writes one JSON line each to bench/results/run.jsonl:
  #
  #     workload:  the registered name
  #     server:    Peer#key, or another word where no peer is meant
  #     metric:    requests_per_second, cpu_us_per_request, latency_ms, memory_mb: one name where reports draw alike
  #     variant:   optional: "cold" and "warm", "2 workers": what differs within a workload
  #     values:    one figure a round; empty when nothing could be measured, and then `note` says why
  #     median:    of the values (result() works it out)
  #     unit:      "1/s", "µs", "ms", "MB", "s"
  #     better:    "higher" or "lower"
  #     errors:    count of wrong, missing or late answers; a result with errors is shown, and marked
  #     note:      what a reader must know: why it is missing, what was wrong first
  #     curve:     optional, of latency_ms: [[percentile, ms], ...]
  #
  # Time: `share_s` are the seconds that this workload was given out of the whole run, by its weight; it is to fit
  # itself into them, by fewer seconds a round first, then fewer rounds (never under context.rounds_min). Call
  # `progress` now and then; it shows the remaining time. Errors: a peer that cannot start, dies or answers wrong is a
  # result with errors or without values; an exception ends only this workload and becomes its note. Only Oribi's own
  # failures (server key oribi or oribi-psgi, errors above 0 or no values) make the exit code 1.
  class Workload
    @registered = {}

    class << self
      attr_reader :registered, :name_of, :about, :weight, :family

      # family: workloads of one heading in the report. weight: share of the whole time, beside the others. quick: part
      # of --quick.
      def register(name, about:, family: name, weight: 1.0, quick: true)
        raise ArgumentError, "two workloads named #{name}" if Workload.registered.key?(name)

        @name_of = name
        @about = about
        @family = family
        @weight = weight
        @quick = quick
        Workload.registered[name] = self
      end

      def quick? = @quick

      # The shortest and most asked for first; the others as their files are named.
      FIRST = %w[hello proxy latency bodies idle memory times].freeze

      def load_all
        paths = Dir[File.join(__dir__, "../workloads/*.rb")]
        paths.sort_by { |path| [FIRST.index(File.basename(path, ".rb")) || FIRST.size, path] }.each { |path| require path }
      end

      def median(values)
        sorted = values.sort
        middle = sorted.size / 2
        return nil if sorted.empty?

        sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
      end
    end

    attr_reader :context, :share_s

    # context: see Context (bench/lib/context.rb): rounds_min, quick?, pinning, scratch folders, the servers asked for.
    def initialize(context, share_s:)
      @context = context
      @share_s = share_s
    end

    # Yields result hashes.
    def results
      raise NotImplementedError, "#{self.class.name_of} yields no results"
    end

    private

    # Peers of these kinds (:rack, :psgi, :reference, :plain) that --servers wants and that are installed, Oribi first.
    def servers(*kinds, only: nil) = context.peers.select { |peer| kinds.include?(peer.kind) && (only.nil? || only.include?(peer.key)) }

    def progress(text) = context.progress("#{self.class.name_of}: #{text}")

    def result(server, metric, values, unit:, better:, errors: 0, note: nil, **more)
      rounded = values.map { |value| value.is_a?(Float) ? value.round(value.abs < 10 ? 4 : 2) : value }
      { workload: self.class.name_of, server: server.respond_to?(:key) ? server.key : server, metric: metric, values: rounded,
        median: Workload.median(rounded), unit: unit, better: better, errors: errors, note: note, **more }.compact
    end
  end
end
