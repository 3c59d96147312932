# frozen_string_literal: true

require_relative "support"

# What applications may give as an answer, and what happens when it is none.
E2E.suite("answers", options: %w[--early-hints]) do
  def test_sizes_of_one_string
    client = connect
    [1, 100, 4096, 65_536, 1_000_000, 8_000_000].each do |size|
      body = client.get("/big?size=#{size}").body
      assert_equal size, body.bytesize
      assert body.start_with?("0123456789abcdef"[0, size])
    end
  end

  def test_more_parts_than_one_writev_takes
    [1023, 1024, 1025, 20_000].each do |count|
      response = connect.get("/many?count=#{count}")
      assert_equal Array.new(count) { |i| "#{i}\n" }.join, response.body
      assert_equal :length, response.framing
    end
  end

  def test_parts_without_a_length_are_chunked
    client = connect
    [0, 1, 3, 1000].each do |count|
      response = client.get("/parts?count=#{count}")
      assert_equal Array.new(count) { |i| "part #{i}\n" }.join, response.body
      assert_equal :chunked, response.framing
    end
  end

  def test_parts_with_a_length_are_not_chunked
    client = connect
    assert_equal ["0123456789", :length], client.get("/sized").then { |response| [response.body, response.framing] }
    assert_equal "Hello, World!", client.get("/").body
  end

  def test_a_body_shorter_than_its_length_is_cut_off
    client = connect
    client.request("GET", "/short")
    assert_raises(E2E::Client::Closed, Errno::ECONNRESET) { client.read_response }
    assert_alive
  end

  def test_a_body_longer_than_its_length_is_cut
    client = connect
    first = client.get("/long")
    assert_equal "01234", first.body
    # What follows on the connection is the next answer or the end, never the surplus.
    if first.close?
      assert client.closed?
    else
      assert_equal "Hello, World!", client.get("/").body
    end
  rescue E2E::Client::Closed
    pass
  end

  def test_what_the_application_has_framed_itself
    client = connect
    2.times { assert_equal ["framed by me\n", :chunked], client.get("/framed").then { |answer| [answer.body, answer.framing] } }
    assert_equal ["hop", :length], client.get("/hop").then { |answer| [answer.body, answer.framing] }
    assert_equal "framed by me\n", connect.get("/framed", {}, version: "1.0").body
    assert_equal 200, client.get("/hop").status
  end

  def test_what_it_has_framed_badly_is_cut_off
    client = connect
    client.request("GET", "/misframed")
    assert_raises(E2E::Client::Closed, Errno::ECONNRESET) { client.read_response }
    assert_alive
    assert_match(/GET \/misframed: the answer says Transfer-Encoding: chunked, but its body is not framed so: malformed chunk size$/, server.stderr)
  end

  def test_streams
    client = connect
    assert_equal "line 0\nline 1\nline 2\n", client.get("/stream").body
    assert_equal "Hello, World!", client.get("/").body
    assert_equal "line 0\nline 1\nline 2\n", connect.get("/stream", {}, version: "1.0").body
  end

  def test_files
    %w[/file /handle].each do |target|
      client = connect
      response = client.get(target)
      assert_equal E2E::Server.numbers, response.body, target
      assert_equal :length, response.framing, target
      assert_equal E2E::Server.numbers, client.get(target).body, target
    end
  end

  def test_bodies_are_closed_once
    client = connect
    before = client.get("/closed").body.to_i
    client.get("/parts?count=2")
    client.get("/file")
    client.get("/sized")
    assert_equal before + 3, client.get("/closed").body.to_i
  end

  def test_cleanup_runs_after_the_answer
    client = connect
    before = client.get("/after-count").body.to_i
    client.get("/after")
    assert_equal before + 1, client.get("/after-count").body.to_i
  end

  def test_early_hints_come_first
    response = connect.get("/hints")
    assert_equal [103], response.interim.map(&:status)
    assert_equal "</style.css>; rel=preload", response.interim.first["link"]
    assert_equal "hinted", response.body
    response = connect.get("/hints", {}, version: "1.0")
    assert_equal [[], "hinted"], [response.interim, response.body]
  end

  def test_the_application_takes_the_socket
    client = connect
    assert_equal "hijacked", client.get("/hijack").body
    assert client.closed?
    assert_alive
  end

  def test_the_application_takes_the_socket_of_a_post
    assert_equal "hijacked", connect.post("/hijack", "x" * 1000).body
  end

  def test_lines_for_the_error_log
    connect.get("/stderr")
    wait_until("the line") { server.stderr.include?("a line for the error log") }
    pass
  end
end

E2E.suite("errors", transports: E2E::EITHER) do
  def log_grows_by(pattern)
    before = server.stderr.scan(pattern).size
    yield
    wait_until("#{pattern.inspect} in the log") { server.stderr.scan(pattern).size > before }
  end

  def test_an_exception_is_a_500_with_a_log_line_and_the_worker_lives_on
    client = connect
    log_grows_by(/told to fail/) { assert_equal 500, client.get("/raise").status }
    assert_match(/told to fail/, client.get("/raise").body, "in development")
    refute_match(/fail/, start("--env", "production").get("/raise").body)
    assert_equal worker, client.get("/pid").body.to_i
  end

  def test_an_exception_after_the_head_cuts_the_answer_off
    [1, 2].each do |after|
      log_grows_by(/body failed after #{after} /) do
        assert_raises(E2E::Client::Closed, Errno::ECONNRESET) { connect.get("/raise-in-body?after=#{after}") }
      end
    end
    assert_alive
  end

  def test_an_exception_before_the_first_part_closes_the_body_too
    client = connect
    before = client.get("/closed").body.to_i
    failing = connect
    failing.request("GET", "/raise-in-body?after=0")
    begin
      assert_equal 500, failing.read_response.status
    rescue E2E::Client::Closed, Errno::ECONNRESET
      pass
    end
    assert_equal before + 1, client.get("/closed").body.to_i
  end

  def test_bad_header_fields_never_reach_the_wire
    %w[crlf cr nul name space empty].each do |kind|
      response = connect.get("/bad-header?kind=#{kind}")
      assert_equal 500, response.status, kind
      assert_nil response["x-injected"], kind
    end
    assert_alive
  end

  def test_bad_statuses
    %w[99 1000 0 word 101 150].each do |status|
      assert_equal 500, connect.get("/bad-status?status=#{status}").status, status
    end
    # No class has them, and applications give them: they go out, over each transport.
    %w[600 999].each { |status| assert_equal status.to_i, connect.get("/bad-status?status=#{status}").status }
    assert_alive
  end

  def test_connection_can_be_used_after_a_500
    client = connect
    assert_equal 500, client.get("/raise").status
    assert_equal "Hello, World!", client.get("/").body
  rescue E2E::Client::Closed
    # A close is as good, if it was announced.
    assert connect.get("/raise").close?
  end
end
