# frozen_string_literal: true

require_relative "../lib/placement"
require_relative "../lib/workload"

module Bench
  # What requests wait behind long calls, with four workers: bench/placement as one workload of many.
  class PlacementWorkload < Workload
    register "placement", about: "four workers, calls of 20 ms and a mix of 1 ms and 500 ms, open loop", weight: 4

    METRICS = { mean_wait_ms: "mean wait", p99_wait_ms: "p99 of the wait", p99_ms: "p99" }.freeze
    # Beside the load itself: starting, warming up, waiting for the last answers.
    COST_S = 4
    SECONDS = 2..12
    # Each is twice some seconds that cannot be fewer.
    QUICK = %w[oribi puma-cluster oribi-psgi].freeze

    def results(&block)
      absent, present = peers.partition { |peer| Placement.missing(peer) }
      absent.each { |peer| yield of(peer, METRICS.values.first, [], note: Placement.missing(peer)) }
      seconds = (share_s / [present.size * Placement::LOADS.size, 1].max - COST_S).floor.clamp(SECONDS)
      Placement.new(context).measure(present, seconds: seconds) { |peer, found| figures(peer, found, &block) }
    end

    private

    # Whoever is asked for comes with its variants: with --quick Puma is asked for without its cluster.
    def peers
      asked = context.peers.map(&:key)
      Placement::PEERS.select { |peer| asked.intersect?([peer.key, *peer.variant_of]) && (!context.quick? || QUICK.include?(peer.key)) }
    end

    def figures(peer, found)
      reason = found[:errors].is_a?(String) ? found[:errors] : nil
      METRICS.each do |metric, words|
        yield of(peer, "#{found[:load]}, #{words}", [found[metric]].compact, errors: reason ? 1 : found[:errors], note: reason)
      end
    end

    # Oribi is the one that the other workloads have; the others are set up otherwise here, and have a name that says
    # so.
    def of(peer, variant, values, **more)
      server = %w[oribi oribi-psgi].include?(peer.key) ? peer : Placement.name_of(peer)
      result(server, "latency_ms", values, unit: "ms", better: "lower", variant: variant, **more)
    end
  end
end
