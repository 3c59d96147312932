# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/frames"
require "json"
require "net/http"

# What status and metrics say of frontends: what a frontend answers by itself is the server's, nothing is counted twice,
# and no counter goes back, whatever ends meanwhile.
E2E.suite("frontend_counts", transports: %i[tcp]) do
  include FrontendServers

  # One call has been made, and is counted everywhere: a worker counts an answer after it is sent, a frontend at the end
  # of its turn.
  def served(...)
    counted(...)
    curl("/pid")
    counters = ["oribi_calls_total", 'oribi_answers_total{class="2xx"}', "oribi_frontend_calls_total"]
    wait_until("the first call to be counted") { metrics.values_at(*counters) == [1, 1, 1] }
  end

  # No call has been made yet.
  def counted(*options, **more)
    @metrics_port = E2E.free_port
    FileUtils.mkdir_p("#{@dir}/s")
    File.write("#{@dir}/s/a.txt", "0123456789")
    serve("--static", "/s=#{@dir}/s", "--health", "/up", "--status", "127.0.0.1:#{@metrics_port}", *options, **more)
  end

  def metrics
    lines = Net::HTTP.get(URI("http://127.0.0.1:#{@metrics_port}/metrics")).lines(chomp: true).reject { |line| line.start_with?("#") }
    lines.to_h { |line| line.split(/ (?=\S+\z)/).then { |name, value| [name, value.to_f] } }
  end

  def status = JSON.parse(ctl("status", "--json").first)

  def frontend_status = status["frontends"].first

  # How much each of these counters has grown in the block, and in the turn of the frontend that follows.
  def growth(wanted)
    before = metrics
    yield
    wait_until("the numbers to be #{wanted}: #{wanted.keys.to_h { |name| [name, metrics[name] - before[name]] }}") do
      now = metrics
      wanted.all? { |name, grown| now[name] - before[name] == grown }
    end
    pass
  end

  def test_each_answer_is_counted_once
    served
    growth("oribi_calls_total" => 2, "oribi_requests_uncalled_total" => 5, 'oribi_requests_total{method="GET"}' => 6,
           'oribi_requests_total{method="HEAD"}' => 1, 'oribi_answers_total{class="2xx"}' => 6, 'oribi_answers_total{class="4xx"}' => 1,
           'oribi_answers_total{class="cut"}' => 0, "oribi_frontend_local_answers_total" => 5, "oribi_frontend_calls_total" => 2,
           'oribi_frontend_requests_total{protocol="http1"}' => 5, 'oribi_frontend_requests_total{protocol="http2"}' => 2, "oribi_connections_total" => 7) do
      %w[--http1.1 --http2].each { |flag| curl("/pid", flag) && curl("/s/a.txt", flag) }
      curl("/s/none", "--http1.1", "-i")
      curl("/s/a.txt", "--http1.1", "-I")
      curl("/up", "--http1.1")
    end
  end

  # Also of several; and what `ctl certificates` takes is what is told then.
  def test_when_certificates_expire
    first, second = [1000, 2000].map { |s| FrontendServers.certificate(@dir, "c#{s}", ends_s: s) }
    served("--bind", "tls://127.0.0.1:#{E2E.free_port}?certificate=#{@dir}/c2000.pem&key=#{@dir}/c2000.key")
    expires = "oribi_frontend_certificate_expires_timestamp_seconds"
    assert_equal second.not_after.to_i, metrics[expires]
    %w[pem key].each { |kind| File.rename("#{@dir}/c1000.#{kind}", "#{@dir}/c2000.#{kind}") }
    assert_match(/certificate/, ctl("certificates").first)
    assert_equal first.not_after.to_i, metrics[expires]
  end

  def test_refusals_are_the_frontends
    served
    growth('oribi_refusals_total{status="400",reason="field"}' => 1, 'oribi_answers_total{class="4xx"}' => 1, "oribi_calls_total" => 0,
           'oribi_requests_total{method="GET"}' => 0) do
      tls { |client| client.write("GET / HTTP/1.1\r\nHost: a\r\nbad field: 1\r\n\r\n") && client.read }
    end
    growth('oribi_refusals_total{status="414",reason="target_bytes_max"}' => 1) { curl("/#{"x" * 20_000}", "--http1.1", "-i") }
  end

  def tls(session: nil, **options)
    context = OpenSSL::SSL::SSLContext.new.tap { |one| options.each { |name, value| one.public_send("#{name}=", value) } }
    client = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", @one.port), context)
    client.sync_close = true
    client.session = session if session
    yield client.connect
  ensure
    client&.close
  end

  FULL12 = 'oribi_frontend_handshakes_total{version="TLSv1.2",kind="full"}'

  def test_handshakes
    served
    session = nil
    growth(FULL12 => 1) { tls(max_version: :TLS1_2) { |client| session = client.session } }
    growth(FULL12 => 0, FULL12.sub("full", "resumed") => 1) { tls(max_version: :TLS1_2, session:) { |client| assert client.session_reused? } }
    growth(FULL12.sub("TLSv1.2", "TLSv1.3") => 1) { tls(min_version: :TLS1_3) { |client| client } }
    growth('oribi_frontend_handshakes_failed_total{reason="plain"}' => 1, 'oribi_refusals_total{status="400",reason="request_line"}' => 1,
           'oribi_answers_total{class="4xx"}' => 1) { plain { |tcp| tcp.write("GET / HTTP/1.1\r\n\r\n") && tcp.read } }
    growth('oribi_frontend_handshakes_failed_total{reason="left"}' => 1) { plain { nil } }
    growth('oribi_frontend_handshakes_failed_total{reason="refused"}' => 1) do
      assert_raises(OpenSSL::SSL::SSLError) { tls(max_version: :TLS1_1, security_level: 0) { nil } }
    end
  end

  def plain(&) = TCPSocket.open("127.0.0.1", @one.port, &)

  def test_what_is_open_now
    served
    tls(alpn_protocols: %w[http/1.1]) do |client|
      client.write("GET /pid HTTP/1.1\r\nHost: localhost\r\n\r\n")
      client.readpartial(1000)
      wait_until("a connection at rest") { metrics['oribi_connections_by_state{state="idle"}'] == 1 }
      assert_equal [1, 1], metrics.values_at("oribi_connections_open", 'oribi_frontend_connections_open{protocol="http1"}')
      assert_equal [1, true, frontend], frontend_status.values_at("connections_open", "ready", "pid")
      assert_match(/^frontend 0, pid #{frontend}, serving, 1 open, \d+ requests?, 0 answered by itself$/, ctl("status").first)
    end
    wait_until("none") { metrics["oribi_connections_open"].zero? }
    assert_equal [1, 0], metrics.values_at('oribi_frontends{state="serving"}', 'oribi_frontends{state="starting"}')
  end

  def states
    metrics.filter_map { |name, value| [name[/state="(\w+)"/, 1], value.to_i] if name.start_with?("oribi_connections_by_state") && value.positive? }.to_h
  end

  # Five requests, two workers: over either protocol. After short calls a worker would be given several at a time.
  def test_connections_whose_requests_wait
    counted("--workers", "2")
    wait_until("both workers") { ctl("status").first.include?("2 of 2 workers") }
    %w[--http1.1 --http2].each do |flag|
      clients = Array.new(5) { |i| Thread.new { curl("/gate?name=#{flag}#{i}", flag) } }
      wait_until("two calls, three that wait: #{states}") { states == { "calling" => 2, "waiting" => 3 } }
      assert_equal 2, metrics["oribi_frontend_calls_out"]
      assert_match(/^frontend 0, .*, 3 waiting$/, ctl("status").first)
      5.times { |i| FileUtils.touch("#{@one.dir}/#{flag}#{i}.open") }
      assert_equal ["gate passed"], clients.map(&:value).uniq
      wait_until("none: #{states}") { states.empty? }
      refute_match(/ waiting$/, ctl("status").first)
    end
  end

  def test_what_frontends_give_is_given_and_taken
    served("--workers", "2")
    4.times { curl("/pid") }
    wait_until("both to be the same") { metrics.values_at("oribi_handoffs_given_total", "oribi_handoffs_taken_total").uniq.size == 1 }
    assert_operator metrics["oribi_handoffs_given_total"], :>, 0
  end

  def test_none_without_a_frontend
    @metrics_port = E2E.free_port
    serve("--status", "127.0.0.1:#{@metrics_port}", address: "tcp://127.0.0.1:%{port}")
    curl("/pid", scheme: "http")
    assert_equal [0], metrics.select { |name, _| name.start_with?("oribi_frontend") }.values.uniq
    assert_empty status["frontends"]
  end

  # --- life ---

  COUNTERS = /\Aoribi_(?!worker_)\S*_total/

  # Looks at the metrics over and over; gives the counters that went back.
  def watched
    before = metrics
    back = []
    done = false
    watcher = Thread.new do
      until done
        now = metrics
        back.concat(before.keys.grep(COUNTERS).select { |name| now.fetch(name, 0) < before[name] })
        before = now
      end
    end
    yield
    done = true
    watcher.join
    assert_empty back.uniq
  ensure
    done = true
    watcher&.join
  end

  # A kept-alive connection after another; the block says whether to go on. Gives [answered, connections that ended in
  # a request, others that failed].
  def client_of(target, expected)
    answered = cut = 0
    while yield
      begin
        http = Net::HTTP.new("127.0.0.1", @one.port)
        http.use_ssl = true
        http.verify_mode = OpenSSL::SSL::VERIFY_NONE
        http.max_retries = 0
        http.start do
          while yield
            response = http.get(target)
            raise "#{target}: #{response.code} #{response.body}" unless response.code == "200" && response.body.match?(expected)

            answered += 1
          end
        end
      rescue SystemCallError, IOError, OpenSSL::SSL::SSLError, Net::OpenTimeout
        cut += 1
      end
    end
    [answered, cut]
  end

  # Three clients of files and three of calls, while the block runs. Gives what they have had together.
  def loaded
    going = true
    clients = [["/s/a.txt", /\A0123456789\z/], ["/pid", /\A\d+\z/]].flat_map do |target, expected|
      Array.new(3) { Thread.new { client_of(target, expected) { going } } }
    end
    clients.each { |thread| thread.report_on_exception = false }
    watched { yield }
    going = false
    clients.map(&:value).transpose.map(&:sum)
  ensure
    going = false
    clients&.each { |thread| thread.join rescue nil } # rubocop:disable Style/RescueModifier
  end

  SITE = %w[oribi_frontend_local_answers_total oribi_requests_uncalled_total].freeze

  # The successor's frontends begin at 0, and what its predecessor's have counted is added to that, once.
  def test_counters_go_on_over_an_upgrade
    served(group: true) # its successor is no child of ours
    3.times { curl("/s/a.txt") }
    wait_until("three files") { metrics.values_at(*SITE) == [3, 3] }
    output, ended = ctl("upgrade")
    assert ended.success?, output
    curl("/s/a.txt")
    wait_until("four files") { after_upgrade == [4, 4] }
    pass
  end

  # The successor opens the address within a moment of its predecessor's end.
  def after_upgrade
    metrics.values_at(*SITE)
  rescue SystemCallError, EOFError
    nil
  end

  def requests = metrics.slice("oribi_calls_total", "oribi_requests_uncalled_total").values.sum

  def test_nothing_is_lost_while_workers_are_recycled
    served("--workers", "2", "--requests-max", "40..60")
    before = requests
    exits = status["worker_exits"]
    answered, cut = loaded { wait_until("workers to be replaced") { status["worker_exits"] >= exits + 4 } }
    assert_equal 0, cut, @one.stderr
    wait_until("#{answered} requests: #{requests - before}") { requests - before == answered }
    assert_equal 0, metrics["oribi_frontend_exits_total"]
  end

  def test_nothing_is_lost_while_the_server_reloads
    served("--workers", "2")
    before = requests
    answered, cut = loaded { 2.times { assert_match(/generation/, ctl("reload").first) } }
    assert_equal 0, cut, @one.stderr
    wait_until("#{answered} requests: #{requests - before}") { requests - before == answered }
    assert_equal 2, metrics['oribi_reloads_total{result="done"}']
  end

  # What is lost is what was on the way on its connections: of six clients one request each, and what comes before the
  # next frontend serves waits at the listener.
  def test_a_killed_frontend_takes_only_its_connections_along
    served("--workers", "2")
    before = requests
    answered, cut = loaded do
      2.times do |i|
        first = frontend
        files = metrics["oribi_frontend_local_answers_total"]
        wait_until("some files") { metrics["oribi_frontend_local_answers_total"] > files + 20 }
        Process.kill(:KILL, first)
        wait_until("another frontend: #{@one.stderr}") { @one.stderr.scan("serves again").size == i + 1 }
        refute_equal first, frontend
      end
    end
    assert_operator cut, :<=, 12, @one.stderr
    assert_operator requests - before, :>=, answered - 12, "what a frontend has counted outlives it"
    assert_operator requests - before, :<=, answered + 12
    assert_equal 2, metrics["oribi_frontend_exits_total"]
    assert_match(/frontend 0 \(pid \d+\) ended: signal 9/, @one.stderr)
    wait_until("no connection to be left of the frontend before") { metrics["oribi_connections_open"].zero? }
  end
end
