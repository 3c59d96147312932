# frozen_string_literal: true

require_relative "open_loop"
require_relative "peers"
require_relative "placement"
require_relative "throughput"

module Bench
  # What a server still does while something goes wrong: requests per second of a closed loop, then what requests wait
  # that come at a fixed rate, with four workers. Each server is started anew for a round, in the configuration that its
  # documentation tells of for this: a server that keeps no connection, or gives each connection a worker of its own,
  # stands behind nginx.
  #
  #     Troubled.define("reloading", about: "...", app: APP, path: "/") { |one, address, &block| ...; block.call }
  class Troubled < Workload
    WORKERS = 4
    CONNECTIONS = 32
    RATE = 100 # a second, open loop: every server here carries that when nothing is wrong
    SECONDS = 1.5..8.0
    QUICK_ROUNDS = 1
    # Beside the two loads: start, end, requests without an answer.
    COST_S = 4
    TAIL_S = 3
    KEYS = %w[oribi puma-cluster unicorn pitchfork falcon iodine agoo rhebok passenger oribi-psgi starlet starman uwsgi].freeze

    # Whose kept connections hold a worker each.
    WORKER_EACH = %w[starlet starman uwsgi].freeze

    class << self
      attr_reader :settings

      # app: of both languages. path: what is asked for; paths: with shares, as bench/load/load.c takes them, of which
      # `path` counts; by_turns: the same for wrk. env: of the server. peer: a callable that gives the server for this,
      # or the reason why there is none. more: variants that are asked beside the others. The block is what goes wrong:
      # it gets the workload, the server and its address, and runs the block that it is given meanwhile.
      def define(name, about:, app: HELLO_APPS, path: "/", paths: path, by_turns: nil, env: {}, more: [], peer: ->(one) { one }, **options, &trouble)
        Class.new(self) do
          @settings = { app: app, path: path, paths: paths, by_turns: by_turns, env: env, more: more, peer: peer, trouble: trouble }.freeze
          register name, about: about, family: "trouble", weight: 4, quick: false, **options
        end
      end
    end

    def results(&block)
      @found = Hash.new { |hash, key| hash[key] = { rates: [], waits: [], errors: 0, notes: [] } }
      present, absent = peers.map { |peer| [peer, missing(peer) || settings[:peer].call(peer)] }.partition { |_, one| one.is_a?(Peer) }
      absent.each { |peer, reason| yield result(peer, "requests_per_second", [], unit: "1/s", better: "higher", note: reason) }
      seconds = ((share_s / [rounds * present.size, 1].max - COST_S) / 2).clamp(SECONDS)
      rounds.times do |round|
        present.rotate(round % [present.size, 1].max).each { |peer, one| play(peer, one, round, seconds) }
      end
      present.each { |peer, _| report(peer, &block) }
    end

    private

    def settings = self.class.settings
    def rounds = context.quick? ? QUICK_ROUNDS : context.rounds_min

    # A server that is asked for comes in its configuration with several workers.
    def peers
      asked = context.peers.map(&:key)
      wanted = Peers::LIST.select { |peer| KEYS.include?(peer.key) } + settings[:more]
      wanted.select { |peer| asked.intersect?([peer.key, *peer.variant_of]) }
    end

    def missing(peer) = peer.missing || (proxied?(peer) ? Peers.proxy.missing : nil)

    def play(peer, one, round, seconds)
      found = @found[peer]
      return if found[:failed]

      progress("round #{round + 1} of #{rounds}, #{peer.name}")
      with(one) do |running, address|
        settings[:trouble].call(self, running, address) { found[:rates] << closed_loop(address, seconds, found) }
        settings[:trouble].call(self, running, address) { found[:waits] << open_loop(address, seconds, round, found) }
        found[:notes] << "behind nginx" if proxied?(one)
      end
    rescue Running::Failed, SystemCallError, RuntimeError => e
      found[:failed] = true
      found[:errors] += 1
      found[:notes] << e.message.delete_prefix("#{peer.name} ")
    end

    def proxied?(peer) = Placement.proxied?(peer) || WORKER_EACH.include?(peer.key)

    def with(peer)
      proxied = proxied?(peer)
      app = settings[:app].equal?(HELLO_APPS) && peer.lacks?(:length) ? HELLO_LENGTH_APPS : settings[:app]
      running = Running.new(peer, context, app: app, workers: WORKERS, listen: proxied ? :unix : :tcp, close: proxied,
                                   env: settings[:env]).start
      front = Running.new(Peers.proxy(running.listen), context).start if proxied
      await(front || running)
      yield running, front || running
    ensure
      front&.stop
      running&.stop
    end

    # Some listen before their workers are there.
    def await(address)
      checker = Checker.new(-> { address.connect }, Request.new(path: settings[:path], fields: { "Connection" => "close" }))
      deadline = now + Running::START_SECONDS
      until answer?(checker)
        raise Running::Failed, "#{address.peer.name} does not answer" if now > deadline

        sleep 0.05
      end
    end

    def answer?(checker)
      checker.answer(patience_s: 2).status == 200
    rescue Checker::Silent, SystemCallError, EOFError
      false
    end

    # None is a result too.
    def closed_loop(address, seconds, found)
      load = wrk.run(address.listen, seconds)
      found[:errors] += load.errors.values.sum
      found[:errors] += 1 if load.requests.zero?
      load.per_second
    end

    def wrk
      @wrk ||= begin
        paths = settings[:by_turns] && File.join(context.scratch("paths"), "paths").tap { |name| File.write(name, "#{settings[:by_turns].join("\n")}\n") }
        Wrk.new(context, Request.new(path: settings[:path]), connections: CONNECTIONS, paths_path: paths)
      end
    end

    def open_loop(address, seconds, round, found)
      series = OpenLoop.new(context).series(address.listen, rate: RATE, seconds: seconds, connections: CONNECTIONS, paths: settings[:paths],
                                                            seed: round + 1, tail_s: TAIL_S)
      all, of = ["all", settings[:path]].map { |path| series[[path, "time"]] }
      of = all if settings[:paths] == settings[:path]
      raise Running::Failed, "cannot be connected to, or is too far behind" unless of&.any?

      found[:errors] += all.errors
      of.at(99)
    end

    def report(peer)
      found = @found[peer]
      note = found[:notes].uniq.join("; ").then { |text| text.empty? ? nil : text }
      more = { errors: found[:errors], note: note }
      server = settings[:more].include?(peer) ? peer.name : peer
      yield result(server, "requests_per_second", found[:rates], unit: "1/s", better: "higher", **more)
      yield result(server, "latency_ms", found[:waits], unit: "ms", better: "lower", variant: "p99", rate: RATE, **more)
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
