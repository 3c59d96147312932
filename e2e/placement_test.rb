# frozen_string_literal: true

# No request waits behind another while a worker is idle, and no client and no call holds a worker: distributions,
# deadlines, overload.
require "support"
require "support/open_loop"

# What all suites here share.
module Placement
  WORKERS = 4
  MANY = 16
  SAMPLES = 6
  APP = "e2e/apps/placement#{E2E.differing(:app_extension)}"

  def serve(*options) = start(*options, app: APP)

  # The block gives how many requests that came later were begun sooner: in one queue before all workers none. A sample
  # has good and bad luck, and a machine with other work holds up workers that others overtake then; what the server
  # does wrong it does each time, so that one good sample of a few is enough.
  def assert_in_turn(what, overtaken_max)
    seen = []
    1.upto(SAMPLES) do |seed|
      seen << yield(seed)
      break if seen.last <= overtaken_max
    end
    assert_operator seen.min, :<=, overtaken_max, "#{what}: overtaken by #{seen.join(", ")}"
  end

  def occurrences(server, text) = server.stderr.scan(text).size
end

E2E.suite("placement", transports: E2E::EITHER) do
  include Placement

  def load(server, paths, rate, seed, seconds)
    rows = E2E::OpenLoop.run(server.address, paths: paths, rate: rate, seconds: seconds, seed: seed, servers: Placement::WORKERS)
    assert_equal 0, rows.fetch(%w[all time]).errors
    assert_operator rows.fetch(%w[all time]).count, :>, rate * seconds * 0.7
    rows
  end

  def say(rows, path, what, figure)
    beside = { "time" => "ideal", "wait" => "least" }.fetch(what)
    ms, ideal_ms = [what, beside].map { |name| rows.fetch([path, name])[figure] }
    puts format("%s, %s: %s %s %s %.2f ms, ideally %.2f ms", E2E::COMMAND, transport, path, what, figure, ms, ideal_ms)
  end

  # Half the load of four workers. Without a helper it is 0.4 to 0.8.
  def test_calls_of_all_lengths
    server = serve("--workers", Placement::WORKERS.to_s)
    assert_in_turn("mean, calls of 100 ms", 0.25) do |seed|
      rows = load(server, "/exp/100", 20, seed, 5)
      say(rows, "all", "wait", :mean)
      rows.fetch(%w[all overtaken]).mean
    end
  end

  # At 150 requests a second all four workers are in long calls for 0.6 of 100 arrivals, beyond 170 for more than one
  # (Erlang B): then somebody must wait.
  def overtaken_beside_long_calls(server, seed)
    rows = load(server, "/sleep/1:0.99,/sleep/500:0.01", 150, seed, 3)
    say(rows, "/sleep/1", "time", :p99)
    rows.fetch(["/sleep/1", "overtaken"]).p99
  end

  def test_short_calls_beside_long_ones
    server = serve("--workers", Placement::WORKERS.to_s)
    assert_in_turn("p99, calls of 1 ms, one of 100 takes 500 ms", 8) { |seed| overtaken_beside_long_calls(server, seed) }
  end

  # What the two above would see if requests waited behind others.
  def test_short_calls_behind_long_ones
    server = serve("--workers", Placement::WORKERS.to_s, "--no-helper")
    assert_operator overtaken_beside_long_calls(server, 1), :>, 20
  end
end

