# frozen_string_literal: true

require "json"
require_relative "peers"

module Bench
  # bench/load/load for a round: requests that are due at times drawn in advance, each timed from when it was due.
  class OpenLoop
    # Times in ms. curve: [[percentile, ms], ...].
    Series = Struct.new(:count, :errors, :mean, :curve) do
      def any? = count.positive?
      def at(percentile) = curve.assoc(percentile)&.last
    end

    WARM_S = 0.3
    # A server that leaves requests without an answer would take this long after every round.
    QUICK_TAIL_S = 3

    def self.program = Peers.compiled("load", "bench/load/load.c", "-lm")

    # pinned: on the client's core.
    def initialize(context, pinned: true)
      @context = context
      @pinned = pinned
    end

    # The times of all requests; none, and an error, when the server was too far behind.
    def run(address, **options) = series(address, **options).fetch(%w[all time]) { Series.new(0, 1, 0.0, []) }

    # { [path or "all", "time", "wait", "ideal" or "least"] => Series }, as bench/load/load.c tells of them; empty when
    # the server was too far behind.
    # paths: with shares and numbers to draw, as it takes them. servers: those of the one queue that "ideal" and "least"
    # come from. tail_s: how long answers are waited for after the end. trace: a file for arrivals and calls.
    def series(address, rate:, seconds:, connections:, warm_s: WARM_S, paths: "/", seed: nil, servers: nil, tail_s: nil, trace: nil)
      options = { "-r" => rate, "-c" => connections, "-d" => seconds.round(2), "-w" => warm_s, "-p" => paths, "-s" => seed, "-k" => servers, "-o" => trace,
                  "-t" => tail_s || (@context.quick? ? QUICK_TAIL_S : nil) }
      argv = [OpenLoop.program, address, *options.compact.flatten, "-j"].map(&:to_s)
      lines = IO.popen(@pinned ? @context.on_client_core(argv) : argv, err: @context.log, &:readlines)
      lines.map { |line| JSON.parse(line) }.to_h { |line| [line.values_at("path", "what"), Series.new(*line.values_at("count", "errors", "mean", "curve"))] }
    end
  end
end
