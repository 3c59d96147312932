# frozen_string_literal: true

# bench/run and bench/report: what is told of servers that are missing, that die, that answer wrong; the lines of
# results; the page. No figure is looked at.
require "minitest/autorun"
require "open3"
require "tmpdir"
require "uri"
require_relative "../lib/document"
require_relative "../lib/documents"
require_relative "../lib/findings"
require_relative "../lib/targets"
load File.expand_path("../run", __dir__)

Bench::Workload.load_all

class BenchRunTest < Minitest::Test
  # Answers on one connection after the other, `lives` times, then ends.
  SERVER = <<~RUBY
    server = TCPServer.new("127.0.0.1", Integer(ARGV[0]))
    trap(:TERM) { exit!(0) }
    left = Integer(ARGV[2])
    loop do
      Thread.new(server.accept) do |socket|
        while (line = socket.gets)
          next unless line == "\\r\\n"
          socket.write("HTTP/1.1 200 OK\\r\\nContent-Length: \#{ARGV[1].bytesize}\\r\\n\\r\\n\#{ARGV[1]}")
          exit!(3) if (left -= 1).zero?
        end
      rescue SystemCallError
        nil
      end
    end
  RUBY

  def setup
    @dir = Dir.mktmpdir("bench-test")
    @results = File.join(@dir, "run.jsonl")
  end

  def teardown
    @threads&.each(&:kill)
    @context&.close
    FileUtils.rm_rf(@dir)
  end

  def peer(key, body: "Hello, World!", lives: -1, needs: [])
    Bench::Peer.new(key, key.capitalize, :rack, needs: needs, command: lambda { |site|
      [{}, ["ruby", "-rsocket", "-e", SERVER, site.port, body, lives]]
    })
  end

  # [exit code, results, what was printed]
  def run_with(peers, workload: "hello", again: nil)
    options = Bench::Options.new(quick: true, minutes: 0.05, rounds: 2, only: [workload], output: @results, report: false, again: again)
    options.define_singleton_method(:peers) { peers }
    code = nil
    output, errors = capture_io { code = Bench::Run.new(options).call }
    [code, File.readlines(@results).drop(3).map { |line| JSON.parse(line, symbolize_names: true) }, output + errors]
  end

  def of(results, server, metric = "requests_per_second") = results.find { |one| one[:server] == server && one[:metric] == metric }

  def test_figures_of_a_server_are_whole_result_lines
    code, results, output = run_with([peer("good")])
    assert_equal 0, code
    results.each do |one|
      %i[workload server metric values median unit better errors].each { |key| assert one.key?(key), "#{key} is missing in #{one}" }
    end
    assert_equal 2, of(results, "good")[:values].size
    assert_equal 2, of(results, "good", "cpu_us_per_request")[:values].size
    assert_equal 0, of(results, "good")[:errors]
    assert_match(/Good\s+[\d,.]+/, output)
  end

  def test_what_is_measured_again_takes_the_place_of_the_earlier
    run_with([peer("good")])
    other = { workload: "stream", server: "good", metric: "requests_per_second", values: [1.0], median: 1.0, errors: 0 }
    lines = File.readlines(@results)
    named = JSON.parse(lines[2]).tap { |one| one["workloads"]["stream"] = { about: "", family: "responses" } }
    File.write(@results, [lines[0], lines[1], JSON.generate(named) + "\n", *lines.drop(3), JSON.generate(other) + "\n"].join)
    before = of(JSON.parse("[#{lines.drop(3).join(",")}]", symbolize_names: true), "good")[:values]
    _, results, = run_with([peer("good")], again: true)
    assert_equal [1, 1], [results.count { |one| one == other }, results.count { |one| one.values_at(:workload, :metric) == %w[hello requests_per_second] }]
    refute_equal before, of(results.reject { |one| one == other }, "good")[:values]
    again = Bench::Findings.new(@results).run[:again]
    assert_equal [["hello"]], again.map { |one| one[:workloads] }
    assert_equal Bench::Machine.describe[:processor], again.first[:machine][:processor]
    assert_path_exists @results
    refute_path_exists "#{@results}.again"
  end

  def test_a_server_that_works_when_nobody_asks_is_stopped_between_its_turns
    spinning = Bench::Peer.new("busy", "Busy", :rack, command: lambda { |site|
      [{}, ["ruby", "-rsocket", "-e", "Thread.new { loop {} }\n#{SERVER}", site.port, "Hello, World!", -1]]
    })
    code, results, = run_with([spinning, peer("good"), peer("other")])
    assert_equal 0, code
    assert_match(/takes \d+ % of a core when nobody asks it anything/, of(results, "busy")[:note])
    assert_equal [2, 2], %w[busy good].map { |name| of(results, name)[:values].size }
    refute of(results, "good")[:note]
  end

  def test_forms_that_are_sent_are_as_large_as_is_said_and_hold_what_is_expected
    forms = Bench::FormBodies
    { 20 => 1024, 300 => 16_384 }.each do |count, bytes|
      body = forms.urlencoded(count)
      assert_in_delta bytes, body.bytesize, bytes / 20
      pairs = URI.decode_www_form(body)
      assert_equal [count, forms::ESCAPED], [pairs.size, pairs.to_h.fetch("field_name_20")]
    end
    cookies = forms.cookies.split("; ").to_h { |pair| pair.split("=", 2) }
    assert_equal [675, 20, forms::COOKIE], [forms.cookies.bytesize, cookies.size, URI.decode_www_form_component(cookies.fetch("cookie_18"))]
  end

  def test_a_missing_peer_is_named_with_the_reason
    code, results, output = run_with([peer("good"), peer("lost", needs: ["no-such-command"])])
    assert_equal 0, code
    assert_nil of(results, "lost")
    header = JSON.parse(File.readlines(@results)[1], symbolize_names: true)
    assert_equal "no-such-command is not installed (script/setup bench)", header.dig(:missing, :lost, :reason)
    assert_match(/Missing: Lost: no-such-command/, output)
  end

  def test_a_server_that_dies_is_marked_and_the_others_go_on
    code, results, output = run_with([peer("mortal", lives: 40), peer("good")])
    assert_equal 0, code, "a peer's failure is not ours"
    assert_operator of(results, "mortal")[:errors], :>, 0
    assert_operator of(results, "good")[:values].size, :>, 0
    assert_match(/Mortal: .*\(\d+ errors\)/, output)
  end

  def test_a_wrong_body_is_found
    _, results, = run_with([peer("wrong", body: "Hello, Wor1d!")])
    assert_match(/answers wrong: a body of 13 bytes/, of(results, "wrong")[:note])
    assert_empty of(results, "wrong")[:values]
  end

  def test_a_failure_of_oribi_makes_the_exit_code_1
    code, _, output = run_with([peer("oribi", body: "")])
    assert_equal 1, code
    assert_match(/Oribi failed: hello oribi/, output)
  end

  def test_a_busy_port_is_said
    taken = TCPServer.new("127.0.0.1", 0)
    context = Bench::Context.new(peers: [], quick: true, rounds_min: 1)
    running = Bench::Running.new(peer("late"), context, listen: "127.0.0.1:#{taken.addr[1]}")
    error = assert_raises(Bench::Running::Failed) { running.start }
    assert_match(/listens on .* already/, error.message)
  ensure
    taken.close
    context.close
  end

  def test_a_peer_with_options_is_a_variant_of_it
    site = Bench::Site.new(listen: "127.0.0.1:1", app: "app", workers: 1)
    base = Bench::Peer.new("base", "Base", :rack, command: ->(one) { [{}, ["serve", one.app]] }, lacks: [:unix])
    other = base.with("other", "Other", "--more")
    assert_equal %w[serve --more app], other.command(site).last
    assert_equal "base", other.variant_of
    assert other.lacks?(:unix)
  end

  def test_a_table_goes_between_its_marks_only
    path = File.join(@dir, "page.md")
    File.write(path, "a\n<!-- bench:x -->\nold\n<!-- /bench:x -->\nb\n")
    assert Bench::Document.put(path, "x", ["new"])
    assert_equal "a\n<!-- bench:x -->\n\nnew\n\n<!-- /bench:x -->\nb\n", File.read(path)
    refute Bench::Document.put(path, "y", ["new"])
  end

  def context = @context ||= Bench::Context.new(peers: [], quick: true, rounds_min: 1)

  # Serves with the block until the test ends; gives the address.
  def serving(&each)
    server = TCPServer.new("127.0.0.1", 0)
    @threads = [*@threads, Thread.new { loop { Thread.new(server.accept, &each) } }]
    "127.0.0.1:#{server.addr[1]}"
  end

  def test_requests_without_an_answer_count_with_what_they_waited
    first = true
    address = serving do |socket|
      mine, first = first, false
      while (line = socket.gets)
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") if mine && line == "\r\n"
      end
    rescue SystemCallError
      nil
    end
    found = Bench::OpenLoop.new(context, pinned: false).run(address, rate: 50, seconds: 1, connections: 2, warm_s: 0)
    assert_equal 1, found.errors, "the other connection's only request"
    assert_operator found.at(100), :>=, 1000 * Bench::OpenLoop::QUICK_TAIL_S, "it waited until the end"
  end

  def test_requests_that_found_no_connection_are_errors_too
    address = serving(&:gets)
    found = Bench::OpenLoop.new(context, pinned: false).run(address, rate: 50, seconds: 1, connections: 2, warm_s: 0)
    assert_operator found.errors, :>, 10
    assert_equal found.count, found.errors
  end

  def test_a_round_that_is_measured_again_is_noted
    checker = Struct.new(:asked, :unanswered, :complaints, :ends_by_close, :closes_unsaid) { def during = yield }.new(1, 0, [])
    running = Struct.new(:cpu_seconds, :alive?, :listen, :rest, :wake, :restless).new(0.0, true, "-")
    one = Bench::Throughput::Measured.new(peer: peer("stalls"), running: running, checker: checker, rounds: [], complaints: Hash.new(0), retried: [],
                                          wire_bytes: 10)
    loads = [0, 50].map { |count| Bench::Wrk::Load.new(requests: count, seconds: 1.0, bytes: count * 10, errors: {}) }
    workload = Bench::Workload.registered["hello"].new(context, share_s: 1)
    workload.define_singleton_method(:wrk) { Struct.new(:loads) { def run(*) = loads.shift }.new(loads) }
    one.rounds << workload.send(:load, one, 0.5)
    reported = []
    workload.send(:report, one) { |found| reported << found }
    assert_equal [50.0], reported.first[:values]
    assert_equal 1, reported.first[:retried]
    assert_match(/1 of the rounds without an answer for 0.5 s, measured again/, reported.first[:note])
  end

  def test_the_reference_answers_what_is_pipelined_and_survives_who_leaves
    running = Bench::Running.new(Bench::Peers.find("bare"), context).start
    one = Bench::Request.new.to_s
    10.times { running.connect.tap { |socket| socket.write(one * 16) }.close }
    socket = running.connect
    socket.write(one * 40)
    socket.close_write
    assert_equal 40, socket.read.scan("Hello, World!").size
    assert_predicate running, :alive?
  ensure
    socket&.close
    running&.stop
  end

  # Lines as a run writes them: [workload, server, metric, variant, values, errors].
  def findings(*rows)
    servers = %w[oribi unicorn puma bare].to_h { |key| [key, { name: key.capitalize, kind: key == "bare" ? "reference" : "rack" }] }
    names = rows.map(&:first).uniq
    lines = [{ run: "now", rounds_min: 5, machine: {} }, { servers: servers, missing: {} }, { workloads: names.to_h { |name| [name, {}] } }]
    lines += rows.map do |workload, server, metric, variant, values, errors|
      { workload: workload, server: server, metric: metric, variant: variant, values: values, median: Bench::Workload.median(values),
        errors: errors.to_i }.compact
    end
    File.write(@results, lines.map { |line| "#{JSON.generate(line)}\n" }.join)
    Bench::Findings.new(@results)
  end

  def test_targets_say_by_how_much
    late = Bench::DrivenWorkload::OPEN_VARIANT
    rows = Bench::Targets.check(findings(
                                  ["hello", "oribi", "cpu_us_per_request", nil, [3.0, 3.0]], ["hello", "bare", "cpu_us_per_request", nil, [2.0, 2.0]],
                                  ["rails", "oribi", "latency_ms", late, [8.0]], ["rails", "puma", "latency_ms", late, [9.0]],
                                  ["rails", "unicorn", "latency_ms", late, [10.0], 3],
                                  ["rails-memory", "oribi", "memory_mb", "worker PSS, warm", [30.0, 30.0]],
                                  ["rails-memory", "unicorn", "memory_mb", "worker PSS, warm", [30.0, 30.0]],
                                  ["memory", "oribi", "memory_mb", "worker PSS, warm", [1.0]], ["memory", "unicorn", "memory_mb", "worker PSS, warm", [2.0]]
                                ))
    found = rows.map { |row| row.values_at(:workload, :other, :figures, :found, :wanted, :verdict, :marked) }
    assert_equal [["hello", "Bare", [3.0, 2.0], 1.5, "≤ 1.2", "missed (-25 %)", false],
                  ["rails", "Puma", [8.0, 9.0], 0.89, "within its interval", "reached", false],
                  ["rails-memory", "Unicorn", [30.0, 30.0], 1.0, "< 1", "missed (less than 1 %)", false],
                  ["all 1 rows of p99", "the best of each", [], 0.89, "≤ 0.95", "reached", false]], found
  end

  def test_a_target_is_reached_or_missed_only_where_the_interval_says_so
    rates = { "hello" => [5.0, 6.0, 7.0, 5.5, 4.9], "stream" => [1.1, 1.2, 1.1, 1.3, 1.2], "parts-1k" => [1.0, 1.1, 0.9, 1.2, 1.0] }
    measured = rates.flat_map do |workload, ratios|
      [[workload, "oribi", "requests_per_second", nil, ratios.map { |ratio| ratio * 100 }], [workload, "puma", "requests_per_second", nil, [100.0] * 5]]
    end
    rows = Bench::Targets.check(findings(*measured)).to_h { |row| [row[:workload], row.values_at(:verdict, :interval)] }
    assert_equal({ "hello" => ["open", [4.9, 7.0]], "parts-1k" => ["missed (-50 %)", [0.9, 1.2]], "stream" => ["reached (+20 %)", [1.1, 1.3]] }, rows)
  end

  def test_a_latency_is_held_against_the_interval_of_the_others
    late = Bench::DrivenWorkload::OPEN_VARIANT
    row = lambda do |own|
      rows = findings(["rails", "oribi", "latency_ms", late, [own] * 5], ["rails", "puma", "latency_ms", late, [9.0, 8.0, 12.0, 10.0, 7.0]])
      Bench::Targets.check(rows).map { |one| one[:state] }
    end
    assert_equal %i[reached missed], row.call(12.0)
    assert_equal %i[missed missed], row.call(12.1)
  end

  def test_the_ratio_is_that_of_the_rounds_and_its_interval_is_the_same_each_time
    found = Bench::Comparison.of([10.0, 40.0, 90.0], [10.0, 20.0, 30.0])
    assert_equal [40.0, 20.0, 2.0, 1.0, 3.0], found.to_a
    assert_equal found, Bench::Comparison.of([10.0, 40.0, 90.0], [10.0, 20.0, 30.0])
    assert_equal 3.0, Bench::Comparison.of([30.0] * 4, [10.0, 10.0, 10.0]).ratio
    assert_nil Bench::Comparison.of([1.0], [0.0])
    assert_nil Bench::Comparison.of([1.0], nil)
  end

  def test_reloads_come_while_the_load_runs_and_end_with_it
    signals = Queue.new
    running = Struct.new(:peer, :alive?).new(Bench::Peers.find("puma-cluster"), true)
    running.define_singleton_method(:signal) { |name| signals << name }
    seen = Bench::Trouble.reload_each_second(running) { Array.new(2) { signals.pop } }
    assert_equal %i[USR1 USR1], seen
    assert_empty signals
  end

  def test_who_cannot_be_reloaded_while_it_serves_is_named_with_the_reason
    assert_match(/has no reload/, Bench::Trouble.reloadable(Bench::Peers.find("agoo")))
    starter = Bench::Trouble.starter(Bench::Peers.find("starlet"))
    site = Bench::Site.new(listen: "127.0.0.1:9", app: "app.psgi", workers: 4)
    assert_equal %w[start_server --port=127.0.0.1:9 -- plackup], starter.command(site).last.first(4)
    assert_equal :HUP, starter.reload
  end

  def test_slow_clients_that_a_server_does_not_take_are_told
    context = self.context
    server = TCPServer.new("127.0.0.1", 0)
    server.listen(1100)
    address = Struct.new(:listen).new("127.0.0.1:#{server.addr[1]}")
    assert_equal 7, Bench::Trouble.beside_slow(context, address) { 7 }
  ensure
    server&.close
  end

  def test_what_goes_wrong_has_a_table_of_its_own
    rows = findings(["reloading", "oribi", "requests_per_second", nil, [20.0]], ["reloading", "oribi", "latency_ms", "p99", [2.0]],
                    ["slow-senders", "puma", "requests_per_second", nil, [0.0], 3])
    rows.define_singleton_method(:machine) { Bench::Machine.describe }
    table = Bench::Documents.new(rows).send(:troubles).grep(/\A\|/)
    assert_equal ["Oribi", "20.0", "2.00", "", "", "", ""], table[2].split("|").drop(1).map(&:strip)[0, 7]
    assert_match(/\| Puma .* 0.00 ! /, table[3])
  end

  def test_one_core_pins_nothing
    context = Bench::Context.new(peers: [], quick: true, rounds_min: 1, cores: [0])
    refute_predicate context, :pinned?
    assert_equal %w[true], context.on_server_core(%w[true])
  ensure
    context.close
  end

  def test_unknown_names_are_refused
    { "--only" => "nothing", "--servers" => "nobody" }.each do |option, name|
      _, errors, status = Open3.capture3("ruby", File.join(Bench::ROOT, "bench/run"), option, name)
      assert_equal 1, status.exitstatus
      assert_match(/no #{option} '#{name}'/, errors)
    end
  end

  def test_answers_in_chunks_and_until_the_end_are_read_whole
    { "Transfer-Encoding: chunked\r\n\r\n3\r\nHel\r\n2\r\nlo\r\n0\r\n\r\n" => false, "\r\nHello" => true }.each do |rest, by_close|
      server = TCPServer.new("127.0.0.1", 0)
      thread = Thread.new do
        socket = server.accept
        nil until socket.gets == "\r\n"
        socket.write("HTTP/1.1 200 OK\r\n#{rest}")
        socket.close
      end
      checker = Bench::Checker.new(-> { TCPSocket.new("127.0.0.1", server.addr[1]) }, Bench::Request.new(expected: "Hello"))
      assert checker.check
      assert_empty checker.complaints
      assert_equal by_close, checker.ends_by_close
      thread.join
    ensure
      server.close
    end
  end

  def test_a_close_that_is_not_announced_is_seen
    { "Connection: close\r\n" => false, "" => true }.each do |field, unsaid|
      address = serving do |socket|
        nil until socket.gets == "\r\n"
        socket.write("HTTP/1.1 200 OK\r\n#{field}Content-Length: 13\r\n\r\nHello, World!")
        socket.close
      end
      checker = Bench::Checker.new(-> { TCPSocket.new(*address.split(":")) }, Bench::Request.new(fields: { "Connection" => "close" }))
      assert checker.check
      assert_equal unsaid, checker.closes_unsaid
    end
  end

  def test_the_page_shows_what_was_found_and_what_was_not
    skip "plots want node with vega (script/setup bench)" unless File.exist?(File.join(Bench::ROOT, "build/bench/node_modules/vega-lite"))

    run_with([peer("good"), peer("mortal", lives: 40), peer("lost", needs: ["no-such-command"])])
    output, status = Open3.capture2e("ruby", File.join(Bench::ROOT, "bench/report"), "--results", @results)
    assert status.success?, output
    page = File.read(File.join(@dir, "report.html"))
    assert_includes page, "not measured: no-such-command"
    assert_match(/<svg.*Good/m, page)
    refute_match(%r{(src|href)="https?://}, page, "the page is one file")
    assert_path_exists File.join(@dir, "plots/hello-requests-per-second.svg")
  end

  def test_results_that_are_cut_are_refused
    File.write(@results, "{\"run\":")
    output, status = Open3.capture2e("ruby", File.join(Bench::ROOT, "bench/report"), "--results", @results)
    refute status.success?
    assert_match(/run.jsonl:1: not JSON/, output)
  end
end
