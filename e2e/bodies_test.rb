# frozen_string_literal: true

require_relative "support"

# Request bodies: framing, memory and file, uploads. body_memory_max is small so that its edge is near.
BODY_MEMORY = 8192

E2E.suite("bodies", options: ["--body-memory-max", BODY_MEMORY.to_s]) do
  def digest_line(body) = "#{body.bytesize} #{Digest::SHA256.hexdigest(body)}"
  def bytes(size) = Random.new(size).bytes(size)

  def chunked(body, size)
    body.bytes.each_slice(size).map { |part| "#{part.size.to_s(16)}\r\n#{part.pack("C*")}\r\n" }.join + "0\r\n\r\n"
  end

  def test_sizes_around_the_edge_between_memory_and_file
    client = connect
    [0, 1, BODY_MEMORY - 1, BODY_MEMORY, BODY_MEMORY + 1, 5 * BODY_MEMORY, 1_000_000].each do |size|
      body = bytes(size)
      assert_equal "#{size} #{digest_line(body)}", client.post("/digest", body).body
    end
  end

  def test_chunked_sizes_around_the_edge_between_memory_and_file
    client = connect
    [1, BODY_MEMORY - 1, BODY_MEMORY, BODY_MEMORY + 1, 200_000].each do |size|
      body = bytes(size)
      client.request("POST", "/digest", { "Transfer-Encoding" => "chunked" }, chunked(body, 1000))
      # The decoded size is known when the application is called, and it learns it.
      assert_equal "#{size} #{digest_line(body)}", client.read_response.body
    end
  end

  def test_input_can_be_read_twice
    client = connect
    [100, BODY_MEMORY, BODY_MEMORY + 1].each { |size| assert_equal "same", client.post("/twice", bytes(size)).body }
  end

  def test_a_body_in_pieces
    body = bytes(300)
    client = connect
    client.request("POST", "/digest", { "Content-Length" => 300 })
    client.send_pieces(*body.scan(/.{1,37}/mn))
    assert_equal "300 #{digest_line(body)}", client.read_response.body
  end

  def test_a_chunked_body_in_pieces
    client = connect
    client.request("POST", "/echo", { "Transfer-Encoding" => "ChunKed" })
    client.send_pieces("5", "\r", "\nhel", "lo\r", "\n", "00A;ext=\"a b\"", "\r\n0123456789\r\n0", "\r\nX-T: 1\r\n", "\r", "\n")
    assert_equal "hello0123456789", client.read_response.body
    assert_equal "Hello, World!", client.get("/").body
  end

  def test_trailers_do_not_reach_the_environment
    client = connect
    client.request("POST", "/env", { "Transfer-Encoding" => "chunked" }, "0\r\nX-Trailer: 1\r\nContent-Length: 9\r\n\r\n")
    env = JSON.parse(client.read_response.body)
    refute env.key?("HTTP_X_TRAILER")
    refute_equal "9", env["CONTENT_LENGTH"]
  end

  def test_trailers_are_kept_apart
    client = connect
    client.request("POST", "/trailers", { "Transfer-Encoding" => "chunked" }, "3\r\nabc\r\n0\r\nX-Sum: 1\r\nCookie: a=b\r\nx-sum: 2\r\nExpires: 0\r\n\r\n")
    assert_equal({ "x-sum" => "1, 2" }, JSON.parse(client.read_response.body))
    assert_equal "none", client.get("/trailers").body
  end

  def test_transfer_encoding_is_gone_from_the_environment
    client = connect
    client.request("POST", "/env", { "Transfer-Encoding" => "chunked" }, "3\r\nabc\r\n0\r\n\r\n")
    env = JSON.parse(client.read_response.body)
    refute env.key?("HTTP_TRANSFER_ENCODING")
    assert_equal "3", env["CONTENT_LENGTH"]
  end

  def test_bodies_that_nobody_reads
    client = connect
    [10, BODY_MEMORY + 1, 300_000].each do |size|
      assert_equal "ignored", client.post("/unread", bytes(size)).body
      assert_equal "Hello, World!", client.get("/").body
    end
  end

  def test_get_with_a_body
    client = connect
    assert_equal "GET", client.request("GET", "/method", {}, "GET /env HTTP/1.1\r\nHost: a\r\n\r\n").read_response.body
    assert_equal "Hello, World!", client.get("/").body
  end

  def test_upload
    content = bytes(50_000)
    body = ["--sep", 'Content-Disposition: form-data; name="nick"', "", "ann",
            "--sep", 'Content-Disposition: form-data; name="file"; filename="a.bin"', "Content-Type: application/octet-stream", "",
            content, "--sep--", ""].map(&:b).join("\r\n".b)
    response = connect.post("/upload", body, { "Content-Type" => "multipart/form-data; boundary=sep" })
    assert_equal "ann a.bin #{digest_line(content)}", response.body
  end

  def test_bodies_on_unlinked_files_leave_nothing_behind
    client = connect
    3.times { client.post("/digest", bytes(100_000)) }
    # Descriptors that point to deleted files are bodies on temporary files; with the answer they go.
    on_files = -> { E2E::Processes.descriptors(worker).values.grep(/\(deleted\)\z/).grep_v(%r{\A/(dev/shm|memfd)}) }
    wait_until("temporary files to be gone") { on_files.call.empty? }
    pass
  end
