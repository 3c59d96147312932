# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"

# Each limit at its maximum and one beyond, against a server whose limits are small.
LIMITS = { target: 200, head: 2000, fields: 20, body: 1000 }.freeze

E2E.suite("limits", options: ["--target-bytes-max", LIMITS[:target].to_s, "--head-bytes-max", LIMITS[:head].to_s,
                              "--fields-max", LIMITS[:fields].to_s, "--body-bytes-max", LIMITS[:body].to_s]) do
  def target_of(size) = "/env?#{"q" * (size - 5)}"

  # A whole head of exactly `size` bytes.
  def head_of(size)
    start = "GET / HTTP/1.1\r\nHost: a\r\nX-A: "
    "#{start}#{"v" * (size - start.bytesize - 4)}\r\n\r\n"
  end

  def test_target_at_its_maximum
    assert_equal 200, exchange("GET #{target_of(LIMITS[:target])} HTTP/1.1\r\nHost: a\r\n\r\n").status
  end

  def test_target_beyond_its_maximum
    assert_refused 414, "GET #{target_of(LIMITS[:target] + 1)} HTTP/1.1\r\nHost: a\r\n\r\n"
  end

  def test_an_endless_target_is_refused_before_its_end
    assert_refused 414, "GET /#{"a" * 3000}"
  end

  def test_head_at_its_maximum
    assert_equal 200, exchange(head_of(LIMITS[:head])).status
  end

  def test_head_beyond_its_maximum
    assert_refused 431, head_of(LIMITS[:head] + 1)
  end

  def test_an_endless_head_is_refused_before_its_end
    assert_refused 431, "GET / HTTP/1.1\r\nHost: a\r\nX-A: #{"a" * 3000}"
  end

  def test_fields_at_their_maximum
    fields = Array.new(LIMITS[:fields] - 1) { |i| "X-#{i}: 1\r\n" }.join
    assert_equal 200, exchange("GET / HTTP/1.1\r\nHost: a\r\n#{fields}\r\n").status
  end

  def test_fields_beyond_their_maximum
    fields = Array.new(LIMITS[:fields]) { |i| "X-#{i}: 1\r\n" }.join
    assert_refused 431, "GET / HTTP/1.1\r\nHost: a\r\n#{fields}\r\n"
  end

  def test_body_at_its_maximum
    assert_equal LIMITS[:body], connect.post("/echo", "b" * LIMITS[:body]).body.bytesize
  end

  def test_body_beyond_its_maximum_is_refused_by_its_length_alone
    assert_refused 413, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: #{LIMITS[:body] + 1}\r\n\r\n"
  end

  def test_a_client_that_sends_the_refused_body_anyway_reads_the_answer
    client = connect
    client.request("POST", "/echo", {}, "b" * 20_000)
    assert_equal 413, client.read_response.status
    assert client.closed?
  end

  def test_chunked_body_at_its_maximum
    client = connect
    client.request("POST", "/echo", { "Transfer-Encoding" => "chunked" }, "1f4\r\n#{"b" * 500}\r\n" * 2 + "0\r\n\r\n")
    assert_equal LIMITS[:body], client.read_response.body.bytesize
  end

  def test_chunked_body_beyond_its_maximum
    assert_refused 413, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + "1f4\r\n#{"b" * 500}\r\n" * 2 + "1\r\nb\r\n0\r\n\r\n"
  end

  def test_method_beyond_its_maximum
    response = exchange("#{"M" * 33} / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_includes [400, 501], response.status
    assert response.close?
  end
end

# Deadlines: short ones, so that waiting for them is short. The server must not answer early: the client's clock is
# asked too.
E2E.suite("timeouts", options: ["--head-timeout", "300ms", "--body-timeout", "300ms", "--idle-timeout", "400ms", "--write-timeout", "400ms"]) do
  # Seconds until the block is through, which begins with what the server counts from: it sees that before we go on, on
  # a busy machine long before.
  def seconds
    started = E2E.clock
    yield
    E2E.clock - started
  end

  def assert_took(at_least, took) = assert_operator(took, :>=, at_least - 0.05)

  def test_a_head_that_never_ends
    client = connect
    took = seconds do
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n")
      assert_equal 408, client.read_response.status
    end
    assert_took 0.3, took
    assert client.closed?
  end

  # The deadline is for the whole head, not for the gap between bytes.
  def test_a_head_that_trickles
    client = connect
    took = seconds do
      client.send_raw("GET / HTTP/1.1\r\n")
      E2E.wait_until("the server to lose patience") do
        client.send_raw("X: 1\r\n") if client.socket.wait_readable(0.02).nil?
        client.socket.wait_readable(0)
      end
    end
    assert_equal 408, client.read_response.status
    assert_took 0.3, took
  rescue Errno::EPIPE, Errno::ECONNRESET
    flunk "the connection was cut before the answer"
  end

  def test_a_body_that_never_comes
    client = connect
    took = seconds do
      client.request("POST", "/echo", { "Content-Length" => 10 })
      client.send_raw("hello")
      assert_equal 408, client.read_response.status
    end
    assert_took 0.3, took
    assert client.closed?
  end

  def test_a_chunked_body_that_never_ends
    client = connect
    client.request("POST", "/echo", { "Transfer-Encoding" => "chunked" })
    client.send_raw("5\r\nhello\r\n")
    assert_equal 408, client.read_response.status
    assert client.closed?
  end

  def test_idle_connections_close_silently
    fresh = connect
    used = connect
    took = seconds do
      used.get("/")
      assert used.closed?
    end
    assert_took 0.4, took
    assert fresh.closed?
  end

  # A kept-alive connection starts a new head deadline with the first byte of the next request.
  def test_a_second_head_that_never_ends
    client = connect
    client.get("/")
    client.send_raw("GET /")
    assert_equal 408, client.read_response.status
  end

  def test_a_reader_that_stops_reading_is_cut_off
    client = connect(receive_buffer: 4096)
    client.request("GET", "/big?size=20000000")
    holder = transport == :frontend ? FrontendServers.frontend_of(server) : worker
    on_files = -> { E2E::Processes.descriptors(holder).values.grep(/\(deleted\)\z/).grep_v(%r{\A/(dev/shm|memfd)}).size }
    assert_equal 200, client.read_head.status
    wait_until("what the client does not read to be in a file") { on_files.call.positive? || reset?(client.socket) }
    wait_until("the server to drop the connection") { on_files.call.zero? }
    assert_raises(Errno::ECONNRESET, E2E::Client::Closed) { client.read_bytes(20_000_000) }
  end

  # On a busy machine the server may have dropped the connection between two looks: then it is not ESTABLISHED, which is
  # 1 in tcp_states.h.
  def reset?(socket) = socket.is_a?(TCPSocket) && socket.getsockopt(Socket::IPPROTO_TCP, Socket::TCP_INFO).unpack1("C") != 1

  def test_an_application_call_is_not_an_idle_connection
    client = enter_gate(server, "idle")
    IO.select([client.socket], nil, nil, 0.6) # longer than every deadline above
    open_gate(server, "idle")
    assert_equal "gate passed", client.read_response.body
  end
end
