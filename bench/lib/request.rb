# frozen_string_literal: true

module Bench
  # A request of a workload, and the answer that it must get: its status and exactly this body (a string, or a callable
  # that says what is wrong).
  class Request
    # What a desktop browser sends with a navigation, beside Host.
    BROWSER_FIELDS = {
      "Connection" => "keep-alive",
      "Cache-Control" => "max-age=0",
      "sec-ch-ua" => '"Chromium";v="130", "Not?A_Brand";v="99"',
      "sec-ch-ua-mobile" => "?0",
      "sec-ch-ua-platform" => '"Linux"',
      "Upgrade-Insecure-Requests" => "1",
      "User-Agent" => "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36",
      "Accept" => "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
      "Sec-Fetch-Site" => "same-origin",
      "Sec-Fetch-Mode" => "navigate",
      "Accept-Encoding" => "gzip, deflate, br, zstd",
      "Accept-Language" => "en-GB,en;q=0.9,de;q=0.8",
      "Cookie" => "session=5f2b6d0c8e1a4f7b9d3c6e0a2f8b1d4c; theme=dark; consent=1",
    }.freeze

    attr_reader :path, :verb, :fields, :body, :expected, :status

    def initialize(path: "/", verb: "GET", fields: {}, body: nil, expected: "Hello, World!", status: 200)
      @path = path
      @verb = verb
      @fields = fields
      @body = body
      @expected = expected
      @status = status
    end

    def to_s(host: "bench")
      length = body ? { "Content-Length" => body.bytesize } : {}
      lines = { "Host" => host, **fields, **length }.map { |name, value| "#{name}: #{value}\r\n" }
      "#{verb} #{path} HTTP/1.1\r\n#{lines.join}\r\n#{body}"
    end

    # What is wrong with an answer, or nil.
    def wrong(answer)
      return "status #{answer.status}" unless answer.status == status
      return "#{answer.body.bytesize} bytes of body, #{answer.length} promised" if answer.length && answer.length != answer.body.bytesize
      return expected.call(answer.body) if expected.respond_to?(:call)
      return if answer.body == expected

      "a body of #{answer.body.bytesize} bytes that is not the one expected (#{expected.bytesize})"
    end
  end
end