# Calls so short that none is worth a hand-off: then the connections must be spread. Whoever holds too many lets them go
# as soon as requests queue up there while others sleep, so the counts are waited for, under bursts on all connections.
E2E.suite("skew", transports: E2E::EITHER) do
  include Placement

  def open_connections(server, control)
    output = IO.popen([E2E::Server.binary, "ctl", "--control", control, "status", "--json"], chdir: E2E::ROOT, &:read)
    JSON.parse(output).fetch("processes").map { |process| process.fetch("connections_open") }
  end

  def burst(clients)
    clients.each { |client| client.request("GET", "/") }
    clients.each { |client| assert_equal 200, client.read_response.status }
  end

  def assert_spread(clients, server, control, range)
    counts = nil
    wait_until("connections to be spread") do
      10.times { burst(clients) }
      counts = open_connections(server, control)
      assert_equal clients.size, counts.sum
      counts.all? { |count| range.cover?(count) }
    end
  rescue E2E::Timeout
    flunk "connections of #{Placement::MANY} workers: #{counts}"
  end

  def test_connections_are_spread_over_the_workers
    Dir.mktmpdir("oribi-skew") do |dir|
      control = File.join(dir, "ctl")
      server = serve("--workers", Placement::MANY.to_s, "--control", control, "--no-helper")
      wait_until("all workers") { open_connections(server, control).size == Placement::MANY }
      clients = Array.new(64) { connect(server) }
      assert_spread(clients, server, control, 2..8)
      # All but those of the fullest worker leave: four that are left go four ways.
      pids = clients.to_h { |client| [client, client.get("/").body] }
      fullest = pids.values.tally.max_by(&:last).first
      left, going = clients.partition { |client| pids[client] == fullest }
      going.concat(left.slice!(4..) || []).each(&:close)
      wait_until("the others to go") { open_connections(server, control).sum == left.size }
      assert_spread(left, server, control, 0..1)
    end
  end
end

E2E.suite("deadlines", transports: E2E::EITHER) do
  include Placement

  def setup
    super
    @server = serve("--call-timeout", "300ms")
    @client = connect(@server)
    @pid = @client.get("/").body
  end

  # The answer to a call that was ended by an exception; the worker and the connection live on.
  def assert_timed_out(target)
    started = E2E.clock
    assert_equal 504, @client.get(target).status
    assert_operator E2E.clock - started, :>=, 0.29
    assert_equal @pid, @client.get("/").body, "the worker was replaced: #{@server.stderr}"
  end

  def test_a_call_that_sleeps
    assert_timed_out "/sleep/20000"
    wait_until("the log line") { @server.stderr.match?(%r{^.*error: .*GET /sleep/20000.*CallTimeout|^.*error: .*CallTimeout.*GET /sleep/20000}) }
    assert_equal 1, occurrences(@server, "CallTimeout: ")
  end

  def test_a_call_that_computes = assert_timed_out("/spin")

  def test_one_call_after_another
    3.times { assert_timed_out "/sleep/20000" }
    assert_equal 3, occurrences(@server, "CallTimeout: ")
  end

  def test_an_application_that_rescues
    response = @client.get("/rescue")
    assert_equal [200, "Oribi::CallTimeout"], [response.status, response.body]
    assert_equal @pid, @client.get("/").body
    assert_equal 0, occurrences(@server, "error:")
  end

  def test_a_call_that_has_asked_for_more_time
    assert_equal "extended", @client.get("/extend/20").body
    assert_equal 0, occurrences(@server, "error:")
  end

  def test_more_time_that_is_too_short
    assert_timed_out "/extend/0.3"
  end

  # Nobody may take it for whole.
  def test_an_answer_that_has_begun
    @client.request("GET", "/part")
    assert_equal 200, @client.read_head.status
    assert_raises(E2E::Client::Closed, Errno::ECONNRESET) { @client.read_bytes(1_000) }
    assert_equal @pid, @server.get("/").body
  end

  # The application keeps the exception, or every signal, from itself.
  def test_a_call_that_is_deaf
    @client.get("/sleep/5") # the helper is there now, and sees to a thread that takes no signals
    response = @client.get("/deaf")
    assert_equal 504, response.status
    assert response.close?
    refute_equal @pid, connect(@server).get("/").body
    assert_match(%r{call deadline: GET /deaf has run for \d+ ms}, @server.stderr)
  end

  # Its first call was stuck, and nobody saw that call end; the second finds the helper, so that others need not wait
  # for its deadline.
  def test_the_second_call_that_is_stuck
    assert_equal 504, @client.get("/stuck").status
    other = connect(@server)
    other.send_raw("GET / HTTP/1.1\r\nHost: a\r\n") # accepted first, and not finished
    stuck = connect(@server)
    refute_equal @pid, stuck.get("/").body
    stuck.request("GET", "/stuck")
    other.send_raw("a bad line\r\n\r\n")
    assert_equal 400, other.read_response.status
    assert_nil stuck.socket.wait_readable(0), "the other client waited for the end of the call"
    assert_equal 504, stuck.read_response.status
  end

  # The thread never looks: 504, its other connections go to the next worker, and it ends.
  def test_a_call_that_is_stuck
    other = connect(@server)
    other.get("/")
    response = @client.get("/stuck")
    assert_equal 504, response.status
    assert response.close?
    assert @client.closed?
    refute_equal @pid, other.get("/").body
    line = @server.stderr[/call deadline: .*/]
    assert_match(%r{GET /stuck has run for \d{4,} ms \(call_timeout 300 ms\), nothing answered, 504 sent; 1 connections passed on}, line)
  end
