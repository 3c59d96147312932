# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/h2_socket_client"
require "json"

# WebSockets that a frontend holds (doc/websocket.md): messages, state, what ends a socket, and what ends none.
E2E.suite("websocket", transports: %i[tcp]) do
  include FrontendServers

  WS = ENV["E2E_SOCKETS"] == "h2" ? E2E::H2SocketClient : E2E::SocketClient # websocket_h2_test.rb
  OVER_H2 = WS != E2E::SocketClient
  OPENED = OVER_H2 ? 200 : 101
  PLAIN = FrontendServers::PLAIN_ADDRESS
  MESSAGES_IN = 'oribi_websocket_messages_total{direction="in"}'

  def setup
    super
    skip "no python3-h2 here" if OVER_H2 && !WS.here?
  end

  def begin_server(*options, **how) = serve_plain("websocket", *options, **how)
  def socket(path = "/chat", **how) = hold(WS.new(@one.port, path, tls: @tls, **how))

  def file(name) = File.join(@one.dir, name)
  def open_gate(name) = File.write(file(name), "")

  # The call of this message has begun.
  def enter(one, name)
    one.say("wait #{name}")
    wait_until("the call #{name}") { File.size?(file("#{name}.in")) }
    File.read(file("#{name}.in")).to_i
  end

  def closed_lines = File.exist?(file("closed")) ? File.readlines(file("closed"), chomp: true) : []

  # --- messages ---

  def test_messages_both_ways
    [PLAIN, bind].each do |address|
      begin_server(address: address)
      one = socket
      assert one.open?, one.status
      assert one.accepted?
      ["hello", "", "\u{1F600} \u00fc", "x" * 126, "x" * 65_536, "x" * 300_000].each { |text| assert_equal text, one.ask(text) }
      binary = (0..255).to_a.pack("C*")
      assert_equal binary, one.ask(binary)
      assert_equal ["one", "\xff".b], one.say("both").then { [one.message, one.message] }
      one.say("in ", last: false)
      one.write(WS.frame("ping", opcode: WS::PING))
      assert_equal [WS::PONG, "ping"], one.frame
      one.write(WS.frame("two ", opcode: 0, last: false) + WS.frame("parts", opcode: 0))
      assert_equal "in two parts", one.message
      assert_equal "Hello, World!", curl("/", scheme: @tls ? "https" : "http")
      @one.cleanup
    end
  end

  # rackup and plackup add it in development. Its body is none of the server's kinds.
  def test_what_middleware_makes_of_the_body
    begin_server(env: { "E2E_LINT" => "1" })
    assert_equal "hello", socket.ask("hello")
    assert_equal 403, socket("/refused").status
  end

  def test_a_mount_at_the_root_hides_no_socket
    FileUtils.mkdir_p("#{@dir}/files")
    File.write("#{@dir}/files/room", "page")
    begin_server("--static", "/=#{@dir}/files")
    assert_equal "page", curl("/room", scheme: "http")
    assert_equal "hello", socket("/room").ask("hello")
  end

  def test_arguments_that_a_method_assigns_to
    skip "arguments are no aliases in Ruby" if E2E::RUBY
    begin_server
    one = socket
    3.times { assert_equal "assigned", one.ask("assign 7") }
    assert_equal "1", one.ask("count")
  end

  def test_what_is_sent_at_once_is_answered_in_order
    begin_server
    one = socket(early: (0...50).map { |i| WS.frame("#{i}") }.join)
    50.times { |i| assert_equal i.to_s, one.message }
    one.write((0...200).map { |i| WS.frame("#{i} #{"z" * 2000}") }.join)
    200.times { |i| assert_equal i.to_s, one.message[/\d+/] }
  end

  def test_every_cut
    begin_server
    one = socket
    WS.frame("a message in pieces").each_char { |byte| one.write(byte) }
    assert_equal "a message in pieces", one.message
  end

  def test_the_handshake
    begin_server
    one = socket("/greets", fields: { "Sec-WebSocket-Protocol" => "chat, other", "Sec-WebSocket-Extensions" => "permessage-deflate" })
    assert_equal OPENED, one.status
    assert_equal "chat", one.fields["sec-websocket-protocol"]
    assert_equal "7", one.fields["x-room"]
    refute_includes one.fields, "sec-websocket-extensions"
    refute_includes one.fields, "oribi-websocket"
    assert_equal 'open "chat" 127.0.0.1', one.message
    assert_equal "open nil 127.0.0.1", socket("/greets").message
    assert_equal "chat", socket("/symbol", fields: { "Sec-WebSocket-Protocol" => "chat" }).fields["sec-websocket-protocol"] if E2E::RUBY
    assert_equal [403, "refused\n"], socket("/refused").then { |other| [other.status, other.body] }
    assert_equal 426, @one.get("/chat").status
  end

  def test_handshakes_that_are_none
    begin_server
    assert_equal [426, "13"], socket(fields: { "Sec-WebSocket-Version" => "8" }).then { |one| [one.status, one.fields["sec-websocket-version"]] }
    assert_equal 426, socket(fields: { "Sec-WebSocket-Version" => nil }).status
    assert_equal 400, socket(fields: { "Sec-WebSocket-Protocol" => "a, a" }).status
    unless OVER_H2
      ["", "dGhlIHNhbXBsZQ==", "dGhlIHNhbXBsZSBub25jZQ", "!!!!!!!!!!!!!!!!!!!!!!!!"].each do |key|
        assert_equal 400, socket(fields: { "Sec-WebSocket-Key" => key }).status, key
      end
      assert_equal 426, socket("/chat", fields: { "Upgrade" => "else" }).status, "the application's"
      assert_equal 426, socket("/chat", method: "POST", fields: { "Content-Length" => "0" }).status, "the application's"
    end
    assert_match(/Sec-WebSocket-Version is not 13/, @one.stderr)
    assert_equal 2, metric('oribi_refusals_total{status="426",reason="websocket_version"}')
  end

  def test_origins
    begin_server("--websocket-origins", "https://*.example.com", "--websocket-origins", "http://other.test:81")
    status = ->(origin, host = "site.test") { socket(fields: { "Host" => host, "Origin" => origin }).status }
    { "http://site.test" => OPENED, "https://SITE.test" => OPENED, "https://site.test:443" => OPENED, "https://a.example.com" => OPENED,
      "https://b.a.example.com" => OPENED, "http://other.test:81" => OPENED, "https://example.com" => 403, "http://a.example.com" => 403,
      "https://a.example.com:8443" => 403, "http://other.test" => 403, "https://evilsite.test" => 403, "null" => 403,
      "https://site.test.evil.test" => 403 }.each { |origin, wanted| assert_equal wanted, status.call(origin), origin }
    assert_equal [OPENED, 403], %w[site.test:8080 site.test].map { |host| status.call("http://site.test:8080", host) }
    assert_match(/websocket_origins/, @one.stderr)
    @one.cleanup
    begin_server("--websocket-origins", "*")
    assert_equal OPENED, status.call("null")
  end

  def test_handlers_that_are_none
    begin_server
    wanted = { "/object" => /no object lives between two messages/, "/none" => /has none of on_open/, "/protocol" => /has not offered this protocol/,
               "/state" => /the state is longer than 4096 bytes/ }
    wanted["/anonymous"] = /has no name/ if E2E::RUBY
    wanted.each do |path, line|
      assert_equal 500, socket(path, fields: { "Sec-WebSocket-Protocol" => "chat" }).status, path
      assert_match line, @one.stderr
    end
  end

  def test_without_a_frontend
    return pass if OVER_H2

    begin_server(address: "tcp://127.0.0.1:%{port}")
    assert_equal 500, socket.status
    assert_match(/WebSockets need tls:\/\/ or \?frontend=on in the line of `bind`/, @one.stderr)
    assert_equal 426, @one.get("/chat").status
  end

  def test_rack_upgrade
    return pass unless E2E::RUBY

    begin_server
    one = socket("/upgrade")
    assert_equal %w[upgraded more], [one.message, one.ask("more")]
    one.close_with(1000)
    assert_equal [1000, ""], one.read_close
    wait_until("on_close") { File.exist?(file("upgraded")) }
    assert_equal "nil", @one.get("/upgrade").body
  end

  def test_an_answer_that_is_delayed
    return pass if E2E::RUBY

    begin_server
    assert_equal "here", socket("/delayed").ask("here")
  end

  # --- state and workers ---

  def test_state_follows_the_socket_to_other_workers
    begin_server(workers: 2)
    one, two = socket, socket
    assert_equal %w[1 2], [one.ask("count"), one.ask("count")]
    busy = enter(two, "two")
    assert_equal "3", one.ask("count")
    refute_equal busy.to_s, one.ask("pid")
    open_gate("two")
    assert_equal "two", two.message
    assert_equal "1", two.ask("count")
    refute_equal one.ask("id"), two.ask("id")
  end

  def test_state_at_its_maximum
    begin_server
    one = socket
    room = 4096 - '{"filler":""}'.bytesize
    one.say("state #{room}")
    assert_equal "1", socket.ask("count")
    one.say("state #{room + 1}")
    assert_equal 1011, one.read_close.first
    assert_match(/the state is longer than 4096 bytes/, @one.stderr)
  end

  def test_a_socket_in_a_call_is_not_read
    begin_server(workers: 2)
    one = socket
    enter(one, "gate")
    one.say("count")
    one.close_with(1000)
    assert_equal "another", socket.ask("another")
    open_gate("gate")
    assert_equal %w[gate 1], [one.message, one.message]
    assert_equal [1000, ""], one.read_close
    wait_until("on_close") { closed_lines.any? { |line| line.end_with?(" 1000 ") } }
  end

  # --- reloads, deaths ---

  def test_reloads_close_nothing_and_lose_nothing
    [PLAIN, bind].each do |address|
      begin_server(address: address, workers: 2)
      stop = false
      talkers = Array.new(4) do
        one = socket
        Thread.new do
          count = 0
          until stop
            raise "a count is missing or doubled" unless one.ask("count") == (count += 1).to_s
          end
          count
        end
      end
      4.times do
        output, status = ctl("reload")
        assert status.success?, output
      end
      stop = true
      counts = talkers.map(&:value)
      assert counts.min > 4, counts.inspect
      assert_equal 4, metric('oribi_frontend_connections_open{protocol="websocket"}')
      assert_equal 5, metric("oribi_generation")
      @one.cleanup
    end
  end

  def test_a_worker_that_is_killed_ends_the_socket_in_its_call
    begin_server(workers: 2)
    one, two, three = socket, socket, socket
    two.ask("count")
    one.say("kill")
    assert_equal [1011, ""], one.read_close
    pid = enter(three, "third")
    assert_equal "2", two.ask("count")
    Process.kill(:KILL, pid)
    assert_equal 1011, three.read_close.first
    assert_equal "3", two.ask("count")
    assert_match(/WS-MESSAGE \/chat .*the worker ended in the call; closing the WebSocket with 1011/, @one.stderr)
    wait_until("on_close") { closed_lines.count { |line| line.include?(" 1011 ") } == 2 }
  end

  def test_a_frontend_that_is_killed
    begin_server
    one = socket
    one.ask("count")
    old = frontend
    Process.kill(:KILL, old)
    assert one.ended?
    wait_until("another frontend") { frontend && frontend != old }
    wait_until("a socket") { socket.ask("count") == "1" rescue nil }
  end

  def test_a_handler_that_a_reload_has_removed
    begin_server
    one, other = socket("/leaves"), socket
    assert_equal "here", one.ask("here")
    File.write(file("without"), "")
    assert ctl("reload").last.success?
    one.say("still here?")
    assert_equal 1012, one.read_close.first
    assert_match(/the application has no handler Leaves any more; the WebSocket is closed with 1012/, @one.stderr)
    assert_equal "1", other.ask("count")
  end

  def test_what_an_application_does
    begin_server("--call-timeout", "500ms")
    { "die" => /WS-MESSAGE \/chat: the application died: .*said to die/, "exit" => /the application called exit|SystemExit/,
      "sleep 20" => /CallTimeout/, "badtext" => /not UTF-8|not valid UTF-8/, "badcode 1005" => /no code that an application may close with/,
      "badcode #{65_536 + 1000}" => /no code that an application may close with/ }.each do |word, line|
      one = socket
      one.say(word)
      assert_equal 1011, one.read_close.first, word
      wait_until("the line of #{word}: #{@one.stderr}") { @one.stderr.match?(line) }
    end
    one = socket
    one.say("close 4321")
    assert_equal [4321, "as you wish"], one.read_close
    wait_until("on_close") { closed_lines.any? { |text| text.end_with?("4321 as you wish") } }
  end

  # --- limits ---

  def test_message_max
    begin_server("--websocket-message-max", "1000")
    one = socket
    assert_equal "m" * 1000, one.ask("m" * 1000)
    one.say("m" * 600, last: false)
    one.write(WS.frame("m" * 400, opcode: 0))
    assert_equal "m" * 1000, one.message
    one.say("m" * 1001)
    assert_equal 1009, one.read_close.first
    two = socket
    two.say("m" * 600, last: false)
    two.write(WS.frame("m" * 401, opcode: 0))
    assert_equal 1009, two.read_close.first
    wait_until("on_close") { closed_lines.count { |line| line.include?(" 1009 ") } == 2 }
  end

  # The bound of requests is none of messages, which have one of their own.
  def test_messages_longer_than_a_request_may_be
    begin_server("--body-bytes-max", "1000", "--websocket-message-max", "300K")
    one = socket
    [1001, 20_000, 200_000, 300 * 1024].each { |size| assert_equal size, one.ask("m" * size).bytesize }
    one.say("m" * (300 * 1024 + 1))
    assert_equal 1009, one.read_close.first
    assert_equal 413, curl_status_of("POST", "x" * 1001)
  end

  def curl_status_of(method, body)
    out, = Open3.capture2(FrontendServers::PLAIN, "curl", "-sS", "-o", File::NULL, "-w", "%{http_code}", "-X", method, "--data-binary", "@-",
                          "http://127.0.0.1:#{@one.port}/chat", stdin_data: body)
    out.to_i
  end

  def test_sockets_max
    begin_server("--websockets-max", "2")
    one, two = socket, socket
    assert_equal [OPENED, OPENED, 503], [one, two, socket].map(&:status)
    one.close_with(1000)
    one.read_close
    wait_until("room") { socket.open? }
    assert_equal "two", two.ask("two")
  end

  def test_a_rate
    begin_server("--websocket-rate-max", "5")
    one = socket
    begin
      20.times { one.say("quick") }
    rescue SystemCallError
      nil # it was closed meanwhile
    end
    assert_equal 1008, one.read_close.first
  end

  # Its next message is called once it has read: until then nobody reads that. Far more is sent than the kernel takes.
  def test_a_client_that_reads_a_long_answer_late
    [PLAIN, bind].each do |address|
      begin_server("--websocket-pending-max", "64K", address: address)
      slow, other = socket, socket
      [[1, 12_000_000], [200, 65_536]].each_with_index do |(count, size), round|
        slow.say("send #{count}x#{size}")
        IO.select([slow.io])
        %w[one two].each { |text| slow.say(text) }
        3.times { |i| assert_equal i.to_s, other.ask(i.to_s) }
        assert_equal (6 * round) + 4, metric(MESSAGES_IN)
        assert_equal [size] * count, Array.new(count) { slow.message.bytesize }
        assert_equal %w[one two], Array.new(2) { slow.message }
      end
      refute_match(/reads too slowly/, @one.stderr)
      @one.cleanup
    end
  end

  # It is not called before it has read, and ends when it has read nothing for write_timeout.
  def test_clients_that_do_not_read
    [PLAIN, bind].each do |address|
      begin_server("--websocket-pending-max", "64K", "--write-timeout", "1", address: address)
      slow, other = socket, socket
      slow.say("send 1x12000000")
      IO.select([slow.io])
      slow.say("count")
      wait_until("the slow client to be closed") { closed_lines.any? { |line| line.end_with?(" 1006 ") } }
      assert_equal "1", other.ask("count")
      assert_equal [2, 1], [metric(MESSAGES_IN), metric('oribi_websockets_closed_total{code="1006"}')]
      assert_match(/the client takes nothing \(write_timeout\); closing it with 1006/, @one.stderr)
      @one.cleanup
    end
  end

  # Their Pongs are more than may wait, are sent, and are more again.
  def test_a_flood_of_pings
    [PLAIN, bind].each do |address|
      begin_server("--websocket-pending-max", "2400", address: address)
      one = socket
      begun = frontend
      writer = Thread.new { one.write(WS.frame("", opcode: WS::PING, mask: "\0\0\0\0") * 30_000) }
      assert_equal({ [WS::PONG, ""] => 30_000 }, Array.new(30_000) { one.frame }.tally)
      writer.join
      assert_equal "still here", one.ask("still here")
      assert_equal begun, frontend
      @one.cleanup
    end
  end

  # Answers for which there is no room end the sockets whose clients do not take them, and nobody else.
  def test_answers_stay_within_the_budget
    begin_server("--buffers-memory-max", "40M")
    slow = Array.new(6) { socket.tap { |one| one.say("send 1x15000000") } }
    other = socket
    wait_until("the line: #{@one.stderr}") { @one.stderr.include?("no room for what waits (buffers_memory_max); closing it with 1013") }
    assert_equal "x" * 60_000, other.ask("x" * 60_000)
    whole = slow.count { |one| one.message.bytesize == 15_000_000 rescue false }
    assert_includes 1..5, whole
    wait_until("on_close") { closed_lines.count { |line| line.end_with?(" 1013 ") } == 6 - whole }
  end

  def test_an_answer_beyond_its_maximum
    begin_server
    one = socket
    one.say("send 17x1000000")
    assert_equal 1011, one.read_close.first
    assert_match(/one call sends more than 16 MiB/, @one.stderr)
  end

  def test_a_message_that_comes_slowly
    begin_server("--body-timeout", "300ms")
    one, two, other = socket, socket, socket
    one.say("begun", last: false)
    assert_equal 1008, one.read_close.first
    feeder = Thread.new do
      WS.frame("x" * 100).each_char do |byte|
        two.write(byte)
        sleep(0.1)
      end
    rescue SystemCallError
      nil # it was closed meanwhile
    end
    assert_equal 1008, two.read_close.first
    feeder.kill
    assert_equal "1", other.ask("count")
  end

  def test_clients_that_answer_no_ping
    begin_server("--websocket-ping", "500ms")
    dead, alive = socket, socket
    dead.ignore_pings
    reader = Thread.new { alive.message }
    pings = 0
    begin
      loop { pings += 1 if dead.frame.first == WS::PING }
    rescue WS::Closed
      nil
    end
    assert_equal 2, pings
    alive.say("still here")
    assert_equal "still here", reader.value
    wait_until("on_close") { closed_lines.any? { |line| line.include?(" 1006 ") } }
  end

  def test_frames_that_are_none
    begin_server
    faults = { WS.frame("x", opcode: 3) => 1002, "\x81\x01x" => 1002, WS.frame("\xff") => 1007, WS.frame("x", opcode: 0) => 1002,
               WS.frame("x", opcode: WS::PING, last: false) => 1002, WS.frame([1005].pack("n"), opcode: WS::CLOSE) => 1002 }
    faults.each do |bytes, code|
      one = socket
      one.write(bytes)
      assert_equal code, one.read_close.first, bytes.inspect
    end
    one = socket
    one.write(WS.frame("", opcode: WS::CLOSE))
    assert_equal [1005, ""], one.read_close
    two = socket
    two.close
    wait_until("on_close: #{closed_lines}") { closed_lines.map { |line| line.split[1] }.tally.values_at("1002", "1007", "1005", "1006") == [5, 1, 1, 1] }
  end

  # --- the end ---

  def test_a_stop_closes_all
    [PLAIN, bind].each do |address|
      begin_server("--frontend-drain", "1s", address: address, workers: 2)
      sockets = Array.new(20) { socket }
      sockets.each { |one| one.ask("count") }
      busy = sockets.last
      enter(busy, "last")
      @one.signal(:TERM)
      codes = sockets[0...-1].map { |one| one.read_close.first }
      open_gate("last")
      assert_equal "last", busy.message
      assert_equal [1001], [*codes, busy.read_close.first].uniq
      assert_predicate @one.wait, :success?
      assert_equal 20, closed_lines.count { |line| line.include?(" 1001 ") }
      @one.cleanup
    end
  end

  # The successor takes the addresses over; the old frontend closes its sockets, and clients come back.
  def test_an_upgrade_asks_clients_to_come_back
    begin_server
    one = socket
    one.ask("count")
    output, status = ctl("upgrade")
    assert status.success?, output
    assert_equal 1012, one.read_close.first
    assert_equal "1", socket.ask("count")
    wait_until("on_close") { closed_lines.any? { |line| line.include?(" 1012 ") } }
  ensure
    ctl("stop")
  end

  # --- what is seen ---

  def test_what_ctl_lists
    begin_server(workers: 2)
    assert_equal "0 WebSockets\n", ctl("sockets").first
    one = socket("/greets?x=1", fields: { "Sec-WebSocket-Protocol" => "chat" })
    one.message
    one.ask("four")
    two = socket
    enter(two, "gate")
    id = two.tap { open_gate("gate") }.message && two.ask("id")
    enter(two, "again")
    found = JSON.parse(ctl("sockets", "--json").first)
    assert_equal [2, 2, []], found.values_at("count", "shown", "frontends_silent")
    called, open = found["sockets"]
    assert_equal [0, "/greets", "Chat", "chat", "open", OVER_H2], open.values_at("frontend", "path", "handler", "protocol", "state", "http2")
    assert_equal [1, 2, 4, 25, 0], open.values_at("messages_in", "messages_out", "bytes_in", "bytes_out", "waiting_bytes")
    assert_match(/\A127\.0\.0\.1:\d+\z/, open["address"])
    assert_equal [id, "/chat", nil, "called"], called.values_at("id", "path", "protocol", "state")
    text, status = ctl("sockets")
    assert status.success?, text
    assert_match(/^#{id}  127\.0\.0\.1:\d+ +called +\d+ +3 +2 .*  \/chat  Chat$/, text)
    assert_match(/ +open +\d+ +1 +2 +4 +25  \/greets  Chat  chat$/, text)
    assert_match(/^2 WebSockets$/, text)
    open_gate("again")
  end

  def test_ctl_does_not_wait_for_a_frontend_that_is_stopped
    begin_server
    socket
    stopped = frontend
    Process.kill(:STOP, stopped)
    assert_match(/^frontend 0 does not answer; its WebSockets are missing here\n0 WebSockets$/, ctl("sockets").first)
  ensure
    Process.kill(:CONT, stopped) if stopped
  end

  def test_counters_and_lines
    begin_server("--access-log", "-", "--access-log-format", "json")
    one = socket("/greets?x=1")
    assert_equal 18, one.message.bytesize
    assert_equal "four", one.ask("four")
    assert_equal 1, metric('oribi_frontend_connections_open{protocol="websocket"}')
    assert_equal 1, JSON.parse(ctl("status", "--json").first)["frontends"].first["websockets"]
    assert_match(/^frontend 0, .*, 1 WebSocket, 1 messages in, 2 out$/, ctl("status").first)
    assert_equal [1, 2, 4, 22], [metric("oribi_websockets_opened_total"), metric('oribi_websocket_messages_total{direction="out"}'),
                                 metric('oribi_websocket_message_bytes_total{direction="in"}'), metric('oribi_websocket_message_bytes_total{direction="out"}')]
    assert_match(/^WebSockets +1 open  messages in 0\/s  out 0\/s$/, ctl("top").first)
    one.close_with(1000)
    one.read_close
    wait_until("both lines") { @one.stdout.include?("WEBSOCKET") && @one.stdout.include?("GET") }
    lines = @one.stdout.lines.map { |line| JSON.parse(line) }
    handshake, ending = %w[GET WEBSOCKET].map { |method| lines.find { |line| line["method"] == method } }
    assert_equal ["GET", 101], handshake.values_at("method", "status")
    assert_equal ["WEBSOCKET", 1000, 1, 2, 22], ending.values_at("method", "status", "messages_in", "messages_out", "bytes")
    assert_equal [OVER_H2 ? "HTTP/2" : "HTTP/1.1"], [handshake, ending].map { |line| line["protocol"] }.uniq
    assert_equal 1, metric('oribi_websockets_closed_total{code="1000"}')
  end

  def test_the_end_of_a_socket_in_other_formats
    protocol = OVER_H2 ? "HTTP/2" : "HTTP/1.1"
    counts = "messages_in=1 messages_out=2 bytes_in=4"
    { "combined" => /^127\.0\.0\.1 - - \[.*\] "WEBSOCKET \/greets #{protocol}" 4000 22 "-" "-" #{counts}$/,
      '$request_method $server_protocol $close_code $messages_in $messages_out $request_length $body_bytes_sent' => /^WEBSOCKET #{protocol} 4000 1 2 4 22$/,
      '{"code":$close_code,"in":$messages_in,"method":"$request_method"}' => /^{"code":4000,"in":1,"method":"WEBSOCKET"}$/ }.each do |format, pattern|
      begin_server("--access-log", "-", "--access-log-format", format)
      one = socket("/greets")
      one.message
      one.ask("four")
      one.close_with(4000)
      one.read_close
      wait_until("its line; #{@one.stdout}") { @one.stdout.match?(pattern) }
      handshake = @one.stdout.lines.grep(/GET/).first
      assert_match(/ 101 | - - - |"code":null,"in":null/, handshake)
      @one.cleanup
    end
  end
end
