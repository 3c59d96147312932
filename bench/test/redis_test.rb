# frozen_string_literal: true

# The workloads of bench/workloads/redis.rb and their targets. No figure is looked at.
require "minitest/autorun"
require "stringio"
require "tmpdir"
require_relative "../lib/documents"
load File.expand_path("../run", __dir__)

Bench::Workload.load_all

class BenchRedisTest < Minitest::Test
  NAMES = Bench::Workload.registered.keys.grep(/\Aredis-/).freeze

  def options(*words) = Bench::Options.parse(words)

  def test_a_family_is_a_name
    assert_equal NAMES, options("--only", "redis").workloads.map(&:name_of)
    assert_equal %w[hello], options("--only", "hello").workloads.map(&:name_of)
    assert_equal 12, NAMES.size
    assert_empty options("--quick").workloads.map(&:name_of) & NAMES
  end

  # By TCP and by unix socket, against a real redis-server: every contestant has a figure for each round.
  def test_every_contestant_has_its_figures
    skip "no redis-server (script/setup bench)" unless Bench::RedisClients::REDIS.any? { |path| File.exist?(path) }

    skip "no redis-client (script/setup bench)" if Gem::Specification.find_all_by_name("redis-client").empty?

    Dir.mktmpdir do |dir|
      results = File.join(dir, "run.jsonl")
      run = Bench::Options.new(quick: true, minutes: 0.02, rounds: 2, only: %w[redis-get redis-noreply-tcp redis-1m], output: results, report: false)
      code = nil
      capture_io { code = Bench::Run.new(run).call }
      rows = File.readlines(results).drop(3).map { |line| JSON.parse(line, symbolize_names: true) }
      assert_equal 0, code
      assert_empty(rows.select { |row| row[:values].size != 2 || !row[:values].all?(&:positive?) })
      of = rows.group_by { |row| row[:workload] }.transform_values { |some| some.map { |row| row[:server] }.uniq }
      assert_includes of["redis-get"], "Oribi::Redis (Perl)"
      assert_includes of["redis-get"], "redis-client, oribi"
      assert_equal ["Oribi::Redis (Perl)", "Oribi::Redis (Perl), pipeline"], of["redis-noreply-tcp"].sort
      assert_includes of["redis-1m"], "Oribi::Redis (Ruby)"
    end
  end

  def test_what_the_client_sets_out_to_reach_is_held_against_what_was_measured
    Dir.mktmpdir do |dir|
      path = File.join(dir, "run.jsonl")
      figures = { "Oribi::Redis (Perl)" => 120.0, "Redis::Fast" => 90.0, "Oribi::Redis (Ruby)" => 100.0, "redis-client, hiredis" => 99.0 }
      rows = figures.map do |server, value|
        { workload: "redis-get-tcp", server: server, metric: "requests_per_second", values: [value] * 5, median: value, unit: "1/s", errors: 0 }
      end
      rows += rows.map { |row| row.merge(workload: "redis-get", metric: "cpu_us_per_request") }
      workloads = { "redis-get" => { about: "Redis: a GET, unix socket" }, "redis-get-tcp" => { about: "Redis: a GET, TCP" } }
      header = [{ run: "now", rounds_min: 5, machine: Bench::Machine.describe }, { servers: {}, missing: {} }, { workloads: workloads }]
      File.write(path, [*header, *rows].map { |line| "#{JSON.generate(line)}\n" }.join)
      findings = Bench::Findings.new(path)
      table = Bench::Documents.new(findings).send(:redis).grep(/\A\|/).drop(2).map { |line| line.split("|").map(&:strip).drop(1) }
      assert_equal [["a GET", "1.33", "1.01"]], table
      found = Bench::Targets.check(findings).map { |row| row.values_at(:own, :other, :found, :wanted, :verdict) }
      assert_equal [["Oribi::Redis (Perl)", "Redis::Fast", 1.33, "≥ 1.2", "reached (+11 %)"],
                    ["Oribi::Redis (Ruby)", "redis-client, hiredis", 1.01, "≥ 1.15", "missed (-12 %)"]], found
    end
  end
end