end

E2E.suite("overload", transports: E2E::EITHER) do
  include Placement

  # Connections that the worker knows already.
  def connected(server, count) = Array.new(count) { connect(server).tap { |client| client.get("/") } }

  # The second call finds the helper awake: it comes with the first long one.
  def long_call(server)
    first = enter_gate(server, "first")
    open_gate(server, "first")
    first.read_response
    enter_gate(server, "second")
  end

  def test_more_requests_than_may_wait
    server = start("--queue-max", "2")
    clients = connected(server, 5)
    caller = long_call(server)
    clients.each { |client| client.request("GET", "/") }
    refused = wait_until("three answers") do
      answered = clients.select { |client| client.socket.wait_readable(0) }
      answered if answered.size == 3
    end
    open_gate(server, "second")
    assert_equal "gate passed", caller.read_response.body
    statuses = clients.map do |client|
      response = client.read_response
      assert_equal "1", response["retry-after"] if response.status == 503
      [refused.include?(client), response.status]
    end
    assert_equal [[false, 200]] * 2 + [[true, 503]] * 3, statuses.sort_by(&:last)
  end

  # Newcomers count too, though the one worker is busy: nobody could refuse what waits in the kernel.
  def test_more_newcomers_than_may_wait
    server = start("--queue-max", "2")
    caller = long_call(server)
    clients = Array.new(5) { connect(server).request("GET", "/") }
    refused = wait_until("three answers") do
      answered = clients.select { |client| client.socket.wait_readable(0) }
      answered if answered.size == 3
    end
    refused.each { |client| assert_equal 503, client.read_response.status }
    open_gate(server, "second")
    assert_equal "gate passed", caller.read_response.body
    (clients - refused).each { |client| assert_equal 200, client.read_response.status }
  end

  def test_a_newcomer_that_has_waited_too_long
    server = start("--queue-time-max", "100ms")
    caller = long_call(server)
    assert_equal 503, connect(server).get("/").status
    open_gate(server, "second")
    assert_equal 200, caller.read_response.status
  end

  # Nothing was ever long at this server.
  def test_the_first_call_of_all_is_long
    server = start("--queue-time-max", "500ms")
    caller = enter_gate(server, "first")
    assert_equal 503, connect(server).get("/").status
    assert_nil caller.socket.wait_readable(0), "the other client waited for the end of the call"
    open_gate(server, "first")
    assert_equal 200, caller.read_response.status
  end

  # Refused while it waits, not when its turn would come.
  def test_a_request_that_has_waited_too_long
    server = start("--queue-time-max", "100ms")
    client, = connected(server, 1)
    caller = long_call(server)
    response = client.get("/")
    assert_equal [503, "1"], [response.status, response["retry-after"]]
    open_gate(server, "second")
    assert_equal 200, caller.read_response.status
  end

  def test_the_time_in_the_queue_is_told
    server = start
    client, = connected(server, 1)
    caller = long_call(server)
    sent_at = E2E.clock
    client.send_pieces("GET /queue HTTP/1.1\r\nHost: a\r\n\r\n") # read by the helper
    read_at = E2E.clock
    wait_until("a fifth of a second to pass") { E2E.clock - read_at > 0.2 }
    open_gate(server, "second")
    waited_us = client.read_response.body.to_i
    assert_includes 200_000..((E2E.clock - sent_at) * 1e6).ceil, waited_us
    assert_equal 200, caller.read_response.status
  end
