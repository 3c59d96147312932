# frozen_string_literal: true

require_relative "support"

# HTTP/1.1 to the letter, on the wire: every case of spec/ whose limits are the default ones, in each place that a
# request can have on a connection. What is refused must not reach the application, must be answered with its status,
# and must be the last thing that is read.
#
# The same through a frontend, which has the preface of HTTP/2 for its own, and whose channels stay open.
E2E.suite("letter", transports: %i[tcp unix frontend]) do
  good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
  # Would end the worker if anything behind a refusal were ever read as a request; the closing check sees that.
  hidden = "GET /exit HTTP/1.1\r\nHost: a\r\n\r\n"
  cases = %w[request chunked].flat_map { |folder| E2E::SpecCase.in(folder) }.select { |one| one.limits.empty? }
  refused, accepted, unfinished = cases.partition { |one| !one.ok? && !one.again? }.then { |bad, rest| [bad, *rest.partition(&:ok?)] }
  accepted = accepted.select(&:completed)

  define_method(:assert_refusal) do |client, one, place|
    response = client.read_response(head: one.head_request?)
    assert_equal [one.status, []], [response.status, response.interim.map(&:status)], "#{one.name}, #{place}"
    assert response.close?, "#{one.name}, #{place}: no Connection: close"
    assert_equal "", client.read_to_end, "#{one.name}, #{place}: bytes behind the refusal"
  end

  # 200 or 404 by the application; or by a binding that decodes paths, 400 for escapes that are none. True when the
  # connection goes on.
  define_method(:assert_taken) do |client, one, place|
    response = client.read_response(head: one.head_request?)
    bad_escape = one.input[/\A\S+ (\S+)/, 1].to_s.match?(/%(?!\h\h)/)
    allowed = bad_escape ? [200, 404, E2E.differing(:status_of_bad_escape)] : [200, 404]
    allowed += [400, 426] if frontend? && one.input.match?(/^upgrade:[ \t]*websocket/i) # no whole handshake: RFC 6455 4.2
    assert_includes allowed, response.status, "#{one.name}, #{place}"
    return false if response.close? || !one.stays?

    assert_equal "Hello, World!", client.get("/").body, "#{one.name}, #{place}: the next request"
  end

  # The bytes in pieces of 1 to 9, each a write of its own: where the server's reads fall is up to the kernel.
  define_method(:send_in_bits) do |client, bytes|
    random = Random.new(bytes.bytesize)
    at = 0
    while at < bytes.bytesize
      size = 1 + random.rand(9)
      client.send_raw(bytes.byteslice(at, size))
      at += size
    end
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil # refused before the last byte
  end

  # At its first bytes a frontend's connection speaks HTTP/2.
  define_method(:refused_at_once) do
    refused.reject { |one| transport == :frontend && one.bytes.start_with?("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") }
  end

  define_method(:test_refused_alone) do
    refused_at_once.each { |one| assert_refusal(connect.send_raw(one.bytes + hidden), one, "alone") }
  end

  define_method(:test_refused_behind_a_good_request) do
    refused.each do |one|
      client = connect.send_raw(good + one.bytes + hidden)
      assert_equal "Hello, World!", client.read_response.body, one.name
      assert_refusal(client, one, "pipelined")
    end
  end

  define_method(:test_refused_on_a_reused_connection) do
    refused.each do |one|
      client = connect
      client.get("/")
      assert_refusal(client.send_raw(one.bytes + hidden), one, "reused")
    end
  end

  define_method(:test_refused_in_bits) do
    refused_at_once.select { |one| one.bytes.bytesize < 400 }.each do |one|
      client = connect
      send_in_bits(client, one.bytes)
      assert_refusal(client, one, "in bits")
    end
  end

  define_method(:test_refused_behind_a_body) do
    refused.each do |one|
      client = connect.send_raw("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n#{one.bytes}#{hidden}")
      assert_equal "abc", client.read_response.body, one.name
      assert_refusal(client, one, "behind a body")
    end
  end

  define_method(:test_taken_alone) do
    accepted.each { |one| assert_taken(connect.send_raw(one.completed), one, "alone") }
  end

  define_method(:test_taken_behind_a_good_request) do
    accepted.each do |one|
      client = connect.send_raw(good + one.completed)
      assert_equal "Hello, World!", client.read_response.body, one.name
      assert_taken(client, one, "pipelined")
    end
  end

  define_method(:test_taken_on_a_reused_connection) do
    client = nil
    accepted.each do |one|
      client ||= connect.tap { |fresh| fresh.get("/") }
      client = nil unless assert_taken(client.send_raw(one.completed), one, "reused")
    end
  end

  define_method(:test_taken_in_bits) do
    accepted.select { |one| one.completed.bytesize < 400 }.each do |one|
      client = connect
      send_in_bits(client, one.completed)
      assert_taken(client, one, "in bits")
    end
  end

  # Without its rest it is no request, whatever it looked like.
  define_method(:test_unfinished_and_over) do
    unfinished.each do |one|
      client = connect
      client.send_raw(one.bytes)
      client.half_close
      assert_match(%r{\A(HTTP/1\.1 400 .*)?\z}m, client.read_to_end, one.name)
    end
  end

  define_method(:test_there_are_cases) do
    assert_operator refused.size, :>, 300
    assert_operator accepted.size, :>, 200
    assert_operator unfinished.size, :>, 10
  end
