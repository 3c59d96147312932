# frozen_string_literal: true

require_relative "support"
require_relative "support/workspace"

# Where values come from: command line over configuration file over environment over defaults, and what launchers add to
# that.
E2E.suite("configuration", transports: %i[tcp]) do
  include E2E::Home

  # A configuration file of these options, in the command's language.
  def config(path: "config/oribi#{E2E::RUBY ? ".rb" : ".pl"}", **options)
    lines = options.map { |name, value| E2E::RUBY ? "#{name} #{value.inspect}" : "#{name} => '#{value}'," }
    file(path, E2E::RUBY ? "#{lines.join("\n")}\n" : "+{ #{lines.join("\n")} };\n")
  end

  def app(text, path = E2E::RUBY ? "config.ru" : "app.psgi")
    file(path, E2E::RUBY ? "run ->(_) { [200, {}, ['#{text} ' + Process.pid.to_s]] }" : "sub { [200, [], ['#{text} ' . $$]] }")
  end

  # A command in the home directory; addresses are in its words or in its files.
  def launched(*words, env: {}, **more)
    E2E::Server.new(argv: words, env: { "E2E_CHDIR" => @home, **library, **env }, **more).tap { |one| @servers << one }
  end

  def library
    return { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib") } if E2E::RUBY

    { "PERL5LIB" => %w[perl/blib/lib perl/blib/arch].map { |dir| File.join(E2E::ROOT, dir) }.join(":") }
  end

  def printed(*words, env: {})
    one = launched(E2E::Server.binary, "--print-config", *words, env: env).run_to_end
    assert_equal 0, one.status.exitstatus, one.stderr
    one.stdout.lines(chomp: true).to_h { |line| line.split(/ = ?/, 2) }
  end

  def refusal(*words, env: {})
    one = launched(E2E::Server.binary, *words, env: env).run_to_end
    assert_equal 1, one.status.exitstatus, one.stderr
    one.stderr
  end

  # --- environment ---

  def test_a_frameworks_variable_decides_the_environment
    (E2E::RUBY ? %w[RACK_ENV RAILS_ENV APP_ENV] : %w[PLACK_ENV DANCER_ENVIRONMENT MOJO_MODE]).each do |name|
      assert_equal ["production", "0.0.0.0:9292", "off"], printed(env: { name => "production" }).values_at("env", "bind", "access_log"), name
    end
    config(env: "staging")
    assert_equal "staging", printed(env: { "RAILS_ENV" => "production", "MOJO_MODE" => "production" })["env"]
    assert_equal "test", printed("-E", "test", env: { "RAILS_ENV" => "production", "MOJO_MODE" => "production" })["env"]
  end

  def test_the_port_of_the_environment_is_weaker_than_the_files
    assert_equal "127.0.0.1:7001", printed(env: { "PORT" => "7001" })["bind"]
    config(port: 7002)
    assert_equal "127.0.0.1:7002", printed(env: { "PORT" => "7001" })["bind"]
    assert_equal "127.0.0.1:7003", printed("-p", "7003", env: { "PORT" => "7001" })["bind"]
    config(bind: "[::1]:7004")
    assert_equal "[::1]:7004", printed(env: { "PORT" => "7001" })["bind"]
    assert_equal "127.0.0.1:7003", printed("-p", "7003")["bind"]
  end

  if E2E::RUBY
    def test_variables_for_workers_and_threads
      env = { "WEB_CONCURRENCY" => "4", "RAILS_MAX_THREADS" => "5" }
      assert_equal %w[4 5], printed(env: env).values_at("workers", "threads")
      config(workers: 2)
      assert_equal %w[2 5], printed(env: env).values_at("workers", "threads")
      assert_equal %w[2 6], printed("--threads", "6", env: env).values_at("workers", "threads")
      assert_match(/\Aoribi: RAILS_MAX_THREADS in the environment must be a whole number from 1 to 64, not "lots"\n\z/,
                   refusal(env: { "RAILS_MAX_THREADS" => "lots" }))
    end

    def test_development_has_one_worker_with_threads
      assert_equal %w[1 3], printed.values_at("workers", "threads")
      assert_equal %w[2 1], printed("-w", "2").values_at("workers", "threads")
      assert_equal "1", printed("-E", "production")["threads"]
    end
  end

  # Unicorn's timeout is something else than Rhebok's.
  def test_timeout_is_told_apart_from_call_timeout
    app("x")
    said = lambda do |options, **settings|
      config(**settings, workers: 1, env: "production", bind: "127.0.0.1:#{free_port}")
      one = launched(E2E::Server.binary, *options).launch
      wait_until("a start line") { one.stderr.include?("listening") }
      one.stop
      one.stderr[/timeout is .*/]
    end
    expected = E2E::RUBY ? "timeout is how long the server waits for a client; how long a call may take is call_timeout, 1m now" : nil
    expected ? assert_equal(expected, said.([], timeout: 30)) : assert_nil(said.([], timeout: 30))
    assert_nil said.(["--call-timeout", "30"], timeout: 30)
    assert_nil said.([])
  end

  def test_words_of_other_commands
    assert_match(/restart: no such file; a running server is told by the command ctl: ctl reload/, refusal("restart"))
    { "reload" => "reload", "quit" => "stop", "stop" => "stop --now" }.each do |word, command|
      assert_match(/-s #{word}: a running server is told by the command ctl: ctl #{command}$/, refusal("-s", word))
    end
    assert_match(/-t needs a value: it is call_timeout; the command check tests a configuration$/, refusal("-t"))
  end

  # --- chdir ---

  def restarts(one)
    wait_until("the first code: #{one.stderr}") { one.get("/").body.start_with?("first") }
    yield "second"
    one.signal(:HUP)
    wait_until("the second code: #{one.stderr}") { one.get("/").body.start_with?("second") }
    yield "third"
    one.signal(:USR2)
    assert_equal 0, one.wait.exitstatus, one.stderr
    assert_match(/\Athird /, one.get("/").body)
    Process.kill(:TERM, Integer(File.read(File.join(@home, "site/run/pid"))))
    wait_until("the end of all") { one.group.empty? }
  end

  # The application, the socket and the pid file are below the directory; the file itself is not.
  def test_chdir_in_the_configuration_file
    FileUtils.mkdir_p(File.join(@home, "site/run"))
    write = ->(text) { app(text, "site/#{E2E::RUBY ? "config.ru" : "app.psgi"}") }
    write.("first")
    settings = config(chdir: "site", bind: "unix://run/socket", pid_file: "run/pid", workers: 1, path: "my.conf")
    one = E2E::Server.new(transport: :unix, dir: @home, group: true, argv: [E2E::Server.binary, "-C", "my.conf"],
                          env: { "E2E_CHDIR" => @home, "PWD" => nil })
    @servers << one
    one.instance_variable_set(:@address, File.join(@home, "site/run/socket"))
    assert File.exist?(settings)
    one.start
    restarts(one, &write)
  end

  def test_chdir_in_the_file_to_nowhere
    config(chdir: "nowhere")
    assert_match(%r{config/oribi.*chdir nowhere: no such file or directory$}, refusal)
  end

  def test_chdir_of_the_command_line_wins
    app("first", "site/#{E2E::RUBY ? "config.ru" : "app.psgi"}")
    config(chdir: "nowhere", path: "site/config/oribi#{E2E::RUBY ? ".rb" : ".pl"}")
    assert_equal "site", printed("--chdir", "site")["chdir"]
  end

  # --- launchers ---

  def launcher = E2E::RUBY ? %w[rackup -s oribi] : %w[plackup -s Oribi]

  # The address that the launched command says it listens on.
  def address(*words, env: {})
    one = launched(*launcher, *words, env: env, group: true).launch
    wait_until("a listening line: #{one.stderr}") { one.stderr[%r{listening on \w+://(\S+?),? }, 1] || (one.ended? && flunk(one.stderr)) }
  ensure
    one&.stop
  end

  def free_port = E2E.free_port

  def test_a_launchers_port_and_host_are_weaker_than_the_files
    app("x")
    port, other = free_port, free_port
    config(port: port, host: "127.0.0.1", workers: 1)
    assert_equal "127.0.0.1:#{port}", address
    assert_equal "127.0.0.1:#{port}", address(env: { "PORT" => other.to_s })
    assert_equal "127.0.0.1:#{other}", address("-p", other.to_s)
    assert_equal "127.0.0.1:#{other}", address("--port=#{other}")
    assert_equal "127.0.0.2:#{port}", address("--host", "127.0.0.2")
  end

  def test_a_launchers_port_and_host_are_weaker_than_the_files_bind
    app("x")
    port, other = free_port, free_port
    config(bind: "127.0.0.3:#{port}", workers: 1)
    assert_equal "127.0.0.3:#{port}", address
    assert_equal "127.0.0.2:#{other}", address("--host", "127.0.0.2", "-p", other.to_s)
  end

  def test_the_port_of_the_environment_is_stronger_than_a_launchers
    app("x")
    port = free_port
    assert_equal E2E::RUBY ? "localhost:#{port}" : "0.0.0.0:#{port}", address(env: { "PORT" => port.to_s }).sub(/127.0.0.1|\[::1\]/, "localhost")
  end

  def test_a_launchers_default_environment_is_no_word_against_the_frameworks
    app("x")
    name = E2E::RUBY ? "RAILS_ENV" : "MOJO_MODE"
    port = free_port
    assert_equal "0.0.0.0:#{port}", address("-p", port.to_s, env: { name => "production" })
  end

  def test_an_ipv6_host
    skip "no ::1 here" unless Socket.ip_address_list.any?(&:ipv6_loopback?)
    app("x")
    port = free_port
    assert_equal "[::1]:#{port}", address("--host", "::1", "--port", port.to_s)
  end
end
