# frozen_string_literal: true

require_relative "support"
require_relative "support/workspace"

# One process that is the whole server (`--single`): nothing is forked, and a reload starts the program anew under the
# same pid.
module SingleCases
  def launch(argv, **more)
    one = E2E::Server.new(transport: transport, argv: argv, **more)
    @servers << one
    one.start
  end

  def single(*options, **more) = start("--single", *options, **more)

  # It is up: a signal that comes before has another meaning.
  def workspace(*options, **more) = single(*options, app: @space.app, **more).tap { |one| wait_for_body(one, "first") }

  def assert_alone(one)
    assert_empty one.descendants
    assert_equal one.pid, one.get("/pid").body.to_i
  end

  # The text of the answer, whichever program gives it; a connection may be closed while it is idle.
  def body_of(one, path = "/") = one.get(path).body

  def wait_for_body(one, text) = wait_until("#{text}: #{one.stderr}") { body_of(one) == text }

  # In the title, which it has once it rests.
  def wait_for_generation(one, number)
    wait_until("generation #{number}: #{one.stderr}") { E2E::Processes.title(one.pid).include?(" single, generation #{number}, ") }
  end

  def wait_for_log(one, words) = wait_until("#{words.inspect} in #{one.stderr}") { one.stderr.include?(words) }

  def count_in_log(one, words) = one.stderr.scan(words).size

  def threads_of(pid) = Dir.children("/proc/#{pid}/task").size

  # Asks in a loop until told to end, each request on a connection of its own; every answer counts.
  def asking(one)
    over = false
    answers = Thread.new do
      seen = []
      seen << body_of(one) until over
      seen
    end
    yield
    over = true
    answers.value
  ensure
    over = true
    answers&.join
  end
end

