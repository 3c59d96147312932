# frozen_string_literal: true

require_relative "support"
require_relative "support/workspace"

# Where calls stand while they run: ctl stacks, the status listener and the log of slow calls name their line of code,
# and the calls go on as if nothing had been.
E2E.suite("stacks", transports: %i[tcp]) do
  include E2E::InWorkspace

  app = "e2e/apps/stacks#{E2E.differing(:app_extension)}"
  source = File.readlines(File.join(E2E::ROOT, app))
  # path => the function whose line is innermost in the application
  stuck = { "spin" => "spin", "match" => "match", "digest" => "digest", "nap" => E2E::RUBY ? "nap" : "nap_once",
            "choose" => E2E::RUBY ? "choose" : "choose_once", "receive" => "receive" }

  define_method(:line_of) do |function|
    from = source.index { |line| line.match?(/^(?:def|sub) #{function}\b/) }
    inner = source[from..].index { |line| line.match?(/RECV\.call|sysread/) } if function == "receive"
    from + 1 + inner.to_i
  end

  define_method(:frame_of) do |function|
    E2E::RUBY ? /stacks\.ru:#{line_of(function)}:in [`'].*#{function}'$/ : /#{function} at .*stacks\.psgi line #{line_of(function)}$/
  end

  # The other end of the socket, as of a database that does not answer.
  def listen = @peer = UNIXServer.new("#{@space.dir}/peer")

  def teardown
    super
    @peer&.close
  end

  define_method(:serve) do |*options, workers: 1|
    @status = "127.0.0.1:#{E2E.free_port}"
    env = { "GATE" => @space.gate_path, "PEER" => "#{@space.dir}/peer" }
    start("--workers", workers.to_s, "--control", @space.control, "--status", @status, *options, app: app, env: env).tap do
      wait_until("the control socket") do # which is opened after the others
        UNIXSocket.open(@space.control).close || true
      rescue Errno::ENOENT, Errno::ECONNREFUSED
        nil
      end
    end
  end

  # One word to the control socket, as ctl sends it, and what it prints.
  def ctl(line)
    UNIXSocket.open(@space.control) do |socket|
      socket.puts(line)
      socket.read.delete_prefix("ok\n")
    end
  end

  def workers = JSON.parse(ctl("stacks json"))["workers"]
  def calls = workers.flat_map { |worker| worker["calls"] || [] }
  def call_of(path) = calls.find { |call| call["call"] == "GET /#{path}" }

  def begin_calls(one, names)
    clients = names.to_h { |name| [name, connect(one).tap { |client| client.request("GET", "/#{name}") }] }
    @accepted = @peer.accept if names.include?("receive")
    clients
  end

  # Nothing the calls waited for has ended too soon.
  def assert_end_well(clients)
    @space.open_gate
    @accepted&.write("row")
    clients.each do |name, client|
      expected = { "nap" => "done 0 cut short", "choose" => "done 0 cut short", "receive" => "done row" }
      assert_equal expected.fetch(name, "done "), client.read_response.body, name
    end
  end

  define_method(:test_every_stuck_call_names_its_line) do
    skip_without "sight of what a thread waits in"
    listen
    one = serve("--slow-log", "200ms", workers: stuck.size)
    clients = begin_calls(one, stuck.keys)
    stuck.each do |path, function|
      wait_until("the line of #{path} in #{ctl("stacks")}") { call_of(path)&.fetch("frames")&.any?(frame_of(function)) }
      said = /warn: slow call: GET \/#{path} has run for .* \(slow_log 200 ms\).*; it stands at (.*)\n((?:    .*\n)+)/
      wait_until("the slow call #{path} in #{one.stderr}") { one.stderr.match?(said) }
      assert(one.stderr.scan(said).any? { |_, frames| frames.match?(frame_of(function)) }, one.stderr)
    end
    # On a busy machine a worker may not answer in time; then its call is told all the same.
    30.times { assert_equal stuck.size, ctl("stacks").scan(/^worker \d+ \(pid \d+\): .*\bGET /).size }
    assert_equal stuck.keys.sort, client_of_status.get("/stacks").body.scan(%r{: GET /(\w+),}).flatten.sort
    assert_end_well(clients)
    stuck.each_key do |path|
      wait_until("its end") { one.stderr.match?(/slow call: GET \/#{path} took .* in the queue, .* in all; status 200/) }
    end
    assert_equal stuck.size, one.stderr.scan(/slow call: .* took /).size
    assert_match(/\Aworker 0 \(pid \d+\): no call$/, ctl("stacks"))
  end

  def client_of_status = E2E::Client.new(@status.split(":")).tap { |client| @clients << client }

  # A worker that is stopped answers nothing, and one that was killed is gone or replaced: both are told, in time.
  def test_workers_that_cannot_answer
    skip_without "sight of stopped workers"
    one = serve("--slow-log", "100ms", workers: 2)
    clients = begin_calls(one, %w[nap stream])
    wait_until("both calls") { calls.size == 2 }
    stopped = workers.find { |worker| worker["calls"].any? { |call| call["call"] == "GET /nap" } }
    assert_equal(%w[answering call], calls.map { |call| call["phase"] }.sort)
    Process.kill(:STOP, stopped["pid"])
    wait_until("the stop") { E2E::Processes.stat(stopped["pid"])&.first == "T" }
    told = workers.find { |worker| worker["pid"] == stopped["pid"] }
    assert_equal [false, "does not answer", "stopped", "GET /nap"], told.values_at("answered", "why", "state", "call")
    assert_match(/^worker #{told["worker"]} \(pid #{told["pid"]}\): does not answer; its first thread is stopped/, ctl("stacks"))
    assert_match(%r{does not answer; [^;]*; its call: GET /nap, \d}, ctl("stacks"))
    Process.kill(:CONT, stopped["pid"])
    wait_until("its answer") { workers.find { |worker| worker["pid"] == stopped["pid"] }["answered"] }
    @space.open_gate
    # A look at a thread that has just gone on may meet it as it falls asleep again, and Perl's sleep then ends early.
    assert_match(/\Adone [01] cut short\z/, clients["nap"].read_response.body)
    assert_equal "begun ended", clients["stream"].read_response.body
    wait_until("the end") { one.stderr.match?(%r{slow call: GET /nap took}) }
    refute_match(%r{slow call: GET /stream}, one.stderr)
  end

  if E2E::RUBY
    def test_every_thread
      skip_without "sight of what a thread waits in"
      one = serve("--threads", "3")
      clients = begin_calls(one, %w[nap choose spin])
      wait_until("three calls") { calls.size == 3 && calls.all? { |call| call["frames"].any? } }
      assert_equal [0, 1, 2], calls.map { |call| call["thread"] }.sort
      assert_equal 3, ctl("stacks").scan(/^worker 0 \(pid \d+, thread [123]\): GET /).size
      assert_end_well(clients)
    end
  end
end
