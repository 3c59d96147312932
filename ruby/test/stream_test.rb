# frozen_string_literal: true

require "support"

# Bodies that write for themselves, hijacked sockets, early hints.
class StreamTest < BindingTest
  # Lint of rack 2 refuses what rack 3 brought (lists of values, bodies that are called) and hides to_ary and to_path.
  def serve(app, lint: RACK3, **more, &block) = super

  STREAM = { "content-type" => "text/plain" }.freeze

  def stream(headers = STREAM, &block) = ->(_) { [200, headers.dup, block] }

  def test_streaming_body
    app = stream do |stream|
      stream.write("a", "bc")
      stream << "d" << 5
      stream.flush
      stream.close
    end
    serve(app) do |client|
      2.times do
        response = client.get("/")
        assert_equal %w[abcd5 chunked], [response.body, response["transfer-encoding"]]
      end
    end
  end

  def test_syswrite
    written = nil
    app = stream { |stream| written = stream.syswrite("abc") + stream.syswrite(:d) }
    serve(app, lint: false) { |client| assert_equal ["abcd", 4], [client.get("/").body, written] }
  end

  def upgrade(client, body = "", offer: "x, y/2", version: "1.1")
    client.send_raw("GET / HTTP/#{version}\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: #{offer}\r\n\r\n#{body}")
  end

  def test_a_protocol_of_the_clients_choice
    app = lambda do |env|
      [200, { "rack.protocol" => "y/2", "content-length" => "5" },
       ->(stream) { Thread.new { stream.write(env["rack.protocol"].inspect, stream.read(5)) && stream.close } }]
    end
    serve(app) do |client|
      upgrade(client, "early")
      head, rest = client.socket.read.split("\r\n\r\n", 2)
      lines = head.split("\r\n").grep_v(/\ADate: /)
      assert_equal ["HTTP/1.1 101 Switching Protocols", "connection: upgrade", "upgrade: y/2"], [lines[0], *lines.drop(1).sort]
      assert_equal '["x", "y/2"]early', rest
    end
  end

  # As with Puma and Falcon: a body that is called takes the connection, with rack.hijack or without.
  def test_a_101_without_rack_protocol
    [[{ "upgrade" => "x" }, ->(stream) { stream.write("hello") && stream.close }],
     [{ "Upgrade" => "x", "rack.hijack" => ->(stream) { stream.write("hello") && stream.close } }, []]].each do |headers, body|
      serve(->(_) { [101, headers, body] }, lint: false) do |client|
        upgrade(client)
        head, rest = client.socket.read.split("\r\n\r\n", 2)
        lines = head.downcase.split("\r\n").grep_v(/\Adate: /)
        assert_equal ["http/1.1 101 switching protocols", "connection: upgrade", "upgrade: x"], [lines[0], *lines.drop(1).sort]
        assert_equal "hello", rest
      end
    end
  end

  def test_protocols_that_cannot_be
    seen = []
    answers = [["z", ->(_) {}], ["x", ["text"]], [1, ->(_) {}]]
    app = lambda do |env|
      seen << env["rack.protocol"]
      protocol, body = answers.shift
      [200, { "rack.protocol" => protocol }, body]
    end
    3.times do
      serve(app, lint: false) do |client|
        upgrade(client, offer: "x")
        assert_equal 500, client.read_response.status
      end
    end
    answers << ["x", ["ten"]] << ["x", ["none"]]
    serve(app, lint: false) do |client|
      upgrade(client, offer: "x", version: "1.0")
      assert_equal "ten", client.read_response.body
    end
    serve(app, lint: false) { |client| assert_equal "none", client.get("/").body }
    assert_equal [["x"]] * 3 + [nil, nil], seen
  end

  def test_a_failure_with_the_socket_closes_it
    serve(->(_) { [200, { "rack.protocol" => "x" }, ->(_stream) { raise "told to fail" }] }) do |client|
      upgrade(client)
      assert_match(/\AHTTP\/1.1 101 .*\r\n\r\n\z/m, client.socket.read)
    end
  end

  def test_a_thread_that_still_writes_when_the_call_fails
    writer = nil
    failing = lambda do |stream|
      stream.write("first")
      writer = Thread.new { loop { stream.write("x" * 100_000) } }
      writer.report_on_exception = false
      wait_until("a full socket") { writer.status == "sleep" }
      raise "told to fail"
    end
    app = ->(env) { [200, STREAM, env["PATH_INFO"] == "/" ? failing : ["fine"]] }
    capture_log do
      serve(app, lint: false) do |client|
        client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_until("the writer") { writer }
        assert_equal "closed stream", assert_raises(IOError) { writer.join(DEADLINE) }.message
        client.reconnect
        20.times { assert_equal "fine", client.get("/fine").body }
      end
    end
    assert_match(/told to fail/, logged)
  end

  def test_parts_leave_as_they_are_written
    steps = Thread::Queue.new
    app = stream do |stream|
      stream.write("first")
      steps.pop
      stream.write("second")
      stream.close
    end
    serve(app) do |client|
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      received = +""
      received << client.socket.readpartial(1000) until received.end_with?("5\r\nfirst\r\n")
      steps << :go
      received << client.socket.readpartial(1000) until received.end_with?("0\r\n\r\n")
      assert_match(/6\r\nsecond\r\n/, received)
    end
  end

  def test_flush_sends_the_head
    steps = Thread::Queue.new
    app = stream do |stream|
      stream.flush
      steps.pop
      stream.close
    end
    serve(app) do |client|
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      received = +""
      received << client.socket.readpartial(1000) until received.end_with?("\r\n\r\n")
      steps << :go
      assert_equal "0\r\n\r\n", client.socket.read(5)
    end
  end

  def test_reading_the_request_from_the_stream
    serve(stream { |stream| stream.write(stream.read(2), "|", stream.read) && stream.close }) do |client|
      assert_equal "ab|cdef", client.post("/", "abcdef").body
      assert_equal "|", client.get("/").body
    end
  end

  def test_closing
    seen = []
    app = stream do |stream|
      stream.write("x")
      stream.close_read
      seen << stream.closed?
      seen << begin
        stream.read
      rescue IOError => e
        e.message
      end
      stream.close_write
      seen << stream.closed?
      seen << begin
        stream.write("y")
      rescue IOError => e
        e.message
      end
      stream.close
    end
    serve(app) { |client| assert_equal "x", client.get("/").body }
    assert_equal [false, "not opened for reading", true, "closed stream"], seen
  end

  def test_nothing_written
    serve(stream(&:close)) { |client| 2.times { assert_equal [200, ""], client.get("/").then { |r| [r.status, r.body] } } }
  end

  def test_the_answer_ends_when_call_returns
    kept = nil
    app = stream do |stream|
      kept = stream
      stream.write("x")
    end
    serve(app) { |client| 2.times { assert_equal "x", client.get("/").body } }
    assert_raises(IOError) { kept.write("late") }
  end

  def test_a_stream_may_go_on_in_a_thread
    go = Thread::Queue.new
    app = stream do |stream|
      Thread.new do
        go.pop
        3.times { |i| stream.write("line #{i}\n") }
        stream.close
      end
    end
    serve(app, lint: false) do |client|
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      other = connect("unix://#{File.join(@log, "s")}")
      go << 1
      head, body = client.read_eof.split("\r\n\r\n", 2)
      assert_match(/^Connection: close/i, head)
      assert_equal "line 0\nline 1\nline 2\n", body
      other.close
    end
  end

  def test_a_thread_that_writes_before_call_returns
    app = stream do |stream|
      Thread.new do
        stream.write("from a thread")
        stream.close
      end.join
    end
    serve(app, lint: false) do |client|
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      assert client.read_eof.end_with?("\r\n\r\nfrom a thread")
    end
  end

  def test_a_streaming_body_that_fails
    capture_log do
      serve(->(env) { [200, {}, ->(stream) { stream.write("x") if env["PATH_INFO"] == "/late"; raise "stream failed" }] }, lint: false) do |client|
        assert_equal 500, client.get("/early").status
        client.send_raw("GET /late HTTP/1.1\r\nHost: a\r\n\r\n")
        refute client.read_eof.end_with?("0\r\n\r\n")
      end
    end
    assert_equal 2, logged.scan("RuntimeError: stream failed").size
  end

  def test_a_bad_header_shows_at_the_first_write
    capture_log do
      serve(stream({ "bad name" => "x" }) { |stream| stream.write("x") }, lint: false) { |client| assert_equal 500, client.get("/").status }
    end
  end

  def test_a_client_that_leaves_is_told_to_the_writer
    raised = nil
    app = lambda do |env|
      next text(["fine"]) if env["PATH_INFO"] == "/"

      [200, {}, lambda do |stream|
        10_000.times { stream.write("x" * 100_000) }
      rescue IOError => e
        raised = e
        raise
      end]
    end
    capture_log do
      serve(app, lint: false) do |client|
        client.send_raw("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n")
        client.socket.readpartial(10)
        client.reconnect
        assert_equal "fine", client.get("/").body
      end
    end
    assert_kind_of Oribi::DisconnectError, raised
    assert_empty logged
  end

  # --- hijack ---

  def test_full_hijack
    app = lambda do |env|
      io = env["rack.hijack"].call
      assert_same io, env["rack.hijack_io"] if env["rack.hijack_io"]
      io.write("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhijacked")
      io.close
      [-1, {}, []]
    end
    [:unix, :tcp].each do |transport|
      serve(app, transport: transport, lint: false) do |client|
        assert_equal "hijacked", client.get("/").body
        client.reconnect
        assert_equal "hijacked", client.get("/").body
      end
    end
  end

  def test_the_hijacked_socket_has_the_kind_of_its_listener
    app = lambda do |env|
      io = env["rack.hijack"].call
      io.write("HTTP/1.0 200 OK\r\n\r\n#{io.class} #{env["REMOTE_ADDR"]}")
      io.close
      [200, {}, []]
    end
    { unix: "UNIXSocket", tcp: "TCPSocket" }.each do |transport, kind|
      serve(app, transport: transport, lint: false, trusted_proxies: "unix 127.0.0.1") do |client|
        client.send_raw("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n")
        assert_equal "#{kind} 192.0.2.7", client.socket.read.split("\r\n\r\n").last
      end
    end
  end

  def test_hijacked_socket_has_what_was_already_read
    app = lambda do |env|
      io = env["rack.hijack"].call
      io.write(io.gets.upcase)
      io.close
      [200, {}, []]
    end
    serve(app) do |client|
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\nhello\n")
      assert_equal "HELLO\n", client.read_eof
    end
  end

  def test_copies_of_a_hijack
    kept = []
    app = lambda do |env|
      kept << env["rack.hijack"].dup << env["rack.hijack"].clone(freeze: true) << env["rack.hijack"].freeze
      return text(["kept"]) if env["PATH_INFO"] == "/keep"

      assert_equal env["rack.hijack"].class, kept.last.class
      kept[0..2].each { |hijack| assert_raises(Oribi::Error) { hijack.call } } if kept.size > 3
      io = kept[env["QUERY_STRING"].to_i - 3].call
      io.write("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhijacked")
      io.close
      [-1, {}, []]
    end
    serve(app, lint: false) do |client|
      2.times { assert_equal "kept", client.get("/keep").body }
      3.times do |copy|
        assert_equal "hijacked", client.get("/?#{copy}").body
        client.reconnect
      end
    end
    assert_equal "Oribi::Call", kept.last.class.name
    assert_raises(NoMethodError) { kept.last.class.new }
  end

  def test_socket_classes
    classes = []
    app = lambda do |env|
      io = env["rack.hijack"].call
      classes << io.class
      io.close
      [200, {}, []]
    end
    %i[unix tcp].each do |transport|
      serve(app, transport: transport) do |client|
        client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        client.read_eof
      end
    end
    assert_equal [UNIXSocket, TCPSocket], classes
  end

  # Without knowing its own request, such an object would take the socket of somebody else.
  def test_hijack_of_a_request_that_is_over
    kept = nil
    app = lambda do |env|
      if kept
        error = assert_raises(Oribi::Error) { kept.call }
        next text([error.message])
      end
      kept = env["rack.hijack"]
      text(["first"])
    end
    serve(app, lint: false) do |client|
      assert_equal "first", client.get("/").body
      assert_match(/the request is over/, client.get("/").body)
    end
    assert_raises(Oribi::Error) { kept.call }
  end

  def test_body_of_a_hijacked_request_is_closed
    closed = false
    app = lambda do |env|
      env["rack.hijack"].call.close
      [200, {}, Rack::BodyProxy.new([]) { closed = true }]
    end
    serve(app, lint: false) do |client|
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_equal "", client.read_eof
      client.reconnect
    end
    assert closed
  end

  def test_exception_after_a_hijack_is_logged
    app = lambda do |env|
      env["rack.hijack"].call.close
      raise "told to fail"
    end
    capture_log do
      serve(app, lint: false) do |client|
        client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert_equal "", client.read_eof
      end
    end
    assert_match(/told to fail/, logged)
  end

  def test_partial_hijack
    app = lambda do |_|
      hijack = lambda do |io|
        io.write("from the socket")
        io.close
      end
      [200, { "content-type" => "text/plain", "rack.hijack" => hijack }, []]
    end
    assert_hijacks(app)
  end

  def assert_hijacks(app, **settings)
    serve(app, **settings) do |client|
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      head, body = client.read_eof.split("\r\n\r\n", 2)
      assert_match(/\AHTTP\/1.1 200 /, head)
      refute_match(/rack\.hijack|chunked|content-length/i, head)
      assert_equal "from the socket", body
    end
  end

  # The header is found wherever it stands, beside headers that are no Strings, and where its name is another String.
  def test_partial_hijack_among_odd_headers
    hijack = ->(io) { io.write("from the socket") && io.close }
    many = 60.times.to_h { |i| ["x-#{i}", "v"] }
    [{ "rack.hijack" => hijack, "x-number" => 5 }, { "x-number" => 5, "rack.hijack" => hijack }, { sym: 1, "rack.hijack" => hijack },
     many.merge(+"rack.hijack" => hijack), { "rack.other" => 1, "rack.hijack" => hijack }].each do |headers|
      assert_hijacks(->(_) { [200, headers, []] }, lint: false)
    end
    [{ "rack.hijack" => nil, "x-number" => 5 }, { "rack.hijack" => false }, { "rack.other" => hijack, :a => 1 }].each do |headers|
      serve(->(_) { [200, headers, ["body"]] }, lint: false) { |client| assert_equal "body", client.get("/").body }
    end
  end

  def test_upgrade
    app = lambda do |_|
      echo = lambda do |io|
        io.write(io.read(6))
        io.close
      end
      [101, { "connection" => "Upgrade", "upgrade" => "echo", "rack.hijack" => echo }, []]
    end
    serve(app) do |client|
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
      head = +""
      head << client.socket.readpartial(1) until head.end_with?("\r\n\r\n")
      assert_match(/\AHTTP\/1.1 101 .*^upgrade: echo/mi, head)
      client.send_raw("hello\n")
      assert_equal "hello\n", client.read_eof
    end
  end

  # --- early hints ---

  def test_early_hints
    app = lambda do |env|
      env["rack.early_hints"].call({ "link" => ["</a.css>; rel=preload", "</b.js>; rel=preload"] })
      text(["hinted"])
    end
    serve(app, early_hints: true) do |client|
      response = client.get("/")
      assert_equal "hinted", response.body
      assert_equal [103], response.interim.map(&:status)
      assert_equal ["</a.css>; rel=preload", "</b.js>; rel=preload"], response.interim.first.all("link")
      assert_empty client.get("/", version: "1.0").interim
    end
  end

  def test_early_hints_with_a_bad_header
    app = lambda do |env|
      error = assert_raises(Oribi::Error) { env["rack.early_hints"].call({ "link" => "a\r\nb" }) }
      text([error.message])
    end
    capture_log do
      serve(app, lint: false, early_hints: true) { |client| assert_match(/not valid/, client.get("/").body) }
    end
  end

  def test_early_hints_of_a_request_that_is_over
    kept = nil
    app = lambda do |env|
      kept&.call({ "link" => "late" })
      kept = env["rack.early_hints"]
      text([])
    end
    serve(app, lint: false, early_hints: true) { |client| 2.times { assert_empty client.get("/").interim } }
  end

  # Several requests: environments are built in two ways, plainly and by shape.
  def test_early_hints_are_not_offered_unless_asked_for
    seen = []
    serve(->(env) { seen << env.key?("rack.early_hints") << env.key?("rack.hijack") and text([]) }) { |client| 4.times { client.get("/") } }
    assert_equal [false, true] * 4, seen
  end
end