E2E.suite("single", transports: E2E::EITHER) do
  include SingleCases
  include E2E::InWorkspace

  def test_the_process_serves_by_itself
    one = workspace
    assert_alone(one)
    wait_for_generation(one, 1)
    assert_equal "first", body_of(one)
    assert_equal 0, one.stop.exitstatus, one.stderr
    refute File.exist?(one.path), "socket file left" if unix?
  end

  def test_connections_are_kept_alive
    client = connect(workspace)
    3.times { |i| assert_equal (i + 2).to_s, client.get("/calls").body }
  end

  def test_a_call_under_way_is_finished_at_a_stop
    one = single
    client = enter_gate(one, "only")
    one.signal(:TERM)
    wait_for_log(one, "stopping")
    wait_until_refused(one)
    open_gate(one, "only")
    assert_equal "gate passed", client.read_response.body
    assert_equal 0, one.wait.exitstatus
  end

  def test_two_stops_end_it_at_once
    one = workspace("--pid-file", pid_file)
    connect(one).request("GET", "/gate")
    wait_until("the pid file") { File.exist?(pid_file) }
    one.signal(:TERM)
    wait_for_log(one, "stopping")
    one.signal(:TERM)
    assert_equal 0, one.wait.exitstatus
    refute File.exist?(pid_file)
    refute File.exist?(one.path) if unix?
  end

  def test_int_ends_it_at_once
    one = workspace("--pid-file", pid_file)
    connect(one).request("GET", "/gate")
    one.signal(:INT)
    assert_equal 0, one.wait.exitstatus
    refute File.exist?(pid_file)
    refute File.exist?(one.path) if unix?
  end

  def test_what_takes_longer_than_shutdown_timeout_is_cut
    one = single("--shutdown-timeout", "100ms")
    enter_gate(one, "only")
    one.signal(:TERM)
    assert_equal 0, one.wait.exitstatus
    assert_includes one.stderr, "shutdown_timeout reached: ending the process during GET /gate?name=only"
  end

  def test_a_stop_while_the_application_loads
    @space.write_app("late", ruby: "sleep", perl: "sleep 1 while 1;")
    one = E2E::Server.new(transport: transport, options: ["--single"], app: @space.app)
    @servers << one
    one.launch
    wait_until("the address") do
      one.connect.close || true
    rescue Errno::ECONNREFUSED, Errno::ENOENT
      nil
    end
    one.signal(:TERM)
    assert_equal 0, one.wait.exitstatus, one.stderr
    refute File.exist?(one.path) if unix?
  end

  def test_an_application_that_does_not_load_ends_the_start
    @space.break_app("no such thing")
    one = run_to_end("--single", app: @space.app)
    assert_equal 1, one.status.exitstatus
    assert_match(/the application did not load: .*no such thing/, one.stderr)
    refute File.exist?(one.path) if unix?
  end

  def test_boot_timeout
    @space.write_app("late", ruby: "sleep", perl: "sleep 1 while 1;")
    one = run_to_end("--single", "--boot-timeout", "200ms", app: @space.app)
    assert_equal 1, one.status.exitstatus
    assert_includes one.stderr, "boot_timeout"
  end

  def test_a_reload_keeps_the_pid_and_loses_no_request
    one = workspace
    answers = asking(one) do
      %w[second third fourth].each do |text|
        @space.write_app(text)
        one.signal(:HUP)
        wait_for_body(one, text)
      end
    end
    assert_equal %w[first second third fourth], answers.uniq
    assert_alone(one)
    wait_for_generation(one, 4)
    assert_equal 0, one.stop.exitstatus, one.stderr
    refute File.exist?(one.path) if unix?
  end

  def test_an_upgrade_is_a_reload
    one = workspace("--pid-file", pid_file)
    @space.write_app("second")
    one.signal(:USR2)
    wait_for_body(one, "second")
    assert_alone(one)
    assert_equal one.pid, File.read(pid_file).to_i
    assert_equal 0, one.stop.exitstatus
    refute File.exist?(pid_file)
  end

  # A call is under way, and a connection waits in the backlog while the program is started anew.
  def test_a_reload_finishes_what_has_begun
    one = single
    client = enter_gate(one, "only")
    one.signal(:HUP)
    wait_for_log(one, "becomes generation 2")
    waiting = connect(one).request("GET", "/pid")
    open_gate(one, "only")
    assert_equal "gate passed", client.read_response.body
    assert_equal one.pid, waiting.read_response.body.to_i
    wait_for_generation(one, 2)
  end

  # … and without call_timeout it is cut.
  def test_a_reload_waits_no_longer_than_shutdown_timeout
    one = single("--shutdown-timeout", "100ms", "--call-timeout", "0")
    client = enter_gate(one, "only")
    one.signal(:HUP)
    wait_for_generation(one, 2)
    assert client.closed?
    assert_alone(one)
  end

  # Longer than 1.1 seconds, after which a stop cuts it.
  def test_a_reload_waits_for_as_long_as_a_call_may_last
    one = single("--shutdown-timeout", "100ms", "--call-timeout", "1h")
    client = enter_gate(one, "only")
    one.signal(:HUP)
    wait_for_log(one, "becomes generation 2")
    later = E2E.clock + 2
    wait_until("the time of a stop to be over") { E2E.clock > later }
    open_gate(one, "only")
    assert_equal "gate passed", client.read_response.body
    wait_for_generation(one, 2)
    refute_includes one.stderr, "reached"
  end

  def test_a_stop_during_a_reload_waits_no_longer_than_shutdown_timeout
    one = single("--shutdown-timeout", "100ms", "--call-timeout", "1h")
    client = enter_gate(one, "only")
    one.signal(:HUP)
    wait_for_log(one, "becomes generation 2")
    one.signal(:TERM)
    assert_equal 0, one.wait.exitstatus
    assert client.closed?
    assert_includes one.stderr, "shutdown_timeout reached"
  end

  def test_signals_during_a_reload_do_no_harm
    one = workspace
    @space.write_app("second")
    over = false
    sender = Thread.new { %i[HUP USR1 USR2 TTIN TTOU].cycle { |name| over ? break : one.signal(name) && sleep(0.002) } }
    wait_for_body(one, "second")
    wait_until("a third generation") { E2E::Processes.title(one.pid)[/ generation (\d+),/, 1].to_i >= 3 }
    over = true
    sender.join
    # Between exec and the new handlers TERM would end it as it ends any program that starts.
    wait_until("the last reload: #{one.stderr}") do
      tried = one.stderr.scan(/generation (\d+) is tried/).flatten.last
      one.descendants.empty? && E2E::Processes.title(one.pid).include?(" generation #{tried},")
    end
    wait_for_body(one, "second")
    assert_equal 0, one.stop.exitstatus, one.stderr
  ensure
    over = true
    sender&.join
  end

  def test_sockets_with_relative_names_are_removed_wherever_the_application_is
    names = %w[control status socket]
    @space.write_app("first", ruby: 'Dir.chdir("/")', perl: "chdir '/';")
    one = workspace("--control", "control", "--status", "unix://status", "--bind", "unix://socket", env: { "E2E_CHDIR" => @space.dir })
    @space.write_app("second", ruby: 'Dir.chdir("/")', perl: "chdir '/';")
    one.signal(:HUP)
    wait_for_body(one, "second")
    assert_equal names, names.select { |name| File.socket?(File.join(@space.dir, name)) }
    assert_equal 0, one.stop.exitstatus, one.stderr
    assert_empty names & Dir.children(@space.dir)
  end

  def test_a_reload_in_a_folder_that_is_gone
    folder = File.join(@space.dir, "release").tap { |path| Dir.mkdir(path) }
    one = workspace("--control", @space.control, env: { "E2E_CHDIR" => folder })
    Dir.rmdir(folder)
    assert_includes ctl("reload", fails: true), "the folder that it was started in cannot be entered: #{folder}"
    assert_equal "first", body_of(one)
    Dir.mkdir(folder)
    assert_match(/generation 2/, ctl("reload"))
  end

  # Each generation leaves one that it has not waited for; the one after it knows nothing of that.
  def test_a_reload_leaves_no_children_that_have_ended
    more = { ruby: 'spawn("true")', perl: 'fork or exec "true";' }
    @space.write_app("first", **more)
    one = workspace
    %w[second third fourth].each do |text|
      wait_until("the child's end") { E2E::Processes.below(one.pid).any? { |pid| !E2E::Processes.alive?(pid) } }
      @space.write_app(text, **more)
      one.signal(:HUP)
      wait_for_body(one, text)
    end
    ended = -> { E2E::Processes.below(one.pid).reject { |pid| E2E::Processes.alive?(pid) } }
    wait_until("the last child's end") { ended.call.any? }
    assert_equal 1, ended.call.size
  end

  def test_a_broken_application_is_refused_at_a_reload
    one = workspace
    @space.break_app("not yet finished")
    one.signal(:HUP)
    wait_for_log(one, "reload failed")
    assert_match(/reload failed: .*not yet finished.*; generation 1 goes on$/, one.stderr)
    assert_equal "first", body_of(one)
    assert_alone(one)
    @space.write_app("second")
    one.signal(:HUP)
    wait_for_body(one, "second")
  end

  def test_a_broken_configuration_is_refused_at_a_reload
    @space.write_config({ idle_timeout: 5 })
    one = workspace("--config", @space.config)
    @space.write_config({ idle_timout: 5 })
    one.signal(:HUP)
    wait_for_log(one, "reload failed")
    assert_match(/reload failed: .*idle_timout/, one.stderr)
    assert_equal "first", body_of(one)
  end

  def test_a_stop_ends_a_reload
    one = workspace
    @space.write_app("late", ruby: "sleep", perl: "sleep 1 while 1;")
    one.signal(:HUP)
    trial = wait_until("the trial") { one.descendants.first }
    one.signal(:TERM)
    assert_equal 0, one.wait.exitstatus
    wait_until("the trial's end") { !E2E::Processes.alive?(trial) }
  end

  def test_the_environment_says_whether_there_may_be_other_processes
    File.write(@space.app, E2E::RUBY ? 'run ->(env) { [200, {}, [env["rack.multiprocess"].inspect]] }' :
                                       "sub { [200, ['Content-Type' => 'text/plain'], [$_[0]{'psgi.multiprocess'} ? 'true' : 'false']] }")
    assert_equal "false", body_of(single(app: @space.app))
    assert_equal "true", body_of(start("--workers", "1", app: @space.app))
  end

  def test_hooks
    names = %w[server_ready before_fork after_fork after_worker_ready before_reload before_worker_exit]
    @space.write_config({}, hooks: names)
    one = workspace("--config", @space.config)
    wait_until("the hooks of the start") { @space.notes.size >= 2 }
    @space.write_app("second")
    one.signal(:HUP)
    wait_for_body(one, "second")
    assert_equal 0, one.stop.exitstatus
    called = @space.notes.map(&:split)
    assert_equal %w[server_ready after_worker_ready before_reload before_worker_exit server_ready after_worker_ready before_worker_exit],
                 called.map(&:first)
    assert_equal [one.pid.to_s], called.map { |words| words[1] }.uniq
  end

  def test_logs_are_reopened
    log = File.join(@space.dir, "log")
    one = workspace("--error-log", log, "--access-log", File.join(@space.dir, "access"))
    wait_until("the log") { File.exist?(log) && File.read(log).include?("listening") }
    File.rename(log, "#{log}.1")
    File.rename(File.join(@space.dir, "access"), File.join(@space.dir, "access.1"))
    one.signal(:USR1)
    wait_until("new files") { File.exist?(log) && File.exist?(File.join(@space.dir, "access")) }
    body_of(one)
    one.stop
    assert_includes File.read(File.join(@space.dir, "access")), "GET / "
  end

  def test_ctl
    one = workspace("--control", @space.control)
    assert_match(/1 worker/, ctl("status"))
    @space.break_app("half done")
    assert_match(/half done/, ctl("reload", fails: true))
    @space.write_app("second")
    assert_match(/generation 2, pid #{one.pid}/, ctl("reload"))
    wait_for_body(one, "second")
    ctl("stop")
    assert_equal 0, one.wait.exitstatus
  end

  def test_a_file_that_changes_in_development
    one = workspace("--dev")
    wait_for_body(one, "first")
    @space.write_app("second")
    wait_for_body(one, "second")
    @space.break_app("a slip")
    wait_until("the page") { one.get("/").status == 500 }
    assert_includes body_of(one), "a slip"
    @space.write_app("third")
    wait_for_body(one, "third")
    assert_alone(one)
  end

  def test_a_call_does_not_keep_new_code_away_in_development
    one = workspace("--dev", "--control", @space.control)
    client = connect(one).request("GET", "/gate")
    wait_until("the call") { ctl("status").include?("busy") }
    @space.write_app("second")
    wait_for_log(one, "becomes generation 2")
    wait_for_body(one, "second")
    assert client.closed?
  end

  def test_what_a_single_process_cannot_do
    { ["--workers", "2"] => "workers", ["--no-dev", "--daemonize"] => "daemonize", ["--requests-max", "10"] => "requests_max",
      ["--memory-max", "1G"] => "memory_max", ["--age-max", "1h"] => "age_max", ["--refork-after", "9"] => "refork_after",
      ["--warmup", "/"] => "warmup", ["--user", "nobody"] => "user", ["--bind", "tls://127.0.0.1:0"] => "tls://",
      ["--bind", "127.0.0.1:0?frontend=on"] => "frontend=on" }.each do |options, word|
      one = run_to_end("--single", *options, app: @space.app)
      lines = one.stderr.lines
      assert_equal [1, 1], [one.status.exitstatus, lines.size], one.stderr
      assert_match(/: single and .*#{Regexp.escape(word)}.* exclude each other/, lines.first)
    end
  end

  def test_workers_in_the_environment_are_for_other_starts
    skip "WEB_CONCURRENCY is the same in both" unless E2E::RUBY
    one = launch([E2E::Server.binary, "--bind", unix? ? "unix://%{path}" : "127.0.0.1:%{port}", "--single", "--no-dev", @space.app],
                 env: { "WEB_CONCURRENCY" => "3" })
    assert_alone(one)
  end

  if E2E::RUBY
    def test_calls_run_in_threads
      one = workspace("--threads", "2")
      client = connect(one).request("GET", "/gate")
      assert_equal "first", body_of(one)
      @space.open_gate
      assert_equal "passed", client.read_response.body
      assert_alone(one)
    end

    def library = { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib") }

    def launcher
      where = unix? ? ["-O", "Path=%{path}"] : ["-o", "127.0.0.1", "-p", "%{port}"]
      ["rackup", "-s", "Oribi", "-E", "none", "-O", "Single=on", *where]
    end

    # The process reads its terminal as any program does: a debugger's prompt works.
    def test_the_terminal_is_the_process
      @space.write_app("never", ruby: "$stderr.puts \"typed: \#{$stdin.gets}\"")
      input, output = IO.pipe
      one = E2E::Server.new(transport: transport, options: ["--single"], app: @space.app)
      @servers << one
      pid = spawn_with_input(one, input)
      output.puts("here")
      wait_until("what was typed: #{one.stderr}") { one.stderr.include?("typed: here") }
      Process.kill(:INT, pid)
      Process.wait(pid)
    end

    def spawn_with_input(one, input)
      bind = unix? ? "unix://#{one.path}" : "127.0.0.1:#{one.port}"
      spawn(E2E::Server.binary, "--single", "--no-dev", "--bind", bind, @space.app, in: input, out: File::NULL, err: File.join(one.dir, "stderr"))
    end
  else
    def library = { "PERL5LIB" => %w[perl/blib/lib perl/blib/arch].map { |dir| File.join(E2E::ROOT, dir) }.join(":") }

    def launcher
      ["plackup", "-s", "Oribi", "-E", "none", "--single=on", *(unix? ? ["--listen", "%{path}"] : ["--host", "127.0.0.1", "--port", "%{port}"])]
    end
  end

  def test_the_launcher_of_the_language
    one = launch([*launcher, @space.app], env: library)
    wait_for_body(one, "first")
    assert_alone(one)
    @space.write_app("second")
    one.signal(:HUP)
    wait_for_body(one, "second")
    assert_alone(one)
    @space.break_app("half a program")
    one.signal(:HUP)
    wait_for_log(one, "reload failed")
    assert_equal "second", body_of(one)
    assert_equal 0, one.stop.exitstatus, one.stderr
  end

  private

  def pid_file = File.join(@space.dir, "pid")

  def ctl(*words, fails: false)
    out = IO.popen([E2E::Server.binary, "ctl", *words, "--control", @space.control], err: %i[child out], chdir: @space.dir, &:read)
    assert_equal !fails, $?.success?, out # rubocop:disable Style/SpecialGlobalVars
    out
  end
end