end

# A worker that has no descriptors left, be it that the application has taken them all.
E2E.suite("starved", transports: E2E::EITHER) do
  include Placement

  # Its soft limit: the lowest number that is free is beyond what it may open, or it is as at the start.
  def limit_descriptors(pid, max = nil)
    used = E2E::Processes.descriptors(pid).keys.map(&:to_i)
    max ||= (0..).find { |fd| !used.include?(fd) }
    assert system("prlimit", "--pid", pid, "--nofile=#{max}:")
  end

  # By the worker's pid. They come from both when both are there.
  def clients_of_two_workers(server)
    groups = {}
    wait_until("both workers") do
      client = connect(server)
      (groups[client.get("/pid").body] ||= []) << client
      groups.size == 2 && groups.values.all? { |clients| clients.size >= 10 }
    end
    groups
  end

  # A call on this connection that lasts until the gate is opened, and the answers to what is asked on the others
  # meanwhile.
  def beside_long_call(server, caller, others, name)
    caller.request("GET", "/gate?name=#{name}")
    wait_until("the call") { entered?(server, name) }
    others.each { |client| client.request("GET", "/pid") }
    yield
    open_gate(server, name)
    assert_equal "gate passed", caller.read_response.body
  end

  # The pool is left alone by who could not take what is in it.
  def test_nothing_is_lost_between_workers
    server = start("--workers", "2")
    (starved, kept), (_, (caller, *others)) = *clients_of_two_workers(server)
    beside_long_call(server, caller, [], "warm") { IO.select(nil, nil, nil, 0.01) } # the helper is there now
    limit_descriptors(starved)
    beside_long_call(server, caller, others, "long") { wait_until("the line") { server.stderr.include?("out of file descriptors") } }
    others.each { |client| assert_equal 200, client.read_response.status }
    kept.each { |client| assert_equal starved, client.get("/pid").body }
    limit_descriptors(starved, 1024)
    beside_long_call(server, caller, others, "again") do
      others.each { |client| assert_equal starved, client.read_response.body }
    end
    refute_match(/without its descriptor/, server.stderr)
  end
end

E2E.suite("forked", transports: E2E::EITHER) do
  include Placement

  def sockets(pid) = E2E::Processes.descriptors(pid).values.grep(/\Asocket:/)

  def test_a_child_of_the_application_that_lives_on
    server = serve
    beside = connect(server)
    beside.get("/")
    client = connect(server)
    child = client.get("/fork", { "Connection" => "close" }).body.to_i
    assert client.closed?, "the child holds the connection"
    assert E2E::Processes.alive?(child)
    50.times do
      assert_equal 200, beside.get("/").status
      assert_equal 200, server.get("/").status
    end
    worker = server.get("/").body.to_i
    everybody = [server.pid, *server.descendants] - [worker, child]
    of_worker_alone = sockets(worker) - everybody.flat_map { |pid| sockets(pid) }
    refute_empty of_worker_alone
    assert_empty sockets(child) & of_worker_alone, "the child holds connections of the worker"
  ensure
    FileUtils.touch("#{server.dir}/child.stop") if server
    wait_until("the child to end") { !E2E::Processes.alive?(child) } if child
  end
end