end

# Rules of answers and of the connection that need an application, beside those of persistence_test.rb and
# answers_test.rb.
E2E.suite("connection_rules", options: E2E::COMMAND == "pure" ? [] : ["--early-hints"]) do
  def test_early_hints_cannot_split_the_answer
    skip "Oribi::Pure has no interim answers" if E2E::COMMAND == "pure"
    %w[crlf cr nul name space empty].each do |kind|
      client = connect
      response = client.get("/bad-hints?kind=#{kind}")
      assert_equal ["no hints", []], [response.body, response.interim], kind
      assert_equal "Hello, World!", client.get("/").body
    end
  end

  def test_early_hints_carry_no_framing
    skip "Oribi::Pure has no interim answers" if E2E::COMMAND == "pure"
    response = connect.get("/framed-hints")
    assert_equal [103], response.interim.map(&:status)
    assert_nil response.interim.first["content-length"]
    assert_nil response.interim.first["transfer-encoding"]
    assert_equal "hinted", response.body
  end

  def test_no_100_before_a_refusal
    ["POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5x\r\n\r\n",
     "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
     "POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"].each do |bytes|
      response = assert_refused(400, bytes)
      assert_empty response.interim
    end
  end

  def test_100_continue_on_a_reused_connection_and_behind_a_good_request
    client = connect
    2.times do
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
      assert_equal "Hello, World!", client.read_response.body
      assert_equal 100, client.read_interim.status
      assert_equal "ok", client.send_raw("ok").read_response.body
    end
  end

  def test_half_closed_with_a_pipeline
    client = connect.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 5 + "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
    client.half_close
    assert_equal ["Hello, World!"] * 5 + ["abc"], Array.new(6) { client.read_response.body }
    assert client.closed?
  end

  def test_half_closed_on_a_reused_connection
    client = connect
    client.get("/")
    client.request("POST", "/echo", {}, "x" * 50_000).half_close
    assert_equal 50_000, client.read_response.body.bytesize
    assert client.closed?
  end

  # More than any socket buffer is on its way when the refusal comes: without lingering, its reset would overtake the
  # answer.
  def test_a_refusal_outlives_what_the_client_still_sends
    client = connect
    client.send_raw("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n#{"y" * 60_000}")
    assert_equal 400, client.read_response.status
    assert client.closed?
  end

  # Clients that look for an answer only once their upload is done: megabytes behind the refusal, in bursts and by
  # drops.
  def test_a_refused_upload_gets_its_answer
    head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: #{2**31}\r\n\r\n"
    [[12 * 1024 * 1024], [1, 70_000, 3_000_000, 1]].each do |sizes|
      client = connect.send_raw(head)
      sizes.each do |size|
        client.send_raw("y" * size)
        IO.select(nil, nil, nil, 0.02)
      end
      assert_equal 413, client.read_response.status
      assert client.closed?
    end
  end

  # RFC 9112 9.6 forbids it, and the answer arrives all the same.
  def test_more_behind_a_request_that_closes
    client = connect.send_raw("GET /big?size=100000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n#{"y" * 2_000_000}")
    assert_equal 100_000, client.read_response.body.bytesize
    assert client.closed?
  end

  def test_close_asked_by_either_side_holds_with_a_body
    client = connect
    response = client.post("/echo", "abc", { "Connection" => "close" })
    assert_equal ["abc", true], [response.body, response.close?]
    assert client.closed?
  end

  def test_answers_of_every_status_have_one_framing
    client = connect
    [200, 201, 202, 203, 205, 206, 300, 301, 302, 400, 401, 404, 418, 422, 500, 503, 599].each do |status|
      assert_equal [status, "body"], client.get("/status/#{status}").then { |response| [response.status, response.body] }
      assert_equal "", client.head("/status/#{status}").body
    end
  end

  def test_the_date_is_now
    client = connect
    before = Time.now.to_i
    date = Time.httpdate(client.get("/")["date"]).to_i
    assert_includes (before - 1)..Time.now.to_i, date
  end
end
