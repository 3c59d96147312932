# frozen_string_literal: true

require_relative "support"
require_relative "support/workspace"

# Children that the application forks and leaves behind: none of them keeps a socket or a pipe of the server's.
E2E.suite("forks", transports: %i[tcp]) do
  include E2E::InWorkspace

  # Each place where an application may fork, by its name; the child notes its pid under that name and sleeps.
  HOOKS = %w[before_fork after_fork after_worker_ready server_ready].freeze

  def teardown
    children.each_value { |pids| pids.each { |pid| E2E::Processes.kill(pid) } }
    super
  end

  def forking(name)
    if E2E::RUBY
      "fork { File.write('#{@space.notes_path}', \"#{name} \#{Process.pid}\\n\", mode: 'a'); sleep 120; exit!(0) }"
    else
      "if (!fork) { open my $f, '>>', '#{@space.notes_path}'; print $f qq{#{name} $$\\n}; close $f; sleep 120; POSIX::_exit(0) }"
    end
  end

  def write_files(*binds)
    code = "#{forking("load")}\n"
    @space.write_app("served", ruby: code, perl: "use POSIX ();\n#{code}")
    File.write(@space.config, E2E::RUBY ? ruby_config(binds) : perl_config(binds))
  end

  def ruby_config(binds)
    [*binds.map { |port| "bind '127.0.0.1:#{port}'" }, *HOOKS.map { |hook| "#{hook} { #{forking(hook)} }" }].join("\n") << "\n"
  end

  def perl_config(binds)
    hooks = HOOKS.map { |hook| "#{hook} => sub { #{forking(hook)} }" }
    "use POSIX ();\n+{ listen => [#{binds.map { |port| "'127.0.0.1:#{port}'" }.join(", ")}], #{hooks.join(", ")} };\n"
  end

  def children = @space.notes.map(&:split).group_by(&:first).transform_values { |notes| notes.map { |_, pid| pid.to_i } }

  def serve(*binds)
    write_files(*binds)
    one = E2E::Server.new(argv: [E2E::Server.binary, "--workers", "1", "--control", @space.control, "--config", @space.config, @space.app])
    @servers << one
    one.instance_variable_set(:@address, ["127.0.0.1", binds.first])
    one.start
    assert_equal "served", one.get("/").body
    one
  end

  # Sockets, pipes and shared memory of a process, but for its standard streams.
  def holdings(pid) = E2E::Processes.descriptors(pid).reject { |fd, _| fd.to_i <= 2 }.values.grep(/\A(socket|pipe|\/memfd)/).uniq

  # The process between a mold and a worker goes while we look.
  def holdings_if_there(pid)
    holdings(pid)
  rescue Errno::ENOENT
    []
  end

  def assert_nothing_kept(one, *names)
    wait_until("children of #{names}: #{@space.notes}") { (names - children.keys).empty? }
    ours = [one.pid, *(one.descendants - children.values.flatten)].flat_map { |pid| holdings_if_there(pid) }.uniq - holdings(Process.pid)
    refute_empty ours
    children.each { |name, pids| pids.each { |pid| assert_empty holdings(pid) & ours, "#{name}, #{E2E::Processes.descriptors(pid)}" } }
  end

  def refused?(port)
    TCPSocket.new("127.0.0.1", port).close
  rescue Errno::ECONNREFUSED
    true
  end

  def test_no_child_keeps_what_is_the_servers
    one = serve(E2E.free_port)
    assert_nothing_kept(one, "load", *HOOKS)
    one.signal(:HUP)
    wait_until("the second generation") { children["load"].size == 2 && one.stderr.include?("reload done") }
    assert_nothing_kept(one, "load", *HOOKS)
    assert_equal 0, one.stop.exitstatus
  end

  # --- no process to be had ---

  UNPRIVILEGED = 64_711 # a user whose processes nobody else has; root is not limited

  def serve_unprivileged
    skip "only root can start a server as another user" unless Process.uid.zero?
    FileUtils.chmod(0o755, @space.dir)
    one = E2E::Server.new(argv: ["setpriv", "--reuid", UNPRIVILEGED.to_s, "--clear-groups", E2E::Server.binary, "--workers", "1", "--bind", "127.0.0.1:%{port}",
                                 "--err-respawn-interval", "10ms", @space.app])
    @servers << one
    one.start
    assert_equal "first", one.get("/").body
    one
  end

  # As the same user: root of a container may not.
  def limit(one, count)
    as_user = ["setpriv", "--reuid", UNPRIVILEGED.to_s, "--clear-groups"]
    [one.pid, *one.descendants].each do |pid| # among them the one between a mold and its worker, which goes
      assert system(*as_user, "prlimit", "--pid", pid.to_s, "--nproc=#{count}:") || !E2E::Processes.alive?(pid), "limits of #{pid}"
    end
  end

  def mold_of(one) = wait_until("the mold's title") { one.descendants.find { |pid| E2E::Processes.title(pid).include?(" mold,") } }

  def test_no_process_for_a_worker_for_a_while
    one = serve_unprivileged
    limit(one, 1)
    Process.kill(:KILL, one.worker_pid)
    wait_until("the refusal, more than once: #{one.stderr}") { one.stderr.scan(/cannot fork worker 0: resource temporarily unavailable/).size > 1 }
    limit(one, 1000)
    assert_equal "first", one.get("/").body
    refute_match(/boot_timeout/, one.stderr)
  end

  def test_a_stop_while_no_process_is_to_be_had
    one = serve_unprivileged
    limit(one, 1)
    [mold_of(one), one.worker_pid].each { |pid| E2E::Processes.kill(pid) }
    wait_until("the refusal: #{one.stderr}") { one.stderr.match?(/cannot fork a process to load the application: resource temporarily unavailable/) }
    one.signal(:TERM)
    assert_equal 0, one.wait.exitstatus
  end

  def test_an_address_that_a_reload_drops_is_free
    kept, dropped = Array.new(2) { E2E.free_port }
    one = serve(kept, dropped)
    wait_until("the child") { children["load"] }
    write_files(kept)
    one.signal(:HUP)
    wait_until("the reload: #{one.stderr}") { one.stderr.include?("reload done") }
    wait_until("the old worker to let go of the address") { refused?(dropped) }
    TCPServer.new("127.0.0.1", dropped).close
    assert_equal "served", one.get("/").body
  end
end
