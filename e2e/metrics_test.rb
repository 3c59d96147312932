# frozen_string_literal: true

require_relative "support"
require_relative "support/status"

# The status listener and its metrics: every number moves as it must under a known load, none is lost when workers end,
# and no client of the listener delays supervision.
E2E.suite("metrics", transports: %i[tcp]) do
  include E2E::InWorkspace
  include E2E::WithStatus

  HANGING = 1000
  SAMPLES = 4

  # The listener is opened after those for requests.
  def answers?
    !ask("/").status.nil?
  rescue Errno::ECONNREFUSED
    false
  end

  def sum(all, family) = all.sum { |name, value| name.start_with?("#{family}{") ? value : 0 }

  # Pids, once so many serve.
  def workers(count)
    wait_for_metric('oribi_workers{state="idle"}', count)
    pids
  end

  # So many answers, each on a connection of its own; the counts are there when the answers are.
  def load_with(one, count)
    count.times { assert_equal 200, one.get("/calls").status }
  end

  def assert_calls(count)
    wait_for_metric("oribi_calls_total", count)
    all = metrics
    assert_equal count, all['oribi_requests_total{method="GET"}']
    assert_equal count, all['oribi_answers_total{class="2xx"}']
    %w[queue_wait call request].each { |name| assert_equal count, all["oribi_#{name}_seconds_count"], name }
  end

  # What the alert OribiWorkersDie, the plots and `ctl top` take for deaths are ends that nobody has asked for.
  def test_what_is_recycled_has_not_died
    one = serve("--workers", "2", "--refork-after", "10", "--requests-max", "1000")
    load_with(one, 20)
    wait_for_metric('oribi_worker_exits_total{reason="recycled"}', 2)
    assert_equal 2, sum(metrics, "oribi_worker_exits_total")
  end

  def test_counts_are_exact_over_kills_recycling_and_reloads
    one = serve("--workers", "3")
    load_with(one, 50)
    assert_calls(50)
    victims = workers(3)
    victims.each { |pid| Process.kill(:KILL, pid) }
    wait_for_metric('oribi_worker_exits_total{reason="signal"}', victims.size)
    wait_for_metric('oribi_workers{state="idle"}', 3)
    assert_calls(50)
    load_with(one, 25)
    assert_calls(75)
    assert_equal 0, ctl("reload")
    assert_equal 1, metrics['oribi_reloads_total{result="done"}']
    assert_equal 2, metrics["oribi_generation"]
    load_with(one, 25)
    assert_calls(100)
    @space.break_app("told not to load")
    assert_equal 1, ctl("reload")
    assert_equal 1, metrics['oribi_reloads_total{result="failed"}']
    assert_calls(100)
  end

  def test_counts_are_exact_over_recycling
    one = serve("--workers", "2", "--requests-max", "3")
    load_with(one, 40)
    assert_calls(40)
    all = metrics
    assert_operator all['oribi_worker_exits_total{reason="recycled"}'], :>, 5
    assert_equal 0, all['oribi_worker_exits_total{reason="signal"}']
  end

  def test_each_kind_of_request_is_counted
    FileUtils.mkdir("#{@space.dir}/files")
    File.write("#{@space.dir}/files/a.txt", "a" * 1000)
    one = serve("--static", "/files=#{@space.dir}/files", "--head-timeout", "100ms", "--idle-timeout", "100ms", "--body-memory-max", "1K")
    connect(one).get("/") # stays, until it has been idle for too long; others may take their time between two requests
    close = { "Connection" => "close" }
    connect(one).head("/", close)
    connect(one).post("/", "x" * 10_000, close)
    assert_equal 1000, one.get("/files/a.txt").body.size
    assert_equal 404, one.get("/files/b.txt").status
    connect(one).request("PROPFIND", "/", close).read_response
    assert_equal 500, one.get("/raise").status
    assert_refused 400, "nonsense\r\n\r\n", to: one
    assert_refused 501, "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", to: one
    assert_refused 408, "GET / HT", to: one
    wait_for_metric('oribi_timeouts_total{class="idle"}', 1)
    all = metrics
    expected = { 'oribi_requests_total{method="GET"}' => 4, 'oribi_requests_total{method="HEAD"}' => 1,
                 'oribi_requests_total{method="POST"}' => 1, 'oribi_requests_total{method="other"}' => 1,
                 'oribi_answers_total{class="2xx"}' => 5, 'oribi_answers_total{class="4xx"}' => 3,
                 'oribi_answers_total{class="5xx"}' => 2, "oribi_calls_total" => 5, "oribi_requests_uncalled_total" => 2,
                 'oribi_refusals_total{status="400",reason="request_line"}' => 1,
                 'oribi_refusals_total{status="501",reason="connect"}' => 1,
                 'oribi_refusals_total{status="408",reason="head_timeout"}' => 1,
                 'oribi_timeouts_total{class="head"}' => 1,
                 "oribi_temp_files_total" => 1, "oribi_temp_file_written_bytes_total" => 10_000,
                 "oribi_temp_files_open" => 0, "oribi_temp_file_open_bytes" => 0, "oribi_shed_total" => 0, "oribi_calls_overdue_total" => 0 }
    assert_equal expected, all.slice(*expected.keys)
    assert_equal sum(all, "oribi_answers_total"), sum(all, "oribi_requests_total") + sum(all, "oribi_refusals_total")
    assert_operator all["oribi_received_bytes_total"], :>, 10_000
    assert_operator all["oribi_sent_bytes_total"], :>, 1000
    assert_operator all["oribi_connections_total"], :>=, 4
  end

  # Reason => status and bytes.
  REFUSED = {
    "request_line" => [400, "GET /a<b HTTP/1.1\r\n\r\n"],
    "field" => [400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"],
    "host" => [400, "GET / HTTP/1.1\r\n\r\n"],
    "framing" => [400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n"],
    "chunked" => [400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"],
    "proxy_header" => [400, "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n"],
    "body_timeout" => [408, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"],
    "body_bytes_max" => [413, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n"],
    "target_bytes_max" => [414, "GET /#{'a' * 2000} HTTP/1.1\r\nHost: a\r\n\r\n"],
    "expect" => [417, "GET / HTTP/1.1\r\nHost: a\r\nExpect: much\r\n\r\n"],
    "head_bytes_max" => [431, "GET / HTTP/1.1\r\nHost: a\r\nX: #{'a' * 2000}"],
    "fields_max" => [431, "GET / HTTP/1.1\r\nHost: a\r\n#{"A:\r\n" * 9}\r\n"],
    "transfer_coding" => [501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"],
    "buffers_file_max" => [503, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n#{'a' * 60_000}"],
    "version" => [505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"],
  }.freeze

  # An answer of the application is no refusal, whatever its status.
  def test_refusals_are_counted_by_their_reason_and_survive_workers_and_reloads
    one = serve("--body-timeout", "100ms", "--body-bytes-max", "100K", "--target-bytes-max", "1K", "--head-bytes-max", "1K",
                "--fields-max", "8", "--body-memory-max", "1K", "--buffers-file-max", "2K",
                "--access-log", log = "#{@space.dir}/access.log", "--access-log-format", "json")
    names = REFUSED.to_h { |reason, (status, _)| [reason, %(oribi_refusals_total{status="#{status}",reason="#{reason}"})] }
    REFUSED.each_value { |status, bytes| assert_refused(status, bytes, to: one) }
    assert_equal 500, one.get("/raise").status
    assert_equal names.values.to_h { [_1, 1] }, metrics.slice(*names.values)
    assert_equal REFUSED.size, sum(metrics, "oribi_refusals_total")
    Process.kill(:KILL, one.worker_pid)
    wait_for_metric('oribi_worker_exits_total{reason="signal"}', 1)
    assert_equal 0, ctl("reload")
    REFUSED.each_value { |status, bytes| assert_refused(status, bytes, to: one) }
    assert_equal names.values.to_h { [_1, 2] }, metrics.slice(*names.values)
    refused = -> { File.foreach(log).map { JSON.parse(_1) }.select { _1["refused"] } }
    wait_until("the lines") { refused.call.size >= 2 * REFUSED.size } # of other answers, a killed worker's last one may be missing
    assert_equal REFUSED.transform_values { |status, _| [status] * 2 },
                 refused.call.group_by { _1["refused"] }.transform_values { |of| of.map { _1["status"] } }
  end

  def test_calls_under_way_and_requests_that_wait_are_seen
    one = serve("--queue-max", "100") # newcomers are let in during a call, too
    gates = Array.new(3) { connect(one).tap { |client| client.request("GET", "/gate") } }
    wait_for_metric("oribi_requests_waiting", 2)
    wait_until("the oldest to have waited") { metrics["oribi_oldest_wait_seconds"] > 0.01 }
    all = metrics
    assert_equal 1, all['oribi_workers{state="busy"}']
    assert_equal 1, all['oribi_threads{state="busy"}']
    assert_operator all['oribi_worker_call_seconds{worker="0"}'], :>, 0
    assert_equal 3, all["oribi_connections_open"]
    @space.open_gate
    gates.each { |client| assert_equal "passed", client.read_response.body }
    wait_for_metric("oribi_requests_waiting", 0)
    wait_for_metric("oribi_queue_wait_seconds_count", 3)
    all = metrics
    assert_equal 0, all["oribi_oldest_wait_seconds"]
    assert_operator all["oribi_queue_wait_seconds_sum"], :>, 0.01
  end

  # Collections are counted once also when their worker is killed. Perl has no collector.
  def assert_collections(client)
    server_status["processes"].each { |worker| assert_operator worker["live_objects"], :>, 1000 }
    wait_until("three collections to be told") do
      client.get("/")
      metrics["oribi_gc_runs_total"] >= 3
    end
    all = metrics
    assert_operator all["oribi_gc_seconds_total"], :>, 0
    assert_operator all['oribi_worker_live_objects{worker="0"}'], :>, 1000
    assert_operator all['oribi_worker_heap_pages{worker="0"}'], :>, 10
  end

  # Each call collects once, where the language can.
  def write_collecting_app
    @space.write_app("collected", ruby: <<~RUBY)
      use(Class.new do
        def initialize(app) = @app = app
        def call(env)
          GC.start
          @app.call(env)
        end
      end)
    RUBY
  end

  # … though no worker lives for a second. The last one has answered two calls at most, and may not have told yet.
  def test_collections_are_told_at_a_workers_end
    write_collecting_app
    load_with(serve("--requests-max", "3"), 9)
    wait_for_metric("oribi_calls_total", 9)
    wait_until("the ended workers' collections") { metrics["oribi_gc_runs_total"] >= (E2E::RUBY ? 7 : 0) }
    pass
  end

  def test_garbage_collection_is_told
    write_collecting_app
    one = serve
    client = connect(one)
    if E2E::RUBY
      assert_collections(client)
    else
      client.get("/")
      assert_nil server_status["processes"].first.fetch("live_objects")
    end
    runs = metrics["oribi_gc_runs_total"]
    Process.kill(:KILL, one.worker_pid)
    wait_for_metric('oribi_worker_exits_total{reason="signal"}', 1)
    wait_for_metric('oribi_workers{state="idle"}', 1)
    all = metrics
    assert_operator all["oribi_gc_runs_total"], :>=, runs
    assert_equal E2E::RUBY, all.key?('oribi_worker_live_objects{worker="0"}')
    assert_equal 0, runs unless E2E::RUBY
  end

  CONNECTION_STATES = %w[idle reading waiting calling writing closing].freeze

  def wait_for_connections(*counts)
    wanted = CONNECTION_STATES.zip(counts).to_h
    seen = nil
    wait_until("connections to be #{wanted}") do
      all = metrics
      seen = CONNECTION_STATES.to_h { |state| [state, all["oribi_connections_by_state{state=\"#{state}\"}"]] }
      seen == wanted
    end
  rescue E2E::Timeout
    flunk "connections were #{seen}, not #{wanted}"
  end

  # Also while the only thread is in its call, and while the worker is stopped.
  def test_connections_are_counted_by_what_they_do
    @space.write_app("x" * 16 * 1024 * 1024)
    one = serve("--queue-max", "100")
    wait_until("a connection that lingers") do
      connect(one).send_raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\nmore")
      metrics['oribi_connections_by_state{state="closing"}'] >= 1
    end
    @clients.each(&:close)
    connect(one).get("/calls")
    connect(one) # silent
    connect(one, receive_buffer: 4096).request("GET", "/large")
    wait_for_connections(2, 0, 0, 0, 1, 0)
    calling = connect(one).request("GET", "/gate")
    wait_for_connections(2, 0, 0, 1, 1, 0)
    head = connect(one).send_raw("GET /calls HTTP/1.1\r\n")
    connect(one).send_raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nbody")
    waiting = connect(one).request("GET", "/calls")
    wait_for_connections(2, 2, 1, 1, 1, 0)
    pid = server_status["processes"][0]["pid"]
    Process.kill(:STOP, pid)
    wait_for_metric('oribi_workers{state="stopped"}', 1) unless E2E.portable? # which has no sight of that
    by_state = server_status["connections_by_state"]
    assert_equal CONNECTION_STATES.zip([2, 2, 1, 1, 1, 0]).to_h, by_state
    Process.kill(:CONT, pid)
    @space.open_gate
    head.send_raw("Host: a\r\n\r\n")
    [calling, waiting, head].each { |client| assert_equal 200, client.read_response.status }
    wait_for_connections(5, 1, 0, 0, 1, 0)
  end

  # An application that works for so many milliseconds and says for how many it did.
  def write_timed_app
    File.write(@space.app, E2E::RUBY ? <<~RUBY : <<~PERL)
      now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
      run lambda { |env|
        began = now.call
        sleep(env["QUERY_STRING"].to_i / 1000.0)
        [200, { "content-type" => "text/plain" }, [format("%.6f", now.call - began)]]
      }
    RUBY
      use Time::HiRes qw(clock_gettime sleep CLOCK_MONOTONIC);
      sub {
          my $began = clock_gettime(CLOCK_MONOTONIC);
          sleep($_[0]{QUERY_STRING} / 1000);
          return [200, ['Content-Type' => 'text/plain'], [sprintf '%.6f', clock_gettime(CLOCK_MONOTONIC) - $began]];
      };
    PERL
  end

  # Each time lies between what the application and what its client has measured, however busy the machine is. So do the
  # sums, and the quantiles within the histograms' error.
  def assert_between(inner, outer, family, quantiles, all)
    count = inner.size
    assert_equal count, all["#{family}_count"]
    assert_operator all["#{family}_sum"], :>=, inner.sum - count * 0.000001
    assert_operator all["#{family}_sum"], :<=, outer.sum + count * 0.000001
    { "p50" => 0.5, "p90" => 0.9, "max" => 1 }.each do |name, share|
      rank = (share * count).ceil - 1
      seconds = quantiles[name] / 1000.0
      assert_operator seconds, :>=, inner.sort[[rank - 1, 0].max] * 0.968, name
      assert_operator seconds, :<=, outer.sort[[rank + 1, count - 1].min] * 1.033, name
    end
  end

  # What a busy machine does to the server behind its answer is the request's time, and its client does not see it: so
  # one good sample of a few is enough. A server that counts too much does so in each.
  def test_histograms_agree_with_what_application_and_client_measure
    write_timed_app
    samples = 0
    begin
      one = serve
      assert_measured(connect(one))
    rescue Minitest::Assertion
      raise if (samples += 1) == SAMPLES

      one.stop
      retry
    end
  end

  def assert_measured(client)
    inner, outer = (0...40).map do |i|
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      told = client.get("/?#{i * 7 % 30}").body.to_f
      [told, Process.clock_gettime(Process::CLOCK_MONOTONIC) - began]
    end.transpose
    wait_for_metric("oribi_calls_total", 40)
    all = metrics
    json = server_status
    assert_between(inner, outer, "oribi_call_seconds", json["call_time_ms"], all)
    assert_between(inner, outer, "oribi_request_seconds", json["total_time_ms"], all)
    assert_equal 40, all["oribi_queue_wait_seconds_count"]
    assert_operator all["oribi_queue_wait_seconds_sum"], :<=, outer.sum - inner.sum
  end

  # The first call is told to end, and does so only when its worker is ended.
  def test_calls_over_their_deadline_are_counted
    one = serve("--call-timeout", "100ms")
    assert_includes 500..504, one.get("/gate").status
    wait_until("the late call") { metrics["oribi_calls_overdue_total"] == 1 }
    pass
  end

  def test_log_lines_that_are_lost_are_counted
    one = serve("--access-log", "/dev/full")
    load_with(one, 5)
    wait_for_metric("oribi_log_lines_dropped_total", 5)
    Process.kill(:KILL, workers(1).first)
    wait_for_metric('oribi_worker_exits_total{reason="signal"}', 1)
    assert_equal 5, metrics["oribi_log_lines_dropped_total"]
  end

  # The three ways in which workers cannot say anything themselves.
  def test_the_listener_answers_while_every_worker_is_stuck_stopped_or_dead
    one = serve("--workers", "2", "--err-respawn-interval", "60s")
    pids = workers(2)
    gates = Array.new(2) { connect(one).tap { |client| client.request("GET", "/gate") } }
    wait_for_metric('oribi_threads{state="busy"}', 2)
    pids.each { |pid| Process.kill(:STOP, pid) }
    assert_equal 200, ask("/healthz").status
    wait_for_metric('oribi_workers{state="stopped"}', 2) unless E2E.portable? # which has no sight of that
    assert_equal 2, metrics['oribi_threads{state="busy"}']
    assert_equal %w[stopped stopped], server_status["processes"].map { |worker| worker["state"] } unless E2E.portable?
    assert_equal 2, server_status["processes"].count { |worker| worker["call"] == "GET /gate" }
    pids.each { |pid| Process.kill(:KILL, pid) }
    wait_for_metric('oribi_worker_exits_total{reason="signal"}', 2)
    assert_equal 200, ask("/healthz").status
    assert_operator metrics["oribi_connections_total"], :>=, 2
    gates.each(&:close)
  end

  # They connect and send nothing, or a part of a request, and never leave by themselves.
  def test_hanging_clients_delay_no_supervision
    one = serve("--workers", "1")
    hanging = Array.new(HANGING) do |i|
      status_client.tap { |client| client.send_raw("GET /metrics HT") if i.odd? }
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil # another one has taken its place already
    end
    pid = one.worker_pid
    Process.kill(:KILL, pid)
    wait_until("another worker") { one.worker_pid != pid }
    assert_equal 0, ctl("reload")
    assert_equal 200, ask("/healthz").status
    assert_equal 1, metrics['oribi_worker_exits_total{reason="signal"}']
    refute_empty hanging.compact
  end

  def test_both_formats
    serve
    plain = ask("/metrics")
    assert_equal "text/plain; version=0.0.4; charset=utf-8", plain["content-type"]
    open = ask("/metrics", "Accept" => "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2")
    assert_equal "application/openmetrics-text; version=1.0.0; charset=utf-8", open["content-type"]
    assert open.body.end_with?("\n# EOF\n")
    skip "no promtool here (Debian: prometheus)" unless system("command -v promtool >/dev/null")
    IO.popen(%w[promtool check metrics], "r+", err: %i[child out]) do |promtool|
      promtool.write(plain.body)
      promtool.close_write
      assert_equal "", promtool.read
    end
  end

  def test_a_unix_socket_is_the_owners_alone
    path = "#{@space.dir}/status"
    one = start("--status", path, app: @space.app)
    wait_until("the socket") { UNIXSocket.open(path) { true } rescue false }
    assert_equal 0o600, File.stat(path).mode & 0o777
    assert_equal 200, status_client(path).get("/healthz").status
    one.stop
    refute_path_exists path
  end

  def test_addresses_that_others_reach_need_a_token
    one = run_to_end("--status", "0.0.0.0:9394", app: @space.app)
    refute_equal 0, one.status.exitstatus
    assert_equal ["#{E2E::COMMAND}: status on tcp://0.0.0.0:9394 can be reached from elsewhere and needs status_token; without it " \
                  "only loopback addresses and unix sockets are allowed\n"], one.stderr.lines
    shown = run_to_end("--status", @status, "--status-token", "s3cret", "--print-config", app: @space.app)
    assert_match(/^status_token = \(not shown\)$/, shown.stdout)
    refute_match(/s3cret/, shown.stdout)
    start("--status", @status, "--status-token", "s3cret", app: @space.app)
    wait_until("the listener") { answers? }
    assert_equal 401, ask("/metrics").status
    assert_equal 200, ask("/metrics", "Authorization" => "Bearer s3cret").status
  end

  def test_an_address_in_use_refuses_the_start
    serve
    one = run_to_end("--status", @status, app: @space.app)
    refute_equal 0, one.status.exitstatus
    assert_equal ["#{E2E::COMMAND}: status: cannot listen on tcp://#{@status}: address already in use\n"], one.stderr.lines
  end

  def test_a_reload_warns_of_another_address_and_shows_no_token
    @space.write_config({ control: @space.control, status: @status, status_token: "s3cret" })
    one = start("--config", @space.config, app: @space.app)
    wait_until("the listener") { answers? }
    @space.write_config({ control: @space.control, status: @status, status_token: "0ther" })
    assert_equal 0, ctl("reload")
    assert_match(/warn: reload: status_token: the new value takes effect at a restart or upgrade/, one.stderr)
    refute_match(/s3cret|0ther/, one.stderr)
    assert_equal 200, ask("/healthz", "Authorization" => "Bearer s3cret").status
  end

  # … and the counters, with what its predecessor's worker still finishes.
  def test_a_successor_takes_the_address_over
    one = serve("--pid-file", "#{@space.dir}/pid", group: true)
    load_with(one, 3)
    assert_calls(3)
    gate = connect(one).tap { |client| client.request("GET", "/gate") }
    wait_for_metric('oribi_threads{state="busy"}', 1)
    assert_equal 0, ctl("upgrade")
    successor = File.read("#{@space.dir}/pid").to_i
    refute_equal one.pid, successor
    wait_until("the successor to answer") do
      server_status["pid"] == successor
    rescue Errno::ECONNREFUSED, Errno::ECONNRESET, E2E::Client::Closed, EOFError
      nil
    end
    assert_operator metrics["oribi_calls_total"], :>=, 3
    load_with(one, 2)
    assert_calls(5)
    @space.open_gate
    assert_equal "passed", gate.read_response.body
    wait_for_metric('oribi_worker_exits_total{reason="asked"}', 1)
    assert_calls(6)
    assert_equal 0, ctl("stop")
    wait_until("the successor to end") { one.group.empty? }
  end
end
