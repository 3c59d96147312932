# frozen_string_literal: true

require "tmpdir"
require_relative "context"
require_relative "machine"
require_relative "placement"
require_relative "simulation"

module Bench
  # The model of our rules against the real server: it is driven as in bench/placement, and the arrivals and calls that
  # were recorded are played once more by the model. For bench/simulate --check.
  class SimulationCheck
    LOADS = { 0.5 => 100, 0.8 => 160 }.freeze # of four workers with calls of 20 ms => requests a second

    # keys: of Placement::PEERS.
    def initialize(keys, seconds)
      @peers = Placement::PEERS.select { |peer| keys.include?(peer.key) }
      @seconds = seconds
    end

    # A hash for each server and load; the machine, and what else it did, is in each.
    def run
      context = Context.new(peers: @peers, quick: false, rounds_min: 1)
      Dir.mktmpdir do |dir|
        @peers.product(LOADS.to_a).map do |peer, (load, rate)|
          yield peer.name, load
          measure(Placement.new(context), peer, load, rate, File.join(dir, "trace"))
        end
      end
    ensure
      context&.close
    end

    private

    def measure(placement, peer, load, rate, trace)
      wanted = Placement::Load.new(name: "sleep", text: "calls of 20 ms", paths: "/sleep/~20", rate: rate, of: "all")
      busy = File.read("/proc/loadavg").to_f
      series = placement.record(peer, wanted, seconds: @seconds, trace: trace)
      wait, least = %w[wait least].map { |what| series.fetch(["all", what]) }
      model = Simulation.run(rules: ["ours"], trace: trace, workers: Placement::WORKERS, connections: Placement::CONNECTIONS / Placement::WORKERS).first
      { bench: "simulate-check", server: peer.name, load: load, seconds: @seconds, count: wait.count, machine: Machine.line, load_average: busy,
        p50_ms: wait.at(50), mean_ms: wait.mean, p99_ms: wait.at(99), ideal_mean_ms: least.mean, ideal_p99_ms: least.at(99),
        model_mean_ms: model["mean_ms"], model_p99_ms: model["p99_ms"], model_ideal_mean_ms: model["ideal_mean_ms"],
        model_ideal_p99_ms: model["ideal_p99_ms"] }
    end
  end
end
