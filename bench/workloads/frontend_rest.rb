# frozen_string_literal: true

require_relative "../lib/certificate"
require_relative "../lib/idle_connections"
require_relative "../lib/open_loop"
require_relative "../lib/placement"
require_relative "../lib/tls_clients"
require_relative "../lib/workload"

module Bench
  # What connections cost that say nothing: the memory of all processes with them, less that without. The kernel's is in
  # no process.
  class FrontendIdle < Workload
    register "frontend-idle", about: "memory of a silent connection over TLS, after one answer", family: "frontend", weight: 3, quick: false

    SERVERS = %w[oribi-tls oribi-psgi-tls nginx-oribi-tls h2o-oribi-tls haproxy-oribi-tls].freeze
    PROTOCOLS = { "h1" => "HTTP/1.1", "h2" => "HTTP/2" }.freeze
    COUNT = 10_000
    FEW = 4000
    # A server gives up memory some time after the last answer.
    REST_S = 4
    WARM_S = 1
    # What a connection takes to come, as a rule.
    CONNECTION_S = 0.0015

    def results
      servers(:frontend, :frontend_psgi, only: SERVERS).each do |peer|
        PROTOCOLS.each do |protocol, words|
          progress("#{peer.name}, #{words}")
          yield result(peer, "idle_kb_per_connection", [kilobytes(peer, protocol)], unit: "KB", better: "lower", variant: words, note: "of #{count}")
        rescue Running::Failed, RuntimeError => e
          yield result(peer, "idle_kb_per_connection", [], unit: "KB", better: "lower", variant: words, errors: 1, note: e.message)
        end
      end
    end

    private

    # Fewer where time is short, and not more than this machine's limit of open files lets one process hold.
    def count
      @count ||= begin
        room = share_s / (SERVERS.size * PROTOCOLS.size) - REST_S - WARM_S - Throughput::START_COST_S * 4
        [IdleConnections.possible(COUNT), [(room / CONNECTION_S).floor, FEW].max].min
      end
    end

    # Requests of a few connections come first: what a server makes once, and as it works, is not theirs.
    def kilobytes(peer, protocol)
      running = Running.new(peer, context, app: HELLO_APPS.fetch(FrontendPeers::APPS.fetch(peer.kind))).start
      Wrk.new(context, Request.new, connections: 8, scheme: "https").run(running.listen, WARM_S)
      running.settled_memory(1)
      TlsClients.holding(context, running.listen, protocol, 10) do
        before = pss_mb(running)
        TlsClients.holding(context, running.listen, protocol, count) do
          sleep REST_S
          (pss_mb(running) - before) * 1024 / count
        end
      end
    ensure
      running&.stop
    end

    def pss_mb(running) = running.memory.sum(&:pss_mb)
  end

  # What a request waits with a frontend, beyond what it waits without one: calls of 20 ms on average, four workers, the
  # same arrivals and calls for both, open loop (bench/placement).
  class FrontendWait < Workload
    register "frontend-wait", about: "four workers, calls of 20 ms, open loop: the wait through a frontend beside plain listeners",
          family: "frontend", weight: 3,
                          quick: false

    PAIRS = [%w[oribi oribi-frontend], %w[oribi-psgi oribi-psgi-frontend]].freeze
    SECONDS = 2..12
    # Beside the load: its warming up, and the last answers.
    COST_S = 2.5
    START_S = 3

    def results(&block)
      pairs = PAIRS.map { |pair| pair.map { |key| context.peers.find { |peer| peer.key == key } } }.select(&:all?)
      pairs.each { |pair| measure(pair, share_s / pairs.size, &block) }
    end

    private

    def measure(pair, share)
      rounds = context.rounds_min
      seconds = ((share - 2 * START_S) / (2 * rounds) - COST_S).clamp(SECONDS)
      waits = with(pair) { |runnings| Array.new(rounds) { |round| of_round(runnings, seconds, round) } }.transpose
      pair.zip(waits) do |peer, values|
        yield result(peer, "latency_ms", values, unit: "ms", better: "lower", variant: "mean wait", rounds: rounds, seconds: seconds.round(1) * rounds)
      end
      beyond = waits[1].zip(waits[0]).map { |through, plain| through - plain }
      yield result(pair[1], "latency_ms", beyond, unit: "ms", better: "lower", variant: "mean wait, beyond plain listeners")
    rescue Running::Failed, SystemCallError, RuntimeError => e
      yield result(pair[1], "latency_ms", [], unit: "ms", better: "lower", variant: "mean wait", errors: 1, note: e.message)
    end

    # On all cores, as bench/placement has it.
    def with(pair)
      runnings = pair.map do |peer|
        app = Placement::APP.fetch(FrontendPeers::APPS.fetch(peer.kind, peer.kind))
        Running.new(peer, context, app: app, workers: Placement::WORKERS, pinned: false).start
      end
      yield runnings
    ensure
      runnings&.each(&:stop)
    end

    # Each round has other arrivals, and both servers the same; who is first changes.
    def of_round(runnings, seconds, round)
      load = Placement::LOADS.first
      order = round.even? ? [0, 1] : [1, 0]
      order.map { |index| [index, mean_wait(runnings[index], load, seconds, Placement::SEED + round)] }.sort.map(&:last)
    end

    def mean_wait(running, load, seconds, seed)
      progress(running.peer.name)
      found = OpenLoop.new(context, pinned: false).series(running.listen, rate: load.rate, seconds: seconds, connections: Placement::CONNECTIONS,
                                                                          warm_s: Placement::WARM_S, paths: load.paths, seed: seed,
                                                                          servers: Placement::WORKERS)
      time, wait = %w[time wait].map { |what| found[["all", what]] }
      raise "#{running.peer.name}: #{time ? "#{time.errors} requests without an answer" : "too far behind"}" unless time&.any? && time.errors.zero?

      wait.mean
    end
  end
end
