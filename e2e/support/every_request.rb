# frozen_string_literal: true

module E2E
  ECHOED = "0123456789abcdef" * 20_000

  # A request for every way through the extension and the core's memory; the applications are apps/app.ru and app.psgi.
  # name => [what is sent, the body that comes with 200]
  EVERY_REQUEST = {
    "get" => ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "Hello, World!"],
    "repeated fields" => ["GET /method HTTP/1.1\r\nHost: a\r\nAccept: x\r\nAccept: y\r\nCookie: a=1\r\nCookie: b=2\r\nX-Long: #{"x" * 6000}\r\n\r\n", "GET"],
    "body" => ["POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n#{ECHOED[0, 9000]}", ECHOED[0, 9000]],
    "spooled body" => ["POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: #{ECHOED.bytesize}\r\n\r\n#{ECHOED}", ECHOED],
    "chunked" => ["POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2328\r\n#{ECHOED[0, 9000]}\r\n0\r\n\r\n", ECHOED[0, 9000]],
    "chunked and spooled" => ["POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n#{ECHOED.bytesize.to_s(16)}\r\n#{ECHOED}\r\n0\r\n\r\n",
        ECHOED],
    "trailers" => ["POST /trailers HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Sum: 1\r\n\r\n", /sum/i],
    "stream" => ["GET /stream HTTP/1.1\r\nHost: a\r\n\r\n", "line 0\nline 1\nline 2\n"],
    "parts" => ["GET /parts?count=3 HTTP/1.1\r\nHost: a\r\n\r\n", "part 0\npart 1\npart 2\n"],
    "framed" => ["GET /framed HTTP/1.1\r\nHost: a\r\n\r\n", "framed by me\n"],
    "framed whole" => ["GET /hop HTTP/1.1\r\nHost: a\r\n\r\n", "hop"],
    "many" => ["GET /many?count=2000 HTTP/1.1\r\nHost: a\r\n\r\n", Array.new(2000) { |i| "#{i}\n" }.join],
    "slow reader" => ["GET /big?size=4000000 HTTP/1.1\r\nHost: a\r\n\r\n", ("0123456789abcdef" * 250_000)],
    "flood" => ["GET /flood?count=30 HTTP/1.1\r\nHost: a\r\n\r\n", ("0123456789abcdef" * (4096 * 30))],
    "file" => ["GET /file HTTP/1.1\r\nHost: a\r\n\r\n", E2E::Server.numbers],
    "handle" => ["GET /handle HTTP/1.1\r\nHost: a\r\n\r\n", E2E::Server.numbers],
    "hints" => ["GET /hints HTTP/1.1\r\nHost: a\r\n\r\n", "hinted"],
    "hijack" => ["GET /hijack HTTP/1.1\r\nHost: a\r\n\r\n", "hijacked"],
  }.freeze
end
