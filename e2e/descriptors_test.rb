# frozen_string_literal: true

require_relative "support"

# Applications that close, or put something else in the place of, descriptors that are not theirs; and starters that leave the standard streams closed.
E2E.suite("descriptors") do
  const_set(:APP, "e2e/apps/descriptors#{E2E.differing(:app_extension)}")

  def serve(*options, **more) = start(*options, app: self.class::APP, **more).tap { |one| assert_alive(one) }

  def standard(pid) = E2E::Processes.descriptors(pid).slice("0", "1", "2")

  # Every process of the server has its standard streams, and none of them is a socket or an eventfd. Where they are closed at its start, Ruby itself puts
  # pipes of its own there.
  def assert_standard_streams(one)
    [one.pid, *one.descendants].each do |pid|
      assert_equal %w[0 1 2], standard(pid).keys.sort, "#{E2E::Processes.title(pid)}: #{standard(pid)}"
      assert_empty standard(pid).values.grep(/socket:|anon_inode/), E2E::Processes.title(pid)
    end
  end

  # The number of what the worker opened since `before`.
  def new_descriptor(pid, before)
    wait_until("the worker to accept") { (E2E::Processes.descriptors(pid).select { |_, to| to.start_with?("socket:") }.keys - before).first }
  end

  def sockets(pid) = E2E::Processes.descriptors(pid).select { |_, to| to.start_with?("socket:") }.keys

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
    Dir.mktmpdir("oribi-e2e") do |dir|
      one = serve("--access-log", "#{dir}/access.log", "--error-log", "#{dir}/error.log")
      client = connect(one)
      worker = client.get("/pid").body.to_i
      client.get("/close?from=0&to=2")
      File.rename("#{dir}/access.log", "#{dir}/access.log.1")
      one.signal(:USR1)
      wait_until("a new access log") { client.get("/") && File.size?("#{dir}/access.log") }
      refute_includes standard(worker).values.join, "access.log"
      assert_empty standard(worker).values.grep(/socket:|anon_inode/)
    end
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
end
