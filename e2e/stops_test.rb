# frozen_string_literal: true

require_relative "support"

# The kernel may hold a connection back for a second until its client has sent something, and so long is waited for it.
# What is asserted about that is tried again where other work on the machine took the time.
module Stops
  HELD_SECONDS = 0.9 # nearly
  MOMENT_SECONDS = 0.6
  TooLate = Class.new(StandardError)
end

# Newcomers at a stop: whoever has connected before it is answered, nobody connects into a queue that no one serves any
# more.
E2E.suite("stops", transports: E2E::EITHER) do
  # After a first call that was long the worker has its helper.
  def start_with_helper
    one = start
    client = enter_gate(one, "first")
    open_gate(one, "first")
    assert_equal "gate passed", client.read_response.body
    client.close
    one
  end

  def terminate(one)
    one.signal(:TERM)
    wait_until("the signal to be taken") { one.stderr.include?("stopping") }
  end

  # The kernel sends the first packet of a TCP connection again after a second: one that came while others were let in
  # is refused then.
  def assert_newcomers_refused(one)
    wait_until_refused(one)
    3.times { assert_raises(Errno::ECONNREFUSED, Errno::ENOENT) { one.connect } }
  end

  def waiting_requests(one, count) = Array.new(count) { |i| connect(one).request("GET", "/echo?#{i}") }

  def assert_all_answered(clients)
    clients.each { |client| assert_equal 200, client.read_response.status }
  end

  def test_newcomers_are_refused_while_a_call_goes_on
    one = start
    client = enter_gate(one, "only")
    terminate(one)
    assert_newcomers_refused(one)
    open_gate(one, "only")
    assert_equal "gate passed", client.read_response.body
    assert_equal 0, one.wait.exitstatus
  end

  def test_who_has_connected_before_is_answered
    one = start
    client = enter_gate(one, "only")
    waiting = waiting_requests(one, 3)
    terminate(one)
    open_gate(one, "only")
    assert_equal "gate passed", client.read_response.body
    assert_all_answered(waiting)
    assert_equal 0, one.wait.exitstatus
  end

  def test_with_a_helper_newcomers_are_refused_though_others_wait
    one = start_with_helper
    client = enter_gate(one, "second")
    waiting = waiting_requests(one, 3)
    terminate(one)
    assert_newcomers_refused(one)
    open_gate(one, "second")
    assert_equal "gate passed", client.read_response.body
    assert_all_answered(waiting)
    assert_equal 0, one.wait.exitstatus
  end

  # Runs the block until its request has left soon enough after the stop: on a busy machine it is we who are late.
  def in_time
    deadline = E2E.deadline(E2E::DEADLINE)
    begin
      @stopped_at = @asked_at = nil
      yield
      raise Stops::TooLate if late?
    rescue Stops::TooLate, SystemCallError, E2E::Client::Closed
      raise unless late?
      retry if E2E.clock < deadline
      skip "this machine is too busy to ask within #{Stops::MOMENT_SECONDS} s of a stop"
    end
  end

  def late? = @stopped_at && (@asked_at || E2E.clock) - @stopped_at > Stops::MOMENT_SECONDS

  def ask(client)
    client.request("GET", "/")
  ensure
    @asked_at = E2E.clock
  end

  # TCP: the kernel holds it back until its first byte is there, so that no worker knows of it yet.
  def test_who_has_connected_and_asks_a_moment_later_is_answered
    in_time do
      one = start
      assert_alive(one)
      client = connect(one)
      @stopped_at = E2E.clock
      terminate(one)
      ask(client)
      assert_equal "Hello, World!", client.read_response.body
      assert_equal 0, one.wait.exitstatus
    end
  end

  # As service managers and terminals do. The supervisor comes last, so that the worker drains without having been told
  # why.
  def test_a_signal_to_the_whole_group_loses_nobody
    in_time do
      one = start(group: true)
      worker = one.worker_pid
      client = connect(one)
      one.signal(:STOP)
      @stopped_at = E2E.clock
      one.signal(:TERM, -one.pid)
      looks = 0 # a worker that leaves without its supervisor's word has gone by then
      wait_until("the worker to take it") { !E2E::Processes.alive?(worker) || (!E2E::Processes.pending?(worker, :TERM) && (looks += 1) > 10) }
      one.signal(:CONT)
      ask(client)
      assert_equal "Hello, World!", client.read_response.body
      assert_equal 0, one.wait.exitstatus
    end
  end

  # One that lingers takes the second each time; other work on the machine does not always come between.
  def test_a_stop_without_clients_does_not_linger
    wait_until("a stop within #{Stops::HELD_SECONDS} s") do
      one = start
      one.worker_pid
      before = E2E.clock
      one.signal(:TERM)
      one.wait
      E2E.clock - before < Stops::HELD_SECONDS
    end
  end

  # --- sockets of others ---

  def listening_socket(one) = unix? ? UNIXServer.new(one.path) : TCPServer.new("127.0.0.1", one.port)

  # The command on a socket of ours, which stays open when the server has gone.
  def start_on(listener, one)
    argv = [E2E::Server.binary, "--workers", "1", "--bind", "fd://9", File.join(E2E::ROOT, E2E.differing(:app))]
    pid = spawn({ "E2E_DIR" => one.dir, "PORT" => nil }, *argv, 9 => listener, in: File::NULL, out: File::NULL,
                                                                err: "#{one.dir}/stderr", chdir: E2E::ROOT)
    @started << pid
    pid
  end

  def setup
    super
    @started = []
  end

  def teardown
    @started.each do |pid|
      Process.kill(:TERM, pid)
      Process.wait(pid)
    end
    super
  end

  def end_of(pid)
    wait_until("#{pid} to end") { Process.wait(pid, Process::WNOHANG) }
    @started.delete(pid)
  end

  def test_on_an_inherited_socket_newcomers_wait_for_the_next_owner
    place = E2E::Server.new(transport: transport) # its address and folder only
    @servers << place
    listener = listening_socket(place)
    first = start_on(listener, place)
    client = enter_gate(place, "last")
    Process.kill(:TERM, first)
    wait_until("the signal to be taken") { place.stderr.include?("stopping") }
    open_gate(place, "last")
    assert_equal "gate passed", client.read_response.body
    end_of(first)
    waiting = waiting_requests(place, 3)
    start_on(listener, place)
    assert_all_answered(waiting)
  ensure
    listener&.close
  end

  # A successor has the same sockets: the predecessor's end must not be theirs.
  def test_after_an_upgrade_the_sockets_go_on
    one = start(group: true)
    client = enter_gate(one, "upgrade")
    one.signal(:USR2)
    wait_until("the successor to serve: #{one.stderr}") { one.stderr.include?("has taken over") }
    5.times { assert_alive(one) }
    open_gate(one, "upgrade")
    assert_equal "gate passed", client.read_response.body
    assert_equal 0, one.wait.exitstatus
    5.times { assert_alive(one) }
  end

  # The first server still answers what it had begun when the second is replaced, and has the pid file's other name.
  def test_an_upgrade_while_the_server_before_still_ends
    Dir.mktmpdir("oribi-e2e") do |dir|
      pid_file = "#{dir}/pid"
      one = start("--pid-file", pid_file, group: true)
      client = enter_gate(one, "upgrade")
      one.signal(:USR2)
      wait_until("the second to serve: #{one.stderr}") { one.stderr.include?("has taken over") }
      second = File.read(pid_file).to_i
      Process.kill(:USR2, second)
      wait_until("the third to serve: #{one.stderr}") { one.stderr.scan("has taken over").size == 2 }
      assert_equal one.pid, File.read("#{pid_file}.old").to_i
      refute_includes [one.pid, second], File.read(pid_file).to_i
      wait_until("the second to leave") { !File.exist?("#{pid_file}.old.#{second}") && !E2E::Processes.alive?(second) }
      open_gate(one, "upgrade")
      assert_equal "gate passed", client.read_response.body
      assert_equal 0, one.wait.exitstatus
      5.times { assert_alive(one) }
    end
  end

  # One that is told to stop before it serves leaves the sockets to the server that started it. It is told until it
  # ends: Ruby's VM can lose a signal in its first milliseconds, before any line of ours runs.
  def test_a_successor_that_is_stopped_early_leaves_the_sockets_alone
    one = start("--control", "#{(@control_dir = Dir.mktmpdir("oribi-e2e"))}/c", group: true)
    assert_alive(one)
    before = one.group
    one.signal(:USR2)
    successor = wait_until("the successor") { (one.group - before).find { |pid| E2E::Processes.stat(pid)&.at(1).to_i == one.pid } }
    wait_until("its end") do
      E2E::Processes.alive?(successor) ? !Process.kill(:TERM, successor) : true
    rescue Errno::ESRCH
      true
    end
    wait_until("the old one to go on, or to have left: #{one.stderr}") { one.stderr.match?(/upgrade failed|has taken over/) }
    5.times { assert_alive(one) } unless one.stderr.include?("has taken over")
  ensure
    FileUtils.remove_entry(@control_dir)
  end
end
