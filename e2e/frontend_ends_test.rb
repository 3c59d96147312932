# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require "json"

# Ends while requests wait in a frontend: a stop, an upgrade, the death of a supervisor, of a frontend, of a worker. Two
# workers are in a call each, and ten more requests wait. ORIBI_SOAK: twenty rounds at random moments.
E2E.suite("frontend_ends", transports: %i[tcp]) do
  include FrontendServers
  include E2E::Gates

  WORKERS = 2
  REQUESTS = 12
  ROUNDS = ENV.key?("ORIBI_SOAK") ? 20 : 2

  # How requests come: words for h2load, and the address's scheme.
  WAYS = { "HTTP/2 over TLS" => [%W[-c 1 -m #{REQUESTS}], "https"], "HTTP/1.1 over TLS" => [%W[--h1 -c #{REQUESTS}], "https"],
           "HTTP/2" => [%W[-c 1 -m #{REQUESTS}], "http"], "HTTP/1.1" => [%W[--h1 -c #{REQUESTS}], "http"] }.freeze

  def serve_way(scheme, *options, **more)
    serve("--workers", WORKERS.to_s, *options, address: scheme == "https" ? bind : FrontendServers::PLAIN_ADDRESS, **more)
  end

  # Spawned in a process group of its own, which no signal of a case reaches.
  def ask(words, scheme, target, requests: REQUESTS)
    @asked = File.join(@dir, "h2load.#{(@asks = @asks.to_i + 1)}")
    @load = Process.detach(Process.spawn(FrontendServers::PLAIN, "h2load", "-n", requests.to_s, *words, "#{scheme}://127.0.0.1:#{@one.port}#{target}",
                                         out: @asked, err: %i[child out], pgroup: true))
  end

  # {2 => 12}: answers by the first digit of their status.
  def answers
    wait_until("h2load to end: #{@one.stderr}") { !@load.alive? }
    File.read(@asked)[/^status codes: .*/].scan(/(\d+) (\d)xx/).to_h { |count, digit| [digit.to_i, count.to_i] }.reject { |_, count| count.zero? }
  end

  def frontends_status = JSON.parse(ctl("status", "--json").first)["frontends"]

  # Requests that all wait for the gate: as many as there are workers have begun.
  def fill(way, *options, **more)
    words, scheme = WAYS.fetch(way)
    serve_way(scheme, *options, **more)
    ask(words, scheme, "/gate?name=all")
    wait_until("requests to wait: #{@one.stderr}") { frontends_status.sum { |one| one["queued"] } == REQUESTS - WORKERS && entered?(@one, "all") }
  end

  WAYS.each_key do |way|
    test_name = way.downcase.gsub(/\W+/, "_")

    define_method(:"test_a_stop_answers_what_waits_by_#{test_name}") do
      fill(way)
      @one.signal(:TERM)
      wait_until("the stop") { @one.stderr.include?("stopping") }
      open_gate(@one, "all")
      assert_equal({ 2 => REQUESTS }, answers, @one.stderr)
      assert_equal 0, @one.wait.exitstatus
    end

    define_method(:"test_the_death_of_the_supervisor_leaves_nobody_waiting_by_#{test_name}") do
      fill(way, group: true)
      the_frontend = frontend
      Process.kill(:KILL, @one.pid)
      open_gate(@one, "all")
      assert_equal REQUESTS, answers.values.sum, "#{answers} #{@one.stderr}"
      assert_empty answers.keys - [2, 5]
      wait_until("the frontend to end") { !E2E::Processes.alive?(the_frontend) }
    end
  end

  # As service managers stop a server.
  def test_a_stop_of_the_whole_group_answers_what_waits
    fill("HTTP/2 over TLS", group: true)
    @one.signal(:TERM, -@one.pid)
    wait_until("the stop") { @one.stderr.include?("stopping") }
    open_gate(@one, "all")
    assert_equal({ 2 => REQUESTS }, answers, @one.stderr)
    assert_equal 0, @one.wait.exitstatus
  end

  # The group has it before the supervisor.
  def test_workers_that_hear_of_a_stop_first_serve_the_frontend_on
    fill("HTTP/2 over TLS", group: true)
    @one.signal(:STOP)
    @one.signal(:TERM, -@one.pid)
    @one.signal(:CONT)
    open_gate(@one, "all")
    assert_equal({ 2 => REQUESTS }, answers, @one.stderr)
    assert_equal 0, @one.wait.exitstatus
  end

  def test_an_upgrade_answers_what_waits
    fill("HTTP/2 over TLS", group: true)
    before = @one.pid
    asked = Thread.new { ctl("upgrade") }
    wait_until("the successor to serve: #{@one.stderr}") { @one.stderr.include?("has taken over") }
    open_gate(@one, "all")
    assert_equal({ 2 => REQUESTS }, answers, @one.stderr)
    output, status = asked.value
    assert status.success?, output
    assert_equal 0, @one.wait.exitstatus
    refute E2E::Processes.alive?(before)
    assert_match(/\A\d+\z/, curl("/pid"))
  ensure
    asked&.join
  end

  def test_a_worker_that_is_killed_costs_no_request_that_waits
    fill("HTTP/2 over TLS")
    Process.kill(:KILL, Integer(File.read("#{@one.dir}/all.entered")))
    wait_until("its replacement") { @one.stderr.include?("replacing it") }
    open_gate(@one, "all")
    assert_equal({ 2 => REQUESTS }, answers, @one.stderr)
  end

  # Workers are replaced while a stop waits for frontends, which need them.
  def test_a_worker_that_dies_in_a_stop_is_replaced_for_the_frontend
    fill("HTTP/2 over TLS")
    @one.signal(:TERM)
    wait_until("the stop") { @one.stderr.include?("stopping") }
    Process.kill(:KILL, Integer(File.read("#{@one.dir}/all.entered")))
    wait_until("its end: #{@one.stderr}") { @one.stderr.include?("replacing it") }
    open_gate(@one, "all")
    assert_equal({ 2 => REQUESTS }, answers, @one.stderr)
    assert_equal 0, @one.wait.exitstatus
  end

  # ctl and a second signal are heard meanwhile.
  def test_a_stop_that_waits_for_a_frontend_is_hurried
    fill("HTTP/2 over TLS")
    @one.signal(:TERM)
    wait_until("the stop") { @one.stderr.include?("stopping") }
    output, status = ctl("status")
    assert status.success?, output
    assert_match(/\A[^\n]*stopping/, output)
    @one.signal(:TERM)
    assert_equal 0, @one.wait.exitstatus
    assert_includes @one.stderr, "stopping now"
  end

  # Who does not end is no reason to stay: what waits gets an answer all the same.
  def test_a_stop_is_over_after_shutdown_timeout
    fill("HTTP/2 over TLS", "--shutdown-timeout", "1s")
    @one.signal(:TERM)
    assert_equal 0, @one.wait.exitstatus
    assert_operator answers[5].to_i, :>=, REQUESTS - WORKERS, "#{answers} #{@one.stderr}"
  end

  # Whoever has connected to a frontend before the stop is answered, as on plain addresses.
  def test_who_has_connected_to_a_frontend_before_a_stop_is_answered
    serve_way("http", "--frontends", "1")
    client = enter_gate(@one, "one")
    Process.kill(:STOP, the_frontend = frontend)
    waiting = Array.new(3) { |i| connect(@one).request("GET", "/echo?#{i}") }
    @one.signal(:TERM)
    wait_until("the stop") { @one.stderr.include?("stopping") }
    Process.kill(:CONT, the_frontend)
    open_gate(@one, "one")
    assert_equal "gate passed", client.read_response.body
    waiting.each { |one| assert_equal 200, one.read_response.status }
    assert_equal 0, @one.wait.exitstatus
  end

  # As a service manager does it.
  def test_a_supervisor_that_is_started_at_once_gets_the_port
    fill("HTTP/2 over TLS", group: true)
    old = @one
    Process.kill(:KILL, old.pid)
    argv = [E2E::Server.binary, "--bind", bind.gsub("%{port}", old.port.to_s), "--no-dev", "--control", "#{@dir}/control2",
            File.expand_path(E2E.differing(:app), E2E::ROOT)]
    @one = E2E::Server.new(argv: argv)
    @one.instance_variable_set(:@address, ["127.0.0.1", old.port])
    @one.start
    wait_until("the server to be up: #{@one.stderr}") { @one.stderr.include?("listening on") }
    assert_match(/\A\d+\z/, curl("/pid"))
    open_gate(old, "all")
    assert_equal REQUESTS, answers.values.sum, old.stderr
  ensure
    old&.cleanup
  end

  # A frontend takes the place of a connection that rests for whoever comes, as workers do.
  def test_without_descriptors_connections_that_rest_make_way
    serve_way("http", "--idle-timeout", "1h")
    resting = Array.new(4) { connect(@one).tap { |client| assert_equal 200, client.get("/").status } }
    wait_until("the frontend to count them") { frontends_status[0]["connections_open"] == resting.size }
    open = E2E::Processes.descriptors(frontend).keys.map(&:to_i)
    lowest = (0..).find { |fd| !open.include?(fd) }
    system("prlimit", "--pid", frontend.to_s, "--nofile=#{lowest}:") or raise "prlimit is not there"
    newcomer = connect(@one).request("GET", "/") # one that comes before the others have rested for long enough waits
    assert_equal 200, newcomer.read_response.status
    wait_until("one to have made way") { resting.count(&:readable?).positive? }
  end

  # --- random moments ---

  def moment = sleep(rand * 0.4)

  def rounds
    ROUNDS.times do |i|
      words, scheme = WAYS.values[i % WAYS.size]
      serve_way(scheme, group: true)
      ask(words, scheme, "/gate?name=all", requests: 60)
      open_gate(@one, "all")
      yield
      @one.cleanup
    end
  end

  def test_stops_at_random_moments_lose_nothing
    rounds do
      moment
      @one.signal(:TERM)
      assert_equal 0, @one.wait.exitstatus
      assert_empty answers.keys - [2], "#{answers} #{@one.stderr}"
    end
  end

  # Who had asked is answered, whatever the moment; a frontend that has nothing to do has ended.
  def test_supervisors_that_are_killed_at_random_moments_leave_nobody_waiting
    rounds do
      the_frontend = frontend
      moment
      Process.kill(:KILL, @one.pid)
      assert_empty answers.keys - [2, 5], @one.stderr
      wait_until("the frontend to end") { !E2E::Processes.alive?(the_frontend) }
    end
  end

  # Its clients are cut; the server goes on.
  def test_frontends_that_are_killed_at_random_moments_are_missed_for_a_moment
    rounds do
      moment
      Process.kill(:KILL, frontend)
      wait_until("the frontend to be back: #{@one.stderr}") { @one.stderr.include?("serves again") }
      assert_empty answers.keys - [2], @one.stderr
      _, scheme = WAYS.values.first
      ask(%w[-c 1 -m 4], @one.stderr.include?("tls://") ? scheme : "http", "/pid", requests: 8)
      assert_equal({ 2 => 8 }, answers, @one.stderr)
    end
  end

  def test_killed_workers_at_random_moments_lose_nothing
    rounds do
      moment
      kill(:KILL, worker_pids.sample)
      assert_equal({ 2 => 60 }, answers, @one.stderr)
    end
  end
end
