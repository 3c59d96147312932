# frozen_string_literal: true

# Connections that an application takes over (e2e/apps/upgrade), and long streams inside a call (e2e/apps/streams).
require "support"
require "support/tracing"
require "support/web_socket"

# What the suites here share.
module Upgrade
  APP = "e2e/apps/upgrade#{E2E.differing(:app_extension)}"
  STREAMS = "e2e/apps/streams#{E2E.differing(:app_extension)}"
  # Of the server's own 101 (rack.protocol) and of the library's (rack.hijack, psgix.io).
  ECHOES = E2E::RUBY ? %w[/echo /echo-protocol] : %w[/echo]
  WS = E2E::WebSocketClient

  def serve(*options) = start(*options, "--access-log", "off", app: APP)
  def web_socket(server, path) = WS.new(connect(server), path)

  # The head of a 101 as it stands on the wire; the lines behind the first in one order.
  def read_101(client)
    lines = +"".b
    lines << client.read_bytes(1) until lines.end_with?("\r\n\r\n")
    first, *fields = lines.split("\r\n")
    [first, fields.map { |line| line.sub(/\ADate: .*/, "Date: now").downcase }.sort]
  end

  # A worker has its title once it rests.
  def workers(server)
    wait_until("titles of workers") do
      found = server.descendants.select { |pid| E2E::Processes.title(pid).match?(/ worker \d+, /) }
      found if found.any?
    end
  end

  # In Ruby a thread of the worker serves what the worker gives away, in Perl processes do.
  def assert_nothing_held(server, before)
    wait_until("what the clients left to be let go") { held(server) <= before }
    pass
  end

  def held(server)
    return server.descendants.count { |pid| E2E::Processes.title(pid) == "upgrade peer" } unless E2E::RUBY

    workers(server).sum { |pid| E2E::Processes.descriptors(pid).count { |_, name| name.start_with?("socket:") } }
  end
end

