# frozen_string_literal: true

require_relative "support"
require_relative "support/workspace"

# What operators and machines do wrong while a server runs or starts: a clear line, and the service goes on or ends as
# documented, with nothing left.
E2E.suite("mishaps", transports: E2E::EITHER) do
  include E2E::InWorkspace

  # Up and serving: signals are heard from then on.
  def serve(*options, **more)
    start("--config", config, *options, app: @space.app, **more).tap { |one| assert_serves("first", one) }
  end

  def config
    @space.write_config({ "requests_jitter" => 0 }) unless File.exist?(@space.config)
    @space.config
  end

  def said?(one, pattern) = wait_until("#{pattern.inspect} in the log: #{one.stderr}") { one.stderr.match?(pattern) }

  def assert_serves(text, one) = assert_equal(text, one.get("/").body)

  def assert_one_line(pattern, failed)
    assert_equal [1, 1], [failed.status.exitstatus, failed.stderr.lines.size], failed.stderr
    assert_match(pattern, failed.stderr)
    assert_empty failed.stdout
  end

  # --- new code and new configuration that are no good ---

  def test_broken_code_on_hup
    one = serve
    worker = one.worker_pid
    @space.break_app("told not to load")
    one.signal(:HUP)
    assert said?(one, /error: .*told not to load/)
    assert said?(one, /error: reload failed, generation 1 goes on/)
    assert_equal worker, one.worker_pid
    @space.write_app("second")
    one.signal(:HUP)
    wait_until("the repaired code") { one.get("/").body == "second" }
    wait_until("one mold and one worker") { one.descendants.size == 2 }
    pass
  end

  def test_a_failing_warm_up_on_hup
    one = serve("--warmup", "/fail-after-the-start")
    @space.write_app("second", ruby: "module Warm; def self.call = raise('cold'); end; Warm.call", perl: "die qq{cold\\n};")
    one.signal(:HUP)
    assert said?(one, /error: reload failed/)
    assert_serves("first", one)
  end

  def test_a_broken_config_file_on_hup
    one = serve
    File.write(@space.config, E2E::RUBY ? "wrokers 3\n" : "+{ wrokers => 3 };\n")
    one.signal(:HUP)
    assert said?(one, /wrokers.*workers/)
    assert said?(one, /error: reload failed, generation 1 goes on/)
    assert_serves("first", one)
  end

  def test_broken_code_on_usr2
    pid_file = "#{@space.dir}/pid"
    one = serve("--pid-file", pid_file, "--control", @space.control, group: true)
    worker = one.worker_pid
    @space.break_app("told not to load")
    one.signal(:USR2)
    assert said?(one, /error: .*told not to load/)
    assert said?(one, /error: .*upgrade.*fail/i)
    assert_equal worker, one.worker_pid
    wait_until("the pid file to be back") { File.exist?(pid_file) && !File.exist?("#{pid_file}.old") }
    assert_equal one.pid, File.read(pid_file).to_i
    wait_until("the control socket to be back") { File.socket?(@space.control) }
    wait_until("the successor to be gone") { one.group.size == (E2E.portable? ? 4 : 3) } # with the reaper of the worker
    @space.write_app("second")
    one.signal(:USR2)
    assert_equal 0, one.wait.exitstatus
    assert_serves("second", one)
    successor = File.read(pid_file).to_i
    Process.kill(:TERM, successor)
    wait_until("the successor to end") { one.group.empty? }
    assert_empty [pid_file, @space.control].select { |path| File.exist?(path) }
  end

  # As with Unicorn: the new one is given up, the old one goes on. `ctl stop` means the server, and so both.
  def test_a_stop_of_the_successor
    pid_file = "#{@space.dir}/pid"
    one = serve("--pid-file", pid_file, "--control", @space.control, group: true)
    successor = lambda do
      one.signal(:USR2)
      wait_until("the successor") { File.exist?("#{pid_file}.old") && File.exist?(pid_file) && File.read(pid_file).to_i.positive? }
      File.read(pid_file).to_i
    end
    @space.write_app("second", ruby: "IO.select(nil, nil, nil, 0.005) until File.exist?(#{@space.gate_path.inspect})",
                               perl: "select undef, undef, undef, 0.005 until -e '#{@space.gate_path}';")
    Process.kill(:QUIT, successor.call)
    assert said?(one, /error: upgrade failed, this server goes on: the successor ended: exit code 0/)
    assert_serves("first", one)
    wait_until("the pid file to be back") { !File.exist?("#{pid_file}.old") }
    successor.call
    assert_equal "ok stopped\n", UNIXSocket.open(@space.control) { |socket| socket.write("stop\n") && socket.read }
    assert_equal 0, one.wait.exitstatus
    wait_until("both to end") { one.group.empty? }
    assert_empty [pid_file, "#{pid_file}.old", @space.control].select { |path| File.exist?(path) }
  end

  # As in a container: with the first process all others of its namespace end, a successor among them.
  def test_usr2_to_process_1
    inside = %w[unshare --pid --fork --mount-proc --kill-child]
    skip "no namespaces here" unless system(*inside, "true", err: File::NULL)
    one = E2E::Server.new(transport: transport, argv: [*inside, E2E::Server.binary, "--bind", unix? ? "unix:%{path}" : "127.0.0.1:%{port}", "--workers", "1",
                                                       "--control", @space.control, @space.app])
    @servers << one
    assert_serves("first", one.start)
    first = one.descendants.first
    one.signal(:USR2, first)
    assert said?(one, /warn: no upgrade: this server is process 1, with which its container ends: reload it/)
    assert_match(/\Aerror.*process 1/, UNIXSocket.open(@space.control) { |socket| socket.write("upgrade\n") && socket.read })
    @space.write_app("second")
    one.signal(:HUP, first)
    assert said?(one, /reload done/)
    wait_until("the old worker to see that it is to leave") { one.get("/").body == "second" }
    one.signal(:TERM, first)
    assert_equal 0, one.wait.exitstatus
  end

  def test_a_broken_config_file_on_usr2
    one = serve(group: true)
    File.write(@space.config, E2E::RUBY ? "workers 'many'\n" : "+{ workers => 'many' };\n")
    one.signal(:USR2)
    assert said?(one, /workers.*many/)
    assert said?(one, /error: .*upgrade.*fail/i)
    assert_serves("first", one)
  end

  # The supervisor stands still while the only worker comes up, so that its word of being ready and the signal wait
  # together.
  def test_a_signal_does_not_overtake_a_worker_that_serves_already
    note = "#{@space.dir}/forked"
    wait = if E2E::RUBY
             "File.write('#{note}', ''); IO.select(nil, nil, nil, 0.005) until File.exist?('#{@space.gate_path}')"
           else
             "open my $f, '>', '#{note}'; select undef, undef, undef, 0.005 until -e '#{@space.gate_path}'"
           end
    File.write(@space.config, E2E::RUBY ? "after_fork { #{wait} }\n" : "+{ after_fork => sub { #{wait} } };\n")
    one = start("--config", @space.config, app: @space.app, group: true)
    wait_until("the worker to be forked") { File.exist?(note) }
    one.signal(:STOP)
    @space.open_gate
    assert_serves("first", one)
    one.signal(:USR2)
    one.signal(:CONT)
    assert said?(one, /has taken over|no upgrade/)
    refute_match(/no upgrade/, one.stderr)
    assert_equal 0, one.wait.exitstatus
    assert_serves("first", one)
  ensure
    one&.signal(:CONT) unless one&.ended?
  end

  def test_a_broken_config_file_at_the_start
    File.write(@space.config, E2E::RUBY ? "workers(" : "+{ workers => ")
    failed = run_to_end("--config", @space.config, app: @space.app)
    assert_one_line(/#{Regexp.escape(File.basename(@space.config))}/, failed)
  end

  # --- files ---

  def test_something_else_in_the_place_of_the_pid_file
    pid_file = "#{@space.dir}/pid"
    { "precious\n" => /holds something else than a pid: not replaced$/, "" => nil }.each do |text, pattern|
      File.write(pid_file, text)
      next unless pattern

      failed = run_to_end("--pid-file", pid_file, app: @space.app)
      assert_one_line(pattern, failed)
      assert_equal text, File.read(pid_file)
      refute File.exist?(failed.path), "socket file left" if unix?
    end
    one = serve("--pid-file", pid_file) # an empty one was made for us
    assert_equal one.pid, File.read(pid_file).to_i
  end

  def test_a_link_in_the_place_of_the_pid_file
    File.write("#{@space.dir}/other", "1234\n")
    File.symlink("#{@space.dir}/other", "#{@space.dir}/pid")
    assert_one_line(/pid_file: .* is a symbolic link, which is not followed$/, run_to_end("--pid-file", "#{@space.dir}/pid", app: @space.app))
    assert_equal "1234\n", File.read("#{@space.dir}/other")
  end

  # Anybody may lock a file that he can read: that is no server.
  def test_a_pid_file_that_somebody_else_has_locked
    skip_without "lock that only who may write the file can hold"
    pid_file = "#{@space.dir}/pid"
    File.write(pid_file, "1234\n")
    File.open(pid_file) do |file|
      file.flock(File::LOCK_EX)
      one = serve("--pid-file", pid_file)
      assert_equal one.pid, File.read(pid_file).to_i
      assert_one_line(/belongs to a running server, pid #{one.pid}/, run_to_end("--pid-file", pid_file, app: @space.app))
    end
  end

  def test_two_servers_on_one_pid_file
    pid_file = "#{@space.dir}/pid"
    one = serve("--pid-file", pid_file)
    second = run_to_end("--pid-file", pid_file, app: @space.app)
    assert_one_line(/pid_file: #{Regexp.escape(pid_file)} belongs to a running server, pid #{one.pid}/, second)
    assert_equal one.pid, File.read(pid_file).to_i
    assert_serves("first", one)
  end

  def test_two_servers_on_one_control_socket
    one = serve("--control", @space.control)
    second = run_to_end("--control", @space.control, app: @space.app)
    assert_one_line(/control: #{Regexp.escape(@space.control)}: belongs to a running server/, second)
    assert File.socket?(@space.control)
    assert_serves("first", one)
  end

  def test_a_stale_control_socket_and_pid_file_are_replaced
    UNIXServer.new(@space.control).close
    File.write("#{@space.dir}/pid", "1\n")
    one = serve("--control", @space.control, "--pid-file", "#{@space.dir}/pid")
    assert_equal one.pid, File.read("#{@space.dir}/pid").to_i
    assert_match(/\Aok/, UNIXSocket.open(@space.control) { |socket| socket.write("status\n") && socket.read })
  end

  def test_a_file_where_the_control_socket_should_be
    File.write(@space.control, "precious")
    failed = run_to_end("--control", @space.control, app: @space.app)
    assert_one_line(/control: .*not a socket/, failed)
    assert_equal "precious", File.read(@space.control)
  end

  # --- processes ---

  # With the pause of a failed start, nobody would answer for an hour after the first few.
  def test_a_url_that_kills_its_worker_holds_nobody_up
    one = start_serving("--workers", "2", "--err-respawn-interval", "1h")
    20.times do |i|
      assert_empty connect(one).send_raw("GET /exit?n=#{i} HTTP/1.1\r\nHost: a\r\n\r\n").read_to_end
      assert_alive(one)
      assert said?(one, %r{warn: worker \d \(pid \d+\) ended: exit code 3 during GET /exit\?n=#{i}; replacing it})
    end
  end

  # One that is stopped takes no signal but KILL.
  def test_a_worker_that_does_not_hear_term
    one = serve("--shutdown-timeout", "300ms")
    worker = one.worker_pid
    Process.kill(:STOP, worker)
    one.signal(:TERM)
    one.wait
    assert_match(/#{worker}/, one.stderr)
    refute E2E::Processes.alive?(worker)
  end

  def test_a_worker_that_does_not_hear_the_reload
    one = serve("--shutdown-timeout", "300ms")
    worker = one.worker_pid
    @space.write_app("second")
    Process.kill(:STOP, worker)
    one.signal(:HUP)
    wait_until("the old worker to be gone") { !E2E::Processes.alive?(worker) }
    assert_serves("second", one)
  end

  def test_a_killed_supervisor_leaves_nothing_in_the_way
    files = ["--pid-file", "#{@space.dir}/pid", "--control", @space.control]
    one = serve(*files, group: true)
    one.worker_pid
    one.signal(:KILL)
    one.wait
    wait_until("orphans to leave") { one.group.empty? }
    again = E2E::Server.new(argv: [E2E::Server.binary, "--bind", one.bind, "--workers", "1", *files, @space.app])
    @servers << again
    again.instance_variable_set(:@address, one.address)
    assert_serves("first", again.start)
    assert_equal again.pid, File.read("#{@space.dir}/pid").to_i
  end

  # A service manager starts the next one at once: what is left of the old one must not hold the address, however long
  # its calls take.
  def test_after_a_killed_supervisor_the_next_starts_beside_calls_that_go_on
    one = start(group: true)
    open_gate(one, enter_gate(one, "first"), "first") # after the first long call the worker has its helper
    running = enter_gate(one, "second")
    one.signal(:KILL)
    one.wait
    again = wait_until("the address to be free") { next_server(one) }
    assert_alive(again)
    pass_gate(one, running, "second")
    wait_until("orphans to leave") { one.group.empty? }
    assert_alive(again)
  end

  def test_an_orphan_uses_no_more_what_it_has_closed
    one = start(group: true)
    open_gate(one, enter_gate(one, "first"), "first")
    running = enter_gate(one, "second")
    waiting = Array.new(2) { |i| connect(one).request("GET", "/echo?#{i}") }
    one.signal(:KILL)
    wait_until("the worker to hear of it") { one.stderr.include?("the supervisor has died") }
    pass_gate(one, running, "second")
    waiting.each { |client| assert_equal 200, client.read_response.status }
    wait_until("orphans to leave") { one.group.empty? }
    refute_includes one.stderr, "bad file descriptor"
  end

  def pass_gate(one, client, name)
    open_gate(one, name)
    assert_equal "gate passed", client.read_response.body
  end

  # The next server on the address of `one`; nil when it does not come up.
  def next_server(one)
    again = E2E::Server.new(argv: [E2E::Server.binary, "--bind", one.bind, "--workers", "1", File.join(E2E::ROOT, E2E.differing(:app))])
    @servers << again
    again.instance_variable_set(:@address, one.address)
    again.launch
    wait_until("the next one to start or to fail") { again.ended? || again.stderr.include?("listening on") }
    again unless again.ended?
  end
end
