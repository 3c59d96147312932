# frozen_string_literal: true

require "digest/sha2"
require "support"

# rack.input in its three forms.
class InputTest < BindingTest
  def test_without_a_body
    app = lambda do |env|
      input = env["rack.input"]
      results = [input.read, input.read(1), input.read(0), input.gets, input.each { flunk }]
      buffer = +"old"
      results << input.read(5, buffer) << buffer
      text([results.first(4).inspect, buffer.inspect])
    end
    serve(app) { |client| assert_equal '["", nil, "", nil]""', client.get("/").body }
  end

  def test_without_a_body_it_reads_as_with_one
    app = lambda do |env|
      input = env["rack.input"]
      input.seek(0)
      # rubocop:disable Style/RescueModifier
      ended = %i[readline readbyte readchar].map { |name| input.public_send(name) rescue $!.class }
      text([[input.readlines, input.each_line.to_a, input.each_byte.to_a, input.map(&:chomp), input.lineno, ended].inspect])
    end
    serve(app, lint: false) do |client|
      assert_equal "[[], [], [], [], 0, [EOFError, EOFError, EOFError]]", client.get("/").body
    end
  end

  def test_closing_the_empty_input_does_not_reach_the_next_request
    app = lambda do |env|
      body = env["rack.input"].read
      env["rack.input"].close
      text([body.inspect])
    end
    serve(app, lint: false) { |client| 3.times { assert_equal '""', client.get("/").body } }
  end

  def test_in_memory
    app = lambda do |env|
      input = env["rack.input"]
      lines = [input.gets, input.read(3), input.read(100), input.read(1), input.read]
      text([lines.inspect, " ", env["CONTENT_LENGTH"]])
    end
    serve(app) { |client| assert_equal '["line\\n", "abc", "def", nil, ""] 11', client.post("/", "line\nabcdef").body }
  end

  def test_binary_and_rewindable
    app = lambda do |env|
      input = env["rack.input"]
      first = input.read
      input.rewind
      parts = []
      input.each { |part| parts << part }
      same = parts.join == first && first.encoding == Encoding::BINARY && input.external_encoding == Encoding::BINARY
      text(["#{same} #{Digest::SHA256.hexdigest(first)}"])
    end
    [10, 128 * 1024, 128 * 1024 + 1, 1024 * 1024].product(%w[128K 16M]).each do |size, max|
      body = Random.bytes(size)
      serve(app, lint: false, body_memory_max: max) { |client| assert_equal "true #{Digest::SHA256.hexdigest(body)}", client.post("/", body).body, size }
    end
  end

  def test_large_bodies_are_files_and_closed_after_the_request
    inputs = []
    app = lambda do |env|
      inputs << env["rack.input"]
      text([env["rack.input"].class.name])
    end
    serve(app, lint: false, body_memory_max: "128K") do |client|
      assert_equal "Oribi::Input", client.post("/", "x" * 128 * 1024).body
      assert_equal "File", client.post("/", "x" * (128 * 1024 + 1)).body
      assert_equal "File", client.post("/", "x" * (128 * 1024 + 1)).body
      client.get("/")
    end
    assert_equal [false, true, true], inputs.first(3).map(&:closed?)
  end

  def test_large_bodies_under_lint
    app = ->(env) { text([env["rack.input"].read.bytesize.to_s]) }
    serve(app) { |client| assert_equal "300000", client.post("/", "x" * 300_000).body }
  end

  def test_the_application_may_close_its_input
    app = lambda do |env|
      env["rack.input"].close
      text([])
    end
    serve(app, lint: false) { |client| 2.times { assert_equal 200, client.post("/", "x" * 200_000).status } }
  end

  def test_chunked_bodies_have_their_decoded_length
    app = lambda do |env|
      text(["#{env["CONTENT_LENGTH"]} #{env.key?("HTTP_TRANSFER_ENCODING")} #{env["rack.input"].read}"])
    end
    serve(app) do |client|
      response = client.request("POST", "/", { "Transfer-Encoding" => "chunked" }, body: "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
      assert_equal "7 false abcdefg", response.body
    end
  end

  def test_multipart_upload
    app = lambda do |env|
      file = Rack::Request.new(env).params["file"]
      text(["#{file[:filename]} #{file[:tempfile].read.bytesize}"])
    end
    body = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.bin\"\r\nContent-Type: application/octet-stream\r\n\r\n" \
           "#{"z" * 200_000}\r\n--b--\r\n"
    serve(app) do |client|
      assert_equal "f.bin 200000", client.post("/", body, { "Content-Type" => "multipart/form-data; boundary=b" }).body
    end
  end

  # The answer of a client that leaves in the middle of its body is nobody's; the worker goes on.
  def test_a_client_that_leaves_within_its_body_is_no_request
    calls = 0
    serve(->(_) { text([(calls += 1).to_s]) }) do |client|
      client.send_raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc")
      client.reconnect
      assert_equal "1", client.get("/").body
    end
  end
end