E2E.suite("web_socket", transports: E2E::EITHER) do
  include Upgrade

  def test_the_head_of_the_101
    one = serve
    Upgrade::ECHOES.each do |path|
      client = connect(one).send_raw(Upgrade::WS.request(path))
      date = path == "/echo" ? [] : ["date: now"]
      fields = ["connection: upgrade", *date, "sec-websocket-accept: #{Upgrade::WS::ACCEPT.downcase}", "upgrade: websocket"]
      assert_equal ["HTTP/1.1 101 #{E2E::RUBY ? "Switching Protocols" : "WebSocket Protocol Handshake"}", fields], read_101(client)
      assert client.quiet?
    end
  end

  # RFC 6455 4.1 wants clients to wait for the 101. What came too early belongs to the new protocol all the same,
  # however it is cut.
  def test_bytes_that_come_with_the_request
    one = serve
    frame = Upgrade::WS.frame("early")
    Upgrade::ECHOES.product([0, 1, frame.bytesize - 1, frame.bytesize]).each do |path, cut|
      client = connect(one)
      client.send_raw(Upgrade::WS.request(path) + frame[0, cut])
      read_101(client)
      client.send_raw(frame[cut..])
      assert_equal "\x81\x05early".b, client.read_bytes(7), "#{path}, #{cut} bytes with the request"
    end
  end

  def test_behind_an_ordinary_request
    one = serve
    Upgrade::ECHOES.each do |path|
      client = connect(one)
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n#{Upgrade::WS.request(path)}#{Upgrade::WS.frame("third")}")
      assert_equal 200, client.read_response.status
      read_101(client)
      assert_equal "\x81\x05third".b, client.read_bytes(7)
    end
  end

  def test_messages_and_the_close
    one = serve
    before = held(one)
    Upgrade::ECHOES.each do |path|
      socket = web_socket(one, path)
      ["text", "ünïcode ✓", "", "x" * 16_000].each do |text|
        socket.say(text)
        assert_equal text, socket.next_message
      end
      socket.say_binary("\x00\xFF\x80".b)
      assert_equal "\x00\xFF\x80".b, socket.next_message.then { |got| got.is_a?(Array) ? got.pack("C*") : got.b }
      assert socket.ping
      socket.close(1000)
      assert_equal 1000, socket.read_close.first
    end
    assert_nothing_held(one, before)
  end

  def test_frames_in_pieces_and_messages_in_frames
    client = connect(serve).send_raw(Upgrade::WS.request("/echo"))
    read_101(client)
    bytes = Upgrade::WS.frame("one ", last: false) + Upgrade::WS.frame("ping", opcode: 9) + Upgrade::WS.frame("two", opcode: 0)
    bytes.each_char { |byte| client.send_pieces(byte) }
    assert_equal "\x8a\x04ping\x81\x07one two".b, client.read_bytes(15)
  end

  def test_what_is_too_long_is_said_so
    one = serve
    client = connect(one).send_raw(Upgrade::WS.request("/echo"))
    read_101(client)
    client.send_raw(Upgrade::WS.frame("x" * 17_000))
    bytes = client.read_to_end
    assert_equal [0x88, 1009], [bytes.getbyte(0), bytes.byteslice(2, 2).unpack1("n")]
  rescue Errno::ECONNRESET # the message was not read to its end
    pass
  end

  def test_what_is_no_web_socket
    one = serve
    client = connect(one)
    response = client.get("/echo")
    assert_equal [426, "websocket", "upgrade"], [response.status, response["upgrade"], response["connection"]]
    client.send_raw(Upgrade::WS.request("/echo", "Sec-WebSocket-Version" => "12"))
    assert_equal 426, client.read_response.status
    client.send_raw(Upgrade::WS.request("/echo", "Origin" => "http://elsewhere"))
    assert_equal 403, client.read_response.status
    client.send_raw(Upgrade::WS.request("/echo").sub("HTTP/1.1", "HTTP/1.0"))
    assert_equal 426, client.read_response.status, "no upgrade in HTTP/1.0 (RFC 9110 7.8)"
    assert client.closed?
  end

  # The one worker goes on with requests whatever hangs on it.
  def test_open_sockets_do_not_hold_the_worker
    one = serve
    before = held(one)
    sockets = Array.new(20) { |i| web_socket(one, Upgrade::ECHOES[i % Upgrade::ECHOES.size]) }
    client = connect(one)
    10.times { assert_equal 200, client.get("/").status }
    sockets.each_with_index { |socket, i| socket.say("still here #{i}") }
    sockets.each_with_index { |socket, i| assert_equal "still here #{i}", socket.next_message }
    sockets.each { |socket| socket.client.close }
    client.close
    assert_nothing_held(one, before)
  end

  def test_a_client_that_takes_nothing_keeps_nobody_waiting
    one = serve
    lazy = one.connect(receive_buffer: 4096)
    @clients << lazy
    lazy.send_raw(Upgrade::WS.request("/echo"))
    flood = Thread.new do
      400.times { lazy.send_raw(Upgrade::WS.frame("x" * 16_000)) }
    rescue SystemCallError, E2E::Timeout, IOError
      nil # it was let go
    end
    other = web_socket(one, "/echo")
    20.times do |i|
      other.say("message #{i}")
      assert_equal "message #{i}", other.next_message
    end
    lazy.reset
    flood.join
  end
end

E2E.suite("taken", transports: E2E::EITHER) do
  include Upgrade

  def test_the_head_of_an_event_stream
    client = connect(serve).request("GET", "/events")
    head = client.read_head
    assert_equal [200, "text/event-stream", "no-store", "close"], [head.status, *%w[content-type cache-control connection].map { |name| head[name] }]
    assert_nil head["content-length"] || head["transfer-encoding"]
    assert head["date"]
    assert_equal ": welcome\n\n", client.read_bytes(11)
  end

  def test_listeners_who_leave_are_let_go
    one = serve
    before = held(one)
    streams = Array.new(5) { connect(one).request("GET", "/events").tap(&:read_head) }
    streams.each(&:close)
    assert_nothing_held(one, before)
  end

  # However the worker goes, its clients hear of it in good order, and nobody is left.
  def test_leaving
    %i[TERM HUP worker].each do |how|
      one = serve
      worker = workers(one).first
      socket = web_socket(one, "/echo")
      stream = connect(one).request("GET", "/events").tap(&:read_head)
      one.signal(how == :worker ? :TERM : how, how == :worker ? worker : one.pid)
      assert_equal [1001, "the server is leaving"], socket.read_close, how.to_s
      assert_equal ": welcome\n\n", stream.read_to_end, how.to_s
      wait_until("the worker to end") { !E2E::Processes.alive?(worker) }
      web_socket(one, "/echo").client.close unless how == :TERM # and they come back
      wait_until("it to be let go") { E2E::RUBY || held(one).zero? }
      assert_equal 0, one.stop.exitstatus, how.to_s
      assert_empty one.left_behind, how.to_s
      refute_match(/error/, one.stderr)
    end
  end
end

