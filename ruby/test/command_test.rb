# frozen_string_literal: true

require "support"
require "open3"

# The `oribi` command and the handlers of rackup, as processes.
class CommandTest < BindingTest
  COMMAND = [RUBY, "#{ROOT}/ruby/exe/oribi"].freeze
  HELLO = 'run ->(env) { [200, { "content-type" => "text/plain" }, ["hello from #{env["rack.url_scheme"]}"]] }'

  def setup
    super
    @dir = Dir.mktmpdir("oribi-command")
  end

  def teardown
    FileUtils.rm_rf(@dir)
    super
  end

  def file(name, content)
    path = File.join(@dir, name)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, content)
    path
  end

  def oribi(*arguments, env: {})
    output, error, status = Open3.capture3(env, *COMMAND, *arguments, chdir: @dir)
    [status.exitstatus, output, error]
  end

  # Starts a server, yields a client, its log and its pid, ends it; gives its exit status.
  def start(*command, env: {})
    log = File.join(@dir, "stderr")
    pid = spawn(env, *command, chdir: @dir, out: File.join(@dir, "stdout"), err: log)
    address = wait_until("a listening line in #{File.read(log)}") do
      flunk "ended: #{File.read(log)}" if Process.wait(pid, Process::WNOHANG)
      File.read(log)[%r{listening on ((?:tcp|unix)://\S+[^,\s])}, 1]
    end
    client = Client.new { connect(address) }
    Timeout.timeout(DEADLINE) { yield client, log, pid }
  ensure
    client&.close
    if pid && !$?&.pid.eql?(pid)
      Process.kill(:TERM, pid)
      Process.wait(pid)
    end
  end

  def mistake(*arguments, **options)
    code, output, error = oribi(*arguments, **options)
    assert_equal [1, ""], [code, output]
    assert_equal 1, error.lines.size, error
    error.chomp
  end

  # --- the command ---

  def test_serves_config_ru
    file("config.ru", HELLO)
    start(*COMMAND, "-p", "0", "-w", "1") do |client|
      response = client.get("/")
      assert_equal ["hello from http", 200], [response.body, response.status]
    end
    assert $?.success?
  end

  def test_other_files_and_constants
    file("own.ru", HELLO)
    file("lib/my_app.rb", 'module MyApp; def self.call(_) = [200, {}, [ENV["RACK_ENV"]]]; end')
    start(*COMMAND, "-b", "unix://#{@dir}/s", "-w", "1", "own.ru") { |client| assert_equal "hello from http", client.get("/").body }
    start(*COMMAND, "-p", "0", "-w", "1", "-E", "staging", "lib/my_app.rb") { |client| assert_equal "staging", client.get("/").body }
  end

  def test_libraries_and_directory
    file("sub/lib/helper.rb", "HELPED = 'helped'")
    file("sub/config.ru", "run ->(_) { [200, {}, [HELPED, Dir.pwd == #{File.join(@dir, "sub").dump} ? ' here' : ' there']] }")
    start(*COMMAND, "--chdir", "sub", "-I", "lib", "-r", "helper", "-p", "0", "-w", "1") do |client|
      assert_equal "helped here", client.get("/").body
    end
  end

  def test_config_file
    file("config.ru", HELLO)
    file("config/oribi.rb", "bind 'unix://#{@dir}/from-file'\nworkers 1\n")
    start(*COMMAND) do |client, log|
      assert_equal "hello from http", client.get("/").body
      assert_match(/from-file/, File.read(log))
    end
  end

  def test_without_preload
    file("config.ru", 'PARENT = Process.ppid; run ->(_) { [200, {}, ["#{$$} #{LOADED}"]] }; LOADED = $$')
    start(*COMMAND, "--no-preload", "-p", "0", "-w", "1") do |client|
      pid, loaded = client.get("/").body.split
      assert_equal pid, loaded, "the worker has loaded the application itself"
    end
    start(*COMMAND, "-p", "0", "-w", "1") do |client|
      pid, loaded = client.get("/").body.split
      refute_equal pid, loaded
    end
  end

  # As a file of Unicorn that `oribi import` has written.
  def test_hooks_with_objects
    file("config.ru", "run ->(_) { [200, {}, [$$.to_s]] }")
    file("unicorn.rb", <<~RUBY)
      worker_processes 1
      pid "#{@dir}/pid"
      note = ->(text) { File.write('#{@dir}/log', "\#{text}\\n", mode: "a") }
      before_fork do |server, worker|
        note.("before \#{server.config[:pid]}.oldbin \#{worker.nr + 1 >= server.worker_processes}")
      end
      after_fork { |server, worker| note.("after \#{worker.nr} \#{worker.pid == Process.pid} \#{server.pid}"); server.logger.info("it is up") }
      after_worker_exit { |_server, worker, status| note.("exit \#{worker.nr} \#{worker.pid} \#{status.success?}") }
    RUBY
    assert_empty IO.popen([*COMMAND, "import", File.join(@dir, "unicorn.rb"), "-o", File.join(@dir, "oribi.rb")], &:read)[/Not taken over/].to_s
    worker = nil
    start(*COMMAND, "-p", "0", "--config", "oribi.rb") { |client, *| worker = client.get("/").body }
    assert_equal ["before #{@dir}/pid.oldbin true", "after 0 true #{@dir}/pid", "exit 0 #{worker} true"], File.readlines(File.join(@dir, "log"), chomp: true)
  end

  def test_hooks_and_at_exit
    file("config.ru", "at_exit { File.write('#{@dir}/log', \"at_exit #{'#{$$}'}\\n\", mode: 'a') }\nrun ->(_) { [200, {}, [$$.to_s]] }")
    file("config/oribi.rb", <<~RUBY)
      note = ->(text) { File.write('#{@dir}/log', "\#{text} \#{$$}\\n", mode: "a") }
      at_exit { note.("config") }
      server_ready { note.("server_ready") }
      before_fork { |index| note.("before_fork \#{index}") }
      after_fork { |index| note.("after_fork \#{index}") }
      after_worker_ready { |index| note.("after_worker_ready \#{index}") }
      before_worker_exit { |index| note.("before_worker_exit \#{index}") }
      on_worker_exit { |pid, status, reason, index| note.("on_worker_exit \#{pid} \#{status} \#{index} \#{reason.inspect}") }
    RUBY
    worker = supervisor = nil
    start(*COMMAND, "-p", "0", "-w", "1") do |client, _, pid|
      worker = client.get("/").body
      supervisor = pid
      wait_until("server_ready") { File.read(File.join(@dir, "log")).include?("server_ready") } # a worker may answer before
    end
    lines = File.readlines(File.join(@dir, "log"), chomp: true)
    ["server_ready #{supervisor}", "after_fork 0 #{worker}", "after_worker_ready 0 #{worker}", "before_worker_exit 0 #{worker}",
     "at_exit #{worker}", "config #{supervisor}"].each { |line| assert_equal 1, lines.count(line), "#{line} in #{lines}" }
    assert_equal 1, lines.grep(/\Abefore_fork 0/).size
    assert_equal 1, lines.grep(/\Aat_exit/).size, "only in the worker: #{lines}"
    assert_equal 1, lines.grep(/\Aon_worker_exit #{worker} 0 0 /).size
    assert_equal 1, lines.grep(/\Aconfig/).size, "only in the supervisor: #{lines}"
  end

  def test_a_failing_after_fork_hook_is_a_failed_start
    file("config.ru", HELLO)
    file("config/oribi.rb", "after_fork { raise 'no database' }\nerr_respawn_interval 0\n")
    code, _, error = oribi("-p", "0", "-w", "1")
    assert_equal 1, code
    assert_match(/no database \(RuntimeError\)/, error)
  end

  def test_an_application_that_fails_in_the_worker
    file("config.ru", "raise 'told to fail' unless $PROGRAM_NAME.nil?")
    code, _, error = oribi("--no-dev", "--no-preload", "-p", "0", "-w", "1")
    assert_equal 1, code
    assert_match(/config\.ru:1: told to fail \(RuntimeError\)/, error)
  end

  def test_information
    code, output, error = oribi("--version")
    assert_equal [0, ""], [code, error]
    codings = /(gzip \(zlib .*\)|no gzip), (zstd .*|no zstd), (br \(.*\)|no br)/
    assert_match(
      /\Aoribi #{Oribi::VERSION}\ncompression: #{codings}\nsystem calls: (linux|bsd|portable)\nfrontend: (OpenSSL \S+, nghttp2 \S+|none)\n\z/,
      output
    )
    code, output, error = oribi("--help")
    assert_equal [0, ""], [code, error]
    assert_match(/\AUsage: oribi \[options\] \[config\.ru\]/, output)
    file("config/oribi.rb", "workers 9\n")
    assert_match(/^workers = 9$/, oribi("--print-config")[1])
  end

  def test_check
    file("config.ru", HELLO)
    code, output, error = oribi("--check")
    assert_equal [0, "config.ru: application and configuration load\n", ""], [code, output, error]
    file("config/oribi.rb", "wrokers 1")
    assert_match(%r{\Aoribi: .*config/oribi\.rb:1: .*wrokers.*workers}, mistake("--check"))
  end

  def test_mistakes
    assert_equal "oribi: config.ru: no such file; start oribi in the folder of the application, or name its file: oribi PATH/config.ru", mistake
    assert_equal "oribi: other.ru: no such file", mistake("other.ru")
    assert_match(/\Aoribi: .*--wrokers.*--workers/, mistake("--wrokers", "3"))
    assert_equal "oribi: .: is a directory", mistake(".")
    assert_match(/\Aoribi: chdir nowhere: no such file or directory\z/, mistake("--chdir", "nowhere"))
    assert_match(%r{\Aoribi: config file \.: is a directory}, mistake("-C", "."))
    assert_match(%r{\Aoribi: config file nowhere/oribi\.rb: no such file or directory}, mistake("-C", "nowhere/oribi.rb"))
    { "raise 'told to fail'" => /config\.ru:1: told to fail \(RuntimeError\)/, "nope(" => /config\.ru:\d+: .*syntax error/,
      "run 5" => /config\.ru: Integer is no Rack application/, "require 'nope/nope'" => /config\.ru:1: cannot load such file -- nope.nope \(LoadError\)/,
      "undefined_thing" => /config\.ru:1: undefined local variable or method `undefined_thing'/, "" => /config\.ru: / }.each do |source, message|
      file("config.ru", source)
      assert_match(message, mistake("--check"))
      assert_match(message, mistake("--no-dev", "-p", "0")) # in development it is a page
    end
  end

  def test_files_that_are_no_application
    { "README.md" => ["# Read me", /is no rackup file .*\.ru.* and no Ruby file/],
      "app.psgi" => ["sub { [200, [], []] }", /is a PSGI application: oribi-psgi serves those/],
      "config/oribi.rb" => ["workers 2", /is a configuration file: give it with -C/],
      "my_app.rb" => ["class Other; end", /defines no constant MyApp, .* rackup file, whose name ends in \.ru/],
      "own.rb" => ["Own = Missing", /own\.rb:1: uninitialized constant Missing \(NameError\)/],
      "other.rb" => ["undefined_thing", /other\.rb:1: undefined local variable or method/] }.each do |name, (source, message)|
      file(name, source)
      assert_match(message, mistake("--check", "-C", file("empty.rb", ""), name))
    end
  end

  def test_several_mistakes_are_a_line_each
    file("config.ru", HELLO)
    path = file("config/oribi.rb", "wrokers 1\nthreads 1, 2, 3\n")
    code, output, error = oribi
    assert_equal [1, ""], [code, output]
    assert_equal ["oribi: #{path}:1: unknown option wrokers: did you mean workers?",
                  "oribi: #{path}:2: threads takes one value, not 3: \"1\", \"2\", ..."], error.lines(chomp: true)
  end

  def test_verbose_shows_the_backtrace
    file("config.ru", "def fail_here = raise('told to fail')\nfail_here\n")
    code, _, error = oribi("--check", "-v")
    assert_equal 1, code
    assert_match(/config\.ru:1:in .fail_here.\n.*config\.ru:2:in /, error)
  end

  def test_an_address_in_use
    file("config.ru", HELLO)
    server = TCPServer.new("127.0.0.1", 0)
    assert_match(/\Aoribi: .*in use/, mistake("-p", server.local_address.ip_port.to_s))
  ensure
    server&.close
  end

  # --- rackup ---

  # The command was part of rack before it became a gem of its own.
  def rackup = [RUBY, "-I#{ROOT}/ruby/lib", Gem.bin_path(RACK3 ? "rackup" : "rack", "rackup")]

  def test_rackup_by_either_name
    file("config.ru", HELLO)
    %w[Oribi oribi].each do |name|
      start(*rackup, "-s", name, "-p", "0", "-E", "deployment", "-O", "Workers=1") do |client, log|
        assert_equal "hello from http", client.get("/").body
        assert_match(/oribi\[\d+\] info: listening/, File.read(log))
      end
      assert $?.success?
    end
  end

  def test_rackup_with_names_of_rhebok
    file("config.ru", HELLO)
    start(*rackup, "-s", "oribi", "-O", "Path=#{@dir}/rhebok.sock", "-O", "MaxWorkers=2", "-O", "MaxRequestPerChild=0", "-O", "OobGC=false",
          "-O", "Timeout=300", "-O", "ReusePort") do |client, log|
      assert_equal "hello from http", client.get("/").body
      assert_match(/2 workers/, File.read(log))
    end
  end

  def test_rackup_with_an_unknown_option
    file("config.ru", HELLO)
    _, error, status = Open3.capture3(*rackup, "-s", "oribi", "-p", "0", "-O", "MaxWrokers=1", chdir: @dir)
    assert_equal 1, status.exitstatus
    assert_match(/^oribi: .*MaxWrokers/, error)
  end

  def test_rackup_help
    output, status = Open3.capture2(*rackup, "-s", "oribi", "--help")
    assert status.success?
    assert_match(/-O IdleTimeout=TIME\s+time that a connection may rest/, output)
  end

  def test_rackup_keeps_its_pid_file_until_the_end
    file("config.ru", HELLO)
    start(*rackup, "-s", "oribi", "-p", "0", "-P", "#{@dir}/pid", "-O", "Workers=2") do |client, _, pid|
      client.get("/")
      assert_equal pid.to_s, File.read("#{@dir}/pid")
    end
    refute File.exist?("#{@dir}/pid")
  end

  def test_rackup_with_rack_2
    home = ENV["ORIBI_RACK2_HOME"] || File.join(ROOT, "build/rack2")
    skip "no rack 2.2 in #{home}" if Dir["#{home}/gems/rack-2.2*"].empty?
    file("config.ru", <<~'RUBY')
      require "uri"
      use Rack::Lint
      run ->(env) { [200, { "Content-Type" => "text/plain" }, [Rack.release, " ", env["rack.version"].inspect, env["HTTP_VERSION"]]] }
    RUBY
    env = { "GEM_HOME" => home, "GEM_PATH" => home, "RUBYOPT" => nil, "RUBYLIB" => nil }
    %w[Oribi oribi].each do |name|
      start(RUBY, "-I#{ROOT}/ruby/lib", "#{home}/bin/rackup", "-s", name, "-p", "0", "-O", "Workers=1", env: env) do |client|
        assert_match(/\A2\.2\.\S+ \[1, 3\]HTTP\/1\.1\z/, client.get("/").body)
      end
    end
    start(*COMMAND, "-p", "0", "-w", "1", env: env) { |client| assert_match(/\A2\.2\./, client.get("/").body) }
  end

  def test_called_from_ruby
    file("run.rb", <<~RUBY)
      require "oribi/handler"
      app = ->(_) { [200, {}, ["from ruby"]] }
      Oribi::Handler.run(app, Port: 0, Workers: 1, BeforeFork: -> { warn "before fork" }) { |server| warn server.class }
      warn "returned"
    RUBY
    start(RUBY, "-I#{ROOT}/ruby/lib", "run.rb") { |client| assert_equal "from ruby", client.get("/").body }
    log = File.read(File.join(@dir, "stderr"))
    assert_match(/^Oribi::Supervisor$/, log)
    assert_match(/^before fork$/, log)
    assert_match(/^returned$/, log)
  end
end
