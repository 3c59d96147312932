# frozen_string_literal: true

# The workloads of a frontend (bench/workloads/frontend.rb, frontend_rest.rb): what load generators print is read
# rightly, a round of each kind of client has its figure, and targets are held against what was measured. No figure is
# looked at.
require "minitest/autorun"
require "stringio"
require "tmpdir"
require_relative "../lib/documents"
load File.expand_path("../run", __dir__)

Bench::Workload.load_all

class BenchFrontendTest < Minitest::Test
  H2LOAD = <<~TEXT
    requests: 2041 total, 2041 started, 2000 done, 1990 succeeded, 51 failed, 41 errored, 2 timeout
    status codes: 1990 2xx, 0 3xx, 0 4xx, 10 5xx
    traffic: 100.00KB (102400) total, 20.00KB (20480) headers (space savings 90.00%), 25.39KB (26000) data
  TEXT

  def test_what_h2load_prints
    load = Bench::H2load.parse(H2LOAD, 1.0)
    assert_equal [1990, 26_000], [load.requests, load.bytes]
    assert_equal({ "status" => 10, "timeout" => 2, "errored" => 41 }, load.errors)
    assert_match(/did not finish/, assert_raises(RuntimeError) { Bench::H2load.parse("could not connect", 1.0) }.message)
  end

  def test_what_the_clients_of_tls_print
    load = Bench::TlsClients.parse(%({"handshakes":50,"us":500000,"errors":0,"silent":3}))
    assert_equal [50, 0.5, { "silent" => 3 }], [load.requests, load.seconds, load.errors]
    assert_match(/no ticket came/, assert_raises(RuntimeError) { Bench::TlsClients.parse("no ticket came\n") }.message)
  end

  # The server's own figures, by each kind of client: wrk over TLS, handshakes, and h2load where there is one.
  def test_a_round_by_every_kind_of_client
    tls = Bench::Peers.find("oribi-tls")
    skip "no frontend here (libssl-dev, libnghttp2-dev)" if tls.missing
    names = %w[frontend-tls frontend-handshakes-resumed frontend-h2] & Bench::Workload.registered.keys
    Dir.mktmpdir do |dir|
      results = File.join(dir, "run.jsonl")
      options = Bench::Options.new(quick: true, minutes: 0.02, rounds: 1, only: names, servers: %w[oribi-tls], output: results, report: false)
      code = nil
      capture_io { code = Bench::Run.new(options).call }
      rows = File.readlines(results).drop(3).map { |line| JSON.parse(line, symbolize_names: true) }
      assert_equal 0, code, rows.inspect
      assert_equal names.to_h { |name| [name, 2] }, rows.map { |row| row[:workload] }.tally
    end
  end

  def test_what_a_frontend_sets_out_to_reach_is_held_against_what_was_measured
    Dir.mktmpdir do |dir|
      path = File.join(dir, "run.jsonl")
      File.write(path, [*header, *measured].map { |line| "#{JSON.generate(line)}\n" }.join)
      findings = Bench::Findings.new(path)
      found = Bench::Targets.check(findings).map { |row| row.values_at(:workload, :own, :other, :found, :wanted, :verdict) }
      assert_includes found, ["frontend-hop", "oribi-frontend", "oribi", 2.0, "≤ 2.4", "reached (+17 %)"]
      assert_includes found, ["frontend-idle", "oribi-tls", "", 16.0, "≤ 14.5", "missed (-10 %)"]
      lines = Bench::Documents.new(findings).send(:frontend)
      rows = lines.grep(/\A\|/).drop(2).map { |line| line.split("|").map(&:strip)[1, 2] }
      assert_equal [%w[oribi-tls 15.0]], rows
      assert_equal "Without TLS: oribi: 10.0; oribi-frontend: 20.0.", lines.last
    end
  end

  private

  def header
    workloads = %w[frontend-hop frontend-idle].to_h { |name| [name, { about: name, family: "frontend" }] }
    [{ run: "now", rounds_min: 5, machine: Bench::Machine.describe }, { servers: {}, missing: {} }, { workloads: workloads }]
  end

  def measured
    hop = { "oribi" => 10.0, "oribi-frontend" => 20.0, "oribi-tls" => 15.0 }.map do |server, value|
      workload = server == "oribi-tls" ? "frontend-tls" : "frontend-hop"
      { workload: workload, server: server, metric: "cpu_us_per_request", values: [value] * 5, median: value, unit: "µs", errors: 0 }
    end
    [*hop, { workload: "frontend-idle", server: "oribi-tls", metric: "idle_kb_per_connection", variant: "HTTP/1.1", values: [16.0], median: 16.0, unit: "KB",
             errors: 0 }]
  end
end
