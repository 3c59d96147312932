# frozen_string_literal: true

require_relative "support"
require_relative "support/cut"
require_relative "support/frontends"

# The cut test (bench/load/cut.c): WebSockets and event streams, HTTP/1.1 and HTTP/2, with and without TLS, are cut
# again and again, and none loses a message, nor gets one twice, whatever is reloaded or killed. Short here; the long
# form, CUT_CLIENTS=5000 CUT_SECONDS=180, is `make soak-cut`, with CUT_WIRES=h1 and the like and CUT_FRONTENDS=2 for
# parts.
E2E.suite("cut", transports: %i[tcp]) do
  include FrontendServers

  CLIENTS = Integer(ENV.fetch("CUT_CLIENTS", "300"))
  SECONDS = Integer(ENV.fetch("CUT_SECONDS", "10"))
  LONG = ENV.key?("CUT_SECONDS")
  WIRES = ENV.fetch("CUT_WIRES", "h1,h2,h1s,h2s") # as cut.c has them
  FRONTENDS = Integer(ENV.fetch("CUT_FRONTENDS", "1"))
  EVERY = LONG ? 15 : 2 # seconds between two cuts of a client
  REPLAY_MS = 1000 # p99 of a long run whose clients come back one by one: thousands at once wait for handshakes
  SAID = 100 # messages a second of all WebSockets

  def teardown
    @cut&.stop
    super
  end

  def begin_server(workers: 2, frontends: FRONTENDS)
    @tls_port = E2E.free_port
    serve("--bind", bind.sub("%{port}", @tls_port.to_s), "--workers", workers.to_s, "--frontends", frontends.to_s,
          "--history", "h:,1000,300s", "--connections-max", "20000",
          address: "tcp://127.0.0.1:%{port}?frontend=on", app: "bench/apps/sockets.#{E2E::RUBY ? "ru" : "psgi"}")
  end

  def begin_cut(*options)
    @cut = E2E::Cut.new(@one.port, @tls_port, "-d", SECONDS, "-n", CLIENTS, "-t", EVERY, "-c", [CLIENTS / 10, 100].min, "-r", 1.5, "-w", WIRES,
                        *options)
  end

  # Runs the block about once a second until the clients have had their time.
  def each_second
    count = 0
    until @cut.wait(1)
      yield count
      count += 1
    end
    count
  end

  # Any, as one that is asked for its pid is between two calls. Gives how many were killed: a reload may have ended all
  # of them meanwhile.
  def kill_worker
    pid = @one.descendants.select { |one| E2E::Processes.title(one).to_s.match?(/ worker \d/) }.sample or return 0
    Process.kill(:KILL, pid)
  rescue Errno::ESRCH
    0
  end

  # The first one, which has the histories. nil: it is not there again.
  def kill_frontend
    pid = ctl("status").first[/^frontend 0, pid (\d+)/, 1] and Process.kill(:KILL, pid.to_i)
  rescue Errno::ESRCH
    nil
  end

  def finish
    found = @cut.finish
    puts "#{E2E::COMMAND}, #{name}, #{WIRES}: #{JSON.generate(found)}" if LONG
    found
  end

  def assert_whole(found)
    assert_equal [0, 0, 0], found.values_at("lost", "doubled", "silent"), found.inspect
    assert_operator found["delivered"], :>, found["published"], found.inspect
    assert_operator found["cuts"], :>, CLIENTS, found.inspect
  end

  def assert_nothing_reset(found)
    assert_whole(found)
    assert_equal 0, found["resets"], found.inspect
  end

  def assert_soon(found)
    assert_nothing_reset(found)
    assert_operator found["replay"]["p99"], :<=, REPLAY_MS, found.inspect if LONG
  end

  def test_clients_are_cut
    begin_server
    begin_cut
    assert_equal 0, finish.tap { |found| assert_soon(found) }["unsure"]
  end

  # All at once, as when a network ends: each comes back within a second.
  def test_all_are_cut_at_once
    begin_server
    begin_cut("-S")
    assert_nothing_reset(finish)
  end

  def test_a_reload_each_second
    begin_server
    begin_cut
    reloads = each_second { assert_equal 0, ctl("reload").last.exitstatus, @one.stderr }
    assert_operator reloads, :>, 0
    assert_soon(finish)
  end

  def test_a_second_frontend
    begin_server(frontends: 2)
    begin_cut
    assert_soon(finish)
  end

  # Nobody is cut: what happens to workers closes no socket but that of a call that was killed, and loses no other
  # message.
  def test_a_reload_and_a_killed_worker_each_second
    begin_server
    begin_cut("-n", CLIENTS * 2, "-t", 1_000_000_000, "-r", 0.5, "-m", SAID)
    killed = 0
    reloads = each_second do
      killed += kill_worker
      ctl("reload")
    end
    found = finish
    assert_equal [0] * 6, found.values_at("lost", "doubled", "silent", "resets", "ended", "cuts"), found.inspect
    assert_operator found["unsure"] + found["killed"], :<=, killed, found.inspect
    assert_operator found["said"], :>, SAID * SECONDS / 2, found.inspect
    assert_equal found["said"], found["heard"] + found["killed"], found.inspect
    assert_operator reloads, :>, 0
    return unless LONG

    puts "#{reloads} reloads, #{killed} workers killed"
    assert_operator found["killed"], :>, 0, found.inspect
  end

  # Its history is gone: each client gets a reset, and all of what follows.
  def test_a_frontend_that_is_killed
    begin_server
    begin_cut
    killed = 0
    each_second do |second|
      next unless second % (LONG ? 30 : 4) == 2

      killed += 1 if kill_frontend
    end
    found = finish
    assert_whole(found)
    assert_operator killed, :>, 0
    assert_operator found["resets"], :>=, CLIENTS, found.inspect
  end
end
