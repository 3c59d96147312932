# frozen_string_literal: true

require_relative "support"
require_relative "support/load"

# Clients that never stop asking, while workers, molds and whole servers are replaced below them. Every row of the table
# is a test: an event a while, and no request lost. script/soak runs the same file for longer, and makes the table of
# doc/operations.md of what it writes to SOAK_RESULTS.
#
#   SOAK_REQUESTS, SOAK_RATE   so many requests, so many a second of all clients together (0: as many as can be)
#   SOAK_EVENT_SECONDS         from one event to the next
module Restarts
  REQUESTS = ENV.fetch("SOAK_REQUESTS", "3000").to_i
  RATE = ENV.fetch("SOAK_RATE", "1000").to_i
  EVENT_SECONDS = ENV.fetch("SOAK_EVENT_SECONDS", "0.8").to_f
  LONG = REQUESTS > 20_000
  CLIENTS = 20
  WORKERS = 3

  # name: as in the table. options, env: of the server. times: so many times the requests, for what takes its time.
  Row = Struct.new(:name, :options, :env, :times, :starter, :event, :effect, keyword_init: true)

  ROWS = [
    Row.new(name: "HUP", event: ->(run) { run.signal(:HUP) }, effect: ->(run) { run.status["generation"] > 1 }),
    Row.new(name: "USR2", event: ->(run) { run.upgrade }, effect: ->(run) { run.supervisors.size > 1 }),
    Row.new(name: "start_server HUP", starter: true, event: ->(run) { run.start_another },
            effect: ->(run) { run.supervisors.size > 1 }),
    Row.new(name: "TTIN, TTOU", event: ->(run) { run.signal(run.events.even? ? :TTIN : :TTOU) },
            effect: ->(run) { run.server.stderr.include?("workers: #{WORKERS + 1}, were #{WORKERS}") }),
    Row.new(name: "memory_max", options: %w[--memory-max 30M], env: { "E2E_GROW" => LONG ? "4000" : "20000" }, times: LONG ? 1 : 4,
            effect: ->(run) { run.status["worker_exits"].positive? }),
    Row.new(name: "requests_max 50..100", options: %w[--requests-max 50..100],
            effect: ->(run) { run.status["worker_exits"] > REQUESTS / 200 }),
    Row.new(name: "refork_after 200, HUP", options: %w[--refork-after 200], times: LONG ? 1 : 2, event: ->(run) { run.warm? && run.signal(:HUP) },
            effect: ->(run) { run.warm? }),
    # With the usual second between a bad end and the replacement, a kill each second would leave none to serve.
    Row.new(name: "kill -9 of a worker", options: %w[--err-respawn-interval 100ms], event: ->(run) { run.kill(/ worker \d+, generation/) },
            effect: ->(run) { run.status["worker_exits"].positive? }),
    Row.new(name: "kill -9 of the mold", event: ->(run) { run.kill(/ mold, generation/) && run.signal(:HUP) },
            effect: ->(run) { run.killed.any? && run.status["generation"] > 1 }),
  ].freeze

  # A server under load.
  class Run
    attr_reader :server, :events, :killed, :supervisors

    def initialize(row, transport)
      @row = row
      @dir = Dir.mktmpdir("oribi-e2e")
      @events = 0
      @killed = {} # pid => around when, in ms of the monotonic clock
      @supervisors = []
      @starts = 0
      words = ["--workers", WORKERS.to_s, "--access-log", "off", *row.options]
      # Old and new server run side by side under start_server: files that have one owner are not for them.
      words.push("--pid-file", pid_file, "--control", control) unless row.starter
      app = "e2e/apps/restarts#{E2E.differing(:app_extension)}"
      argv = starter_argv(transport, words, app) if row.starter
      @server = E2E::Server.new(transport: transport, options: words, app: app, env: row.env || {}, argv: argv, dir: @dir, group: true)
    end

    def pid_file = "#{@dir}/pid"
    def control = "#{@dir}/control"

    # Until all requests are done; gives the load.
    def go
      @server.start
      load = E2E::Load.new(@server.address, clients: CLIENTS, requests: REQUESTS * (@row.times || 1), rate: RATE)
      until load.done_within?(EVENT_SECONDS)
        note_supervisor
        next unless @row.event

        @row.event.call(self)
        @events += 1
      end
      note_supervisor
      load
    ensure
      load&.stop
    end

    # Pid of the server that serves, as its pid file has it. In the middle of an upgrade there may be none for a moment.
    def supervisor
      return @server.group.find { |pid| E2E::Processes.title(pid).include?(" supervisor, ") } if @row.starter

      pid = File.read(pid_file).to_i
      pid if pid.positive?
    rescue Errno::ENOENT
      nil
    end

    def signal(name)
      pid = supervisor and Process.kill(name, pid)
    rescue Errno::ESRCH # it has left between two lines of this test
      nil
    end

    # One at a time: a successor that starts is not told to start another.
    def upgrade
      signal(:USR2) unless File.exist?("#{pid_file}.old")
    end

    # Likewise: start_server ends the one before at once, although a busy machine lets none begin to serve.
    def start_another
      return unless @server.stderr.scan("listening on").size > @starts

      @starts += 1
      @server.signal(:HUP)
    end

    # Each reload begins to count requests anew, so the first one waits for this.
    def warm? = @server.stderr.include?("come from a warm mold")

    def kill(title)
      pid = @server.group.shuffle.find { |one| E2E::Processes.title(one).match?(title) } or return
      from_ms = E2E.clock * 1000
      Process.kill(:KILL, pid)
      @killed[pid] = (from_ms - 50)..(E2E.clock * 1000 + 250 * E2E.patience)
    rescue Errno::ESRCH # it has left between two lines of this test
      nil
    end

    def status
      UNIXSocket.open(control) do |socket|
        socket.write("status json\n")
        JSON.parse(socket.read.delete_prefix("ok\n"))
      end
    end

    # Those that a killed worker had in its hands: their connections end with it. Who answered last on a connection need
    # not have it now, because workers pass connections on to those who are idle.
    def in_killed_hands?(lost) = @killed.each_value.any? { |around_ms| around_ms.cover?(lost.at_ms) }

    # Ends everything in good order; pids that are left.
    def stop
      root = @row.starter ? @server.pid : E2E.wait_until("the last upgrade to end") { !File.exist?("#{pid_file}.old") && supervisor }
      Process.kill(:TERM, root)
      E2E.wait_until("all processes to end: #{left}") { @server.ended? && left.empty? }
      []
    rescue E2E::Timeout
      left
    end

    def left = @server.group.to_h { |pid| [pid, E2E::Processes.title(pid)] }

    def cleanup
      @server.cleanup
      FileUtils.remove_entry(@dir)
    end

    # Every one that ever was.
    def note_supervisor
      pid = supervisor
      @supervisors |= [pid] if pid
    end

    private

    def starter_argv(transport, words, app)
      address = transport == :unix ? ["--path", "%{path}"] : ["--port", "127.0.0.1:%{port}"]
      ["start_server", *address, "--signal-on-hup=TERM", "--kill-old-delay=0", "--", E2E::Server.binary,
       *words, File.join(E2E::ROOT, app)]
    end
  end
