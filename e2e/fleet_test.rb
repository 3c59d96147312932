# frozen_string_literal: true

require_relative "support"
require_relative "support/fleet"
require_relative "support/lossy_network"

# examples/fleet: HAProxy or nginx before three nodes, each on a machine of its own, while nodes are upgraded, die,
# stand still, and the network lies. FLEET_REQUESTS, FLEET_RATE: so many requests in each case, so many a second (0: as
# many as can be). What does not depend on the language below a node runs with both commands in the long form alone.
module Fleets
  REQUESTS = ENV.fetch("FLEET_REQUESTS", "1500").to_i
  LONG = REQUESTS >= 20_000
  RATE = ENV.fetch("FLEET_RATE", "400").to_i

  def setup
    super
    refused = E2E::Namespaces.refused
    skip refused if refused
    @dir = Dir.mktmpdir("oribi-fleet")
  end

  def teardown
    @load&.stop
    @network&.stop
    @fleet&.stop
    E2E::Namespaces::Machine::ALL.dup.each(&:remove) # of a fleet that did not come up
    super
  ensure
    FileUtils.remove_entry(@dir) if @dir
  end

  def fleet(**more) = @fleet = E2E::Fleet.new(@dir, unix: unix?, **more)

  # Calls the block again and again until all requests are done.
  def under_load
    @load = E2E::Load.new(@fleet.front, requests: Fleets::REQUESTS, rate: Fleets::RATE)
    yield until @load.done_within?(0.3)
    note
  end

  def note
    return unless ENV["FLEET_RESULTS"]

    line = JSON.generate({ command: E2E::COMMAND, transport: transport, case: name, **@load.summary.transform_keys(&:to_sym) })
    File.write(ENV["FLEET_RESULTS"], "#{line}\n", mode: "a")
  end

  def lost = @load.lost.map(&:reason)

  # A request that is not safe to repeat, on a kept connection: HAProxy closes without an answer or a line in its log
  # when the node does, as the client knows best whether to ask again.
  def closed_silently = lost.count("closed after 0 bytes")

  def assert_none(found, what) = assert_empty(found.first(3), "#{found.size} #{what}")

  # Each request that the balancer has answered well is in the log of the node that it names, and the other way round.
  # unsure: nodes that were killed, whose last lines are lost, and whose last answers.
  def assert_logs_agree(pattern = E2E::Fleet::HAPROXY_LINE, unsure: [])
    balancer = wait_until("a line for each request") do
      @fleet.balancer_lines(pattern).then { |lines| lines if lines.size >= Fleets::REQUESTS - closed_silently }
    end
    ids = balancer.map(&:id)
    assert_equal ids.uniq.size, ids.size
    @fleet.nodes.each do |node|
      next if unsure.include?(node.name)

      lines = node.lines
      assert_equal ["127.0.0.1"], lines.map(&:client).uniq, "clients that #{node.name} saw" unless lines.empty?
      answered = lines.select { |line| line.status == 200 }.map(&:id)
      assert_none balancer.select { |line| line.server == node.name && line.well? }.map(&:id) - answered, "ids that #{node.name} does not have"
      assert_none answered - ids, "ids that #{node.name} alone has"
    end
    balancer
  end

  def assert_served_by_all(lines) = assert_equal(E2E::Fleet::NAMES.keys.sort, lines.map(&:server).uniq.sort & E2E::Fleet::NAMES.keys)

  # In the hands of a node: requests that are not safe to repeat, and answers that had begun. The balancer says so of
  # each that it has answered.
  def assert_lost_in_hands_of(name, lines)
    failed = lines.reject(&:well?)
    assert_equal failed.count { |line| line.status >= 400 }, lost.grep(/\Aanswer/).size, lost.first(5).inspect
    assert_none lost.grep_v(/\A(?:answer: HTTP.1.1 50[24]|closed after)/), "other ends"
    assert_none failed.reject { |line| line.server == name && (line.cut || line.method == "POST") }.map(&:to_a), "lost that could be saved"
    assert_operator lost.size, :<=, @kills * 20, "more than there are clients" if @kills
  end

  def assert_all_end
    @fleet.nodes.each(&:stop)
    @fleet.nodes.each { |node| refute_match(/died|signal/, node.errors) }
  end

  def up_again(name) = wait_until("#{name} to be up: #{@fleet.states}") { @fleet.states[name] == "UP" }

  def roll(...) = @fleet.roll("--haproxy", @fleet.stats_socket, "--command", @fleet.restart_command, ...)

  def roll_on(fleet)
    fleet.haproxy
    before = @fleet.nodes.to_h { |node| [node.name, node.supervisor] }
    rolled = 0
    under_load do
      next if rolled.positive? && !Fleets::LONG

      output, status = roll
      assert_equal 0, status, output
      assert_match(/\Aroll: one: 1 of 3\n.*roll: two: 2 of 3, about \d+ s left\n.*roll: 3 nodes upgraded in \d+ s\n\z/m, output)
      rolled += 1
    end
    assert_operator rolled, :>=, 1
    assert_empty lost
    @fleet.nodes.each { |node| refute_equal before[node.name], node.supervisor }
    assert_served_by_all(assert_logs_agree)
    assert_all_end
  end
end

E2E.suite("fleet", transports: E2E::EITHER) do
  include Fleets

  def test_a_rolling_upgrade_loses_nothing = roll_on(fleet)
end

