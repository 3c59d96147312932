# frozen_string_literal: true

require "support"
require "support/crowd"
require "support/open_loop"
require "support/slow_disk"

# Crowds beside an ordinary client: slow heads, slow bodies and slow readers, and connections that just stay. Short
# here, where an ordinary request is to be answered while all of the crowd are still under way, however long it takes on
# a busy machine; bench/crowd runs the same with CROWD_SLOW=2000 (of each kind) and CROWD_IDLE=10000 on a quiet machine,
# asks for the strict bounds on times and keeps the figures (CROWD_RESULTS); CROWD_WRITE_DELAY is what a write to the
# disk takes then, in ms.
module Crowds
  LONG = ENV.key?("CROWD_SLOW")
  SLOW = ENV.fetch("CROWD_SLOW", "100").to_i
  IDLE = ENV.fetch("CROWD_IDLE", "2000").to_i
  RATE = 300 # requests a second of the ordinary client
  SECONDS = LONG ? 3 : 2
  PARTS = LONG ? 5 : 1 # of a measurement; a pause of the machine spoils one of them
  ROUNDS = LONG ? 15 : 3
  ROUND_REQUESTS = LONG ? 4000 : 300
  P99_RATIO_MAX = 2 # of a long run
  WRITE_DELAY = ENV.fetch("CROWD_WRITE_DELAY", "0").to_i
  CPU_RATIO_MAX = LONG ? 1.05 : 1.5
  BUDGET_BYTES = 4 << 20
  MEMBER_BYTES = 12_288 # a buffer of 4 KiB, a call with its head, a connection, what has come of a body
  GARBAGE_BYTES = 24 << 20 # what the runtime collects when it sees fit
  IDLE_BYTES_MAX = 512

  def note(what, figures)
    puts "#{E2E::COMMAND}, #{transport}, #{what}: #{figures.map { |name, value| "#{name} #{value}" }.join(", ")}"
    return unless ENV["CROWD_RESULTS"]

    line = JSON.generate({ command: E2E::COMMAND, transport: transport, what: what }.merge(figures))
    File.write(ENV["CROWD_RESULTS"], "#{line}\n", mode: "a")
  end

  def crowd(server, **kinds) = E2E::Crowd.new(server.address, **kinds).tap { |one| (@crowds ||= []) << one }

  # Of a server whose disk is slow, where that is asked for.
  def disk_env
    return {} if Crowds::WRITE_DELAY.zero?

    @dir = Dir.mktmpdir("oribi-crowd")
    @disk = E2E::SlowDisk.new(@dir)
    @disk.plan.delay_ms = Crowds::WRITE_DELAY
    @disk.env
  end

  # Thousands of writes one after another would outlast everybody's patience; what was to be measured is measured.
  def let_the_disk_go
    return unless @disk

    assert_operator @disk.plan.begun, :>, 0, "nothing was written"
    @disk.plan.delay_ms = 0
  end

  def teardown
    @crowds&.each(&:stop)
    super
    FileUtils.remove_entry(@dir) if @dir
  end

  # Memory that is the process's own.
  def memory_of(pid) = File.read("/proc/#{pid}/status")[/^RssAnon:\s+(\d+) kB/, 1].to_i * 1024

  # Of all threads, in ns: finer than clock ticks.
  def cpu_of(pid)
    Dir["/proc/#{pid}/task/*/schedstat"].sum { |path| File.read(path).to_i }
  end

  # p99 and mean, each the median of all parts.
  def ordinary(server)
    rows = Array.new(PARTS) do |part|
      row = E2E::OpenLoop.run(server.address, paths: "/", rate: RATE, seconds: SECONDS, seed: part + 1, connections: 4).fetch(%w[all time])
      assert_equal 0, row.errors
      assert_operator row.count, :>, RATE * SECONDS / 2
      row
    end
    %i[p99 mean].to_h { |name| [name, rows.map { |row| row[name] }.sort[PARTS / 2]] }
  end

  def warm(client, requests) = requests.times { client.get("/") }
end

E2E.suite("slow_clients", transports: E2E::EITHER) do
  include Crowds

  def test_an_ordinary_client_beside_slow_ones
    server = start("--connections-max", "20000", "--buffers-memory-max", Crowds::BUDGET_BYTES.to_s, "--head-timeout", "5m", "--fields-max", "200",
                   "--write-timeout", "5m", env: disk_env)
    worker = server.worker_pid
    alone = ordinary(server)
    count = E2E::Crowd.possible(Crowds::SLOW * 3) / 3
    memory = memory_of(worker)
    slow = crowd(server, heads: count, bodies: count, readers: count, target: "/big?size=#{Crowds::LONG ? 300_000 : 1_000_000}")
    beside = ordinary(server)
    grown = memory_of(worker) - memory
    let_the_disk_go
    tallies = slow.finish

    note "#{count} slow heads, #{count} slow bodies, #{count} slow readers",
         p99_alone_ms: alone[:p99], p99_beside_ms: beside[:p99], ratio: beside[:p99].fdiv(alone[:p99]).round(2), mean_alone_ms: alone[:mean],
         mean_beside_ms: beside[:mean], memory_mb: (grown / 1e6).round(1)
    tallies.each { |kind, tally| assert_equal E2E::Crowd::Tally.new(count, 0, count, 0), tally, kind }
    assert_operator beside[:p99], :<, alone[:p99] * Crowds::P99_RATIO_MAX if Crowds::LONG
    assert_operator grown, :<, Crowds::BUDGET_BYTES + 3 * count * Crowds::MEMBER_BYTES + Crowds::GARBAGE_BYTES
    assert_equal worker, server.worker_pid, server.stderr
  end