end

E2E.suite("restarts", transports: E2E::EITHER) do
  Restarts::ROWS.each do |row|
    define_method("test_#{row.name.downcase.gsub(/\W+/, "_")}") { lose_nothing(row) }
  end

  def lose_nothing(row)
    skip_without "memory of workers" if row.name == "memory_max"
    run = Restarts::Run.new(row, transport)
    load = run.go
    assert E2E.wait_until("the effect") { run.note_supervisor && row.effect.call(run) }, "nothing has happened"
    lost = load.lost.reject { |one| run.in_killed_hands?(one) }
    record(row, load, lost, run)
    assert_empty lost.map(&:to_a), "lost requests; the server wrote: #{run.server.stderr[-4000..] || run.server.stderr}"
    assert_equal Restarts::REQUESTS * (row.times || 1), load.summary["answered"] + load.lost.size
    assert_empty run.stop, "left behind; the server wrote: #{run.server.stderr[-2000..] || run.server.stderr}"
    assert_equal 0, run.server.status.exitstatus
  ensure
    run&.cleanup
  end

  def record(row, load, lost, run)
    return unless ENV["SOAK_RESULTS"]

    result = { command: E2E::COMMAND, transport: transport, row: row.name, events: run.events, lost: lost.size,
               killed: load.lost.size - lost.size, **load.summary.transform_keys(&:to_sym).except(:lost) }
    File.write(ENV["SOAK_RESULTS"], "#{JSON.generate(result)}\n", mode: "a")
  end
end
