# frozen_string_literal: true

require_relative "support"
require_relative "support/tracing"
require_relative "support/workspace"

# Ends of a server and of its workers.
E2E.suite("signals", transports: E2E::EITHER) do
  def assert_gone(one, below)
    wait_until("all processes to end") { below.none? { |pid| E2E::Processes.alive?(pid) } }
    refute File.exist?(one.path), "socket file left" if unix?
    assert_raises(Errno::ECONNREFUSED, Errno::ENOENT) { connect(one) }
  end

  %i[TERM QUIT].each do |signal|
    define_method("test_#{signal.downcase}_finishes_running_requests") do
      one = start
      client = enter_gate(one, "term")
      below = one.descendants
      one.signal(signal)
      wait_until("the signal to be taken") { one.stderr.include?("stopping") }
      open_gate(one, "term")
      response = client.read_response
      assert_equal "gate passed", response.body
      assert response.close?
      assert_equal 0, one.wait.exitstatus
      assert_gone(one, below)
    end
  end

  def test_term_ends_idle_connections
    one = start
    client = connect(one)
    client.get("/")
    one.signal(:TERM)
    assert client.closed?
    assert_equal 0, one.wait.exitstatus
  end

  def test_term_has_a_deadline
    one = start("--shutdown-timeout", "500ms")
    enter_gate(one, "never")
    below = one.descendants
    one.signal(:TERM)
    one.wait
    assert_gone(one, below)
  end

  def test_the_deadline_names_the_request_whose_worker_it_kills
    (E2E::RUBY ? [1, 2] : [1]).each do |threads|
      one = start("--shutdown-timeout", "500ms", *(["--threads", threads.to_s] if threads > 1))
      Array.new(threads) { |i| enter_gate(one, "lost#{i}") }
      one.signal(:TERM)
      one.wait
      calls = threads > 1 ? "2 calls, one of them " : ""
      assert_match(%r{warn: worker 0 \(pid \d+\) did not end within shutdown_timeout: killed during #{calls}GET /gate\?name=lost\d$}, one.stderr)
    end
  end

  def test_the_deadline_says_whom_it_cuts
    one = start_serving("--shutdown-timeout", "500ms")
    connect(one).send_raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
    one.signal(:TERM)
    one.wait
    assert_includes one.stderr, "shutdown_timeout reached: cutting 1 connection with unfinished requests"
  end

  def test_a_second_term_ends_at_once
    one = start("--shutdown-timeout", "60s")
    enter_gate(one, "never")
    below = one.descendants
    one.signal(:TERM)
    wait_until("the command to end") { one.ended? || (one.signal(:TERM) && false) }
    assert_gone(one, below)
  end

  def test_int_ends_at_once
    one = start("--shutdown-timeout", "60s")
    enter_gate(one, "never")
    below = one.descendants
    one.signal(:INT)
    one.wait
    assert_gone(one, below)
  end

  def test_a_killed_worker_is_replaced
    one = start
    before = one.worker_pid
    one.signal(:KILL, before)
    wait_until("the old worker to go") { !E2E::Processes.alive?(before) }
    refute_equal before, one.worker_pid
    wait_until("a log line") { one.stderr.include?(before.to_s) }
    assert_alive(one)
  end

  def test_a_worker_that_exits_in_a_call_is_replaced
    one = start
    before = one.worker_pid
    client = connect(one)
    client.request("GET", "/exit")
    assert_raises(E2E::Client::Closed, Errno::ECONNRESET) { client.read_response }
    refute_equal before, wait_until("a new worker") { pid = one.worker_pid; pid if pid != before }
  end

  def test_the_other_worker_serves_while_one_is_replaced
    one = start("--workers", "2")
    pids = wait_until("both workers") { Array.new(20) { one.worker_pid }.uniq.then { |seen| seen if one.descendants.size >= 2 } }
    one.signal(:KILL, pids.first)
    20.times { assert_alive(one) }
  end

  def test_a_killed_supervisor_leaves_no_workers
    one = start
    one.worker_pid
    below = one.descendants
    one.signal(:KILL)
    one.wait
    wait_until("orphans to leave") { below.none? { |pid| E2E::Processes.alive?(pid) } }
    pass
  ensure
    [*below].each { |pid| E2E::Processes.kill(pid) }
  end
end

# Signals that come when the process they are meant for has nothing left to stop but itself.
E2E.suite("last_moment_signals", transports: E2E::EITHER) do
  include E2E::InWorkspace

  # Runs the application's own end, which waits for the gate, in processes that have said so in the notes.
  def slow_end
    note = @space.notes_path.inspect
    { ruby: "at_exit { note = -> (text) { File.write(#{note}, \"\#{text} \#{Process.pid}\\n\", mode: 'a') }; " \
            "note.(:ending); sleep 0.005 until File.exist?(#{@space.gate_path.inspect}); note.(:ended) }",
      perl: "sub note { open my $f, '>>', #{note} or die; print $f qq{$_[0] $$\\n}; close $f } " \
            "END { note('ending'); select undef, undef, undef, 0.005 until -e #{@space.gate_path.inspect}; note('ended') }" }
  end

  def noted?(text, pid) = @space.notes.include?("#{text} #{pid}")

  # The supervisor's signal comes after the one that everybody got.
  def test_a_worker_told_twice_comes_to_its_end
    @space.write_app("slow to end", **slow_end)
    one = start(app: @space.app)
    worker = one.worker_pid
    one.signal(:TERM)
    wait_until("the worker's end to begin") { noted?("ending", worker) }
    %i[TERM QUIT].each { |signal| one.signal(signal, worker) }
    wait_until("the signals to be taken") { %i[TERM QUIT].none? { |signal| E2E::Processes.pending?(worker, signal) } }
    @space.open_gate
    assert_equal 0, one.wait.exitstatus
    assert noted?("ended", worker), @space.notes.join(", ")
    refute_match(/signal/, one.stderr)
  end

  def test_a_worker_interrupted_at_its_end_ends
    @space.write_app("slow to end", **slow_end)
    one = start(app: @space.app)
    worker = one.worker_pid
    one.signal(:TERM)
    wait_until("the worker's end to begin") { noted?("ending", worker) }
    one.signal(:INT, worker)
    wait_until("its end") { !E2E::Processes.alive?(worker) }
    @space.open_gate # for the mold
    assert_equal 0, one.wait.exitstatus
  end

  # From the first one on until there is no process left to be told. Without any pause it could be kept from its end.
  def test_a_supervisor_that_is_told_to_the_last_ends_with_0
    3.times do
      one = start
      assert_alive(one)
      one.signal(:TERM) && sleep(0.0002) until one.ended?
      assert_equal 0, one.status.exitstatus, one.status.inspect
    end
  end
end

# Applications that handle the server's signals themselves: a stop still lets their calls finish, and is still heard.
E2E.suite("handlers_of_the_application", transports: E2E::EITHER) do
  include E2E::Tracing

  app = "e2e/apps/signals#{E2E.differing(:app_extension)}"
  kinds = E2E::RUBY ? %w[handler ignore] : %w[handler ignore default]

  define_method(:serve) { @server = start("--workers", "1", app: app, group: true) }

  def enter(path, gate)
    client = connect(@server)
    client.request("GET", "#{path}/#{gate}")
    wait_until("the call") { File.size?("#{@server.dir}/#{gate}.entered") } # its pid is in it
    client
  end

  # To every process of the server, as a terminal or `kill -- -PID` sends it.
  def stop_group(signal)
    Process.kill(signal, -@server.pid)
    wait_until("the signal to be taken") { @server.stderr.include?("stopping") }
  end

  def assert_stops_well
    assert_equal 0, @server.wait.exitstatus
    refute_match(/warn:|error:|signal/, @server.stderr)
  end

  %i[TERM QUIT].product(kinds).each do |signal, kind|
    define_method(:"test_a_group_#{signal}_in_a_call_that_has_a_#{kind}_of_its_own") do
      serve
      client = enter("/local/#{signal}/#{kind}", "first")
      stop_group(signal)
      open_gate(@server, "first")
      assert_equal "passed", client.read_response.body
      assert_stops_well
    end
  end

  # The handler of the application is gone, and that of the server is there.
  %w[local set].product(kinds).each do |how, kind|
    define_method(:"test_a_group_TERM_after_a_call_that_#{how == "set" ? "has_set" : "had"}_a_#{kind}") do
      serve
      assert_equal "passed", connect(@server).get("/#{how}/TERM/#{kind}").body
      client = enter("/gate", "second")
      stop_group(:TERM)
      open_gate(@server, "second")
      assert_equal "passed", client.read_response.body
      assert_stops_well
    end

    define_method(:"test_a_TERM_at_rest_after_a_call_that_#{how == "set" ? "has_set" : "had"}_a_#{kind}") do
      serve
      assert_equal "passed", connect(@server).get("/#{how}/TERM/#{kind}").body
      stop_group(:TERM)
      assert_stops_well
    end
  end

  # At any moment between the end of a call and the sleep after it: a handler that is only noted then runs at once.
  # strace makes those moments longer; a worker that sleeps over a signal is seen to wake by a timeout before the
  # handler has run.
  def test_no_signal_sleeps
    skip_without_strace
    serve
    client = connect(@server)
    @worker = Integer(client.get("/note/ALRM").body)
    notes = "#{@server.dir}/notes"
    random = Random.new(1)
    lines = traced(@server) do
      1.upto(500) do |round|
        client.request("GET", "/")
        sleep(random.rand * 0.0015)
        Process.kill(:ALRM, @worker)
        client.read_response
        wait_until("handler #{round}") { File.size(notes) >= round }
      end
    end
    assert_empty asleep(lines)
  end

  attr_reader :worker

  # Sleeps that a timeout has ended while a signal waited for its handler, which writes a dot.
  def asleep(lines)
    waiting = false
    lines.select do |line|
      waiting = true if line.include?("--- SIGALRM")
      waiting = false if line.match?(/ write\(\d+, "\.", 1/)
      waiting && line.match?(/ epoll_wait\(.*, [1-9]\d*\)\s+= 0$/)
    end
  end

  if E2E::RUBY
    def test_a_trap_finds_something_to_put_back
      serve
      assert_equal %w[Proc] * 2, %w[TERM USR1].map { |signal| connect(@server).get("/previous/#{signal}").body }
      stop_group(:TERM)
      assert_stops_well
    end

    def test_a_child_of_the_application_ends_at_a_signal
      serve
      assert_match(/exit|SIGTERM/, connect(@server).get("/child/TERM").body)
    end
  end

  # Beside ours, not in its place.
  def test_the_handler_of_the_application_is_called
    serve
    client = enter("/local/USR1/handler", "first")
    Process.kill(:USR1, Integer(File.read("#{@server.dir}/first.entered")))
    open_gate(@server, "first")
    assert_equal "passed", client.read_response.body
    wait_until("the handler") { connect(@server).get("/seen").body == "USR1" }
    assert_equal 200, connect(@server).get("/").status
  end
end
