# frozen_string_literal: true

require_relative "../lib/troubled"

# Requests per second and p99 while a reload runs each second, while one call in a hundred hangs, and while a thousand
# clients send slowly.
module Bench
  # What goes wrong in these workloads.
  module Trouble
    RELOAD_EVERY_S = 1.0
    HANG_MS = 1000
    SLOW_HEADS = 500
    SLOW_BODIES = 500
    CROWD_READY_S = 60
    # Where new code is loaded one worker at a time: a phased restart.
    RELOADS = { "puma-cluster" => :USR1 }.freeze
    STARTER = "start_server"
    # Servers whose documentation has Server::Starter reload them.
    STARTED = %w[starlet rhebok].freeze
    NO_RELOAD = "has no reload that loads new code while it serves"
    REASONS = { "pitchfork" => "forks workers anew from a warm one, and has no reload that loads new code",
                "passenger" => "restarts an application at once; rolling restarts are in its Enterprise version" }.freeze

    module_function

    # The server as it is reloaded without a pause; or why it cannot be.
    def reloadable(peer)
      return starter(peer) if STARTED.include?(peer.key) && system("command -v #{STARTER} >/dev/null")

      return chained(peer) if peer.key == "uwsgi"

      reload_of(peer) ? peer : REASONS.fetch(peer.key, NO_RELOAD)
    end

    # uWSGI's chain reloading: one worker after the other, told through its FIFO.
    def chained(peer)
      fifo = nil
      command = lambda { |site|
        env, argv = peer.command(site)
        fifo = File.join(site.dir, "fifo")
        [env, [*argv, "--lazy-apps", "--master-fifo", fifo]]
      }
      Peer.new(peer.key, peer.name, peer.kind, command: command, reload: -> { File.write(fifo, "c") }, stop: peer.stop, lacks: peer.lacks)
    end

    def reload_of(peer) = RELOADS.fetch(peer.key, peer.reload)

    # The socket is start_server's, which starts a new server and then ends the old one.
    def starter(peer)
      command = lambda { |site|
        env, argv = peer.command(site)
        [env, [STARTER, site.unix? ? "--path=#{site.listen}" : "--port=#{site.listen}", "--", *argv]]
      }
      Peer.new(peer.key, "#{peer.name} under start_server", peer.kind, command: command, reload: :HUP, stop: peer.stop, lacks: peer.lacks)
    end

    # A signal to the main process as a rule.
    def reload(running)
      way = reload_of(running.peer)
      way.respond_to?(:call) ? way.call : running.signal(way)
    end

    def reload_each_second(running)
      ended = false
      thread = Thread.new do
        until ended
          reload(running) if running.alive?
          sleep RELOAD_EVERY_S
        end
      end
      yield
    ensure
      ended = true
      thread&.join
    end

    # Half of them send a head, half a body.
    def beside_slow(context, address)
      argv = [Peers.compiled("crowd", "bench/load/crowd.c"), address.listen, "-H", SLOW_HEADS.to_s, "-B", SLOW_BODIES.to_s]
      crowd = IO.popen(context.on_client_core(argv), "r+", err: context.log)
      raise Running::Failed, "does not take #{SLOW_HEADS + SLOW_BODIES} slow clients" unless crowd.wait_readable(CROWD_READY_S) && crowd.gets == "ready\n"

      yield
    ensure
      if crowd
        Process.kill(:KILL, crowd.pid)
        crowd.close
      end
    end
  end

  # HUP of Unicorn and a phased restart of Puma load new code only where the application is not loaded before the fork.
  Troubled.define("reloading", about: "13 bytes while the server is reloaded each second, 4 workers",
                               env: { "BENCH_PRELOAD" => "0" }, peer: ->(peer) { Trouble.reloadable(peer) }) do |_, running, _, &block|
    Trouble.reload_each_second(running, &block)
  end

  Troubled.define("hanging", about: "one call in a hundred takes #{Trouble::HANG_MS / 1000} s, the others no time, 4 workers; p99 of the others",
                             app: Placement::APP, path: "/sleep/0", paths: "/sleep/0:0.99,/sleep/#{Trouble::HANG_MS}:0.01",
                             by_turns: ["/sleep/#{Trouble::HANG_MS}", *["/sleep/0"] * 99],
                             more: [Peers.find("oribi-threads")]) { |_, _, _, &block| block.call }

  Troubled.define("slow-senders", about: "13 bytes beside #{Trouble::SLOW_HEADS + Trouble::SLOW_BODIES} clients that send heads and bodies slowly, " \
                                         "4 workers") do |workload, _, address, &block|
    Trouble.beside_slow(workload.context, address, &block)
  end
end
