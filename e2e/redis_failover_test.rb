# frozen_string_literal: true

require_relative "support"
require_relative "support/redis_group"

# An application that keeps sessions and a counter in the master that three Sentinels name, while visitors ask without
# pause and the master is killed; then again as often as FAILOVERS says, killed and deposed by turns.
#
# What Redis promises holds: no reply is another's; what the replica had is there; no INCR is carried out twice. What it
# does not: an answer of the old master that the replica had not seen. FAILOVERS_REPORT=file: a line of figures.
E2E.suite("redis_failover", transports: %i[tcp]) do
  const_set(:FAILOVERS, Integer(ENV.fetch("FAILOVERS", "1")))
  const_set(:VISITORS, 6)
  const_set(:VISITS, 20) # of each, before and after
  const_set(:NAMED, /\A\S*(?:Connection|Timeout)\S*  \S|\AOribi::Redis\S*Command\S* (?:READONLY|LOADING|MASTERDOWN|UNBLOCKED) /)

  # A visit, when it was asked for, and what came of it; nil: it did not come so far.
  const_set(:Visit, Struct.new(:visitor, :n, :asked_at, :echo, :set, :get, :incr, :failed) do
    def reached_incr? = !get.nil?
  end)

  def setup
    super
    skip "redis-server is not installed" unless system("redis-server", "--version", out: File::NULL, err: File::NULL)
    @group = E2E::RedisGroup.new
  end

  def teardown
    @stop = true
    @threads&.each(&:join)
    super
  ensure
    @group&.stop
  end

  def visit(client, visitor, n)
    asked_at = E2E.clock
    response = client.get("/visit?visitor=#{visitor}&n=#{n}&kept=#{@kept ? 1 : 0}")
    assert_equal 200, response.status, response.body
    facts = response.body.lines.to_h { |line| line.chomp.split(" ", 2) }
    self.class::Visit.new(visitor, n, asked_at, *facts.values_at("echo", "set", "get", "incr", "failed"))
  end

  # Until @stop: the visitor's visits, one after the other.
  def visiting(one, visitor, visits)
    client = E2E::Client.new(one.address)
    n = 0
    visits << visit(client, visitor, n += 1) until @stop
  ensure
    client&.close
  end

  def visits = @visits.flat_map(&:dup)
  def done_since(moment) = @visits.map { |own| own.count { |visit| visit.incr && visit.asked_at > moment } }.min

  def wait_for_visits(moment)
    wait_until("visits") do
      @threads.each { |thread| thread.join if !thread.alive? } # raises what has ended it
      done_since(moment) >= self.class::VISITS
    end
  end

  # The highest session of each visitor of which WAIT said that the replica has it.
  def kept = visits.select { |visit| visit.set == "OK 1" }.group_by(&:visitor).transform_values { |own| own.map(&:n).max }

  # One master goes, another comes; nothing that the replica had is lost.
  def change_master(kills)
    @group.wait_for_replica
    @kept = true
    wait_for_visits(E2E.clock)
    had = @group.ask(@group.replica, "GET", "visits").to_i
    kills ? @group.kill_master : @group.depose_master
    since = E2E.clock
    sure = kept
    @kept = false
    @group.wait_for_the_other
    @gone_ms << ((E2E.clock - since) * 1000).round
    wait_for_visits(E2E.clock)
    sure.each do |visitor, n|
      assert_operator session_of(@group.ask(@group.master, "GET", "session:#{visitor}"), visitor), :>=, n, "a session that the replica had"
    end
    after = visits.count { |visit| visit.incr && visit.asked_at > since } # before the counter is read: that goes on
    assert_operator @group.ask(@group.master, "GET", "visits").to_i, :>=, had + after, "visits that the replica had, and those after"
  end

  def session_of(text, visitor)
    assert_match(/\A#{visitor}:\d+\z/, text.to_s, "another's session")
    text.split(":").last.to_i
  end

  # A reply is that of its command: its own number, and an older one only where the session's writer was no master.
  def assert_replies_are_their_own
    visits.each do |visit|
      assert_equal "#{visit.visitor}:#{visit.n}", visit.echo, visit.inspect if visit.echo
      assert_includes ["OK", "OK 0", "OK 1"], visit.set, visit.inspect if visit.set
      assert_operator session_of(visit.get, visit.visitor), :<=, visit.n, visit.inspect if visit.get && !visit.get.empty?
      assert_match(self.class::NAMED, visit.failed) if visit.failed
      assert(visit.failed || visit.incr, visit.inspect)
    end
  end

  # Each master gives each number once; both together what was asked for, at most.
  def assert_counted_once(changes)
    numbers = visits.filter_map(&:incr).map { |text| Integer(text, 10) }
    assert_operator numbers.tally.values.max, :<=, 1 + changes, "an INCR that was answered twice with the same number"
    final = @group.ask(@group.master, "GET", "visits").to_i
    attempted = visits.count(&:reached_incr?)
    assert_operator final, :<=, attempted, "more INCRs than were asked for"
    assert_operator final, :>=, numbers.max
    report(attempted: attempted, answered: numbers.size, counted: final, gone_ms: @gone_ms, lost_with_a_master: numbers.size - numbers.uniq.size)
  end

  def report(**figures)
    older = visits.count { |visit| visit.get && visit.get != "#{visit.visitor}:#{visit.n}" }
    failures = visits.filter_map(&:failed).map { |text| text[/\A\S+ \S*/].strip }.tally
    line = JSON.generate({ command: E2E::COMMAND, changes: self.class::FAILOVERS, visits: visits.size, older_sessions: older, **figures, failures: failures })
    File.write(ENV["FAILOVERS_REPORT"], "#{line}\n", mode: "a") if ENV["FAILOVERS_REPORT"]
  end

  def test_visitors_follow_the_master
    @group.start
    one = start("--workers", "2", app: "e2e/apps/redis_failover#{E2E.differing(:app_extension)}", env: { "E2E_SENTINELS" => @group.addresses.join(",") })
    @gone_ms = []
    @visits = Array.new(self.class::VISITORS) { [] }
    @threads = @visits.each_with_index.map { |own, visitor| Thread.new { visiting(one, visitor, own) } }
    self.class::FAILOVERS.times { |i| change_master(i.even?) }
    @stop = true
    @threads.each(&:join)
    assert_replies_are_their_own
    assert_counted_once(self.class::FAILOVERS)
  end
end
