# frozen_string_literal: true

require_relative "support"

LOST = /descriptor \d+ \(.+?\) is not the server's any more: the application has closed it, at the latest in GET \S+; \d+ connections passed on/

# Applications that close, or put something else in the place of, descriptors that are not theirs; and starters that
# leave the standard streams closed.
E2E.suite("descriptors", transports: E2E::EITHER) do
  const_set(:APP, "e2e/apps/descriptors#{E2E.differing(:app_extension)}")

  # After a long call, so that the worker has its helper and the application all that it loads.
  def serve(*options, **more)
    start(*options, app: self.class::APP, **more).tap { |one| assert_equal "0", one.get("/slow-close?from=1023&to=1023&seconds=0.05").body }
  end

  def standard(pid) = E2E::Processes.descriptors(pid).slice("0", "1", "2")

  # Every process of the server has its standard streams, and none of them is a socket or an eventfd. Where they are
  # closed at its start, Ruby itself puts pipes of its own there.
  def assert_standard_streams(one)
    [one.pid, *one.descendants].each do |pid|
      assert_equal %w[0 1 2], standard(pid).keys.sort, "#{E2E::Processes.title(pid)}: #{standard(pid)}"
      assert_empty standard(pid).values.grep(/socket:|anon_inode/), E2E::Processes.title(pid)
    end
  end

  # The number of the socket that the worker has accepted since `before`.
  def new_descriptor(pid, before) = wait_until("the worker to accept") { (sockets(pid).to_a - before.to_a).first }.first

  def sockets(pid) = E2E::Processes.descriptors(pid).select { |_, to| to.start_with?("socket:") }

  def setup
    super
    @space = Dir.mktmpdir("oribi-e2e")
  end

  def teardown
    super
    FileUtils.remove_entry(@space)
  end

  # --- 0 to 2 ---

  def test_no_connection_takes_the_place_of_a_closed_stream
    one = serve
    assert_equal "3", one.get("/close?from=0&to=2").body
    idle = connect(one)
    idle.get("/")
    assert_standard_streams(one)
    assert_equal 500, one.get("/raise").status
    wait_until("the line, in the log") { one.stderr.include?("told to fail") }
    assert idle.quiet?, "the log was written to a client"
    assert_equal "Hello, World!", idle.get("/").body
  end

  def test_the_access_log_survives_closed_streams
    one = serve("--access-log", "-")
    one.get("/close?from=0&to=2")
    one.get("/after")
    wait_until("the line") { one.stdout.include?("GET /after") }
    assert_standard_streams(one)
  end

  # All that a worker opens beside connections: a helper's eventfd during a long call, the log files anew.
  def test_nothing_of_ours_takes_the_place_of_a_closed_stream
    one = serve("--access-log", "#{@space}/access.log", "--error-log", "#{@space}/error.log")
    client = connect(one)
    worker = client.get("/pid").body.to_i
    client.get("/close?from=0&to=2")
    File.rename("#{@space}/access.log", "#{@space}/access.log.1")
    one.signal(:USR1)
    wait_until("a new access log") { client.get("/") && File.size?("#{@space}/access.log") }
    refute_includes standard(worker).values.join, "access.log"
    assert_empty standard(worker).values.grep(/socket:|anon_inode/)
  end

  def test_a_server_that_is_started_without_streams
    one = start(argv: ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", E2E::Server.binary, "--bind",
                       unix? ? "unix://%{path}" : "127.0.0.1:%{port}", "--workers", "1", "--access-log", "-",
                       File.expand_path(self.class::APP, E2E::ROOT)])
    assert_alive(one)
    wait_until("a mold and a worker") { one.descendants.size == 2 }
    assert_standard_streams(one)
    one.signal(:HUP)
    wait_until("the next generation alone") do
      titles = one.descendants.map { |pid| E2E::Processes.title(pid) }
      titles.size == 2 && titles.all? { |title| title.include?("generation 2") }
    end
    assert_alive(one)
    assert_standard_streams(one)
  end

  # --- what is the server's ---

  def lost_lines(one) = one.stderr.lines.grep(/is not the server's any more/)

  # Ruby's VM may be faster: it ends the process when its own descriptors are gone.
  def assert_one_reason(one)
    lines = one.stderr.lines.grep(E2E::RUBY ? /#{LOST}|ASYNC BUG/ : LOST)
    assert_equal 1, lines.size, one.stderr
  end

  def ask(one, target)
    one.get(target)
  rescue EOFError, SystemCallError, E2E::Client::Closed
    nil # the connection went with the rest
  end

  def workers(one) = one.descendants.select { |pid| E2E::Processes.title(pid).include?("worker") }.sort

  def wait_for_another(one, worker, seconds: E2E::DEADLINE)
    wait_until("another worker than #{worker}", seconds: seconds) { !E2E::Processes.alive?(worker) && one.worker_pid != worker }
  end

  def test_a_worker_whose_descriptors_are_all_closed_is_replaced
    one = serve("--workers", "2")
    wait_until("two workers") { workers(one).size == 2 }
    before = workers(one)
    ask(one, "/close?from=3&to=1024")
    wait_until("one other worker") { workers(one).size == 2 && (workers(one) - before).size == 1 }
    20.times { assert_alive(one) }
    assert_equal 1, (before & workers(one)).size, "the sibling goes on"
    assert_one_reason(one)
    workers(one).each { |pid| assert_idle(pid) }
  end

  # The number of the event loop's descriptor. poll(2) has none.
  def loop_fd(worker)
    skip "the event loop of a portable build has no descriptor that could be closed" if E2E.portable?
    E2E::Processes.descriptors(worker).key("anon_inode:[eventpoll]")
  end

  # In a long call the helper turns the event loop: it sees what has happened, not the thread that is in the call.
  def test_the_helper_ends_a_worker_whose_descriptors_are_closed
    one = serve
    worker = one.worker_pid
    fd = loop_fd(worker)
    client = connect(one)
    client.request("GET", "/slow-close?from=#{fd}&to=#{fd}&seconds=#{10 * E2E::DEADLINE}")
    wait_for_another(one, worker)
    assert_one_reason(one)
  end

  if E2E::RUBY
    def test_a_worker_with_threads_whose_event_loop_is_closed_is_replaced
      one = serve("--threads", "3")
      worker = one.worker_pid
      fd = loop_fd(worker)
      ask(one, "/close?from=#{fd}&to=#{fd}")
      wait_for_another(one, worker)
      assert_alive(one)
      assert_one_reason(one)
    end
  end

  # One at a time. What is not the server's but the runtime's may end the process as well; in any case somebody serves,
  # and nobody spins.
  def sweep(one, route)
    worker = one.worker_pid
    assert_idle(worker) # our connections are closed
    all = E2E::Processes.descriptors(worker).reject { |fd, _| fd.to_i <= 2 }
    all.each do |fd, name|
      worker = one.worker_pid
      next unless E2E::Processes.descriptors(worker)[fd]&.sub(/\d+/, "") == name.sub(/\d+/, "")

      ask(one, route.call(fd))
      wait_for_another(one, worker) if name.match?(/\Asocket:|eventpoll/)
      assert_alive(one)
      assert_idle(one.worker_pid)
    end
  end

  def test_a_worker_ends_without_any_one_of_its_descriptors
    one = serve("--access-log", "off")
    sweep(one, ->(fd) { "/close?from=#{fd}&to=#{fd}" })
    assert_operator lost_lines(one).size, :>=, 4, one.stderr
  end

  # The number belongs to a file of the application's then: the server writes nothing into it, and does not close it.
  def test_a_worker_ends_when_another_file_has_the_number_of_its_own
    one = serve("--access-log", "off")
    sweep(one, ->(fd) { "/occupy?from=#{fd}&to=#{fd}&path=#{one.dir}/file" })
    assert_operator lost_lines(one).size, :>=, 4, one.stderr
    assert_equal "", File.binread("#{one.dir}/file")
  end

  def test_a_worker_ends_without_its_access_log
    one = serve("--access-log", "#{@space}/access.log")
    worker = one.worker_pid
    fd = E2E::Processes.descriptors(worker).key("#{@space}/access.log")
    one.get("/close?from=#{fd}&to=#{fd}")
    wait_for_another(one, worker)
    assert_match(/descriptor #{fd} \(access log\) is not the server's/, one.stderr)
  end

  # --- connections ---

  def test_a_connection_whose_descriptor_is_closed_is_lost_alone
    one = serve
    worker = one.worker_pid
    before = sockets(worker)
    victim = connect(one)
    victim.get("/")
    fd = new_descriptor(worker, before)
    other = connect(one)
    assert_equal "1", other.get("/close?from=#{fd}&to=#{fd}").body
    assert victim.closed?
    # Its number is soon another's: neither takes from the other. One that was given back before may be lower.
    heir = wait_until("another connection with the number #{fd}") do
      connect(one).tap { |client| assert_equal "Hello, World!", client.get("/").body }.then { |client| client if sockets(worker).key?(fd) }
    end
    3.times { [heir, other].each { |client| assert_equal worker, client.get("/pid").body.to_i } }
    wait_until("the line") { one.stderr.include?("the application has closed the descriptor of a connection") }
  end

  def test_a_connection_that_is_closed_in_its_own_call_is_lost_alone
    one = serve
    worker = one.worker_pid
    other = connect(one)
    other.get("/")
    before = sockets(worker)
    client = connect(one)
    client.get("/")
    fd = new_descriptor(worker, before)
    client.request("GET", "/close?from=#{fd}&to=#{fd}")
    assert client.closed?
    assert_equal worker, other.get("/pid").body.to_i
  end

  def test_a_file_of_the_application_under_a_connections_number_stays_open
    one = serve
    worker = one.worker_pid
    before = sockets(worker)
    victim = connect(one)
    victim.get("/")
    fd = new_descriptor(worker, before)
    other = connect(one)
    other.get("/occupy?from=#{fd}&to=#{fd}&path=#{one.dir}/file")
    assert victim.closed?
    assert_equal "Hello, World!", other.get("/").body
    assert_equal "#{one.dir}/file", E2E::Processes.descriptors(worker)[fd]
    assert_equal "", File.binread("#{one.dir}/file")
  end

  # --- while the application loads ---

  def test_an_application_that_closes_everything_while_it_loads_does_not_start
    app = "#{@space}/app#{E2E.differing(:app_extension)}"
    ruby = %(require "fiddle"; close = Fiddle::Function.new(Fiddle.dlopen(nil)["close"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
             socket = ->(fd) { File.readlink("/proc/self/fd/\#{fd}").start_with?("socket:") rescue false }
             Dir.children("/proc/self/fd").map(&:to_i).each { |fd| close.call(fd) if fd > 2 && socket.call(fd) }
             run ->(_) { [200, {}, []] })
    perl = "use POSIX (); POSIX::close($_) for grep { (readlink qq{/proc/self/fd/$_} || '') =~ /^socket:/ } 3 .. 200; sub { [200, [], []] }"
    File.write(app, E2E::RUBY ? ruby : perl)
    failed = run_to_end(app: app)
    assert_equal 1, failed.status.exitstatus, failed.stderr
    assert_match(/the application has closed descriptor \d+ \(.+\) while it was loaded/, failed.stderr)
  end
end
