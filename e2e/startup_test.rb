# frozen_string_literal: true

require_relative "support"
require_relative "support/tracing"

# A user's mistake is one clear line on stderr and exit code 1, never a backtrace; good starts say what they did.
E2E.suite("startup", transports: E2E::EITHER) do
  include E2E::Tracing

  def app_file(text)
    File.join(Dir.mktmpdir("oribi-app"), "app#{E2E.differing(:app_extension)}").tap do |path|
      File.write(path, text)
      @app_dirs = [*@app_dirs, File.dirname(path)]
    end
  end

  def teardown
    super
    [*@app_dirs].each { |dir| FileUtils.remove_entry(dir) }
  end

  # Runs into the mistake; gives the line on stderr.
  def mistake(*options, **more)
    failed = run_to_end(*options, **more)
    assert_equal 1, failed.status.exitstatus, "stderr: #{failed.stderr}"
    lines = failed.stderr.lines
    assert_equal 1, lines.size, "not one line: #{failed.stderr}"
    assert_empty failed.descendants
    lines.first
  end

  def test_an_unknown_option_names_the_nearest_known_one
    assert_match(/--wrokers.*--workers/, mistake("--wrokers", "3"))
  end

  def test_bad_values
    assert_match(/workers/, mistake("--workers", "many"))
    assert_match(/head.timeout/, mistake("--head-timeout", "soon"))
    assert_match(/body.bytes.max/, mistake("--body-bytes-max", "-1"))
    assert_match(/access.log.format/, mistake("--access-log-format", "fancy"))
  end

  # The earliest moment at which a stop finds something to clean up: the first socket is being opened.
  def test_a_stop_while_the_sockets_are_opened_leaves_nothing
    skip_without_strace
    argv = ["strace", "-f", "-qq", "-o", File::NULL, "-e", "trace=listen", "-e", "inject=listen:signal=TERM:when=1", E2E::Server.binary,
            "--workers", "1", "--bind", unix? ? "unix://%{path}" : "127.0.0.1:%{port}"]
    dir = Dir.mktmpdir("oribi-e2e")
    @app_dirs = [dir]
    stopped = E2E::Server.new(transport: transport, argv: [*argv, "--pid-file", "#{dir}/pid", File.join(E2E::ROOT, E2E.differing(:app))], group: true)
    @servers << stopped
    stopped.run_to_end
    assert_equal 0, stopped.status.exitstatus, "#{stopped.status}: #{stopped.stderr}"
    assert_match(/stopping/, stopped.stderr)
    assert_empty Dir.children(dir)
    refute File.exist?(stopped.path), "socket file left" if unix?
    assert_empty stopped.group
  end

  def test_a_missing_value
    # The application's path would become the value; so the last word is the option itself.
    failed = E2E::Server.new(argv: [E2E::Server.binary, E2E.differing(:app), "--workers"])
    @servers << failed
    failed.run_to_end
    assert_equal [1, 1], [failed.status.exitstatus, failed.stderr.lines.size], failed.stderr
    assert_match(/workers/, failed.stderr)
  end

  def test_a_bad_address
    assert_match(/no.such.host|nonsense/, mistake("--bind", "tcp://nonsense:port"))
  end

  def test_an_address_with_tls
    assert_match(/asks for TLS: say tls:\/\/host:port/, mistake("--bind", "127.0.0.1:443:ssl"))
  end

  def test_another_servers_option_is_answered_with_ours
    assert_match(/--worker-processes \(Unicorn, Pitchfork\): here it is --workers/, mistake("--worker-processes", "2"))
    assert_match(/--enable-ssl \(Starman\): bind tls:/, mistake("--enable-ssl", "1"))
  end

  # What such a flag asks for is so without it.
  def test_another_servers_flag_that_changes_nothing_is_ignored_with_a_word
    one = start_serving("--disable-proctitle", "--net_server-log_level", "4", "-N", "--prune-bundler")
    assert_alive(one)
    ignored = one.stderr.scan(/ warn: (\S+) \(.*\) is ignored: /).flatten
    assert_equal %w[disable_proctitle net_server_log_level N prune_bundler], ignored, one.stderr
    assert_match(/net_server.allow.*Net::Server is not used/, mistake("--net_server-allow", "10.0.0.0/8"))
  end

  # Who is not root is told at the start, not by workers that fail one after the other.
  def test_a_user_that_we_may_not_become
    drop = ["setpriv", "--reuid=4711", "--regid=4711", "--clear-groups"]
    skip "only root can become somebody who may not" unless Process.euid.zero? && system(*drop, "true", err: File::NULL)
    dir = Dir.mktmpdir("oribi-e2e").tap { |path| @app_dirs = [path] }
    File.chmod(0o777, dir)
    failed = E2E::Server.new(transport: transport, dir: dir,
                             argv: [*drop, E2E::Server.binary, "--bind", unix? ? "unix://#{dir}/socket" : "127.0.0.1:%{port}", "--user", "nobody",
                                    "--workers", "1", E2E.differing(:app)])
    @servers << failed
    failed.run_to_end
    assert_equal 1, failed.status.exitstatus, failed.stderr
    assert_match(/\Aoribi(-psgi)?: user: only root can change to nobody, and this is user 4711: start as root, or leave user and group out\n\z/, failed.stderr)
    refute File.exist?("#{dir}/socket")
  end

  def test_a_missing_application
    assert_match(/absent/, mistake(app: "e2e/apps/absent#{E2E.differing(:app_extension)}"))
  end

  # For root, who may read everything, a link that leads to itself.
  def test_an_unreadable_application
    path = app_file("run nothing")
    File.chmod(0, path)
    if File.readable?(path)
      File.unlink(path)
      File.symlink(path, path)
    end
    assert_match(/#{Regexp.escape(path)}.*(permission|symbolic links|no such file)/i, mistake(app: path))
  end

  def test_a_directory_for_an_application
    assert_match(/apps/, mistake(app: "e2e/apps"))
  end

  def test_a_syntax_error_says_where
    assert_match(/app\.(ru|psgi).*1/, mistake(app: app_file(E2E::RUBY ? "run ->(env) { [" : "my $x = sub { [;")))
  end

  def test_an_application_that_raises_says_what_and_where
    line = mistake(app: app_file(E2E::RUBY ? "raise 'told not to load'" : "die qq{told not to load\\n};"))
    assert_match(/told not to load/, line)
  end

  def test_an_application_that_needs_what_is_not_there
    line = mistake(app: app_file(E2E::RUBY ? "require 'no_such_library'" : "use No::Such::Library; sub { [200, [], []] }"))
    assert_match(/no_such_library|No.+Such.+Library/, line)
  end

  def test_an_application_that_is_none
    assert_match(/app/, mistake(app: app_file(E2E::RUBY ? "1 + 1\n" : "42;\n")))
  end

  def test_a_config_file_that_is_not_there
    assert_match(/absent\.conf/, mistake("--config", "/nonexistent/absent.conf"))
  end

  def test_an_address_in_use
    first = start
    second = E2E::Server.new(argv: [E2E::Server.binary, "--bind", first.bind, E2E.differing(:app)])
    @servers << second
    second.run_to_end
    assert_equal [1, 1], [second.status.exitstatus, second.stderr.lines.size], second.stderr
    assert_match(/in use/i, second.stderr)
    assert_includes second.stderr, unix? ? first.path : first.port.to_s
    assert_alive(first)
  end

  if transport == :unix
    def test_a_stale_socket_file_is_replaced
      dir = Dir.mktmpdir("oribi-e2e")
      UNIXServer.new("#{dir}/socket").close
      again = E2E::Server.new(transport: :unix, dir: dir)
      @servers << again
      @app_dirs = [dir]
      assert_alive(again.start)
    end

    def test_a_file_in_the_way_is_left_alone
      dir = Dir.mktmpdir("oribi-e2e")
      @app_dirs = [dir]
      File.write("#{dir}/socket", "precious")
      refused = E2E::Server.new(transport: :unix, dir: dir)
      @servers << refused
      refused.run_to_end
      assert_equal 1, refused.status.exitstatus
      assert_equal "precious", File.read("#{dir}/socket")
    end
  end

  def test_the_start_line_says_address_workers_and_pid
    one = start
    assert_alive(one)
    wait_until("the start line") { one.stderr.include?(unix? ? one.path : "127.0.0.1:#{one.port}") }
    said = one.stderr
    assert_match(/\b1 workers?\b/, said)
    assert_match(/\b#{one.pid}\b/, said)
  end

  def test_quiet_says_nothing
    one = start("--quiet", "--access-log", "off")
    assert_alive(one)
    one.stop
    assert_equal "", one.stdout + one.stderr
  end

  def test_several_workers
    one = start("--workers", "3")
    wait_until("all workers") { Array.new(10) { one.worker_pid }; one.descendants.size >= 3 }
    assert_alive(one)
  end

  def test_pid_file
    path = "#{Dir.mktmpdir("oribi-e2e").tap { |dir| @app_dirs = [dir] }}/pid"
    one = start("--pid-file", path)
    wait_until("the pid file") { File.exist?(path) }
    assert_equal one.pid.to_s, File.read(path).strip # whoever sees the file sees the pid
    one.stop
    refute File.exist?(path), "pid file left"
  end
end

# What needs no address.
E2E.suite("command", transports: %i[tcp]) do
  # Both languages know their command line without the kernel's help.
  def test_without_proc
    hidden = ["unshare", "--mount", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"]
    skip "no mount namespaces for us here" unless system(*hidden, "true", err: File::NULL)
    one = E2E::Server.new(argv: [*hidden, E2E::Server.binary, "--bind", "127.0.0.1:%{port}", E2E.differing(:app)])
    @servers << one
    assert_alive(one.start)
  end

  # As a container with a root that is read-only, and no /tmp beside it.
  def test_a_control_socket_that_cannot_be_made_is_told_of
    hidden = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t tmpfs -o ro,size=64k tmpfs /tmp && exec "$@"', "sh"]
    skip "no mount namespaces for us here" unless system(*hidden, "true", err: File::NULL)
    [[], ["--single", "--no-dev"], %w[--control none]].each do |words|
      one = E2E::Server.new(argv: [*hidden, E2E::Server.binary, "--bind", "127.0.0.1:%{port}", *words, E2E.differing(:app)])
      @servers << one
      assert_alive(one.start)
      lines = one.stderr.lines.grep(/control: /)
      assert_equal words.include?("none") ? 0 : 1, lines.size, one.stderr
      next if lines.empty?

      assert_match(%r{ warn: control: /tmp/oribi-\d+: read-only file system; ctl cannot find this server \(--control PATH names another place\)$}, lines.first)
    end
  end

  def output_of(*words)
    one = E2E::Server.new(argv: [E2E::Server.binary, *words])
    @servers << one
    one.run_to_end
    assert_equal 0, one.status.exitstatus, one.stderr
    one.stdout
  end

  def test_help_names_every_option
    help = output_of("--help", "all")
    assert_equal help, output_of("help", "all")
    assert_equal output_of("--help"), output_of("help")
    assert_includes 24..40, output_of("--help").lines.size
    %w[--bind --port --host --workers --config --env --call-timeout --preload --requests-max --memory-max --access-log --access-log-format
       --error-log --pid-file --user --group --chdir --daemonize --check --print-config --quiet --verbose --version --help
       --head-timeout --body-timeout --idle-timeout --write-timeout --shutdown-timeout --head-bytes-max --target-bytes-max --fields-max
       --body-bytes-max --body-memory-max --backlog].each do |option|
      assert_match(/#{option.sub("--", "--(\\[no-\\])?")}\b/, help)
    end
  end

  # One number for both, which Ruby's file has as it is written everywhere else.
  def test_version
    number = File.read(File.join(E2E::ROOT, "ruby/lib/oribi/version.rb"))[/"([\d.]+)"/, 1]
    assert_equal number, output_of("--version")[/\A#{E2E::COMMAND} (\d+\.\d+\.\d+)/, 1]
  end

  def test_check_loads_and_ends = assert_kind_of(String, output_of("--check", E2E.differing(:app)))

  def test_print_config
    assert_match(/head_timeout.*7/, output_of("--head-timeout", "7s", "--print-config", E2E.differing(:app)))
  end
end
