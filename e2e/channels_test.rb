# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/socket_client"
require "json"

# Channels of WebSockets (doc/websocket.md): subscribe, publish, resume, and their limits.
E2E.suite("channels", transports: %i[tcp]) do
  include FrontendServers

  WS = E2E::SocketClient

  def begin_server(*options, workers: 2)
    app = "e2e/apps/channels.#{E2E::RUBY ? "ru" : "psgi"}"
    serve("--workers", workers.to_s, "--history", "h:,100,300s", "--history", "short:,2,300s", *options, address: FrontendServers::PLAIN_ADDRESS, app: app)
  end

  def socket(query = "") = hold(WS.new(@one.port, "/?#{query}"))

  # Sends a command; what came before its "ok".
  def tell(one, command)
    one.say(command)
    got = []
    got << one.message until got.last == "ok"
    got[0..-2]
  end

  def ids(one, count = 1) = Array.new(count) { JSON.parse(one.message) }

  def test_each_subscriber_gets_each_message
    begin_server
    one, two, other = socket("channels=a,b"), socket("channels=a"), socket
    assert_equal ["hello \u{1F600}"], tell(one, "publish a hello \u{1F600}")
    assert_equal "hello \u{1F600}", two.message
    tell(other, "binary b 00ff")
    assert_equal "\x00\xff".b, one.message
    tell(other, "publish b nobody else")
    assert_equal "nobody else", one.message
    tell(two, "unsubscribe a")
    tell(two, "subscribe c")
    tell(other, "publish a one")
    tell(other, "publish c two")
    assert_equal "two", two.message
    assert_equal "one", one.message
  end

  def test_a_handler_publishes_when_its_socket_has_closed
    begin_server
    one = socket("channels=closed")
    other = socket
    other.close_with(4001)
    assert_equal "closed 4001", one.message
  end

  def test_ids_and_what_was_missed
    begin_server
    one, other = socket("channels=h:1&ids"), socket
    begins = ids(one).first
    assert_equal %w[channel id], begins.keys
    (1..3).each { |i| tell(other, "publish h:1 m#{i} \"\u00fc\"") }
    got = ids(one, 3)
    assert_equal (1..3).map { |i| "m#{i} \"\u00fc\"" }, got.map { |message| message["data"] }
    tell(other, "event h:1 note")
    tell(other, "binary h:1 00ff")
    assert_equal "note", ids(one).first["event"]
    assert_equal "\x00\xff".b, ids(one).first["base64"].unpack1("m")
    one.close
    tell(other, "publish h:1 missed")
    [begins["id"], got[1]["id"]].each_with_index do |since, i|
      again = socket("channels=h:1&ids&since=#{since}")
      messages = ids(again, i.zero? ? 7 : 5)
      assert_equal i.zero? ? 6 : 4, messages.count { |message| message.key?("data") || message.key?("base64") }
      assert_equal messages[-1]["id"], messages[-2]["id"], "where it stands now"
      refute messages.any? { |message| message["reset"] }
    end
    late = socket("ids")
    late.say("subscribe h:1 #{got.last["id"]}")
    assert_equal [nil, nil, "missed"], ids(late, 3).map { |message| message["data"] }.values_at(1, 1, 2)
  end

  def test_what_history_does_not_reach
    begin_server
    one, other = socket("channels=short:1&ids"), socket
    since = ids(one).first["id"]
    3.times { |i| tell(other, "publish short:1 #{i}") }
    [since, "1-1", "nonsense", "9" * 100].each do |position|
      reset = ids(socket("channels=short:1&ids&since=#{position}")).first
      assert reset["reset"], position
      assert_match(/\A\d+-\d+\z/, reset["id"])
    end
    assert ids(socket("channels=x&ids&since=1-1")).first["reset"], "a channel without a history"
  end

  def test_limits
    begin_server
    one = socket
    { "name 256" => [], "name 257" => [/longer than 256 bytes/], "name 0" => [/is empty/], "control" => [/control character/],
      "event 64" => [], "event 65" => [/longer than 64 bytes/], "data #{1 << 20}" => [], "data #{(1 << 20) + 1}" => [/longer than 1 MiB/],
      "since" => [/not accepted with ids/] }.each do |what, wanted|
      got = tell(one, "try #{what}")
      assert_equal wanted.size, got.size, what
      wanted.zip(got).each { |pattern, text| assert_match pattern, text }
    end
    assert_equal 101, socket("count=256").status
    assert_equal 500, socket("count=257").status
    assert_match(/more than 256 channels/, @one.stderr)
    tell(one, "unsubscribe #{"n" * 256}")
    tell(one, "many c 255")
    assert_equal [], tell(one, "subscribe c255")
    got = tell(one, "try subscribe more")
    assert_match(/\Aerror .*more than 256 channels/, got.first)
    assert_equal 1, got.size
    assert_equal [], tell(one, "try subscribe c7"), "one that it has"
    assert_equal [], tell(one, "try instead more"), "in the place of one that it has"
    one.say("subscribe another")
    assert_equal 1011, one.read_close.first
    assert_equal 500, socket("channels=a&since=1-1").status
    assert_match(/needs ids/, @one.stderr)
  end

  def test_subscriptions_max
    begin_server("--subscriptions-max", "3")
    one = socket("channels=a,b,c")
    two = socket("channels=a")
    assert_equal 1013, two.read_close.first
    tell(one, "unsubscribe a")
    assert_equal ["x"], tell(socket("channels=a"), "publish a x")
    assert_match(/subscriptions_max/, @one.stderr)
  end

  def test_slow_readers_are_closed_and_nobody_waits
    begin_server("--websocket-pending-max", "64K")
    slow, one = socket("channels=a"), socket("channels=a")
    publisher = socket
    40.times do
      tell(publisher, "large a 500000")
      assert_equal 500_000, one.message.bytesize
    end
    wait_until("the line") { @one.stderr.include?("reads too slowly") }
    assert_raises(WS::Closed, EOFError, SystemCallError) { loop { assert_equal 500_000, slow.message.bytesize } }
  end

  REPEATED = Array.new(60) { |i| format("%04d", i) }
  REPEATED_BYTES = REPEATED.sum { |text| 2 + text.bytesize }

  # The answer comes while messages are on their way, in some round at least; never, where they hold up the frontend.
  # The kernel has room for all messages of a reader.
  def test_a_neighbour_is_answered_between_deliveries
    begin_server
    readers = Array.new(300) { socket("channels=a") }
    publisher = socket
    neighbour = hold(TCPSocket.new("127.0.0.1", @one.port))
    between = 20.times.any? do
      publisher.say("repeat a #{REPEATED.size}")
      IO.select(readers.map(&:io))
      answer_of(neighbour)
      overtaken = readers.any? { |reader| arrived(reader) < REPEATED_BYTES }
      readers.each { |reader| assert_equal REPEATED, Array.new(REPEATED.size) { reader.message } }
      assert_equal "ok", publisher.message
      overtaken
    end
    assert between, "the answer came behind all messages"
  end

  def answer_of(neighbour)
    neighbour.write("GET /pid HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head = +""
    head << neighbour.readpartial(4096) until head.include?("\r\n\r\n")
    assert_match(/\AHTTP\/1.1 200 /, head)
    left = head[/content-length: (\d+)/i, 1].to_i - head.split("\r\n\r\n", 2).last.bytesize
    neighbour.read(left) if left.positive?
  end

  # Bytes that wait to be read.
  def arrived(reader)
    bytes = reader.io.recv_nonblock(64 * 1024, Socket::MSG_PEEK, exception: false)
    bytes == :wait_readable ? 0 : bytes.bytesize
  end

  def test_a_stop_closes_behind_what_was_published
    begin_server("--shutdown-timeout", "20")
    readers = Array.new(100) { socket("channels=a") }
    socket.say("repeat a #{REPEATED.size}")
    IO.select(readers.map(&:io))
    @one.signal(:TERM)
    readers.each do |reader|
      assert_equal REPEATED, Array.new(REPEATED.size) { reader.message }
      assert_equal 1001, reader.read_close.first
    end
  end

  # Missed messages may wait beyond websocket_pending_max: else a client that has missed many could never come back.
  def test_a_long_resume
    begin_server("--websocket-pending-max", "64K")
    one, publisher = socket("channels=h:1&ids"), socket
    since = ids(one).first["id"]
    one.close
    100.times { tell(publisher, "large h:1 200000") }
    again = socket("channels=h:1&ids&since=#{since}")
    tell(publisher, "publish h:1 live")
    messages = ids(again, 102)
    assert_equal 100, messages.count { |message| message["data"]&.bytesize == 200_000 }
    assert_equal "live", messages.last["data"]
  end

  # Clients that are cut come back with their positions, while reloads and killed workers go on.
  def test_reloads_and_killed_workers_lose_nothing
    begin_server
    publisher = socket
    readers = Array.new(5) { { got: [], since: nil, one: socket("channels=h:1&ids") } }
    readers.each { |reader| reader[:since] = ids(reader[:one]).first["id"] }
    60.times do |i|
      tell(publisher, "publish h:1 #{i}")
      @one.signal(:HUP) if (i % 20) == 5
      victim(socket) if (i % 20) == 15
      cut(readers[i % 5], i)
    end
    readers.each { |reader| take(reader, 59) }
    readers.each { |reader| assert_equal (0..59).map(&:to_s), reader[:got] }
  end

  def victim(one)
    one.say("kill a b")
    assert_equal 1011, one.read_close.first
  end

  def cut(reader, last)
    take(reader, last) if last.even?
    reader[:one].close
    reader[:one] = socket("channels=h:1&ids&since=#{reader[:since]}")
  end

  # Reads to the message of this number.
  def take(reader, last)
    until reader[:got].last == last.to_s
      message = ids(reader[:one]).first
      reader[:since] = message["id"]
      refute message["reset"]
      reader[:got] << message["data"] if message.key?("data")
    end
  end
end
