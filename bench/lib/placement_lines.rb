# frozen_string_literal: true

# bench/placement as a command of bench/run: its figures as result lines (bench/lib/workload.rb), within BENCH_SECONDS.
require "json"
require_relative "../placement"

module Bench
  # metric of bench/placement => what the report calls it
  PLACEMENT_METRICS = { mean_wait_ms: "mean wait", p99_wait_ms: "p99 of the wait", p99_ms: "p99" }.freeze
  # Beside the load itself: starting, warming up, waiting for the last answers.
  PLACEMENT_COST_S = 4
  # With the servers that --quick has.
  PLACEMENT_KEYS = { "oribi" => %w[oribi oribi-alone], "puma" => %w[puma puma5], "puma-cluster" => %w[puma puma5], "unicorn" => %w[unicorn],
                     "oribi-psgi" => %w[oribi-psgi oribi-psgi-alone] }.freeze

  asked = ENV.fetch("BENCH_SERVERS").split(",")
  keys = Placement::SERVERS.map(&:key) & asked.flat_map { |key| PLACEMENT_KEYS.fetch(key, [key]) }
  # Each is twice some seconds that cannot be fewer.
  keys &= %w[oribi puma5 oribi-psgi] if ENV["BENCH_QUICK"]
  loads = [keys.size, 1].max * Placement::LOADS.size
  seconds = (Integer(ENV.fetch("BENCH_SECONDS")) / loads - PLACEMENT_COST_S).clamp(2, 12)
  $stdout.sync = true

  Placement.measure(keys: keys, seconds: seconds) do |found|
    # Oribi is the one that the other workloads have; the others run here with four workers, and have a name that says so.
    key = Placement::SERVERS.find { |one| one.name == found[:server] }&.key
    server = %w[oribi oribi-psgi].include?(key) ? key : found[:server]
    errors = found[:errors].is_a?(Integer) ? found[:errors] : 1
    note = found[:errors].is_a?(String) ? found[:errors] : nil
    PLACEMENT_METRICS.each do |metric, words|
      values = [found[metric]].compact
      puts JSON.generate({ server: server, metric: "latency_ms", variant: "#{found[:load]}, #{words}", values: values, unit: "ms",
                           better: "lower", errors: errors, note: note }.compact)
    end
  end
end
