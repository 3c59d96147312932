# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"

# Clients that leave at any moment, and clients that are slow: no log spam, no leak, no spin, and nobody else waits.
E2E.suite("clients") do
  # Nothing was written about clients that left, and all is as before (the closing checks count descriptors).
  def leave_no_trace
    before = server.stderr
    held = clients_held
    20.times { yield }
    assert_alive
    wait_until("the connections to go") { held ? clients_held <= held : descriptors_back? }
    assert_idle(worker)
    assert_empty server.stderr.delete_prefix(before).lines.grep_v(/\bdebug\b/)
  end

  # Clients' sockets of a frontend. Its channels stay open, more or fewer, and a worker has their other ends. nil: there
  # is no frontend, and a worker has the clients.
  def clients_held = frontend? ? E2E::Processes.sockets_but_unix(FrontendServers.frontend_of(server)) : nil

  def test_leaving_before_the_first_byte = leave_no_trace { connect.reset }
  def test_leaving_in_a_head = leave_no_trace { connect.send_pieces("GET / HT").reset }
  def test_ending_in_a_head = leave_no_trace { connect.send_pieces("GET / HT").close }
  def test_leaving_between_requests = leave_no_trace { connect.tap { |client| client.get("/") }.reset }

  def test_leaving_in_a_body
    leave_no_trace { connect.send_pieces("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc").reset }
  end

  def test_ending_in_a_body
    leave_no_trace do
      client = connect.send_pieces("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
      client.half_close
      rest = client.read_to_end
      assert_match(%r{\A(HTTP/1\.1 400 .*)?\z}m, rest)
    end
  end

  def test_leaving_in_a_body_on_a_file
    leave_no_trace { connect.send_raw("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n#{"b" * 300_000}").reset }
  end

  def test_leaving_in_a_chunked_body
    leave_no_trace { connect.send_pieces("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab").reset }
  end

  def test_leaving_right_after_the_request = leave_no_trace { connect.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n").reset }

  def test_leaving_in_an_answer
    leave_no_trace do
      client = connect(receive_buffer: 4096)
      client.request("GET", "/big?size=3000000")
      client.read_bytes(1000)
      client.reset
    end
  end

  def test_leaving_in_a_file
    leave_no_trace do
      client = connect(receive_buffer: 4096)
      client.request("GET", "/file")
      client.read_bytes(1000)
      client.reset
    end
  end

  # The body's close is called although its reader is gone.
  def test_leaving_in_a_stream
    before = server.get("/closed").body.to_i
    leave_no_trace do
      client = connect(receive_buffer: 4096)
      client.request("GET", "/flood?count=100")
      client.read_bytes(1000)
      client.reset
    end
    assert_equal before + 20, server.get("/closed").body.to_i
  end

  def test_a_slow_reader_gets_all_and_nobody_waits_for_it
    slow = connect(receive_buffer: 4096)
    slow.request("GET", "/big?size=5000000")
    slow.read_bytes(1000)
    10.times { assert_alive }
    rest = slow.read_bytes(4_999_000)
    assert_equal 4_999_000, rest.bytesize
  end

  def test_slow_senders_do_not_hold_the_worker
    senders = Array.new(10) { connect.send_raw("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab") }
    assert_alive
    senders.each { |client| client.send_raw("cd") }
    senders.each { |client| assert_equal "abcd", client.read_response.body }
  end

  def test_slow_heads_do_not_hold_the_worker
    senders = Array.new(10) { connect.send_raw("GET / HTTP/1.1\r\n") }
    assert_alive
    senders.each { |client| client.send_raw("Host: a\r\n\r\n") }
    senders.each { |client| assert_equal "Hello, World!", client.read_response.body }
  end

  def test_many_connections_come_and_go
    300.times { assert_alive }
  end
end
