# frozen_string_literal: true

require_relative "../lib/open_loop"
require_relative "../lib/proxied"

# What a request waits, at a rate that every server here can carry: requests come when they are due, not when the last
# answer has come.
module Bench
  # Latency at a part of what the slowest of the servers takes. The bare loop is asked too: what it shows is the
  # machine's and the generator's own.
  class Latency < Throughput
    SHARE = 0.8
    CAPACITY_S = 1.0
    CONNECTIONS = 64
    # A pause of the machine of ten milliseconds is a whole percent of a second's requests: the middle one of several
    # rounds is without it.
    ROUNDS_MIN = 3
    SECONDS_MIN = 1.0
    QUICK_SECONDS_MIN = 0.5
    # Some servers leave connections without an answer for as long as others are busy: that is seen in three seconds as
    # well as in fifteen.
    TAIL_S = 3
    # Of a round's requests: a server that fails more of them is not asked again; it would take its time for nothing.
    ERRORS_MAX = 0.1

    private

    def measure(measured)
      @rate = rate_for(measured)
      @curves = Hash.new { |hash, one| hash[one] = [] }
      rounds, seconds = plan(measured.size)
      seconds -= OpenLoop::WARM_S
      if rounds < ROUNDS_MIN
        seconds *= rounds.to_f / ROUNDS_MIN
        rounds = ROUNDS_MIN
      end
      rounds.times do |round|
        measured.rotate(round % [measured.size, 1].max).each do |one|
          next if @curves[one].any? { |found| found.errors > errors_max(found) }

          progress("round #{round + 1} of #{rounds}, #{one.peer.name}, #{@rate} requests a second")
          # The same arrivals for all, others in the next round.
          @curves[one] << context.turn(one.running) do
            OpenLoop.new(context).run(address(one.running), rate: @rate, seconds: [seconds, seconds_min].max, connections: CONNECTIONS, seed: round + 1,
                                                            tail_s: TAIL_S)
          end
        end
      end
    end

    # With --quick there is no time to wait each round for answers that do not come.
    def errors_max(found) = context.quick? ? 0 : ERRORS_MAX * [found.count, 1].max
    def seconds_min = context.quick? ? QUICK_SECONDS_MIN : SECONDS_MIN

    # A server that takes almost nothing would make the rate meaningless for the others; it is measured at that rate
    # too, and shows it.
    def rate_for(measured)
      capacities = measured.reject { |one| one.peer.kind == :reference }.map { |one| load(one, CAPACITY_S).per_second }.sort
      return load(measured.first, CAPACITY_S).per_second * SHARE if capacities.empty?

      typical = Workload.median(capacities)
      (capacities.find { |capacity| capacity > typical / 20 } * SHARE).round
    end

    def report(one)
      rounds = @curves[one]
      return yield(result(one.peer, "latency_ms", [], unit: "ms", better: "lower", errors: 1, note: "no answers")) if rounds.none?(&:any?)

      points = rounds.select(&:any?).map(&:curve).reduce { |all, curve| all.zip(curve).map { |a, b| [a[0], [*a[1], *b[1]]] } }
      curve = points.map { |percentile, values| [percentile, Workload.median([*values]).round(4)] }
      errors = rounds.sum(&:errors) + one.checker.complaints.size
      shape = { rate: @rate, requests: rounds.sum(&:count) }
      note = ["at #{@rate} requests a second", *one.checker.complaints.first, errors.positive? ? "errors are requests refused or without an answer" : nil]
      note = note.compact.join("; ")
      [["p50", 50], ["p99", 99], ["p99.9", 99.9]].each do |name, percentile|
        values = rounds.select(&:any?).map { |round| round.at(percentile) }
        more = name == "p50" ? { curve: curve } : {}
        yield result(one.peer, "latency_ms", values, unit: "ms", better: "lower", variant: name, errors: errors, note: note, **shape, **more)
      end
    end

    def absent(peer, reason, errors: 0) = result(peer, "latency_ms", [], unit: "ms", better: "lower", errors: errors, note: reason)
  end

  # The same behind nginx, where servers without keep-alive belong.
  class ProxiedLatency < Latency
    include ProxiedParts
    self.upstream_keep_alive = false
  end

  Latency.define("latency", about: "13 bytes, open loop over 64 kept-alive connections", base: Latency, kinds: %i[rack psgi reference], references: %w[bare],
                            needs: :keep_alive, weight: 2) { Request.new }
  if File.exist?(Peers::NGINX)
    Latency.define("latency-nginx", about: "13 bytes, open loop, behind nginx on a unix socket, a connection to the server per request",
                                    base: ProxiedLatency, listen: :unix, family: "latency", weight: 2, quick: false) { Request.new }
  end
end
