# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/subscriber"

# Channels over every transport at once, while something is replaced or killed again and again: WebSockets and event
# streams, HTTP/1.1 and HTTP/2, with and without TLS, at one frontend and at two. Who comes back with its id gets each
# message once and in order, or is told that it has missed some (doc/websocket.md, doc/events.md, doc/publish.md).
# ORIBI_SOAK=1: for minutes.
E2E.suite("transports", transports: %i[tcp]) do
  include FrontendServers

  CHANNEL = "h:numbers"
  ROUNDS = ENV["ORIBI_SOAK"] ? 100 : 3
  A_ROUND = 100 # messages, a hundredth of a second apart

  def setup
    super
    skip "no python3-h2 here" unless E2E::H2SocketClient.here?
    @subscribers = []
  end

  def teardown
    @subscribers.each(&:close)
    super
  end

  def begin_server(frontends, workers: 2, more: [])
    plain = FrontendServers::PLAIN_ADDRESS
    tls_port = E2E.free_port
    tls = bind.sub("%{port}", tls_port.to_s)
    serve("--bind", tls, "--workers", workers.to_s, "--frontends", frontends.to_s, "--status", "#{@dir}/status", "--status-token", "token",
          "--frontend-drain", "300ms", "--history", "h:,100000,600s", *more, address: plain, app: "e2e/apps/publish.#{E2E::RUBY ? "ru" : "psgi"}")
    @ports = { false => @one.port, true => tls_port }
  end

  # A subscriber over each transport; of two frontends both have some.
  def subscribe_all(frontends)
    @subscribers = E2E::Subscriber::TRANSPORTS.map { |transport| E2E::Subscriber.new(transport, @ports, CHANNEL) }
    wait_until("all to listen") { @subscribers.all?(&:listens?) }
    wait_until("subscribers at each frontend: #{ctl("status").first}") { at_frontends.size == frontends && at_frontends.all?(&:positive?) || cut_some }
  end

  # How many subscribers each frontend has.
  def at_frontends = JSON.parse(ctl("status", "--json").first)["frontends"].map { |row| row["websockets"] + row["event_streams"] }

  # They come back to any of the frontends.
  def cut_some
    @subscribers.sample(4).each(&:cut)
    false
  end

  def status(target, *words)
    out, = Open3.capture2(FrontendServers::PLAIN, "curl", "-sS", "--unix-socket", "#{@dir}/status", "-H", "Authorization: Bearer token", *words,
                          "http://localhost#{target}")
    out
  end

  def metric(name)
    status("/metrics")[/^#{Regexp.escape(name)} (\d+)$/, 1].to_i
  end

  def publish(data) = assert_equal("published", curl("/publish?channel=#{CHANNEL}&data=#{data}", scheme: "http"))

  # The block disturbs: each time when all have got a round of messages since the last time.
  def disturbed(rounds: ROUNDS)
    @publisher = curl("/job?channel=#{CHANNEL}&until=enough&pause=0.01", scheme: "http").to_i
    rounds.times do |i|
      yield i
      wanted = @subscribers.map(&:last).max + A_ROUND
      await_all("round #{i}") { |one| one.last >= wanted }
    end
    finish
  end

  def await_all(what)
    wait_until("#{what}: #{@subscribers.map { |one| [one.transport.name, one.last, one.ends, one.faults] }}; #{@one.stderr}") do
      @subscribers.all? { |one| yield(one) || one.faults.any? }
    end
  end

  def finish
    File.write(File.join(@one.dir, "enough"), "")
    job = File.join(@one.dir, "job")
    wait_until("the publisher") { File.size?(job) }
    @total = File.read(job).to_i
    finished = @subscribers.map { |one| Thread.new { one.join } }
    wait_until("the end to come") { publish(E2E::Subscriber::END_OF_ALL).then { finished.all? { |thread| !thread.join(0.1).nil? } } }
  end

  # Those that are open and get nothing while others get a lot.
  def who_waits
    before = @subscribers.to_h { |one| [one, one.last] }
    wanted = before.values.max + 2 * A_ROUND
    wait_until("messages") { @subscribers.map(&:last).max >= wanted }
    @subscribers.select { |one| one.open? && one.last == before[one] }
  end

  def assert_exactly_once
    assert_no_faults
    @subscribers.each do |one|
      assert_equal [0, @total], [one.resets, one.count], one.transport.name
    end
    assert_equal 0, metric("oribi_resume_resets_total")
  end

  def assert_no_faults
    @subscribers.each { |one| assert_empty one.faults, "#{one.transport.name}: #{@one.stderr}" }
    assert_equal 0, metric("oribi_publish_refused_total")
  end

  # Resets were told, and counted: a client that is cut before it has read may not know of one.
  def assert_resets(those = @subscribers)
    assert_no_faults
    those.each { |one| assert_operator one.resets, :>, 0, "#{one.transport.name}: #{one.ends}" }
    assert_operator metric("oribi_resume_resets_total"), :>=, @subscribers.sum(&:resets)
  end

  def assert_nothing_ended(statuses = [])
    @subscribers.each { |one| assert_equal [[], []], [one.ends, one.refusals - statuses], one.transport.name }
  end

  # How the old frontend ends connections. A client that had just cut its own at each upgrade has seen none end.
  def assert_told_of_upgrades
    @subscribers.partition { |one| one.transport.socket }.zip([1012, true]) do |those, how|
      assert_equal [how], those.flat_map(&:ends).uniq, those.map { |one| [one.transport.name, one.ends] }.to_s
    end
  end

  # Any; the publisher was forked by one.
  def worker = @one.descendants.find { |pid| pid != @publisher && E2E::Processes.title(pid).to_s.match?(/ worker \d/) }
  def frontend_pids = ctl("status").first.scan(/^frontend \d+, pid (\d+)/).flatten.map(&:to_i)

  def kill_frontend(number)
    before = @one.stderr.scan("serves again").size
    Process.kill(:KILL, frontend_pids[number])
    wait_until("another frontend #{number}: #{@one.stderr}") { @one.stderr.scan("serves again").size > before }
  end

  [1, 2].each do |frontends|
    define_method("test_reloads_at_#{frontends}") do
      begin_server(frontends)
      subscribe_all(frontends)
      disturbed { ctl("reload").then { |output, status| assert status.success?, output } }
      assert_exactly_once
      assert_nothing_ended
    end

    # A handshake that the killed one had in its hands is answered with 502.
    define_method("test_killed_workers_at_#{frontends}") do
      begin_server(frontends)
      subscribe_all(frontends)
      disturbed { kill(:KILL, wait_until("a worker") { worker }) }
      assert_exactly_once
      assert_nothing_ended([502])
    end

    define_method("test_killed_frontends_at_#{frontends}") do
      begin_server(frontends)
      subscribe_all(frontends)
      disturbed { kill_frontend(0) }
      assert_resets
    end

    define_method("test_upgrades_at_#{frontends}") do
      begin_server(frontends)
      subscribe_all(frontends)
      disturbed(rounds: [ROUNDS / 2, 2].max) { ctl("upgrade").then { |output, status| assert status.success?, output } }
      assert_exactly_once
      assert_told_of_upgrades
    ensure
      ctl("stop")
    end
  end

  # Histories are those of the first one: whoever comes back has lost nothing.
  def test_a_killed_frontend_that_follows
    begin_server(2)
    subscribe_all(2)
    disturbed { kill_frontend(1) }
    assert_exactly_once
  end

  # Beyond four megabytes for it the first frontend cuts it off: its clients are told.
  def test_a_frontend_that_hangs
    begin_server(2)
    subscribe_all(2)
    hanging = frontend_pids[1]
    @subscribers.each { |one| one.steady = true }
    stuck = []
    disturbed(rounds: 2) do |i|
      next unless i.zero?

      wait_until("subscribers at it") do
        Process.kill(:STOP, hanging)
        stuck = who_waits
        stuck.any? || Process.kill(:CONT, hanging) && cut_some
      end
      large = File.join(@dir, "large").tap { |path| File.binwrite(path, "x" * (1 << 20)) }
      octets = ["-H", "Content-Type: application/octet-stream", "-H", "Expect:", "--data-binary", "@#{large}"]
      wait_until("the feed to be cut off") { status("/publish?channel=n:other", *octets) && @one.stderr.include?("it is cut off from them") }
      Process.kill(:CONT, hanging)
    end
    assert_resets(stuck)
  ensure
    Process.kill(:CONT, hanging) if hanging
  end

  # An old first frontend that does not hand its histories over in a second: a new epoch, which is logged, told and
  # counted.
  def test_an_upgrade_beside_a_frontend_that_hangs
    begin_server(1)
    subscribe_all(1)
    old = frontend_pids[0]
    disturbed(rounds: 2) do |i|
      next unless i.zero?

      Process.kill(:STOP, old)
      output, status = ctl("upgrade")
      assert status.success?, output
      assert_includes @one.stderr, "the frontend of the server before does not answer: a new epoch begins"
      @subscribers.each(&:cut) # they come back to the new one
      await_all("resets") { |one| one.resets.positive? }
      Process.kill(:CONT, old)
    end
    assert_resets
  ensure
    Process.kill(:CONT, old) if old && E2E::Processes.alive?(old)
    ctl("stop")
  end
end
