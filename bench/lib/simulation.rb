# frozen_string_literal: true

require "json"
require "open3"
require_relative "peers"

module Bench
  # Placement of requests, simulated: bench/simulation/simulation.c for one trace after another, each played under every
  # rule. For bench/simulate.
  class Simulation
    RULES = %w[random round-robin least two-choices idle ours ours-new].freeze
    BALANCERS = %w[random round-robin least two-choices idle weights agent agent-least].freeze
    AGENTS = %w[agent agent-least].freeze # weights as `agent` tells them
    INFORMED = %w[least two-choices idle weights].freeze # those that look at how machines stand
    SERVICES = %w[constant exponential pareto mix].freeze
    ARRIVALS = %w[poisson bursty].freeze
    LOADS = [0.5, 0.8, 0.95].freeze
    WORKERS = [2, 4, 8, 16, 32, 64, 128, 256, 512].freeze
    MACHINES = [1, 3, 10, 100, 1000].freeze
    MACHINE_WORKERS = 4
    INFORM_MS = 1000
    AGENT_MS = 2000
    REQUESTS = 200_000
    REQUESTS_A_WORKER = 300 # at least, so that a run takes several reports of a machine
    AGENT_REQUESTS_A_WORKER = 2000 # … and several times what an agent's weight follows from, ten seconds
    WORKER_FLAGS = { machines: "-m", workers: "-n", load: "-l", arrivals: "-a", service: "-s", requests: "-c", seed: "-e", connections: "-k",
                     inform_ms: "-i", trace: "-f", wake_us: "-w", handoff_us: "-h", clients: "-q", room: "-o" }.freeze
    # Of a line that simulation.c prints: what a run's header says already.
    SAID_ONCE = %w[seed count offered].freeze

    class Failed < StandardError; end

    def self.program = Peers.compiled("simulation", "bench/simulation/simulation.c", "-lm")

    # One trace under some rules: an array of hashes, a pair of balancer and rule each.
    # rules:, balancers: names; the others as WORKER_FLAGS.
    def self.run(rules:, balancers: ["random"], **setup)
      flags = setup.compact.flat_map { |name, value| [WORKER_FLAGS.fetch(name), value.to_s] }
      output, errors, status = Open3.capture3(program, "-r", rules.join(","), "-b", balancers.join(","), *flags)
      raise Failed, errors.strip unless status.success?

      output.lines.map { |line| JSON.parse(line) }
    end

    # What a whole run plays: setups for `run`, smaller ones with quick.
    def self.plan(seed:, quick: false)
      requests = quick ? REQUESTS / 10 : REQUESTS
      workers, machines = quick ? [[2, 16, 128], [1, 10]] : [WORKERS, MACHINES]
      one = ARRIVALS.product(SERVICES, LOADS, workers).map do |arrivals, service, load, count|
        { rules: RULES, workers: count, load: load, arrivals: arrivals, service: service, requests: requests, seed: seed }
      end
      one + machines.product(LOADS).flat_map { |count, load| fleet(count, load, requests, seed) }
    end

    # Machines behind a balancer that knows how they stand, and behind one that hears of it now and then.
    def self.fleet(count, load, requests, seed)
      known = { rules: %w[ideal ours], machines: count, workers: MACHINE_WORKERS, load: load, arrivals: "poisson", service: "exponential",
                requests: [requests, REQUESTS_A_WORKER * count * MACHINE_WORKERS].max, seed: seed }
      return [known.merge(balancers: ["random"])] if count == 1

      agents = known.merge(balancers: AGENTS, inform_ms: AGENT_MS, rules: ["ours"],
                           requests: [requests, AGENT_REQUESTS_A_WORKER * count * MACHINE_WORKERS].max)
      [known.merge(balancers: BALANCERS - ["weights"] - AGENTS, inform_ms: 0), known.merge(balancers: INFORMED, inform_ms: INFORM_MS), agents]
    end

    # What a setup costs, in requests placed; for the time that is left.
    def self.cost(setup) = setup[:requests] * setup[:rules].size * (setup[:balancers] || [1]).size

    # Plays the plan; yields the share that is done, what comes next, and gives all lines, slimmed.
    def self.play(plan)
      total = plan.sum { |setup| cost(setup) }
      done = 0
      plan.flat_map do |setup|
        yield done.to_f / total, setup
        run(**setup).map { |line| slim(line) }.tap { done += cost(setup) }
      end
    end

    def self.slim(line) = line.except(*SAID_ONCE).transform_values { |value| value.is_a?(Float) ? value.round(3) : value }
  end
end
