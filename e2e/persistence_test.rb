# frozen_string_literal: true

require_relative "support"

# Which connections stay, which end, and in what order answers come.
E2E.suite("persistence") do
  def test_a_hundred_requests_on_one_connection
    client = connect
    100.times { |i| assert_equal "/env/#{i}", JSON.parse(client.get("/env/#{i}").body)["PATH_INFO"] }
  end

  def test_pipelined_requests_are_answered_in_order
    client = connect
    client.send_raw((1..20).map { |i| "GET /env/#{i} HTTP/1.1\r\nHost: a\r\n\r\n" }.join)
    20.times { |i| assert_equal "/env/#{i + 1}", JSON.parse(client.read_response.body)["PATH_INFO"] }
    assert client.quiet?
  end

  def test_pipelined_bodies_stay_with_their_requests
    client = connect
    client.send_raw((1..10).map { |i| "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: #{i}\r\n\r\n#{"x" * i}" }.join)
    10.times { |i| assert_equal "x" * (i + 1), client.read_response.body }
  end

  def test_pipelined_chunked_bodies_stay_with_their_requests
    client = connect
    one = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    client.send_raw(one + one + "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_equal ["abc", "abc", "Hello, World!"], Array.new(3) { client.read_response.body }
  end

  def test_a_bad_request_behind_good_ones_loses_no_answer
    client = connect
    client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /method HTTP/1.1\r\nHost: a\r\n\r\nGET bad\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_equal "Hello, World!", client.read_response.body
    assert_equal "GET", client.read_response.body
    last = client.read_response
    assert_equal 400, last.status
    assert last.close?
    assert client.closed?, "answered what came behind the error"
  end

  def test_close_is_honoured_wherever_it_stands
    ["close", "Close", "x-a, close", "close, keep-alive", "keep-alive,close"].each do |value|
      client = connect
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: #{value}\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
      assert client.read_response.close?, value
      assert client.closed?, "answered a request after #{value}"
    end
  end

  def test_the_application_can_close
    client = connect
    assert client.get("/close").close?
    assert client.closed?
  end

  def test_framing_fields_of_the_application_are_dropped
    response = connect.get("/hop")
    assert_equal ["hop", :length], [response.body, response.framing]
    assert_nil response["keep-alive"]
    assert_nil response["connection"]
  end

  def test_http_1_0_closes
    client = connect
    response = client.get("/", version: "1.0")
    assert_equal "Hello, World!", response.body
    assert response.close?
    assert client.closed?
  end

  def test_http_1_0_without_host
    assert_equal 200, exchange("GET / HTTP/1.0\r\n\r\n").status
  end

  def test_http_1_0_keep_alive_is_said_and_kept
    client = connect
    3.times do
      response = client.get("/", { "Connection" => "keep-alive" }, version: "1.0")
      assert_equal "keep-alive", response["connection"].to_s.downcase
      assert_equal :length, response.framing
    end
    refute_nil client.get("/", {}, version: "1.0")
    assert client.closed?
  end

  def test_http_1_0_body_without_length_ends_with_the_connection
    client = connect
    response = client.get("/parts?count=3", { "Connection" => "keep-alive" }, version: "1.0")
    assert_equal :close, response.framing
    assert_equal "part 0\npart 1\npart 2\n", response.body
  end

  def test_http_1_9_is_served_as_1_1
    client = connect
    assert_equal 200, client.get("/", {}, version: "1.9").status
    assert_equal 200, client.get("/").status
  end

  def test_half_closed_clients_get_their_answer
    client = connect
    client.request("GET", "/").half_close
    assert_equal "Hello, World!", client.read_response.body
    assert client.closed?
  end

  def test_up_to_two_empty_lines_before_a_request
    client = connect
    assert_equal 200, client.send_raw("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").read_response.status
    assert_refused 400, "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
  end

  def test_a_head_in_many_pieces
    head = "GET /env HTTP/1.1\r\nHost: a\r\nX-Long: #{"v" * 300}\r\n\r\n"
    client = connect
    client.send_pieces(*head.scan(/.{1,11}/m))
    assert_equal "v" * 300, JSON.parse(client.read_response.body)["HTTP_X_LONG"]
  end

  def test_keepalive_requests_max
    one = start("--keepalive-requests-max", "3")
    client = connect(one)
    assert_equal [false, false, true], Array.new(3) { client.get("/").close? }
    assert client.closed?
  end

  def test_many_connections_take_turns
    clients = Array.new(50) { connect }
    3.times do
      clients.each { |client| client.request("GET", "/") }
      clients.each { |client| assert_equal "Hello, World!", client.read_response.body }
    end
  end
end

# Answers without a body, and the interim 100.
E2E.suite("bodiless") do
  def test_head_has_the_head_of_get_and_no_body
    client = connect
    get = client.get("/big?size=1000")
    head = client.head("/big?size=1000")
    assert_equal get["content-length"], head["content-length"]
    assert_equal "Hello, World!", client.get("/").body
  end

  def test_head_of_a_body_without_length
    client = connect
    response = client.head("/parts?count=3")
    assert_equal [200, ""], [response.status, response.body]
    assert_equal "Hello, World!", client.get("/").body
  end

  def test_head_of_a_file
    client = connect
    response = client.head("/file")
    assert_equal E2E::Server.numbers.bytesize.to_s, response["content-length"]
    assert_equal "Hello, World!", client.get("/").body
  end

  def test_204_and_304_send_no_body_even_if_there_is_one
    client = connect
    [204, 304].each do |status|
      assert_equal status, client.get("/status/#{status}").status
      assert_equal "Hello, World!", client.get("/").body
    end
  end

  def test_bodies_of_answers_without_a_body_are_closed
    client = connect
    before = client.get("/closed").body.to_i
    client.head("/parts?count=3")
    assert_equal before + 1, client.get("/closed").body.to_i
  end

  def test_100_continue_is_sent_before_the_body
    client = connect
    client.request("POST", "/echo", { "Expect" => "100-Continue", "Content-Length" => 5 })
    assert_equal 100, client.read_interim.status
    client.send_raw("hello")
    assert_equal "hello", client.read_response.body
  end

  def test_100_continue_for_a_chunked_body
    client = connect
    client.request("POST", "/echo", { "Expect" => "100-continue", "Transfer-Encoding" => "chunked" })
    assert_equal 100, client.read_interim.status
    client.send_raw("5\r\nhello\r\n0\r\n\r\n")
    assert_equal "hello", client.read_response.body
  end

  def test_no_100_without_a_body_or_to_http_1_0
    response = connect.get("/", { "Expect" => "100-continue" })
    assert_equal [200, []], [response.status, response.interim.map(&:status)]
    response = connect.post("/echo", "hello", { "Expect" => "100-continue" }, version: "1.0")
    assert_equal ["hello", []], [response.body, response.interim.map(&:status)]
  end

  def test_no_100_when_the_body_is_refused
    one = start("--body-bytes-max", "10")
    client = connect(one)
    client.request("POST", "/echo", { "Expect" => "100-continue", "Content-Length" => 11 })
    response = client.read_response
    assert_equal [413, []], [response.status, response.interim.map(&:status)]
    assert client.closed?
  end

  def test_other_expectations_fail
    assert_equal 417, connect.get("/", { "Expect" => "miracles" }).status
  end
end
