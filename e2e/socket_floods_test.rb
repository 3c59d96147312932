# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/socket_client"

# Floods of WebSockets: each client gets its messages, its status or its close code, the frontend keeps within its
# budgets, and a neighbour is answered.
E2E.suite("socket_floods", transports: %i[tcp]) do
  include FrontendServers

  WS = E2E::SocketClient
  MARGIN = 12 << 20 # of a process, beside what a limit names

  def begin_server(*options)
    app = "e2e/apps/channels.#{E2E::RUBY ? "ru" : "psgi"}"
    serve("--workers", "2", *options, address: FrontendServers::PLAIN_ADDRESS, app: app)
  end

  def socket(query = "") = hold(WS.new(@one.port, "/?#{query}"))
  def resident = File.read("/proc/#{frontend}/status")[/^VmRSS:\s+(\d+)/, 1].to_i * 1024

  # The most that the frontend has grown meanwhile.
  def growth
    before = resident
    most = before
    yield -> { most = [most, resident].max }
    [most, resident].max - before
  end

  # Who has subscribed to two channels gets the messages of a publisher in their order, however many have subscribed to
  # the first one; the first subscriber comes last.
  def test_messages_of_two_channels_come_in_their_order
    begin_server
    both = socket("channels=a,b")
    others = Array.new(200) { socket("channels=a") }
    publisher = socket
    5.times do |round|
      publisher.write(WS.frame("repeat a 40") + WS.frame("publish b #{round}"))
      assert_equal Array.new(40) { |i| format("%04d", i) } << round.to_s, Array.new(41) { both.message }
      assert_equal %w[ok ok], [publisher.message, publisher.message]
    end
    others.each { |other| assert_equal "0000", other.message }
  end

  # One call publishes more than may be pending, to more than a turn delivers.
  def test_a_flood_of_messages_of_one_call
    begin_server
    readers = Array.new(30) { socket("channels=a") }
    publisher, neighbour = socket, socket("channels=n")
    grown = growth do |look|
      publisher.say("repeat a 2000")
      neighbour.say("publish n between")
      assert_equal %w[between ok], [neighbour.message, neighbour.message].sort # its call does not wait for deliveries
      look.call
      readers.each { |reader| assert_equal Array.new(2000) { |i| format("%04d", i) }, Array.new(2000) { reader.message } }
      assert_equal "ok", publisher.message
    end
    assert_operator grown, :<, (16 << 20) + (4 << 20) + MARGIN
  end

  HANDSHAKE = "GET /?channels=a HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" \
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

  # All clients are connected, then all shake hands.
  def flood(count)
    clients = Array.new(count) { hold(TCPSocket.new("127.0.0.1", @one.port)) }
    clients.each { |client| client.write(HANDSHAKE) }
  end

  def statuses_of(clients) = clients.map { |client| client.readpartial(4096)[9, 3].to_i }.tally

  def test_a_flood_of_handshakes
    begin_server("--websockets-max", "100")
    clients = flood(400)
    assert_equal({ 101 => 100, 503 => 300 }, statuses_of(clients))
    clients.each(&:close)
    wait_until("room") { socket.open? }
  end

  # Each in flight takes seven KB or more, and a socket a quarter of one: the difference goes back to the system.
  def test_the_memory_of_handshakes_is_given_back
    begin_server
    socket.close
    before = resident
    assert_equal 2, (workers = worker_pids).size
    workers.each { |pid| Process.kill(:STOP, pid) }
    clients = flood(2000)
    wait_until("all are in flight: #{resident - before}") { resident - before > 2000 * 5000 }
    workers.each { |pid| Process.kill(:CONT, pid) }
    assert_equal({ 101 => 2000 }, statuses_of(clients))
    wait_until("the system has it: #{resident - before}") { resident - before < 2000 * 1024 }
  end

  # A message that never ends: of frames without a byte it may have few, of others as many as its bytes.
  def test_a_flood_of_fragments
    begin_server
    empty, one, other = socket, socket, socket
    grown = growth do |look|
      one.write(WS.frame("publish n ", last: false))
      10.times do
        one.write(WS.frame("y", opcode: 0, last: false, mask: "\0\0\0\0") * 10_000)
        assert_equal "ok", other.ask("publish n x")
        look.call
      end
      one.write(WS.frame("z", opcode: 0))
      assert_equal "ok", one.message
      empty.write(WS.frame("publish", last: false) + (WS.frame("", opcode: 0, last: false, mask: "\0\0\0\0") * 3000))
      assert_equal 1008, empty.read_close.first
    end
    assert_operator grown, :<, MARGIN
    assert_match(/too many empty frames in a message; closing it with 1008$/, @one.stderr)
  end

  # Subscribers that read nothing, and leave: what waits for each is bounded, and goes with them.
  def test_a_flood_for_clients_that_leave_without_reading
    begin_server("--websocket-pending-max", "64K")
    publisher = socket
    grown = growth do |look|
      3.times do
        idle = Array.new(60) { socket("channels=a") }
        20.times { assert_equal "ok", publisher.ask("large a 300000") }
        look.call
        wait_until("their ends: #{@one.stderr}") { @one.stderr.scan("websocket_pending_max").any? }
        idle.each(&:close)
      end
    end
    assert_operator grown, :<, (20 * 300_000) + (60 * (64 << 10)) + MARGIN
    assert_equal "ok", publisher.ask("publish a to nobody")
  end

  # Subscriptions beyond a socket's maximum, and beyond that of all, close the socket and nobody else.
  def test_a_flood_of_subscriptions
    begin_server("--subscriptions-max", "2000")
    other = socket
    grown = growth do |look|
      20.times do |i|
        one = socket
        one.say("many c#{i}- 5000")
        assert_equal 1011, one.read_close.first
        look.call
      end
    end
    Array.new(8) { socket("count=250") }.each { |one| assert_equal "ok", one.ask("publish n x") }
    3.times { assert_equal 1013, socket("count=250").read_close.first }
    assert_operator grown, :<, MARGIN
    assert_equal "ok", other.ask("publish n x")
  end
end
