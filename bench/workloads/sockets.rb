# frozen_string_literal: true

require "json"
require_relative "../lib/open_loop"
require_relative "../lib/peers"
require_relative "../lib/running"
require_relative "../lib/workload"
require_relative "../lib/wrk"

# WebSockets through a frontend and one worker, beside servers that hold them in the application's process. Servers take
# turns; each figure is one round. Clients are bench/load/sockets.c.
module Bench
  class Sockets < Workload
    def self.program = Peers.compiled("sockets", "bench/load/sockets.c")

    ROUNDS = 5
    WARM_S = 0.5

    private

    def driver(*options) = context.on_client_core([Sockets.program, *options.map(&:to_s)])

    # Words that the driver prints of a round.
    def drive(*options)
      output = IO.popen(driver(*options), err: context.log, &:read)
      found = JSON.parse(output.lines.last.to_s)
      raise Running::Failed, "#{found["errors"]} errors" if found["errors"].positive?

      found
    rescue JSON::ParserError
      raise Running::Failed, "no figures of bench/load/sockets.c"
    end

    # An application of Action Cable understands no other messages.
    def words(peer) = peer.lacks?(:plain_messages) ? ["-c"] : []

    def rounds = [context.rounds_min, ROUNDS].min

    # Gives each peer that runs to the block, in turns; a peer that fails has a result without values.
    def each_by_turns(peers)
      running = peers.to_h { |peer| [peer, begin_server(peer) { |found| yield(nil, found) }] }.compact
      rounds.times do |round|
        running.to_a.rotate(round).each do |peer, server|
          next unless running.key?(peer)

          context.turn(server) { yield(peer, server) }
        rescue Running::Failed, SystemCallError, RuntimeError => e
          context.drop(running.delete(peer))
          yield(nil, result(peer, self.class.name_of, [], unit: "", better: "higher", errors: 1, note: e.message))
        end
      end
    ensure
      running&.each_value { |server| context.drop(server) }
    end

    def begin_server(peer)
      progress("starting #{peer.name}")
      Running.new(peer, context).start
    rescue Running::Failed => e
      yield result(peer, self.class.name_of, [], unit: "", better: "higher", errors: 1, note: e.message)
      nil
    end

    # Processor time of the server while the block runs, in seconds, and what it gives.
    def with_cpu(server)
      before = server.cpu_seconds
      found = yield
      [server.cpu_seconds - before, found]
    end
  end

  # 100 sockets, each of which sends a message when it has its last one back; and requests on as many connections.
  class SocketEcho < Sockets
    register "sockets-echo", about: "100 sockets, messages of 100 bytes echoed by the application", family: "sockets", weight: 2.0, quick: false

    COUNT = 100

    def results
      figures = Hash.new { |hash, key| hash[key] = Hash.new { |inner, metric| inner[metric] = [] } }
      seconds = [share_s / rounds / 14, 0.8].max
      each_by_turns(servers(:sockets)) do |peer, server|
        next yield(server) unless peer

        progress("#{peer.name}, #{rounds} rounds")
        echo(peer, server, figures[peer], seconds)
        requests(server, figures[peer], seconds) unless peer.lacks?(:http)
      end
      figures.each { |peer, found| report(peer, found) { |one| yield one } }
    end

    private

    def echo(peer, server, found, seconds)
      cpu, round = with_cpu(server) { drive(server.listen, "-m", "echo", "-p", "/echo", "-n", COUNT, "-w", WARM_S, "-d", seconds.round(2), *words(peer)) }
      found[:messages] << round["messages"] / round["seconds"]
      found[:cpu] << cpu * 1e6 / (round["messages"] * (round["seconds"] + WARM_S) / round["seconds"])
      found[:p99] << round["p99"]
    end

    def requests(server, found, seconds)
      cpu, round = with_cpu(server) { Wrk.new(context, Request.new, connections: COUNT).run(server.listen, seconds) }
      found[:requests] << round.per_second
      found[:request_cpu] << cpu * 1e6 / round.requests
    end

    def report(peer, found)
      yield result(peer, "messages_per_second", found[:messages], unit: "1/s", better: "higher")
      yield result(peer, "cpu_us_per_message", found[:cpu], unit: "µs", better: "lower")
      yield result(peer, "latency_ms", found[:p99], unit: "ms", better: "lower", variant: "p99")
      return if found[:requests].empty?

      yield result(peer, "requests_per_second", found[:requests], unit: "1/s", better: "higher", variant: "HTTP")
      yield result(peer, "cpu_us_per_request", found[:request_cpu], unit: "µs", better: "lower", variant: "HTTP")
    end
  end

  # A message to all of 10,000 sockets, twice a second; alone, and beside requests.
  class SocketFanout < Sockets
    register "sockets-fanout", about: "10,000 sockets get a message of 100 bytes, twice a second", family: "sockets", weight: 3.0, quick: false

    COUNT = 10_000
    RATE = 2
    HTTP_RATE = 300
    KEYS = %w[oribi-sockets oribi-psgi-sockets iodine-sockets node-ws].freeze

    def results
      figures = Hash.new { |hash, key| hash[key] = Hash.new { |inner, metric| inner[metric] = [] } }
      seconds = [share_s / rounds / 16, 2].max
      figures["bare-sockets"] = Hash.new { |inner, metric| inner[metric] = [] }
      rounds.times { bare(figures["bare-sockets"], seconds) }
      each_by_turns(servers(:sockets, only: KEYS)) do |peer, server|
        next yield(server) unless peer

        progress("#{peer.name}, #{rounds} rounds")
        alone(server, figures[peer], seconds)
        beside(server, figures[peer], seconds)
      end
      figures.each { |peer, found| report(peer, found) { |one| yield one } }
    end

    private

    def fanout(address, seconds, *more) = driver(address, "-m", "fanout", "-p", "/subscribe?channel=a", "-n", COUNT, "-r", RATE, "-d", seconds.round(2), *more)

    # Gives the server's processor time from when all sockets are open, since what a handshake costs is no part of it,
    # and what the driver has found. The block runs beside.
    def run_fanout(address, seconds, cpu, *more)
      IO.popen(fanout(address, seconds, "-w", 0, *more), err: context.log) do |pipe|
        raise Running::Failed, "not all sockets are open" unless pipe.gets == "open\n"

        before = cpu.call
        yield if block_given?
        found = JSON.parse(pipe.read.lines.last.to_s)
        raise Running::Failed, "#{found["errors"]} errors" if found["errors"].positive?

        [cpu.call - before, found]
      end
    rescue JSON::ParserError
      raise Running::Failed, "no figures of bench/load/sockets.c"
    end

    def bare(found, seconds)
      port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      argv = context.on_server_core([Sockets.program, port, "-m", "bare", "-n", COUNT, "-r", RATE].map(&:to_s))
      IO.popen(argv, "r+", err: context.log) do |server|
        tree = ProcessTree.new(server.pid)
        raise Running::Failed, "the bare write loop does not listen" unless server.gets == "listening\n"

        note(found, *run_fanout("127.0.0.1:#{port}", seconds, -> { tree.cpu_seconds }, "-P", ""))
        Process.kill(:KILL, server.pid)
      end
    end

    def note(found, cpu, round)
      found[:cpu] << cpu * 1e6 / round["messages"]
      found[:p99] << round["p99"]
    end

    def alone(server, found, seconds) = note(found, *run_fanout(server.listen, seconds, -> { server.cpu_seconds }))

    # HTTP's times alone, and both beside each other.
    def beside(server, found, seconds)
      found[:http_alone] << http(server, seconds).at(99)
      _, round = run_fanout(server.listen, seconds + 1, -> { 0 }) { found[:http_beside] << http(server, seconds).at(99) }
      found[:beside] << round["p99"]
    end

    def http(server, seconds) = OpenLoop.new(context).run(server.listen, rate: HTTP_RATE, seconds: seconds, connections: 16)

    def report(peer, found)
      yield result(peer, "cpu_us_per_delivery", found[:cpu], unit: "µs", better: "lower")
      yield result(peer, "latency_ms", found[:p99], unit: "ms", better: "lower", variant: "p99 of deliveries")
      return if found[:beside].empty?

      yield result(peer, "latency_ms", found[:beside], unit: "ms", better: "lower", variant: "p99 of deliveries beside HTTP")
      yield result(peer, "latency_ms", found[:http_alone], unit: "ms", better: "lower", variant: "p99 of HTTP")
      yield result(peer, "latency_ms", found[:http_beside], unit: "ms", better: "lower", variant: "p99 of HTTP beside deliveries")
    end
  end

  # Sockets that say nothing: the memory of all processes, divided by them.
  class SocketIdle < Sockets
    register "sockets-idle", about: "10,000 sockets that say nothing", family: "sockets", quick: false

    COUNT = 10_000
    STILL_S = 0.5
    SETTLING_S = 5

    def results
      servers(:sockets).each do |peer|
        yield one(peer)
      rescue Running::Failed, SystemCallError => e
        yield result(peer, "memory_kb_per_socket", [], unit: "KB", better: "lower", errors: 1, note: e.message)
      end
    end

    private

    def memory(server) = server.memory.sum(&:pss_mb)

    # When it has not fallen for a while: what the handshakes took is given back.
    def settled_memory(server)
      clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
      deadline = clock.call + SETTLING_S
      least = memory(server)
      since = clock.call
      while clock.call < deadline && clock.call - since < STILL_S
        IO.select(nil, nil, nil, 0.05)
        found = memory(server)
        since = clock.call if found < least
        least = [least, found].min
      end
      least
    end

    def one(peer)
      progress("starting #{peer.name}")
      server = Running.new(peer, context).start
      drive(server.listen, "-m", "echo", "-p", "/echo", "-n", 100, "-w", 0.5, "-d", 1, *words(peer)) # what all share
      before = memory(server)
      IO.popen(driver(server.listen, "-m", "idle", "-p", "/echo", "-n", COUNT), "r+", err: context.log) do |pipe|
        raise Running::Failed, "does not hold #{COUNT} sockets" unless pipe.gets == "open\n" && pipe.gets == "ready\n"

        return result(peer, "memory_kb_per_socket", [(settled_memory(server) - before) * 1024 / COUNT],
                      unit: "KB", better: "lower", note: "of #{COUNT}, the kernel's part left out")
      end
    ensure
      server&.stop
    end
  end
end