end

# connections_max is reached by clients that want nothing.
E2E.suite("full", transports: E2E::EITHER) do
  def max = 200

  def status
    JSON.parse(IO.popen([E2E::Server.binary, "ctl", "--control", @control, "status", "--json"], chdir: E2E::ROOT, &:read))
  end

  def open_in(status) = status.fetch("processes").sum { |process| process.fetch("connections_open") }
  def open_connections = open_in(status)

  def serve(workers, max)
    @control = File.join(Dir.mktmpdir("oribi-full"), "ctl")
    start("--workers", workers.to_s, "--connections-max", max.to_s, "--control", @control)
  end

  def teardown
    super
    FileUtils.remove_entry(File.dirname(@control)) if @control
  end

  # Accepted on TCP as well, where silent ones wait in the kernel.
  def rest(server, count, bytes)
    Array.new(count) { connect(server).tap { |client| client.send_raw(bytes) } }
  end

  def assert_served(server, count)
    count.times { assert_equal 200, server.get("/").status }
  end

  def check_newcomers(workers, bytes)
    server = serve(workers, max / workers)
    resting = rest(server, max, bytes)
    # Of several workers one may have its share before the others, and make room while these are awake with theirs.
    wait_until("all to be accepted") { status.then { |now| open_in(now) + now.fetch("connections_evicted") >= max } }
    assert_served(server, 1)
    wait_until("the line") { server.stderr.match?(/connections_max \(\d+\) reached: closed a connection .* for \d+ ms for a new one/) }
    assert_served(server, 20)
    assert_operator status.fetch("connections_evicted"), :>=, 1
    assert_operator open_connections, :<=, max
    assert(resting.any? { |client| client.socket.wait_readable(0) }, "none of them was closed")
  end

  def test_silent_clients_keep_nobody_out = check_newcomers(1, "\r\n")
  def test_half_read_heads_keep_nobody_out = check_newcomers(1, "GET / HTTP/1.1\r\nHost:")
  def test_several_workers = check_newcomers(2, "\r\n")

  # At the limit nobody goes, and those who are being served never do.
  def test_one_more_than_the_limit
    server = serve(1, 3)
    idle = connect(server)
    idle.get("/")
    upload = connect(server).send_raw("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc")
    recent = connect(server)
    recent.get("/")
    assert_equal 0, status.fetch("connections_evicted")
    newcomer = connect(server)
    assert_equal 200, newcomer.get("/").status
    assert idle.closed?
    assert_equal 1, status.fetch("connections_evicted")
    upload.send_raw("def")
    assert_equal "abcdef", upload.read_response.body
    assert_equal 200, recent.get("/").status
  end
end

E2E.suite("idle_clients", transports: E2E::EITHER) do
  include Crowds

  def options = ["--connections-max", "20000", "--idle-timeout", "1h", "--access-log", "off"]

  def test_memory_of_idle_connections
    server = start(*options)
    worker = server.worker_pid
    client = connect(server)
    count = E2E::Crowd.possible(Crowds::IDLE)
    warm(client, 2 * count)
    memory = memory_of(worker)
    idle = crowd(server, idle: count)
    assert_operator E2E::Processes.descriptors(worker).size, :>, count
    each = (memory_of(worker) - memory) / count.to_f
    note "#{count} idle connections", bytes_each: each.round
    assert_operator each, :<=, Crowds::IDLE_BYTES_MAX
    assert_equal 200, client.get("/").status
    assert_equal E2E::Crowd::Tally.new(count, 0, count, 0), idle.finish.fetch("idle")
  end

  # CPU time of the server, in ns, for each request of a client beside `pid`'s other connections.
  def cost(client, pid)
    before = cpu_of(pid)
    warm(client, Crowds::ROUND_REQUESTS)
    (cpu_of(pid) - before) / Crowds::ROUND_REQUESTS
  end

  # Two servers in turn, and of each its best round: what else the machine does only adds, and what the server does
  # wrong it does each time.
  def test_cpu_of_a_request_beside_idle_connections
    servers = Array.new(2) { start(*options) }
    pids = servers.map(&:worker_pid)
    clients = servers.map { |server| connect(server) }
    clients.each { |client| warm(client, Crowds::ROUND_REQUESTS) }
    count = E2E::Crowd.possible(Crowds::IDLE)
    crowd(servers.last, idle: count)
    best = [Float::INFINITY, Float::INFINITY]
    deadline = E2E.deadline(E2E::DEADLINE)
    (1..).each do |round|
      best = best.zip(clients.zip(pids).map { |client, pid| cost(client, pid) }).map(&:min)
      break if round >= Crowds::ROUNDS && (Crowds::LONG || E2E.portable? || best.last.fdiv(best.first) <= Crowds::CPU_RATIO_MAX || E2E.clock > deadline)
    end
    alone, beside = best
    note "a request beside #{count} idle connections", cpu_alone_us: alone / 1e3, cpu_beside_us: beside / 1e3, ratio: beside.fdiv(alone).round(3)
    skip_without("wait whose cost does not grow with the connections")
    assert_operator beside.fdiv(alone), :<=, Crowds::CPU_RATIO_MAX
  end
end
