# frozen_string_literal: true

require "fileutils"
require "json"
require "socket"
require "tmpdir"
require_relative "../../e2e/support/free_port"
require_relative "certificate"
require_relative "peers"
require_relative "process_tree"

module Bench
  # More idle WebSockets than one process may hold: one server with as many frontends as they take, and as many drivers
  # (bench/load/sockets.c), over the addresses of 127.0.0.0/8. All sockets subscribe to one channel. Measured in this
  # order: the time until all are open, memory, a minute of silence with its Pings, messages to all.
  class SocketCrowd
    Failed = Class.new(StandardError)
    APPS = { "oribi" => %w[ruby/exe/oribi bench/apps/sockets.ru], "oribi-psgi" => %w[perl/bin/oribi-psgi bench/apps/sockets.psgi] }.freeze

    DESCRIPTORS = Process.getrlimit(:NOFILE)[1]
    SPARE = 1000 # descriptors of a process beside its sockets
    UNEVEN = 1.1 # room for frontends that accept more than others
    WORKERS = 2
    SILENCE_S = 65
    MESSAGES = 10
    BYTES = 100 # of a message
    AT_ONCE = 60 # handshakes: of TLS, more of them leave a heap with holes
    PATIENCE_S = 60
    OPEN_S = 600
    STILL_S = 2 # a frontend waits for a second before it gives memory back
    MACHINE_BYTES = { false => 12_000, true => 50_000 }.freeze # of a socket, both of its ends and the kernel's part

    # The bars: bytes of a frontend for a socket with its one subscription.
    BYTES_MAX = { false => 256 + 32, true => 14_848 }.freeze

    attr_reader :frontends, :drivers

    # progress: called with the share that is done, and a text.
    def initialize(count, command:, tls: false, frontends: 1, drivers: 1, silence_s: SILENCE_S, progress: ->(_, _) {})
      @count = count
      @command = command
      @tls = tls
      held_max = DESCRIPTORS - SPARE
      @frontends = [frontends, (count * UNEVEN / held_max).ceil].max
      @drivers = [drivers, count.fdiv(held_max).ceil].max
      @silence_s = silence_s
      @progress = progress
      @dir = Dir.mktmpdir("oribi-bench-crowd")
      @clients = []
    end

    # One line of results; raises Failed where the figures could not be had.
    def run
      want_memory
      load_before = load_average
      begin_server
      warm
      figures = { command: @command, transport: @tls ? "tls" : "tcp", what: "#{@count} idle WebSockets", frontends: @frontends, drivers: @drivers,
                  **opened, **silent, **published, ended: looked_at(:ended), load_before: load_before, load_after: load_average }
      figures.merge(faults: faults(figures))
    ensure
      finish
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def load_average = File.read("/proc/loadavg").to_f
    def log = File.join(@dir, "log")

    def want_memory
      available = File.read("/proc/meminfo")[/^MemAvailable:\s+(\d+)/, 1].to_i * 1024
      raise Failed, "#{@count} sockets want more memory than there is" if @count * MACHINE_BYTES.fetch(@tls) > available
    end

    # --- the server ---

    def begin_server
      @port, tls_port = Array.new(2) { E2E.free_port }
      @address = "127.0.0.1:#{@tls ? tls_port : @port}"
      Certificate.ready
      program, app = APPS.fetch(@command).map { |path| File.join(ROOT, path) }
      max = [DESCRIPTORS - SPARE, (@count * UNEVEN).ceil + SPARE].min.to_s
      argv = [program, "--no-dev", "--env", "production", "--quiet", "--access-log", "off", "--workers", WORKERS.to_s, "--frontends", @frontends.to_s,
              "--connections-max", max, "--websockets-max", max, "--bind", "tcp://127.0.0.1:#{@port}?frontend=on",
              "--bind", "tls://127.0.0.1:#{tls_port}?certificate=#{Certificate::PEM}&key=#{Certificate::KEY}", app]
      @pid = spawn({ "PORT" => nil, "RACK_ENV" => nil, "PLACK_ENV" => nil }, *argv, in: File::NULL, out: [log, "a"], err: %i[child out], chdir: ROOT)
      @tree = ProcessTree.new(@pid)
      wait_until("the server", PATIENCE_S) { frontend_pids.size == @frontends && answers? }
    end

    def answers?
      request("GET", "/pid").start_with?("HTTP/1.1 200")
    rescue SystemCallError
      false
    end

    def request(method, target, body = "")
      TCPSocket.open("127.0.0.1", @port) do |socket|
        socket.write("#{method} #{target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}")
        socket.read
      end
    end

    def frontend_pids = @tree.pids.select { |pid| comm(pid) == "oribi-frontend" }

    def comm(pid)
      File.read("/proc/#{pid}/comm").strip
    rescue SystemCallError
      nil
    end

    def wait_until(what, seconds)
      deadline = now + seconds
      until yield
        raise Failed, "#{what}: not within #{seconds} s; #{File.read(log).lines.last(5).join}" if now > deadline

        IO.select(nil, nil, nil, 0.1)
      end
    end

    # --- drivers ---

    def driver(*options) = [SocketPeers.clients, "127.0.0.1:#{@port}", *(@tls ? ["-T", @address] : []), *options.map(&:to_s)]

    # Everything that all sockets share is there before they come.
    def warm = IO.popen(driver("-m", "echo", "-p", "/echo", "-n", [@count, 100 * @frontends].min, "-w", 0.5, "-d", 1), err: [log, "a"], &:read)

    def share(number) = @count / @drivers + (number < @count % @drivers ? 1 : 0)

    def begin_drivers
      first = 0
      @drivers.times do |number|
        words = ["-m", "idle", "-p", "/subscribe?channel=a", "-n", share(number), "-f", first, "-o", [AT_ONCE / @drivers, 1].max]
        @clients << IO.popen(driver(*words), "r+", err: [log, "a"])
        first += share(number)
      end
    end

    # "open", "ready": two lines of each.
    def await_drivers
      deadline = now + OPEN_S
      waiting = @clients.to_h { |client| [client, 2] }
      until waiting.empty?
        raise Failed, "not all sockets are open after #{OPEN_S} s" if now > deadline

        ready, = IO.select(waiting.keys, nil, nil, 1)
        ready&.each do |client|
          client.gets or raise Failed, "a driver has ended: #{File.read(log).lines.last(5).join}"
          waiting.delete(client) if (waiting[client] -= 1).zero?
        end
        tell_opened
      end
    end

    # Both ends of a connection are sockets of this machine.
    def tell_opened
      open = [(File.read("/proc/net/sockstat")[/^TCP: inuse (\d+)/, 1].to_i - @sockets_before) / 2, @count].min
      @progress.call(0.4 * open / @count, "#{open} of #{@count} sockets are open")
    end

    # Numbers of each driver.
    def look
      @clients.each do |client|
        client.puts("look")
        client.flush
      end
      @clients.map { |client| JSON.parse(client.gets.to_s) }
    rescue JSON::ParserError, SystemCallError
      raise Failed, "a driver has ended: #{File.read(log).lines.last(5).join}"
    end

    def looked_at(name) = look.sum { |one| one.fetch(name.to_s) }

    # --- figures ---

    def opened
      @sockets_before = File.read("/proc/net/sockstat")[/^TCP: inuse (\d+)/, 1].to_i
      memory = settled_memory
      kernel = kernel_bytes
      begun = now
      begin_drivers
      await_drivers
      open_s = (now - begun).round(1)
      { open_s: open_s, bytes_each: ((settled_memory - memory) / @count).round, kernel_bytes_each: ((kernel_bytes - kernel) / 2 / @count).round }
    end

    # Of all frontends; of pages that several processes have each has its part.
    def memory = frontend_pids.sum { |pid| File.read("/proc/#{pid}/smaps_rollup")[/^Pss:\s+(\d+) kB/, 1].to_f * 1024 }

    # When it has not fallen for a while: what the handshakes took is given back.
    def settled_memory
      deadline = now + PATIENCE_S / 6
      least = memory
      since = now
      while now < deadline && now - since < STILL_S
        IO.select(nil, nil, nil, 0.1)
        found = memory
        since = now if found < least
        least = [least, found].min
      end
      least
    end

    # The kernel's structures, and what lies in buffers of TCP.
    def kernel_bytes
      File.read("/proc/meminfo")[/^Slab:\s+(\d+) kB/, 1].to_f * 1024 + File.read("/proc/net/sockstat")[/^TCP:.* mem (\d+)/, 1].to_i * 4096
    end

    def cpu_s(pids) = pids.sum { |pid| ProcessTree.cpu_of(pid) }

    # Shares of a core, in percent.
    def silent
      pids = frontend_pids
      begun = now
      before = [cpu_s(pids), @tree.cpu_seconds]
      while now - begun < @silence_s
        IO.select(nil, nil, nil, 1)
        @progress.call(0.4 + 0.5 * (now - begun) / @silence_s, "#{@count} sockets say nothing")
      end
      took = now - begun
      frontends, all = [cpu_s(pids), @tree.cpu_seconds].zip(before).map { |after, earlier| ((after - earlier) * 100 / took).round(2) }
      { idle_cpu_percent: frontends, idle_cpu_percent_all: all, pings: looked_at(:pings), pinged: looked_at(:pinged) }
    end

    # Each message when all have the one before.
    def published
      pids = frontend_pids
      before = cpu_s(pids)
      MESSAGES.times do |i|
        @progress.call(0.9 + 0.1 * i / MESSAGES, "message #{i + 1} to #{@count} sockets")
        answer = request("POST", "/publish?channel=a", format("%d %.6f", i + 1, now).ljust(BYTES))
        raise Failed, "not published: #{answer.lines.first}" unless answer.start_with?("HTTP/1.1 204")

        wait_until("message #{i + 1} to all", PATIENCE_S) { looked_at(:messages) >= @count * (i + 1) }
      end
      cpu = cpu_s(pids) - before
      delivered(look).merge(cpu_us_per_delivery: (cpu * 1e6 / @count / MESSAGES).round(2))
    end

    def delivered(found)
      sum = ->(name) { found.sum { |one| one.fetch(name) } }
      missing = found.sum { |one| one["sockets"] * MESSAGES } - sum.call("messages") + sum.call("doubled")
      slowest = ->(name) { found.map { |one| one.fetch(name) }.max.round(1) }
      { published: MESSAGES, delivered: sum.call("messages"), lost: [missing, sum.call("lost")].max, doubled: sum.call("doubled"),
        p50_ms: (sum.call("p50") / found.size).round(1), p99_ms: slowest.call("p99"), max_ms: slowest.call("max") }
    end

    def faults(figures)
      silence = figures[:pinged] < @count && @silence_s >= SILENCE_S
      [("#{figures[:ended]} sockets have ended" if figures[:ended].positive?), ("#{@count - figures[:pinged]} sockets were not pinged" if silence),
       ("#{figures[:lost]} messages lost" if figures[:lost].positive?), ("#{figures[:doubled]} messages doubled" if figures[:doubled].positive?),
       ("#{figures[:bytes_each]} bytes a socket" if figures[:bytes_each] > BYTES_MAX.fetch(@tls))].compact
    end

    # --- the end ---

    def finish
      @clients.each(&:close)
      end_server if @pid
    ensure
      FileUtils.rm_rf(@dir)
    end

    def end_server
      pids = @tree.pids
      Process.kill(:TERM, @pid)
      wait_until("the server's end", PATIENCE_S) { Process.waitpid(@pid, Process::WNOHANG) }
    rescue Failed
      pids.each { |pid| kill(pid) }
      Process.wait(@pid)
      raise
    end

    def kill(pid)
      Process.kill(:KILL, pid)
    rescue Errno::ESRCH
      nil
    end
  end
end