E2E.suite("long_stream", transports: E2E::EITHER) do
  include Upgrade
  include E2E::Tracing

  def gate(server, name) = File.join(server.dir, name)

  # A stream inside a call: [client, pid of the worker that is in it].
  def open_stream(server)
    client = connect(server).request("GET", "/ticks")
    assert_equal "chunked", client.read_head["transfer-encoding"]
    size = client.read_bytes(3).to_i(16)
    [client, client.read_bytes(size + 2)[/pid (\d+)/, 1].to_i]
  end

  def end_stream(server, client)
    FileUtils.touch(gate(server, "ticks.end"))
    rest = client.read_bytes(1)
    rest << client.read_bytes(1) until rest.end_with?("0\r\n\r\n")
  end

  # Connections of the worker that is in the stream, found by asking on many; their next requests go to the other
  # worker.
  def test_other_connections_are_served_meanwhile
    one = start("--workers", "2", app: Upgrade::STREAMS)
    owner_of = {}
    wait_until("both workers to have connections") do
      client = connect(one)
      owner_of[client] = client.get("/pid").body.to_i
      owner_of.size >= 6 && owner_of.values.uniq.size == 2
    end
    stream, busy = open_stream(one)
    assert_includes owner_of.values, busy
    3.times do
      owner_of.each_key { |client| refute_equal busy, client.get("/pid").body.to_i }
    end
    end_stream(one, stream)
    # The stream was chunked, so its connection is an ordinary one again.
    assert_equal 200, stream.get("/pid").status
  end

  # With one worker no request can be called meanwhile, but all that needs no call goes on.
  # Also when the worker has never been in a long call, and when its helper has gone to sleep since.
  def test_what_needs_no_call_goes_on
    one = start("--head-timeout", "300ms", app: Upgrade::STREAMS)
    slow = one.connect(receive_buffer: 4096)
    @clients << slow
    slow.request("GET", "/big")
    slow.read_head
    kept, bad = Array.new(2) { connect(one).tap { |client| client.get("/pid") } }
    stream, = open_stream(one)
    assert_equal 4 * 1024 * 1024, slow.read_bytes(4 * 1024 * 1024).bytesize, "an answer that was on its way"
    kept.send_raw("GET /pid HT")
    assert_equal 408, kept.read_response.status, "a head that does not end"
    assert_equal 400, bad.send_raw("GET / HTTP/1.1\nHost: a\n\n").read_response.status
    waiting = connect(one).request("GET", "/pid")
    wait_until("the stream to go on") { stream.read_bytes(1) }
    assert waiting.quiet?
    end_stream(one, stream)
    assert_equal 200, waiting.read_response.status
  end

  # A client that leaves ends the stream, and its worker is free.
  def test_who_leaves_a_stream_frees_its_worker
    one = start(app: Upgrade::STREAMS)
    stream, pid = open_stream(one)
    stream.close
    assert_equal pid, one.worker_pid
  end

  # The application goes on when the client has what was written, and stands still in C until then: in Ruby with the
  # lock of the VM.
  def test_no_piece_waits_for_the_next
    one = start(app: Upgrade::STREAMS)
    pipes = Array.new(2) { |i| gate(one, "pipe#{i}").tap { |path| File.mkfifo(path) } }
    2.times do
      client = connect(one).request("GET", "/confirmed")
      client.read_head
      pipes.each_with_index do |pipe, i|
        assert_equal ["one #{i}\n", "two #{i}\n"], Array.new(2) { client.read_chunk }
        File.open(pipe, "w").close
      end
      assert_empty client.read_chunk
    end
  end

  def sends_of(one, target)
    client = connect(one)
    lines = traced(one, pid: one.worker_pid) { 5.times { assert_equal 102_400, client.get(target).body.bytesize } }
    calls = lines.filter_map { |line| name_of(line) }.tally
    [calls.fetch("write", 0), %w[sendmsg sendto writev].sum { |name| calls.fetch(name, 0) }]
  end

  # 100 pieces in a burst are 8 sends, some more where the machine has interrupted the application; events are messages
  # and leave one by one. A burst has no system call of its own.
  def test_pieces_in_a_burst_leave_together
    skip_without_strace
    one = start(app: Upgrade::STREAMS)
    wakes, sends = sends_of(one, "/hundred")
    assert_operator sends, :<=, 5 * 20
    assert_operator wakes, :<=, 5 * 3
    assert_operator sends_of(one, "/hundred-events").last, :>=, 5 * 100
  end

  def test_a_stop_waits_for_the_stream_and_no_longer
    one = start("--shutdown-timeout", "500ms", app: Upgrade::STREAMS)
    open_stream(one)
    one.stop # the stream has no end of its own
    assert_empty one.left_behind
  end
end
