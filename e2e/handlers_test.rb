# frozen_string_literal: true

require_relative "support"
require_relative "support/restarts"

# Started by the launchers of each language instead of our own command.
E2E.suite("handlers", transports: E2E::EITHER) do
  include E2E::Restarts

  def launch(argv, env: {})
    one = E2E::Server.new(transport: transport, argv: argv, env: env)
    @servers << one
    one.start
  end

  def assert_serves(one)
    assert_alive(one)
    env = JSON.parse(one.get("/env").body)
    assert_equal "/env", env["PATH_INFO"]
    one.get("/stdout")
    wait_until("what the application prints") { one.stdout.include?("a line on standard output\n") }
    below = one.descendants
    refute_empty below, "no worker below the launcher: another server answered"
    assert_equal 0, one.stop.exitstatus, one.stderr
    assert_empty one.left_behind
  end

  # A pid file of the launcher's: it names the server that serves, before and after HUP and USR2, and goes with the last
  # one. Nothing else is left.
  def assert_restarts_with_a_pid_file(launcher, detached: false)
    space = E2E::Workspace.new
    pid_file = File.join(space.dir, "pid")
    argv = launcher.map { |word| word.sub("%{app}", space.app).sub("%{pid}", pid_file) }
    one = E2E::Server.new(transport: transport, argv: argv, env: library, group: true)
    @servers << one
    detached ? one.run_to_end : one.start
    wait_until("the first code: #{one.stderr}") { serving(one) == "first" }
    first = wait_until("the pid file") { File.size?(pid_file) && File.read(pid_file).to_i }
    assert_equal one.pid, first unless detached
    space.write_app("second")
    Process.kill(:HUP, first)
    wait_until("the second code: #{one.stderr}") { serving(one) == "second" }
    assert_equal [first, [pid_file]], [File.read(pid_file).to_i, Dir.glob("#{pid_file}*")]
    space.write_app("third")
    Process.kill(:USR2, first)
    wait_until("the first server to leave: #{one.stderr}") { one.ended? && !E2E::Processes.alive?(first) }
    assert_equal "third", serving(one)
    second = File.read(pid_file).to_i
    refute_equal first, second
    assert_match(/ supervisor, /, E2E::Processes.title(second))
    assert_equal [pid_file], Dir.glob("#{pid_file}*")
    space.write_app("fourth")
    Process.kill(:HUP, second) # a successor does as well
    wait_until("the fourth code: #{one.stderr}") { serving(one) == "fourth" }
    assert_equal second, File.read(pid_file).to_i
    Process.kill(:TERM, second)
    wait_until("the end") { !E2E::Processes.alive?(second) }
    wait_until("all files to be gone") { Dir.glob("#{pid_file}*").empty? }
  ensure
    [first, second].compact.each { |pid| E2E::Processes.kill(pid) }
    space&.remove
  end

  def serving(one)
    one.get("/").body
  rescue Errno::ECONNREFUSED, Errno::ENOENT
    nil
  end

  # Signals that come while a server ends do nothing; where its program goes on, they mean again what they did before.
  def assert_gives_signals_back(*argv)
    one = launch(argv, env: library)
    assert_equal "inline", one.get("/").body
    one.signal(:TERM)
    wait_until("the program to go on: #{one.stderr}") { one.stdout.include?("goes on") }
    one.signal(:TERM)
    assert_equal Signal.list["TERM"], one.wait.termsig
  end

  def bind = unix? ? "unix://%{path}" : "127.0.0.1:%{port}"

  if E2E::RUBY
    def test_a_program_that_goes_on_has_its_signals_back
      assert_gives_signals_back("ruby", "-roribi/handler", "-e", <<~PROGRAM)
        Oribi::Handler.run(->(_) { [200, { "content-type" => "text/plain" }, ["inline"]] }, bind: "#{bind}", workers: 1)
        $stdout.syswrite("goes on")
        sleep
      PROGRAM
    end

    def library = { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib") }

    def rackup_options
      unix? ? ["-O", "Path=%{path}", "-O", "MaxWorkers=1"] : ["-o", "127.0.0.1", "-p", "%{port}", "-O", "Workers=1"]
    end

    def test_rackup
      assert_serves launch(["rackup", "-s", "Oribi", "-E", "none", *rackup_options, "e2e/apps/app.ru"], env: library)
    end

    def test_restarts_of_rackup = assert_restarts(["rackup", "-s", "Oribi", "-E", "none", *rackup_options, "%{app}"])

    def test_restarts_of_rackup_with_a_pid_file
      assert_restarts_with_a_pid_file(["rackup", "-s", "Oribi", "-E", "none", "-P", "%{pid}", *rackup_options, "%{app}"])
    end

    def test_restarts_of_rackup_in_the_background
      assert_restarts_with_a_pid_file(["rackup", "-s", "Oribi", "-E", "none", "-D", "--pid=%{pid}", *rackup_options, "%{app}"], detached: true)
    end

    def test_rackup_with_a_lower_case_name
      assert_serves launch(["rackup", "-s", "oribi", "-E", "none", *rackup_options, "e2e/apps/app.ru"], env: library)
    end

    def test_rackup_of_rack_2
      gems = File.join(E2E::ROOT, "build/rack2")
      skip "rack 2.2 is not in build/rack2 (script/setup test)" unless Dir.exist?("#{gems}/gems")
      env = library.merge("GEM_HOME" => gems, "GEM_PATH" => gems)
      assert_serves launch(["#{gems}/bin/rackup", "-s", "Oribi", "-E", "none", *rackup_options, "e2e/apps/app.ru"], env: env)
    end

    def test_rackup_with_an_unknown_option_says_so
      one = E2E::Server.new(argv: ["rackup", "-s", "Oribi", "-E", "none", "-O", "Wrokers=1", "e2e/apps/app.ru"], env: library)
      @servers << one
      one.run_to_end
      refute_equal 0, one.status.exitstatus
      assert_match(/Wrokers.*workers/im, one.stderr + one.stdout)
    end
  else
    def test_a_program_that_goes_on_has_its_signals_back
      assert_gives_signals_back("perl", "-MOribi", "-e", <<~PROGRAM)
        Oribi->new(bind => '#{bind}', workers => 1)->run(sub { [200, ['Content-Type' => 'text/plain'], ['inline']] });
        syswrite STDOUT, 'goes on';
        sleep;
      PROGRAM
    end

    def library = { "PERL5LIB" => %w[perl/blib/lib perl/blib/arch].map { |dir| File.join(E2E::ROOT, dir) }.join(":") }
    def plackup_options = unix? ? ["--listen", "%{path}"] : ["--host", "127.0.0.1", "--port", "%{port}"]

    def test_plackup
      assert_serves launch(["plackup", "-s", "Oribi", "-E", "none", "--workers", "1", *plackup_options, "e2e/apps/app.psgi"], env: library)
    end

    def test_restarts_of_plackup = assert_restarts(["plackup", "-s", "Oribi", "-E", "none", "--workers", "1", *plackup_options, "%{app}"])

    def test_restarts_of_plackup_with_a_pid_file
      assert_restarts_with_a_pid_file(["plackup", "-s", "Oribi", "-E", "none", "--pid", "%{pid}", "--workers", "1", *plackup_options, "%{app}"])
    end

    def test_restarts_of_plackup_in_the_background
      assert_restarts_with_a_pid_file(["plackup", "-s", "Oribi", "-E", "none", "-D", "--pid", "%{pid}", "--workers", "1", *plackup_options, "%{app}"],
                                      detached: true)
    end

    def test_restarts_of_a_one_liner
      assert_restarts(["perl", "-MOribi", "-e", "oribi '%{app}', #{unix? ? "bind => 'unix://%{path}'" : "port => %{port}"}, workers => 1"])
    end

    def test_plack_server_in_the_environment
      assert_serves launch(["plackup", "-E", "none", *plackup_options, "e2e/apps/app.psgi"], env: library.merge("PLACK_SERVER" => "Oribi"))
    end

    def test_options_of_the_servers_before
      assert_serves launch(["plackup", "-s", "Oribi", "-E", "none", "--max-workers", "1", "--timeout", "9", "--max-reqs-per-child", "100",
                            "--min-reqs-per-child", "50", "--keepalive-timeout", "3", *plackup_options, "e2e/apps/app.psgi"], env: library)
    end

    def test_a_flag_of_starman_that_changes_nothing
      one = launch(["plackup", "-s", "Oribi", "-E", "none", "--workers", "1", "--disable-proctitle", *plackup_options, "e2e/apps/app.psgi"], env: library)
      assert_serves(one)
      assert_equal 1, one.stderr.scan("proctitle (Starman) is ignored: not there and not needed: process titles are always set").size, one.stderr
    end

    def test_one_liner
      assert_serves launch(["perl", "-MOribi", "-e", "oribi 'e2e/apps/app.psgi', #{unix? ? "bind => 'unix://%{path}'" : "port => %{port}"}, workers => 1"],
                           env: library)
    end

    def test_inline_application
      one = launch([E2E::Server.binary, "--bind", unix? ? "unix://%{path}" : "127.0.0.1:%{port}", "--workers", "1",
                    "-e", "sub { [200, ['Content-Type' => 'text/plain'], ['inline']] }"])
      assert_equal "inline", one.get("/").body
    end
  end
end