E2E.suite("fleet_faults", transports: %i[tcp]) do
  include Fleets

  def test_a_node_that_is_killed
    fleet.haproxy
    @kills = 0
    under_load do
      node = @fleet.node("two")
      node.kill
      @kills += 1
      wait_until("HAProxy to see it: #{@fleet.states}") { @fleet.states["two"].start_with?("DOWN") }
      node.start
      up_again("two")
    end
    assert_operator @kills, :>=, 1
    lines = assert_logs_agree(unsure: ["two"])
    assert_lost_in_hands_of("two", lines)
    assert_served_by_all(lines)
  end

  def test_a_network_that_stalls_cuts_and_corrupts
    fleet
    @network = E2E::LossyNetwork.new([E2E::Fleet::NAMES["three"], 9292])
    @fleet.haproxy(addresses: { "three" => "127.0.0.1:#{@network.port}" }, timeout: "2s")
    modes = %i[stall cut corrupt].cycle
    under_load { @network.mode = modes.next }
    @network.mode = nil
    lines = assert_logs_agree(unsure: ["three"])
    assert_equal %i[corrupt cut stall], @network.faults.keys.sort
    failed = lines.reject(&:well?)
    assert_equal ["three"], failed.map(&:server).uniq unless failed.empty?
    assert_operator failed.size, :<=, @network.faults.values_at(:cut, :corrupt).sum
    assert_operator lost.size, :<=, @network.faults.values_at(:cut, :corrupt).sum
    up_again("three")
    assert_all_end
  end
end

if !E2E::RUBY || Fleets::LONG
  E2E.suite("fleet_balancers", transports: %i[tcp]) do
    include Fleets

    # Clients are known by the PROXY protocol.
    def test_a_rolling_upgrade_with_proxy_headers = roll_on(fleet(proxy: true))

    def test_a_node_that_stands_still
      fleet.haproxy(timeout: "2s")
      stops = 0
      under_load do
        next if stops.positive? && !Fleets::LONG

        node = @fleet.node("two")
        node.signal(:STOP)
        stops += 1
        wait_until("HAProxy to see it: #{@fleet.states}") { @fleet.states["two"].start_with?("DOWN") }
        node.signal(:CONT)
        up_again("two")
      end
      assert_operator stops, :>=, 1
      assert_lost_in_hands_of("two", assert_logs_agree)
      assert_all_end
    end

    def test_a_cable_that_is_pulled
      fleet.haproxy(timeout: "2s")
      pulled = 0
      under_load do
        next if pulled.positive? && !Fleets::LONG

        @fleet.node("two").machine.cable(:down)
        pulled += 1
        wait_until("HAProxy to see it: #{@fleet.states}") { @fleet.states["two"].start_with?("DOWN") }
        @fleet.node("two").machine.cable(:up)
        up_again("two")
      end
      assert_lost_in_hands_of("two", assert_logs_agree(unsure: ["two"]))
      assert_all_end
    end

    def test_nginx_and_upgrades_in_place
      fleet.nginx
      E2E::Fleet::NAMES.each { |name, address| File.symlink("#{@dir}/#{name}", "#{@dir}/#{address}") }
      words = ["--command", "#{E2E::Server.binary} ctl --control #{@dir}/%s/control upgrade", "--url", "http://%s:9292/up"]
      under_load do
        output, status = @fleet.roll(*words, names: E2E::Fleet::NAMES.values)
        assert_equal 0, status, output
      end
      assert_empty lost
      assert_served_by_all(assert_logs_agree(E2E::Fleet::NGINX_LINE))
    end

    def test_nginx_and_a_node_that_is_killed
      fleet.nginx
      @kills = 0
      under_load do
        next if @kills.positive? && !Fleets::LONG

        @fleet.node("two").kill
        @kills += 1
        @fleet.node("two").start
      end
      assert_lost_in_hands_of("two", assert_logs_agree(E2E::Fleet::NGINX_LINE, unsure: ["two"]))
    end

    def test_a_node_that_does_not_come_back_ends_the_roll
      fleet.haproxy
      @load = E2E::Load.new(@fleet.front, requests: 0, rate: 100)
      words = ["--haproxy", @fleet.stats_socket, "--ready-timeout", "2"]
      output, status = @fleet.roll(*words, "--command", "test %s != two")
      assert_equal 1, status
      assert_match(/^roll: two: the command failed with exit code 1; it gets no requests\n\z/, output)
      assert_equal({ "one" => "UP", "two" => "DRAIN", "three" => "UP" }, @fleet.states)
      output, status = @fleet.roll(*words, "--command", "kill -9 $(cat #{@dir}/%s/pid)", names: %w[three])
      assert_equal 1, status, output
      assert_match(/^roll: three: HAProxy finds it DOWN.* after 2 s; it gets no requests\n\z/, output)
      output, status = @fleet.roll(*words, "--command", "true", names: %w[one])
      assert_equal [1, "roll: one: 1 of 1\nroll: one: no other server of board is up\n"], [status, output]
      output, = @fleet.roll(*words, "--command", "true", names: %w[four])
      assert_equal "roll: four: 1 of 1\nroll: four: HAProxy has no server board/four\n", output
      assert_empty @load.tap(&:finish).lost.map(&:reason)
    end

    def test_words_that_roll_does_not_take
      fleet = E2E::Fleet.allocate
      { [] => "which nodes?", ["one"] => "--command is missing", ["--command", "x", "a;b"] => "'a;b' is no name of a node" }.each do |words, reason|
        assert_equal ["roll: #{reason}\nroll: --help says how it is used\n", 2], fleet.roll(*words, names: [])
      end
      output, status = fleet.roll("--help", names: [])
      assert_equal 0, status
      assert_includes output, "--drain-timeout S"
    end
  end
end
