# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/socket_client"
require "open3"

# WebSockets whose handlers do odd things, and whose clients do worse: each fault has its close code and one line in the
# error log, and nobody else notices.
E2E.suite("socket_oddities", transports: %i[tcp]) do
  include FrontendServers

  WS = E2E::SocketClient
  PLAIN = FrontendServers::PLAIN_ADDRESS

  def begin_server(*options, workers: 2, **how) = serve_plain("odd_sockets", *options, workers: workers, **how)
  def socket(path = "/chat", **how) = hold(WS.new(@one.port, path, tls: @tls, **how))
  def open_sockets = metric('oribi_frontend_connections_open{protocol="websocket"}')

  # --- handlers ---

  def test_what_a_handler_gives_does_not_matter
    begin_server
    one = socket
    %w[nil false].each { |word| one.say(word) }
    assert_equal "more", one.ask("ask more")
  end

  def test_handlers_that_end_their_call
    begin_server("--call-timeout", "500ms")
    other = socket("/other")
    %w[throw raise-empty raise-nul throw-false throw-odd exit! hang interrupt].each do |word|
      one = socket
      one.say(word)
      assert_equal 1011, one.read_close.first, word
      other.say("ask more")
      nil until other.message == "more" # it hears of the others' ends too
    end
    wait_until("the worker that has left") { @one.stderr.include?("the worker ended in the call") }
    wait_until("the worker that was interrupted: #{@one.stderr}") { @one.stderr.match?(E2E::RUBY ? /ended: signal 2/ : /ended: exit code 0 during/) }
    refute_match(/called exit|memory leak/, @one.stderr)
    assert_match(/the application died: (RuntimeError: )?a\\x00b$/, @one.stderr)
  end

  def test_handlers_that_fork
    begin_server(workers: 1)
    one = socket
    one.say("fork")
    assert_equal "still here", one.ask("ask still here")
    one.say("fork-returns")
    assert_equal "the parent", one.message
    assert_equal "still here", one.ask("ask still here")
  end

  def test_what_is_done_after_a_close
    begin_server
    listener = socket
    one = socket
    one.say("late")
    assert_equal "early", one.message
    assert_equal [4000, "bye"], one.read_close
    assert_equal "closed 4000", listener.message
    two = socket
    two.say("twice")
    assert_equal [4000, "one"], two.read_close
    assert_equal "closed 4000", listener.message
    three = socket
    three.say("after-subscribe")
    assert_equal [4000, "bye"], three.read_close
    assert_equal ["closed 4000", "from a closed one"], [listener.message, listener.message].sort
    assert_equal "nothing else", listener.ask("ask nothing else")
  end

  def test_handshakes_that_are_odd
    begin_server
    one = socket("/twice")
    one.say("publish to all")
    assert_equal ["published", "to all"], [one.message, one.message].sort
    { "/and-raises" => 500, "/and-refuses" => 403, "/nothing" => 500, "/forged" => 500 }.each do |path, status|
      assert_equal status, socket(path).status, path
    end
    assert_equal "more", one.ask("ask more")
    assert_equal "more", socket("/too-large").ask("ask more")
    assert_equal ["more", nil, nil], socket("/lengths").then { |two| two.fields.values_at("x-more", "content-length", "transfer-encoding") }
    return pass unless E2E::RUBY

    assert_equal "more", socket("/thread").ask("ask more")
    one.say("thread")
    assert_equal "from a thread", one.message
  end

  def test_a_socket_of_another_call
    begin_server(workers: 1)
    one, two = socket, socket
    one.say("keep")
    assert_equal "kept", one.ask("ask kept")
    two.say("use")
    assert_equal "more", two.ask("ask more")
    assert_match(/the call.* has ended: nothing can be sent from outside of it/, File.read("#{@one.dir}/used"))
  end

  def test_states_that_are_none
    begin_server
    one = socket
    one.say("state nil")
    assert_equal "more", one.ask("ask more")
    one.say("deep 90")
    assert_equal "more", one.ask("ask more")
  end

  # The call that gives it fails, not each later one that reads it.
  def test_states_that_no_json_can_hold
    begin_server
    %w[inf text array string].each do |word|
      one = socket("/alone")
      one.say(word)
      one.say("ask more")
      assert_equal [8, 1011], one.frame.then { |opcode, payload| [opcode, payload.unpack1("n")] }, word
    end
    %w[/infinite /array].each { |path| assert_equal 500, socket(path).status, path }
    assert_equal "3", socket("/keeps").ask("kept")
  end

  def test_a_reason_in_another_encoding
    begin_server
    one = socket
    one.say("reason")
    assert_equal [4000, "\u00fc".b], one.read_close
  end

  # In Perl its methods assign to what they were given.
  def test_methods_that_assign
    begin_server
    listener = socket
    one = socket("/assigns")
    assert_equal "opened", one.ask("x")
    one.close_with(1000)
    assert_equal "assigned", listener.message
    refute_match(/error: /, @one.stderr)
  end

  # In Ruby a position whose to_s gives no String; in Perl the handler assigns to what it was given.
  def test_arguments_that_are_odd
    begin_server(workers: 1)
    one = socket
    assert_equal E2E::RUBY ? "TypeError" : "kept", one.ask("argument")
    assert_equal "more", one.ask("ask more")
  end

  # Its own subscriber, and more messages than may wait for a client that reads them.
  def test_ten_thousand_messages_of_one_call
    begin_server
    one, other = socket, socket
    reader = Thread.new { Array.new(10_000) { other.message } }
    one.say("many 10000")
    assert_equal (0...10_000).map(&:to_s), Array.new(10_000) { one.message }
    assert_equal (0...10_000).map(&:to_s), reader.value
  end

  # --- clients ---

  FAULTS = {
    "a frame without a mask" => ["\x81\x01x", 1002],
    "a reserved bit" => ["\xc1\x81\0\0\0\0x", 1002],
    "an opcode that is none" => ["\x83\x80\0\0\0\0", 1002],
    "a Ping in fragments" => ["\x09\x80\0\0\0\0", 1002],
    "a Ping of 126 bytes" => ["\x89\xfe\x00\x7e\0\0\0\0", 1002],
    "a rest without a begin" => ["\x80\x80\0\0\0\0", 1002],
    "a begin before the end" => ["\x01\x81\0\0\0\0x\x81\x81\0\0\0\0x", 1002],
    "a length that is too long for itself" => ["\x81\xfe\x00\x01\0\0\0\0x", 1002],
    "a length with its highest bit" => ["\x81\xff\x80\0\0\0\0\0\0\0\0\0\0\0", 1002],
    "a length beyond the maximum" => ["\x82\xff\0\0\0\1\0\0\0\0\0\0\0\0", 1009],
    "a Close of one byte" => ["\x88\x81\0\0\0\0x", 1002],
    "a Close with 1005" => ["\x88\x82\0\0\0\0\x03\xed", 1002],
    "a Close with 999" => ["\x88\x82\0\0\0\0\x03\xe7", 1002],
    "a reason that is no UTF-8" => ["\x88\x83\0\0\0\0\x03\xe8\xff", 1007],
    "text that is no UTF-8" => ["\x81\x81\0\0\0\0\xff", 1007],
    "text that is no UTF-8 across frames" => ["\x01\x82\0\0\0\0\xe2\x82\x80\x81\0\0\0\0x", 1007],
    "text that ends in a character" => ["\x01\x82\0\0\0\0\xe2\x82\x80\x80\0\0\0\0", 1007],
  }.freeze

  def test_each_fault_has_its_code_and_one_line
    begin_server
    FAULTS.each_with_index do |(name, (bytes, code)), i|
      one = socket("/fault-#{i}")
      one.write(bytes.b)
      assert_equal code, one.read_close.first, name
      line = /WebSocket \/fault-#{i} from 127\.0\.0\.1: .*; closing it with #{code}$/
      wait_until("the line of #{name}: #{@one.stderr}") { @one.stderr.match?(line) }
      assert_equal 1, @one.stderr.scan("/fault-#{i} ").size, name
    end
    last = socket
    last.say("ask more")
    nil until last.message == "more" # it may hear of the end before it
  end

  # A byte at a time, the handshake too.
  def test_one_byte_at_a_time
    begin_server
    tcp = TCPSocket.new("127.0.0.1", @one.port)
    tcp.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    request = "GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" \
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    "#{request}#{WS.frame("ask slow", last: false)}#{WS.frame("", opcode: 0, last: false)}#{WS.frame("er", opcode: 0)}".each_char { |byte| tcp.write(byte) }
    got = +"".b
    got << tcp.readpartial(4096) until got.end_with?("\x81\x06slower".b)
    assert_match(/\AHTTP\/1.1 101 /, got)
  ensure
    tcp&.close
  end

  def reset(tcp)
    tcp.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
    tcp.close
  end

  # RST, and a sending side that is shut, at each step of a socket's life.
  def test_clients_that_leave_at_each_step
    [PLAIN, bind].each do |address|
      begin_server(address: address)
      other = socket("/other")
      steps = { "begun" => ->(one) { one.write(WS.frame("ask x", last: false)[0, 5]) }, "open" => ->(_) {},
                "a call" => ->(one) { one.write(WS.frame("ask #{"x" * 100_000}")) }, "closing" => ->(one) { one.write(WS.frame("late")) },
                "closed" => ->(one) { one.close_with(1000) } }
      steps.each do |name, step|
        %i[reset shut].each do |end_with|
          one = socket
          step.call(one)
          tcp = one.instance_variable_get(:@tcp)
          end_with == :reset ? reset(tcp) : tcp.shutdown(:WR)
          wait_until("the end of #{name}, #{end_with}: #{open_sockets}") { open_sockets == 1 }
        end
      end
      @one.connect.then { |client| reset(client.socket) }
      @one.connect.send_raw("GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n").then { |client| reset(client.socket) }
      other.say("ask still here")
      nil until other.message == "still here"
      assert_equal 0, @one.stderr.scan(/ERROR|assert/).size, @one.stderr
      @one.cleanup
    end
  end

  # The record of a message and that of the end come in one segment.
  def test_a_client_whose_tls_ends_right_behind_a_message
    begin_server("--websocket-ping", "10m", address: bind)
    one = socket("/alone")
    tcp = one.instance_variable_get(:@tcp)
    tcp.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_CORK, 1)
    one.say("ask more")
    one.io.sync_close = false
    one.io.close # close_notify
    tcp.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_CORK, 0)
    wait_until("its end: #{open_sockets}") { open_sockets.zero? }
  end

  def test_a_client_that_leaves_within_a_record_of_tls
    begin_server("--websocket-ping", "10m", address: bind)
    tcp = socket("/alone").instance_variable_get(:@tcp)
    tcp.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_CORK, 1)
    tcp.write("\x17\x03\x03\x00\x20half".b)
    tcp.close
    wait_until("its end: #{open_sockets}") { open_sockets.zero? }
  end

  # The frontend keeps no more of messages than its budget.
  def test_messages_that_are_begun_and_never_ended_stay_within_the_budget
    begin_server("--buffers-memory-max", "4m", "--body-timeout", "10m")
    other = socket
    begun = Array.new(12) { socket("/alone") } # hears of no other's end: it has something to read when it is closed
    frame = "\x01\xff".b + [900_000].pack("Q>") + "\0" * 4 + "x" * 900_000 # behind a mask of zeros
    begun.each do |one|
      one.write(frame)
    rescue SystemCallError
      nil # it was closed meanwhile
    end
    wait_until("the line: #{@one.stderr}") { @one.stderr.include?("no room for a message (buffers_memory_max); closing it with 1013") }
    other.say("ask more")
    nil until other.message == "more"
    closed = wait_until("the end of most") { begun.select { |one| one.io.wait_readable(0) }.then { |all| all if all.size >= 8 } }
    assert_equal [1013], closed.map { |one| one.read_close.first }.uniq
  end

  # Each Ping is answered, in order, and nobody waits for them.
  def test_a_flood_of_pings
    begin_server
    one, other = socket, socket
    writer = Thread.new { one.write(WS.frame("p", opcode: WS::PING, mask: "\0\0\0\0") * 50_000) }
    pongs = Array.new(50_000) { one.frame }
    assert_equal [[WS::PONG, "p"]], pongs.uniq
    writer.join
    assert_equal "more", other.ask("ask more")
    assert_equal "more", one.ask("ask more")
  end

  # --- the inbox ---

  # The end of the inbox that all processes of the server share.
  def inbox
    control = UNIXSocket.new("#{@dir}/control")
    control.write("publisher\n")
    control.recvmsg(64, 0, scm_rights: true)[-1].unix_rights.first
  ensure
    control&.close
  end

  # A process that shuts the inbox, which they all share, ends it for nobody but those who cannot ask for another one.
  def test_an_inbox_that_was_shut
    begin_server("--frontends", "2", "--history", "c,100,300s")

    one = socket
    one.say("publish one")
    assert_equal %w[one published], [(one.message rescue raise @one.stderr), one.message].sort
    2.times do |i|
      inbox.shutdown
      wait_until("another inbox") { @one.stderr.scan("has shut the inbox; making another one").size == i + 1 }
      out, status = Open3.capture2e(E2E::Server.binary, "publish", "--control", "#{@dir}/control", "c", "from the command")
      assert status.success?, out
      assert_equal "from the command", one.message
    end
    one.say("publish more")
    assert_equal %w[more published], [one.message, one.message].sort
    assert ctl("reload").last.success?
    one.say("publish after a reload")
    assert_equal ["after a reload", "published"], [one.message, one.message].sort
  end
end
