# frozen_string_literal: true

# The application of the end-to-end tests; app.psgi is its twin, route for route.
require "digest/sha2" # all of it: "digest" alone loads SHA256 at its first use, which several threads at once break
require "json"
require "rack/request"

# What tests ask the one worker about: bodies closed, answers finished.
COUNTS = Hash.new(0)

# A response body without a length: yields its parts, counts its close, and fails where it is told to.
class Parts
  def initialize(parts, fail_after: nil)
    @parts = parts
    @fail_after = fail_after
  end

  def each
    @parts.each_with_index do |part, index|
      raise "body failed after #{index} parts" if index == @fail_after
      yield part
    end
  end

  def close = COUNTS["closed"] += 1
end

# A body that the server may send straight from the file.
class PathBody < Parts
  attr_reader :to_path

  def initialize(path)
    super([])
    @to_path = path
  end

  def each = yield(File.binread(to_path))
end

module App
  TEXT = { "content-type" => "text/plain" }.freeze
  ROUTES = {}

  def self.route(path, &block) = ROUTES[path] = block
  def self.text(body, status: 200, headers: {}) = [status, TEXT.merge(headers), [body.to_s]]

  def self.call(env)
    first = env["PATH_INFO"][%r{\A/[^/]*}] || env["PATH_INFO"]
    handler = ROUTES[first] or return text("no route\n", status: 404)
    handler.call(env, Rack::Request.new(env))
  end

  def self.block(size) = ("0123456789abcdef" * (size / 16 + 1)).byteslice(0, size)

  route("/") { text("Hello, World!") }
  route("*") { text("asterisk") }
  route("/pid") { text(Process.pid) }
  route("/env") { |env| text(JSON.generate(env.select { |_, value| value.is_a?(String) }), headers: { "content-type" => "application/json" }) }
  route("/trailers") { |env| text(env["oribi.trailers"]&.then { |trailers| JSON.generate(trailers) } || "none") }
  route("/queue") { |env| text(env["oribi.queue_us"].to_s) }
  route("/method") { |env| text(env["REQUEST_METHOD"]) }
  route("/echo") { |env| text(env["rack.input"]&.read.to_s) }
  route("/digest") do |env|
    body = env["rack.input"]&.read.to_s
    text("#{env["CONTENT_LENGTH"] || "none"} #{body.bytesize} #{Digest::SHA256.hexdigest(body)}")
  end
  # Reads twice: the input is buffered and can be rewound.
  route("/twice") do |env|
    input = env["rack.input"]
    first = input.read
    input.rewind
    text(first == input.read ? "same" : "different")
  end
  route("/unread") { text("ignored") }
  route("/upload") do |_env, request|
    file = request.params["file"]
    content = file[:tempfile].read
    file[:tempfile].close!
    text("#{request.params["nick"]} #{file[:filename]} #{content.bytesize} #{Digest::SHA256.hexdigest(content)}")
  end

  route("/status") { |env| [Integer(env["PATH_INFO"].split("/").last), {}, ["body"]] }
  route("/empty") { [200, TEXT, []] }
  route("/cookies") { [200, TEXT.merge("set-cookie" => %w[a=1 b=2]), ["cookies"]] }
  route("/own") { text("own", headers: { "date" => "Thu, 01 Jan 1970 00:00:00 GMT", "server" => "own" }) }
  route("/close") { text("closing", headers: { "connection" => "close" }) }
  # Framed by the application itself.
  CHUNKED = { "transfer-encoding" => "chunked" }.freeze
  route("/hop") do
    text("3\r\nhop\r\n0\r\n\r\n", headers: { "connection" => "keep-alive, x-y", "keep-alive" => "timeout=9" }.merge(CHUNKED))
  end
  route("/framed") { [200, TEXT.merge(CHUNKED), Parts.new(["6\r\nframed\r\n", "5\r\n by ", "m\r\n2\r\n", "e\n\r\n", "0\r\nx-t: 1\r\n\r\n"])] }
  route("/misframed") { [200, TEXT.merge(CHUNKED), Parts.new(["6\r\nframed\r\n", "no size at all"])] }
  # Made once, so that a crowd of readers shows the server's memory and not the garbage of this line.
  BLOCKS = Hash.new { |blocks, size| blocks[size] = block(size).freeze }
  route("/big") { |_, request| text(BLOCKS[request.params["size"].to_i]) }
  route("/many") { |_, request| [200, TEXT, Array.new(request.params["count"].to_i) { |i| "#{i}\n" }] }

  route("/parts") { |_, request| [200, TEXT, Parts.new(Array.new(request.params["count"].to_i) { |i| "part #{i}\n" })] }
  route("/sized") { [200, TEXT.merge("content-length" => "10"), Parts.new(%w[01234 56789])] }
  route("/short") { [200, TEXT.merge("content-length" => "10"), Parts.new(%w[01234])] }
  route("/long") { [200, TEXT.merge("content-length" => "5"), Parts.new(%w[01234 56789])] }
  route("/flood") do |_, request|
    part = block(65_536)
    [200, TEXT, Parts.new(Enumerator.new { |out| request.params["count"].to_i.times { out << part } })]
  end
  route("/stream") { [200, TEXT, ->(stream) { 3.times { |i| stream.write("line #{i}\n") }; stream.close }] }
  route("/file") { [200, TEXT, PathBody.new(ENV.fetch("E2E_FILE"))] }
  route("/handle") { [200, TEXT, File.open(ENV.fetch("E2E_FILE"), "rb")] }
  route("/closed") { text(COUNTS["closed"]) }

  route("/raise") { raise "told to fail" }
  route("/raise-in-body") { |_, request| [200, TEXT, Parts.new(%w[one two three], fail_after: request.params["after"].to_i)] }
  BAD_HEADER = {
    "crlf" => ["x-a", "1\r\nx-injected: 1"], "cr" => ["x-a", "1\rx"], "nul" => ["x-a", "1\0x"],
    "name" => ["x-a: 1\r\nx-injected", "1"], "space" => ["x a", "1"], "empty" => ["", "1"],
  }.freeze
  route("/bad-header") { |_, request| text("bad", headers: [BAD_HEADER.fetch(request.params["kind"])].to_h) }
  route("/bad-status") { |_, request| [request.params["status"] == "word" ? "word" : request.params["status"].to_i, TEXT, ["bad"]] }
  route("/exit") { exit!(3) }

  route("/hints") do |env|
    env["rack.early_hints"]&.call("link" => "</style.css>; rel=preload")
    text("hinted")
  end
  route("/bad-hints") do |env, request|
    env["rack.early_hints"].call([BAD_HEADER.fetch(request.params["kind"])].to_h)
    text("hints were sent")
  rescue StandardError
    text("no hints")
  end
  route("/framed-hints") do |env|
    env["rack.early_hints"].call("link" => "</style.css>", "content-length" => "5", "transfer-encoding" => "chunked")
    text("hinted")
  end
  # The application takes the socket and answers by itself.
  route("/hijack") do |env|
    io = env["rack.hijack"].call
    io.write("HTTP/1.1 200 OK\r\nContent-Length: 8\r\nDate: #{Time.now.utc.strftime("%a, %d %b %Y %H:%M:%S GMT")}\r\nConnection: close\r\n\r\nhijacked")
    io.close
    [-1, {}, []]
  end
  # The same, with answers that end with the connection.
  route("/hijack-switches") do |env|
    io = env["rack.hijack"].call
    io.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: bye\r\n\r\nbye")
    io.close
    [-1, {}, []]
  end
  route("/hijack-unframed") do |env|
    io = env["rack.hijack"].call
    io.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nunframed")
    io.close
    [-1, {}, []]
  end
  route("/stderr") { |env| env["rack.errors"].puts("a line for the error log") && text("logged") }
  route("/stdout") { puts("a line on standard output") || text("printed") }

  # Says that it was entered, then waits for the test to open the gate.
  route("/gate") do |_, request|
    gate = File.join(ENV.fetch("E2E_DIR"), request.params["name"])
    File.write("#{gate}.entered", Process.pid.to_s)
    deadline = Time.now + 20
    IO.select(nil, nil, nil, 0.005) until File.exist?("#{gate}.open") || Time.now > deadline
    text("gate passed")
  end

  route("/after") do |env|
    env["rack.response_finished"] << ->(*) { COUNTS["after"] += 1 }
    text("after")
  end
  route("/after-count") { text(COUNTS["after"]) }
end

run App
