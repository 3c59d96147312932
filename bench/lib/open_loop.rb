# frozen_string_literal: true

require "json"
require_relative "peers"

module Bench
  # bench/load/load for a round: requests that are due at times drawn in advance, each timed from when it was due.
  class OpenLoop
    Round = Struct.new(:count, :errors, :curve, keyword_init: true) do
      def any? = count.positive?
      def at(percentile) = curve.assoc(percentile).last
    end

    WARM_S = 0.3

    def self.program = Peers.compiled("load", "bench/load/load.c", "-lm")

    def initialize(context) = @context = context

    def run(address, rate:, seconds:, connections:, path: "/")
      argv = [OpenLoop.program, address, "-r", rate, "-c", connections, "-d", seconds.round(2), "-w", WARM_S, "-p", path, "-j"].map(&:to_s)
      lines = IO.popen(@context.on_client_core(argv), err: @context.log, &:readlines)
      all = lines.map { |line| JSON.parse(line) }.find { |line| line["path"] == "all" && line["what"] == "time" }
      return Round.new(count: 0, errors: 1, curve: []) unless all

      Round.new(count: all["count"], errors: all["errors"], curve: all["curve"])
    end
  end
end
