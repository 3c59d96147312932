# frozen_string_literal: true

require_relative "support"
require_relative "support/workspace"

# What an operator asks is answered also while no worker can say anything itself: all of them inside a call, stopped, or
# dead. The supervisor waits for none of them, which its turns show: few for each question, and no sleep on a deadline.
E2E.suite("stuck", transports: %i[tcp]) do
  include E2E::InWorkspace

  const_set(:WORKERS, 3)
  const_set(:TURNS, 20) # of the supervisor for a question, generously: it reads a line, looks, and answers

  def ask(path)
    client = E2E::Client.new(@status.split(":")).tap { |one| @clients << one }
    client.get(path)
  end

  def ctl(*words)
    one = E2E::Server.new(argv: [E2E::Server.binary, "ctl", "--control", @space.control, *words])
    @servers << one
    one.run_to_end
    assert_equal [0, ""], [one.status.exitstatus, one.stderr], words.join(" ")
    one.stdout
  end

  # How often the supervisor sleeps meanwhile: once for each turn.
  def assert_few_turns(what)
    before = E2E::Processes.activity(@one.pid).last.to_i
    yield.tap { assert_operator E2E::Processes.activity(@one.pid).last.to_i - before, :<=, self.class::TURNS, what }
  end

  def metrics = assert_few_turns("/metrics") { ask("/metrics").body }
  def metric(name) = metrics[/^#{Regexp.escape(name)} (\S+)$/, 1].to_f
  def status = JSON.parse(assert_few_turns("/status.json") { ask("/status.json").body })

  # A process goes on for a moment after the signal was sent.
  def halt(pids)
    pids.each { |pid| Process.kill(:STOP, pid) }
    wait_until("the stops") { pids.all? { |pid| E2E::Processes.stat(pid)&.first == "T" } }
  end

  # Each question, whose answer shows so many workers with this state (and what they do).
  def assert_told(state, count, call: "")
    assert_equal count, metric("oribi_workers{state=\"#{state}\"}")
    json = assert_few_turns("ctl status --json") { ctl("status", "--json") }
    [status, JSON.parse(json)].each do |told|
      assert_equal [[state, call]] * count, told["processes"].map { |worker| worker.values_at("state", "call") }
    end
    row = /^ +\d+ .* #{state} .*#{call}$/
    assert_equal count, assert_few_turns("ctl status") { ctl("status") }.scan(row).size
    assert_equal count, assert_few_turns("ctl top") { ctl("top", "--interval", "100ms") }.scan(row).size
    %w[/healthz /history.json].each { |path| assert_equal 200, assert_few_turns(path) { ask(path) }.status }
  end

  def test_questions_are_answered_whatever_workers_do
    count = self.class::WORKERS
    @status = "127.0.0.1:#{E2E.free_port}"
    @one = start("--workers", count.to_s, "--status", @status, "--control", @space.control, app: @space.app)
    wait_until("all workers") { ctl("status").include?("#{count} of #{count} workers") }
    pids = status["processes"].map { |worker| worker["pid"] }
    gates = Array.new(count) { connect(@one).tap { |client| client.request("GET", "/gate") } }
    wait_until("all calls") { metric('oribi_workers{state="busy"}') == count }
    assert_told("busy", count, call: "GET /gate")
    assert_equal count, ctl("stacks").scan("GET /gate").size

    halt(pids)
    assert_told(E2E.portable? ? "busy" : "stopped", count, call: "GET /gate") # of a stop the portable build sees nothing
    assert_equal count, ctl("stacks").scan("GET /gate").size

    molds = @one.descendants - pids
    halt(molds) # else the dead are replaced
    pids.each { |pid| Process.kill(:KILL, pid) }
    wait_until("all deaths") { metric('oribi_worker_exits_total{reason="signal"}') == count }
    assert_told("starting", count)
    assert_match(/^workers +0 of #{count} serve .*^since start +#{count} worker deaths/m, ctl("top", "--interval", "100ms"))
    assert_equal 503, ask("/ready").status
    ctl("stacks")
    molds.each { |pid| Process.kill(:CONT, pid) }
    gates.each(&:close)
    wait_until("new workers") { ask("/ready").status == 200 }
  end
end
