# frozen_string_literal: true

require "minitest/autorun"
require "open3"
require "tempfile"
require_relative "../lib/simulation"
require_relative "../lib/simulation_page"

# The simulator of placement against what queueing theory knows, and against traces that can be played by hand.
class SimulateTest < Minitest::Test
  CALL_MS = 20.0

  def simulate(rules: ["ideal"], **setup) = Bench::Simulation.run(rules: rules, seed: 5, requests: 200_000, **setup)

  # [mean wait, p99 of it] of M/M/c: Erlang's C.
  def erlang(servers, load)
    offered = servers * load
    terms = (0..servers).map { |k| offered**k / (1..k).inject(1.0, :*) }
    waits = terms.last / (1 - load) / (terms[0...-1].sum + terms.last / (1 - load))
    rate = servers * (1 - load) / CALL_MS
    [waits / rate, [Math.log(waits / 0.01) / rate, 0].max]
  end

  def assert_mean(expected, line)
    assert_operator line["ci_ms"], :<, expected * 0.15, "the run is long enough to say something"
    assert_in_delta expected, line["mean_ms"], line["ci_ms"] * 1.3, line
  end

  def test_one_queue_waits_as_erlang_says
    [[1, 0.5], [1, 0.8], [4, 0.5], [8, 0.8], [16, 0.9]].each do |servers, load|
      line = simulate(workers: servers, load: load).first
      mean, p99 = erlang(servers, load)
      assert_mean mean, line
      assert_in_delta p99, line["p99_ms"], p99 * 0.12
    end
  end

  def test_constant_calls_wait_half_as_long
    line = simulate(workers: 1, load: 0.8, service: "constant").first
    assert_mean erlang(1, 0.8).first / 2, line
  end

  # Pollaczek and Khinchine: 99 calls of 2 ms and one of 500.
  def test_mixed_calls_wait_by_their_second_moment
    mean = 0.99 * 2 + 0.01 * 500
    line = simulate(workers: 1, load: 0.5, service: "mix", requests: 1_000_000).first
    assert_mean 0.5 / mean * (0.99 * 4 + 0.01 * 250_000) / (2 * (1 - 0.5)), line
  end

  def test_random_placement_is_so_many_single_servers
    assert_mean erlang(1, 0.5).first, simulate(workers: 16, load: 0.5, rules: ["random"]).first
  end

  def test_machines_with_one_worker_each_are_workers
    line = simulate(workers: 1, machines: 16, load: 0.5, rules: ["ideal"], balancers: ["random"]).first
    assert_mean erlang(1, 0.5).first, line
    assert_operator line["ideal_mean_ms"], :<, line["mean_ms"] / 10
  end

  def test_the_load_is_what_was_asked_for
    Bench::Simulation::SERVICES.product(Bench::Simulation::ARRIVALS).each do |service, arrivals|
      assert_in_delta 0.8, simulate(workers: 2, load: 0.8, service: service, arrivals: arrivals).first["offered"], 0.04, "#{service} #{arrivals}"
    end
  end

  def test_the_same_seed_gives_the_same_figures
    rules = ["ideal", *Bench::Simulation::RULES]
    one, same, other = [3, 3, 4].map { |seed| Bench::Simulation.run(rules: rules, seed: seed, requests: 20_000) }
    assert_equal one, same
    refute_equal one.first["mean_ms"], other.first["mean_ms"]
  end

  # With constant calls nothing waits less on average than what is served in order of arrival.
  def test_no_rule_is_better_than_one_queue
    simulate(workers: 8, load: 0.8, service: "constant", arrivals: "bursty", rules: Bench::Simulation::RULES).each do |line|
      assert_operator line["mean_ms"], :>=, line["ideal_mean_ms"] - 1e-6, line
    end
  end

  def test_our_rules_lose_little_against_one_queue_and_the_order_of_the_others_is_known
    lines = simulate(workers: 16, load: 0.8, rules: Bench::Simulation::RULES).to_h { |line| [line["rule"], line] }
    beyond = lines.transform_values { |line| line["mean_ms"] - line["ideal_mean_ms"] }
    assert_operator beyond["ours"], :<, 1
    assert_operator beyond["ours-new"], :<, 1
    assert_equal %w[ours least idle two-choices round-robin random], beyond.except("ours-new").sort_by(&:last).map(&:first)
    assert_operator lines["ours"]["handoffs"], :>, 0.1
    assert_equal 16, lines["least"]["slots"]
  end

  def trace(text)
    Tempfile.create("trace") do |file|
      file.write(text)
      file.close
      yield file.path
    end
  end

  def test_a_recorded_trace_is_played_as_it_is
    trace("# arrival service\n10.5 1\n10 1\n\n10 1\n10 1\n") do |path|
      line = Bench::Simulation.run(rules: ["ideal"], trace: path, workers: 2).first
      assert_equal [4, 375.0, 500.0, 1000.0, nil], line.values_at("count", "mean_ms", "p50_ms", "p99_ms", "ci_ms")
    end
  end

  # One call of ten seconds, and short ones: none waits for it but until the helper looks.
  def test_nothing_waits_behind_a_long_call_while_a_worker_is_idle
    short = (1..900).map { |i| "#{0.01 * i} 0.002\n" }
    trace("0 10\n#{short.join}") do |path|
      lines = Bench::Simulation.run(rules: %w[random ours ours-new], trace: path, workers: 2).to_h { |line| [line["rule"], line] }
      assert_operator lines["random"]["p99_ms"], :>, 5000
      assert_operator lines["ours"]["p999_ms"], :<, 12
      assert_equal 0, lines["ours-new"]["p999_ms"]
    end
  end

  # Clients that ask again at once leave no worker idle for a moment.
  def test_newcomers_wait_no_longer_than_others_at_a_saturated_server
    [[16, "constant"], [200, "constant"], [200, "exponential"], [1000, "mix"]].each do |clients, service|
      line = Bench::Simulation.run(rules: ["ours"], clients: clients, connections: clients / 4, service: service, seed: 5, requests: 50_000).first
      assert_operator line["newcomers_p50_ms"], :<=, line["p50_ms"] * 1.1, "#{clients}, #{service}"
      assert_operator line["newcomers_max_ms"] || Float::INFINITY, :<=, line["p999_ms"] * 1.5, "#{clients}, #{service}"
    end
  end

  # Room for a handful of messages, and for fewer than wait.
  def test_newcomers_wait_no_longer_than_others_where_the_hand_off_queue_is_full
    [[64, "constant", 8], [200, "constant", 8], [200, "exponential", 8], [1000, "mix", 300]].each do |clients, service, room|
      line = Bench::Simulation.run(rules: ["ours"], clients: clients, connections: clients / 4, service: service, seed: 5, requests: 50_000, room: room).first
      assert_operator line["newcomers_p50_ms"], :<=, line["p50_ms"] * 1.1, "#{clients}, #{service}"
      assert_operator line["newcomers_max_ms"] || Float::INFINITY, :<=, line["p999_ms"] * 1.2, "#{clients}, #{service}"
      assert_operator line["p99_ms"], :<=, line["ideal_p99_ms"] * 1.2, "#{clients}, #{service}"
    end
  end

  def test_old_news_of_machines_is_worse_than_none
    common = { workers: 4, machines: 10, load: 0.8, rules: ["ours"] }
    known, told, random = [["least", 0], ["least", 1000], ["random", 0]].map do |balancer, inform_ms|
      simulate(**common, balancers: [balancer], inform_ms: inform_ms).first["mean_ms"]
    end
    assert_operator known, :<, random
    assert_operator random, :<, told
  end

  # What `agent` tells changes slowly, so it does no harm among equal machines, to a balancer that counts least of all.
  def test_the_weights_of_agents_do_no_harm
    common = { workers: 4, machines: 10, load: 0.8, rules: ["ours"] }
    random, drawn, least, weighed = [["random", 0], ["agent", 2000], ["least", 0], ["agent-least", 2000]].map do |balancer, inform_ms|
      simulate(**common, balancers: [balancer], inform_ms: inform_ms).first["mean_ms"]
    end
    assert_in_delta random, drawn, random * 0.25
    assert_in_delta least, weighed, least * 0.15
  end

  def test_what_cannot_be_played_is_refused
    { { workers: 0 } => /out of range/, { load: 1.0 } => /below 1/, { service: "slow" } => /-s is/, { rules: ["best"] } => /no rule 'best'/,
      { balancers: ["ours"] } => /no balancer 'ours'/, { machines: 2, balancers: ["weights"] } => /-i/, { machines: 2, balancers: ["agent"] } => /-i/,
      { machines: 65_536, workers: 2 } => /more than 65536/ }.each do |setup, message|
      error = assert_raises(Bench::Simulation::Failed) { Bench::Simulation.run(rules: ["ideal"], **setup) }
      assert_match message, error.message
    end
    texts = { "1\n" => /:1: not "ARRIVAL SERVICE"/, "0 1\n1 0\n" => /:2: not/, "0 1 2\n" => /:1: not/, "nan 1\n" => /:1: not/, "" => /no requests/ }
    texts.each do |text, message|
      error = assert_raises(Bench::Simulation::Failed) { trace(text) { |path| Bench::Simulation.run(rules: ["ideal"], trace: path) } }
      assert_match message, error.message
    end
  end

  def test_the_command_prints_a_table_and_its_help
    output, status = Open3.capture2e("ruby", File.join(Bench::ROOT, "bench/simulate"), "--workers", "2", "--requests", "2000", "--rules", "ideal,ours")
    assert status.success?, output
    assert_equal %w[ideal ours], output.scan(/^\| (\w+)/).flatten.drop(1)
    output, status = Open3.capture2e("ruby", File.join(Bench::ROOT, "bench/simulate"), "--help")
    assert status.success?
    assert_match(/--trace FILE/, output)
    output, status = Open3.capture2e("ruby", File.join(Bench::ROOT, "bench/simulate"), "--service", "none")
    refute status.success?
    assert_match(/invalid argument: --service none/, output)
  end

  # The tables of the document are those of the data beside it.
  def test_the_document_shows_the_committed_figures
    page = File.read(Bench::SimulationPage::PAGE)
    Bench::SimulationPage.new(File.join(Bench::ROOT, "bench/results/simulate.jsonl")).tables.each do |name, lines|
      assert_includes page, "<!-- bench:simulate-#{name} -->\n\n#{lines.join("\n")}\n", "bench/simulate --again"
    end
  end
end