end

# What must be refused, one request each on a connection of its own: nothing behind it may be read as a request.
E2E.suite("refusals") do
  hidden = "GET /exit HTTP/1.1\r\nHost: a\r\n\r\n"
  {
    "bare LF" => [400, "GET / HTTP/1.1\nHost: a\n\n"],
    "no version" => [400, "GET /\r\n\r\n"],
    "two spaces" => [400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"],
    "relative target" => [400, "GET foo HTTP/1.1\r\nHost: a\r\n\r\n"],
    "fragment" => [400, "GET /#x HTTP/1.1\r\nHost: a\r\n\r\n"],
    "NUL in the target" => [400, "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"],
    "lower case version" => [400, "GET / http/1.1\r\nHost: a\r\n\r\n"],
    "HTTP 2" => [505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"],
    "no Host" => [400, "GET / HTTP/1.1\r\n\r\n"],
    "two Hosts" => [400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"],
    "Host with a path" => [400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"],
    "blank before the colon" => [400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"],
    "folded field" => [400, "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n 2\r\n\r\n"],
    "empty name" => [400, "GET / HTTP/1.1\r\nHost: a\r\n: 1\r\n\r\n"],
    "NUL in a value" => [400, "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\0\r\n\r\n"],
    "bare CR in a value" => [400, "GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r2\r\n\r\n"],
    "Content_Length" => [400, "POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 0\r\n\r\n"],
    "Content-Length with a sign" => [400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello"],
    "Content-Length twice" => [400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"],
    "Content-Length list" => [400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello"],
    "Content-Length of 2 to the 64" => [413, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n"],
    "both framings" => [400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    "chunked in 1.0" => [400, "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    "unknown coding" => [501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"],
    "coding list" => [400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"],
    "empty coding" => [400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n"],
    "two codings" => [400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    "chunk size with 0x" => [400, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n"],
    "chunk without CRLF" => [400, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n"],
    "chunk line with bare LF" => [400, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n"],
    "chunk size of 17 digits" => [400, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n"],
  }.each do |name, (status, bytes)|
    define_method("test_#{name.tr(" ", "_")}_is_refused") { assert_refused status, bytes + hidden }
  end

  # One descriptor is left, which the body's file takes. The body must not be missing without a word. A frontend has the
  # file, and another call waits for a worker that has descriptors.
  def test_without_a_descriptor_for_the_application
    one = start("--body-memory-max", BODY_MEMORY.to_s)
    client = connect(one)
    body = "b" * 300_000
    assert_equal body, client.post("/echo", body).body # the thread that writes files has its descriptors
    pid = client.get("/pid").body # on this connection: another would give its descriptor back
    open = E2E::Processes.descriptors(pid).keys.map(&:to_i)
    lowest = (0..).find { |fd| !open.include?(fd) }
    assert system("prlimit", "--pid", pid, "--nofile=#{lowest + 1}:#{lowest + 1}"), "prlimit is not there"
    return assert_waits_for_descriptors(one, client, pid, body) if frontend?

    response = nil
    10.times do # a file of the call before may have given its descriptor back: then the body is whole
      response = client.post("/echo", body)
      break unless response.status == 200

      assert_equal body, response.body
    end
    return if response.status == 200

    assert_equal E2E::RUBY ? 500 : 503, response.status
    assert_match(/error: POST \/echo: (?=.*too many open files).*request('s)? body/i, one.stderr)
  end

  def assert_waits_for_descriptors(one, client, pid, body)
    answer = Thread.new { client.post("/echo", body) }
    wait_until("the worker to say it") { one.stderr.include?("out of file descriptors") }
    Process.kill(:KILL, pid.to_i)
    assert_equal body, answer.value.body
  end
end
