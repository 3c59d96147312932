# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/event_client"
require "json"

# Server-sent events that a frontend sends (doc/events.md): over HTTP/1.1, TLS and HTTP/2, resume, limits, and what ends
# a stream, or does not.
E2E.suite("events", transports: %i[tcp]) do
  include FrontendServers

  PLAIN = FrontendServers::PLAIN_ADDRESS

  def begin_server(*options, **how) = serve_plain("events", *options, **how)

  def client(path = "/events?news", **how)
    how = { tls: @tls }.merge(how) unless how[:http2]
    hold(E2E::EventClient.new(@one.port, path, **how))
  end

  def publish(channel, data, event = nil)
    target = "/publish?#{[channel, event].compact.join("&")}"
    words = ["-o", "/dev/null", "-w", "%{http_code}", "--data-binary", "@-", "-H", "Content-Type: application/octet-stream"]
    url = "#{@tls ? "https" : "http"}://localhost:#{@one.port}#{target}"
    out, error, = Open3.capture3(FrontendServers::PLAIN, "curl", "-sSk", "--max-time", FrontendServers.patience, *words, url, stdin_data: data, binmode: true)
    assert_equal "204", out, error + @one.stderr
  end

  # --- events ---

  def each_way
    [[PLAIN, {}], [bind, {}], [bind, { http2: :tls }], [PLAIN, { http2: :plain }]].each do |address, how|
      begin_server(address: address)
      yield how
      @one.cleanup
    end
  end

  def test_events_over_every_protocol
    each_way do |how|
      one = client(**how)
      two = client("/events?news&other", **how)
      assert one.ok?, [one.status, one.fields].inspect
      assert_equal %w[no-cache no], one.fields.values_at("cache-control", "x-accel-buffering")
      refute_includes one.fields, "oribi-events"
      refute_includes one.fields, "content-length"
      publish("news", "hello")
      assert_equal [%w[message hello]] * 2, [one, two].map { |each| each.event.to_a.first(2) }
      publish("other", "two\nlines \u{1F600}", "note")
      assert_equal ["note", "two\nlines \u{1F600}"], two.event.to_a.first(2)
      publish("news", "")
      publish("news", "x" * 300_000)
      assert_equal ["", "x" * 300_000], [one.data, one.data]
      assert_equal ["", "x" * 300_000], [two.data, two.data]
      assert_equal 2, metric("oribi_event_streams_open")
    end
  end

  # The lines' ends of a message are those of an event stream.
  def test_lines
    begin_server
    one = client
    { "a\r\nb" => "a\nb", "a\rb" => "a\nb", "\n" => "\n", " a: b\ndata: c" => " a: b\ndata: c", "x\n" => "x\n",
      "id: 7\n\nevent: e" => "id: 7\n\nevent: e" }.each do |sent, got|
      publish("news", sent)
      assert_equal got, one.data, sent.inspect
    end
    assert_nil one.last_id
  end

  def test_what_an_application_says
    begin_server
    one = client("/retry?news")
    assert_equal ["7", "no-store"], one.fields.values_at("x-room", "cache-control")
    one.await(&:retry_ms)
    assert_equal 1234, one.retry_ms
    assert_equal [406, "no event stream is asked for\n"], client(fields: { "Accept" => "*/*" }).then { |other| [other.status, other.body] }
    assert_equal [403, "refused\n"], client("/forbidden").then { |other| [other.status, other.body] }
    assert_equal %w["7-9" nil], [client("/last", last_id: "7-9").body, client("/last").body]
    assert client("/again?news").ok?
    assert client("/events?news", fields: { "Accept" => "text/html, text/event-stream;q=0.9" }).ok?
  end

  # Middleware may wrap the body, and say how it has changed it.
  def test_an_answer_that_middleware_has_changed
    begin_server
    one = client("/wrapped?news")
    assert one.ok?, [one.status, one.fields].inspect
    assert_empty one.fields.keys & %w[content-encoding etag]
    publish("news", "hello")
    assert_equal "hello", one.data
    assert_path_exists File.join(@one.dir, "closed") if E2E::RUBY
  end

  def test_streams_that_are_none
    begin_server
    wanted = { "/refused?none" => /at least 1 channel and at most 256/, "/refused?controls" => /has control characters/, "/dies?news" => /said to die/,
               "/forged?news" => /the header oribi-events is the server's own/, "/events?#{"x" * 257}" => /longer than 256 bytes/ }
    wanted.each do |path, line|
      assert_equal 500, client(path).status, path
      wait_until("the line of #{path}: #{@one.stderr}") { @one.stderr.match?(line) }
    end
    assert_equal 256, client("/events?#{(1..256).map { |i| "c#{i}" }.join("&")}").then { |one| publish("c256", "256").then { one.data.to_i } }
  end

  def test_without_a_frontend
    begin_server(address: "tcp://127.0.0.1:%{port}")
    assert_equal 500, client.status
    assert_match(/event streams need tls:\/\/ or \?frontend=on in the line of `bind`/, @one.stderr)
    assert_equal "Hello, World!", @one.get("/").body
  end

  def test_a_binary_message
    begin_server
    one = client
    publish("news", "\xff\x00".b, "binary")
    publish("news", "text")
    assert_equal "text", one.data
    assert_match(/a binary message is not sent to its event stream/, @one.stderr)
  end

  # --- resume ---

  HISTORY = ["--history", "h:,4,60s"].freeze

  def begin_with_history(**how) = begin_server(*HISTORY, **how)

  # The first id comes without an event, so that nothing is missed before one.
  def test_resume
    [[PLAIN, {}], [bind, {}], [bind, { http2: :tls }]].each do |address, how|
      begin_with_history(address: address)
      one = client("/events?h:a", **how)
      one.await(&:last_id)
      one.close
      %w[1 2].each { |data| publish("h:a", data) }
      two = client("/events?h:a", last_id: one.last_id, **how)
      assert_equal %w[1 2], [two.data, two.data]
      publish("h:a", "3")
      assert_equal "3", two.data
      three = client("/events?h:a", last_id: two.last_id, **how)
      publish("h:a", "4")
      assert_equal %w[4 4], [two.data, three.data]
      assert_equal two.last_id, three.last_id
      @one.cleanup
    end
  end

  def test_resume_of_several_channels
    begin_with_history
    one = client("/events?h:a&news&h:b")
    one.await(&:last_id)
    publish("h:b", "b1")
    assert_equal "b1", one.data
    one.close
    publish("h:b", "b2")
    publish("h:a", "a1")
    publish("news", "no history")
    two = client("/events?h:a&news&h:b", last_id: one.last_id)
    assert_equal %w[a1 b2], [two.data, two.data]
    publish("news", "live")
    assert_equal ["live", nil], two.event.then { |event| [event.data, (event.id unless event.id == two.last_id)] }
  end

  def test_resets
    begin_with_history
    first = client("/events?h:a").tap { |one| one.await(&:last_id) }.last_id
    5.times { |i| publish("h:a", i.to_s) }
    other = client("/events?h:b").tap { |one| one.await(&:last_id) }.last_id
    [first, other, "none", "x" * 7000].each do |id|
      one = client("/events?h:a", last_id: id)
      assert_equal ["oribi.reset", "h:a"], one.event.to_a.first(2), id
    end
    one = client("/events?h:a", last_id: first)
    one.event
    publish("h:a", "5")
    assert_equal "5", one.data
    assert_equal 5, metric("oribi_event_resets_total")
  end

  def test_what_an_application_says_of_the_past
    begin_with_history
    first = client("/events?h:a").tap { |one| one.await(&:last_id) }.last_id
    publish("h:a", "1")
    assert_equal "1", client("/since?h:a&#{first}").data
    one = client("/since?h:a&", last_id: first)
    publish("h:a", "2")
    assert_equal "2", one.data
  end

  def test_a_killed_frontend_resets
    begin_with_history
    one = client("/events?h:a")
    publish("h:a", "1")
    one.data
    old = frontend
    Process.kill(:KILL, old)
    wait_until("another frontend") { frontend && frontend != old }
    two = nil
    wait_until("a stream") { (two = client("/events?h:a", last_id: one.last_id)).ok? rescue nil }
    assert_equal "oribi.reset", two.event.type
  end

  # --- reloads, deaths ---

  def workers = @one.descendants.select { |pid| E2E::Processes.title(pid).match?(/ worker \d/) }

  def test_reloads_and_killed_workers_end_nothing
    [PLAIN, bind].each do |address|
      begin_server(address: address, workers: 2)
      one = client
      two = client(http2: @tls ? :tls : :plain)
      3.times do |i|
        output, status = ctl("reload")
        assert status.success?, output
        publish("news", "reload #{i}")
        assert_equal ["reload #{i}"] * 2, [one.data, two.data]
        kill(:KILL, killed = wait_until("a worker") { workers.first })
        wait_until("another worker") { workers.size == 2 && !workers.include?(killed) }
        publish("news", "death #{i}")
        assert_equal ["death #{i}"] * 2, [one.data, two.data]
      end
      @one.cleanup
    end
  end

  # One worker of one call at a time holds as many streams as are asked for.
  def test_a_stream_occupies_no_worker
    begin_server
    streams = Array.new(50) { client }
    assert_equal "Hello, World!", @one.get("/").body
    publish("news", "to all")
    assert_equal ["to all"] * 50, streams.map(&:data)
    assert_equal 50, metric("oribi_event_streams_open")
    streams.each(&:close)
    wait_until("all to be gone") { metric("oribi_event_streams_open").zero? }
    assert_equal 50, metric('oribi_event_streams_ended_total{reason="client"}')
  end

  # Whichever frontend has accepted a client, and whichever the publisher's request.
  def test_several_frontends
    begin_server("--frontends", "2", workers: 2)
    streams = Array.new(16) { client }
    5.times { |i| publish("news", i.to_s) }
    assert_equal [%w[0 1 2 3 4]] * 16, streams.map { |one| Array.new(5) { one.data } }
    assert_equal 16, metric("oribi_event_streams_open")
  end

  def test_a_frontend_that_is_killed
    begin_server
    one = client
    old = frontend
    Process.kill(:KILL, old)
    refute one.ended_well?
    wait_until("another frontend") { frontend && frontend != old }
    wait_until("a stream") { (two = client) && two.ok? && publish("news", "back").then { two.data == "back" } rescue nil }
  end

  def test_a_stop_and_an_upgrade_end_all
    [PLAIN, bind].each do |address|
      begin_server("--frontend-drain", "500ms", address: address)
      ones = [client, client, client(http2: @tls ? :tls : :plain)]
      output, status = ctl("upgrade")
      assert status.success?, output
      assert(ones.all?(&:ended_well?))
      wait_until("the successor") { client.ok? rescue nil }
      last = client
      ctl("stop")
      assert last.ended_well?
      @one.cleanup
    end
  end

  # --- limits ---

  def test_streams_max
    begin_server("--events-max", "2")
    one = client
    assert_equal [200, 503], [client, client].map(&:status)
    assert_match(/too many event streams are open \(events_max\)/, @one.stderr)
    one.close
    wait_until("room") { client.status == 200 }
  end

  # The kernel takes some of it, so that far more is published than may wait.
  def test_clients_that_do_not_read
    [PLAIN, bind].each do |address|
      begin_server("--websocket-pending-max", "64K", address: address)
      slow = client
      other = client
      sent = 0
      until @one.stderr.include?("reads too slowly") || sent == 400
        publish("news", "y" * 200_000)
        sent += 1
        assert_equal 200_000, other.data.bytesize
      end
      assert_match(/the client reads too slowly \(websocket_pending_max\); ending its event stream/, @one.stderr)
      assert slow.ended_well?
      assert_equal 1, metric('oribi_event_streams_ended_total{reason="slow"}')
      @one.cleanup
    end
  end

  def test_comments
    begin_server("--events-ping", "100ms")
    one = client
    two = client(http2: :plain)
    one.await { one.comments >= 3 }
    two.await { two.comments >= 3 }
    publish("news", "hello")
    assert_equal %w[hello hello], [one.data, two.data]
  end

  # --- what is seen ---

  def test_counters_and_lines
    begin_server("--access-log", "-", "--access-log-format", "json")
    one = client("/events?news")
    publish("news", "1234")
    one.data
    assert_equal 1, JSON.parse(ctl("status", "--json").first)["frontends"].first["event_streams"]
    assert_match(/^frontend 0, .*, 1 event stream/, ctl("status").first)
    assert_equal [1, 1, 12], [metric("oribi_event_streams_opened_total"), metric("oribi_events_total"), metric("oribi_event_bytes_total")]
    assert_equal 0, @one.stdout.lines.count { |line| line.include?("/events?news") }, "its line comes at its end"
    one.close
    wait_until("its line") { @one.stdout.include?("/events?news") }
    lines = @one.stdout.lines.map { |line| JSON.parse(line) }.select { |line| line["target"] == "/events?news" }
    assert_equal [["GET", 200, 1]], lines.map { |line| line.values_at("method", "status", "messages_out") }
    assert_includes [15, 18], lines.first["bytes"], "perhaps with a comment, by which its end was found out"
  end
end
