# frozen_string_literal: true

require "io/wait"
require_relative "workload"
require_relative "peers"
require_relative "running"
require_relative "../isucon4/tools"

module Bench
  # What the workloads with real applications share: every peer is started once, driven in turn by the load driver
  # (bench/isucon4/driver), rounds in another order each time; then, open loop, at 80 % of what the slowest of its
  # language could do.
  #
  # A subclass says: kinds and app (which application, by kind), workers, scenario and driver options, and what to do
  # before each run.
  class DrivenWorkload < Workload
    LOAD_SHARE = 0.8
    CLOSED_PART = 0.65
    OPEN_VARIANT = "p99 at #{(LOAD_SHARE * 100).round} % of the slowest".freeze
    CLOSED_S_MIN = 1.0
    OPEN_ROUNDS = 5
    OPEN_S_MIN = 2.0
    OPEN_S_QUICK = 1.5
    ANSWER_S = 60
    CLOSED_S_MAX = 60.0
    # what is beyond the rounds at least becomes more rounds: a slow moment of the machine is to meet one of many
    CLOSED_S = 1.5
    QUICK = %w[oribi oribi-psgi unicorn puma puma-cluster starlet].freeze
    # Oribi first; servers of one process and those that are not made for blocking applications are left to the simple
    # workloads.
    TAKEN = %w[oribi oribi-psgi puma-cluster-1 puma-cluster unicorn pitchfork iodine falcon rhebok passenger starlet starman uwsgi].freeze

    def results(&block)
      prepare
      targets = start_all(&block)
      share = (share_s - spent_s) / [targets.size, 1].max
      measure_closed(targets, share * CLOSED_PART, &block)
      measure_open(targets, share * (1 - CLOSED_PART), &block)
    ensure
      targets&.each { |target| stop_target(target) }
      finish
    end

    private

    # One server with what stands before it. rounds: results of the driver with :cpu_seconds.
    Target = Struct.new(:peer, :running, :front, :rounds, :failure, keyword_init: true) do
      def address = front ? front.listen : running.listen
      def good = rounds.select { |round| round[:valid] && round[:error_count].zero? }
      def errors = rounds.sum { |round| round[:error_count] + (round[:valid] ? 0 : 1) }
      def note = rounds.map { |round| round[:reason].to_s.empty? ? round[:notes].first : round[:reason] }.compact.first
    end

    # For subclasses.
    def kinds = %i[rack psgi]
    def prepare = nil
    def finish = nil
    def before_run(_target) = nil
    def front(_running) = nil
    def listen = :tcp
    def environment = {}
    def options = {}
    def browsers = 8
    def open_browsers = 64
    def warm_s = 0.5
    def yield_more(_target) = nil

    def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def spent_s = clock - (@started ||= clock)

    # With --quick Puma is asked for without its cluster; with several workers it is one.
    def peers
      return servers(*kinds, only: TAKEN) unless context.quick?

      servers(*kinds, only: QUICK).map { |peer| peer.key == "puma" ? Peers.find("puma-cluster") : peer }.uniq
    end

    def start_all
      spent_s
      peers.filter_map do |peer|
        progress("starting #{peer.name}")
        target = start_target(peer)
        drive(target, seconds: warm_s) # and whoever cannot answer is known now
        target
      rescue StandardError => e
        stop_target(target) if target
        yield result(peer, "requests_per_second", [], unit: "1/s", better: "higher", note: e.message.lines.first.to_s.strip)
        nil
      end
    end

    def start_target(peer)
      running = Running.new(peer, context, app: apps, workers: workers, threads: threads, listen: listen, close: true, env: environment, chdir: chdir)
      running.start
      await_answer(running)
      Target.new(peer: peer, running: running, front: front(running), rounds: [])
    rescue StandardError
      running&.stop
      raise
    end

    def chdir = nil
    # Of one worker; nil: the peer's own.
    def threads = nil

    # Some listen while the application is still being loaded.
    def await_answer(running)
      socket = running.connect
      socket.write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
      socket.wait_readable(ANSWER_S) or raise "#{running.peer.name} did not answer within #{ANSWER_S} s"
    ensure
      socket&.close
    end

    def stop_target(target)
      target.front&.stop
      target.running.stop
    end

    def drive(target, **more)
      before_run(target)
      context.turn(target.running) do
        before = target.running.cpu_seconds
        found = Isucon4.drive(scenario, target.address, wrap: context.on_client_core([]), workers: browsers, **options, **more)
        raise "#{target.peer.name} died: #{target.running.last_words}" unless target.running.alive?

        found.merge(cpu_seconds: target.running.cpu_seconds - before)
      end
    end

    def measure_closed(targets, share, &block)
      rounds = [context.rounds_min, (share / CLOSED_S).floor, 1].max
      seconds = (share / rounds).clamp(CLOSED_S_MIN, CLOSED_S_MAX)
      rounds.times do |round|
        targets.rotate(round).each do |target|
          progress("#{target.peer.name}, round #{round + 1} of #{rounds}")
          run_round(target, seconds: seconds, seed: round + 1)
        end
      end
      targets.each { |target| yield_closed(target, &block) }
    end

    def run_round(target, **more)
      target.rounds << drive(target, **more) unless target.failure
    rescue StandardError => e
      target.failure = e.message
    end

    def yield_closed(target)
      rounds = target.good
      more = { errors: target.errors + (target.failure ? 1 : 0), note: target.failure || target.note }.compact
      yield result(target.peer, "requests_per_second", rounds.map { |round| round[:requests_per_second] }, unit: "1/s", better: "higher", **more)
      yield result(target.peer, "cpu_us_per_request", rounds.map { |round| cpu_us(round) }, unit: "µs", better: "lower")
      yield_rounds(target, rounds) { |found| yield found }
    end

    def yield_rounds(_target, _rounds) = nil

    def cpu_us(round) = round[:cpu_seconds] * 1e6 / round[:requests]

    # The slowest sets the rate of all of its language.
    def measure_open(targets, share, &block)
      targets.group_by { |target| target.peer.kind }.each_value do |group|
        able = group.reject { |target| target.failure || target.good.empty? }
        rate = able.map { |target| Workload.median(target.good.map { |round| round[:scenarios_per_second] }) }.min or next
        measure_rate(able, rate * LOAD_SHARE, share, &block)
      end
    end

    # In rounds by turns too, each with arrivals of its own that are the same for all.
    def measure_rate(targets, rate, share, &block)
      rounds = context.quick? ? 1 : OPEN_ROUNDS
      seconds = [share / rounds, context.quick? ? OPEN_S_QUICK : OPEN_S_MIN].max
      found = Hash.new { |hash, target| hash[target] = [] }
      rounds.times do |round|
        targets.rotate(round).each do |target|
          next if target.failure

          progress("#{target.peer.name}, #{rate.round} scenarios a second, round #{round + 1} of #{rounds}")
          found[target] << drive(target, rate: rate.round(3), seconds: seconds, warm: [seconds * 0.1, 1].min, workers: open_browsers, seed: 99 + round)
        rescue StandardError => e
          target.failure = e.message.lines.first.to_s.strip
        end
      end
      targets.each { |target| yield_open(target, found[target], rate, &block) }
    end

    def yield_open(target, rounds, rate)
      errors = rounds.sum { |round| round[:error_count] + round[:never_begun] + (round[:valid] ? 0 : 1) } + (target.failure ? 1 : 0)
      said = rounds.flat_map { |round| [round[:reason], round[:notes].first] }.compact.reject(&:empty?).first
      note = ["at #{rate.round} scenarios a second", target.failure, said].compact.join("; ")
      yield result(target.peer, "latency_ms", rounds.filter_map { |round| round[:page_ms][:p99] }, unit: "ms", better: "lower", errors: errors, note: note,
                   variant: OPEN_VARIANT, curve: middle_curve(rounds))
    end

    # Of each percentile the middle one of the rounds.
    def middle_curve(rounds)
      curves = rounds.filter_map { |round| round[:curve_ms] }
      return if curves.empty?

      curves.first.map { |percentile, _| [percentile, Workload.median(curves.filter_map { |curve| curve.assoc(percentile)&.last })] }
    end
  end
end
