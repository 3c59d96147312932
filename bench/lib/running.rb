# frozen_string_literal: true

require "fileutils"
require "socket"
require_relative "../../e2e/support/free_port"
require_relative "process_tree"

module Bench
  # One server under measurement: started and pinned, asked for its processor time and memory, ended by pid with all
  # that it started.
  class Running
    START_SECONDS = 30
    STOP_SECONDS = 15
    STILL_S = 1
    # Of a core, while nobody asks anything; looked at after that many seconds. Who takes more is stopped between its
    # turns.
    RESTLESS = 0.05
    REST_LOOK_S = 0.25
    Failed = Class.new(StandardError)

    # restless: the share of a core that it was seen to take while nobody asked it, if that was too much.
    attr_reader :peer, :listen, :pid, :boot_s, :restless

    # app: path of the application, or { rack: path, psgi: path }. listen: :tcp (a free port), :unix, or an address.
    def initialize(peer, context, app: nil, workers: 1, threads: nil, listen: :tcp, close: false, env: {}, chdir: nil, pinned: true)
      @peer = peer
      @context = context
      @env = env
      @pinned = pinned
      @dir = context.scratch(peer.key)
      @listen = { tcp: "127.0.0.1:#{E2E.free_port}", unix: File.join(@dir, "sock") }.fetch(listen, listen)
      app = app[peer.kind] if app.is_a?(Hash)
      @site = Site.new(listen: @listen, app: app, workers: workers, threads: threads, dir: @dir, close: close, chdir: chdir)
    end

    # Returns self when it listens; raises Failed with the reason (the last words of the server) when it does not.
    def start(within_s: START_SECONDS)
      fail_with("listens on #{@listen} already: another program") if listening?
      env, argv = peer.command(@site)
      argv = @context.on_server_core(argv) if @pinned
      started = now
      @pid = spawn(env.merge(@env), *argv, in: File::NULL, out: out_path, err: %i[child out], pgroup: true, chdir: @site.chdir || ROOT)
      @tree = ProcessTree.new(@pid)
      until listening?
        fail_with("ended at its start: #{last_words}") if ended?
        fail_with("did not listen within #{within_s} s") if now - started > within_s
        IO.select(nil, nil, nil, 0.01)
      end
      @boot_s = now - started
      @context.started(self)
      self
    rescue SystemCallError, Failed
      stop
      raise
    end

    def alive? = @pid && !ended?
    def cpu_seconds = @tree.cpu_seconds
    def memory = @tree.memory
    def memory_by_pid = memory.to_h { |process| [process.pid, process] }
    def workers = @tree.workers
    def signal(name) = Process.kill(name, @pid)
    def url(path = "/") = "http://#{@listen}#{path}"

    # Its turn is over.
    def rest
      @rested = [now, cpu_seconds]
      pause if @restless
    end

    # Somebody else's turn begins.
    def hush
      return if @paused || @rested.nil? || now - @rested[0] < REST_LOOK_S || !alive?

      share = (cpu_seconds - @rested[1]) / (now - @rested[0])
      return unless share > RESTLESS

      @restless = share
      pause
    end

    def wake
      signal_all(:CONT) if @paused
      @paused = false
    end

    # A connected socket, for clients of any kind.
    def connect = @site.unix? ? UNIXSocket.new(@listen) : TCPSocket.new(@site.host, @site.port)

    # The memory of its processes, by pid, before they have been asked anything. Some listen before their workers are
    # there: all of them are when nothing has changed for a while.
    def settled_memory(workers)
      deadline = now + START_SECONDS
      since = now
      seen = memory_by_pid
      while now < deadline && (seen.size <= workers || now - since < STILL_S)
        IO.select(nil, nil, nil, 0.1)
        found = memory_by_pid
        since = now if found.keys != seen.keys
        seen = found
      end
      seen
    end

    # The last lines that the server printed.
    def last_words(count = 3)
      return "" unless File.exist?(out_path)

      File.read(out_path).scrub.lines.reject { |line| line.strip.empty? }.last(count).join(" ").strip[0, 300]
    end

    # Ends it with its own signal, then whatever is left of it by force. Gives the seconds that it took.
    def stop
      return if @pid.nil? || @stopped

      @stopped = true
      @context.stopped(self)
      wake

      started = now
      below = ended? ? [] : @tree.pids
      unless ended?
        signal(peer.stop)
        IO.select(nil, nil, nil, 0.005) until ended? || now - started > STOP_SECONDS
      end
      took = now - started
      below.each { |pid| kill(pid) }
      kill(-@pid)
      Process.wait(@pid) unless ended?
      took
    ensure
      FileUtils.rm_rf(@dir)
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def out_path = File.join(@dir, "out")

    def ended? = @ended ||= !Process.waitpid(@pid, Process::WNOHANG).nil?
    def fail_with(reason) = raise(Failed, "#{peer.name} #{reason}")

    def listening?
      connect.close || true
    rescue Errno::ECONNREFUSED, Errno::ENOENT
      false
    end

    def pause
      signal_all(:STOP)
      @paused = true
    end

    def signal_all(name) = @tree.pids.each { |pid| kill(pid, name) }

    def kill(pid, name = :KILL)
      Process.kill(name, pid)
    rescue Errno::ESRCH
      nil
    end
  end
end
