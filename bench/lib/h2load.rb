# frozen_string_literal: true

require "openssl"
require "socket"
require "tempfile"
require_relative "certificate"
require_relative "checker"
require_relative "wrk"

module Bench
  # h2load for a round: so many connections, so many streams on each, closed loop.
  class H2load
    TIMEOUT_S = 10

    def self.missing = %w[h2load curl].find { |name| !system("command -v #{name} >/dev/null") }&.then { |name| "#{name} is missing (script/setup bench)" }

    def initialize(context, request, connections:, streams:, secure: true)
      @context = context
      @request = request
      @connections = connections
      @streams = streams
      @secure = secure
    end

    def url(address) = "http#{"s" if @secure}://#{address}#{@request.path}"

    def run(address, seconds)
      cipher = @secure ? ["--tls13-ciphers=#{Certificate::CIPHER}"] : []
      argv = ["timeout", (seconds.ceil + TIMEOUT_S).to_s, "h2load", "-t", "1", "-c", @connections.to_s, "-m", @streams.to_s,
              "-D", "#{(seconds * 1000).round}ms", *cipher, url(address)]
      H2load.parse(IO.popen(@context.on_client_core(argv), err: %i[child out], &:read), seconds)
    end

    # h2load counts as failed also what was under way at its end; an answer that did not say 2xx is an error, and so are
    # connections that broke. bytes: of bodies.
    def self.parse(output, seconds)
      done = output[/^requests: .* (\d+) succeeded/, 1] or raise "h2load did not finish: #{output.strip[0, 200]}"
      codes = output[/^status codes: (.*)$/, 1].to_s.scan(/(\d+) ([2345])xx/).to_h { |count, kind| [kind, count.to_i] }
      errored, timeout = output.match(/(\d+) errored, (\d+) timeout/).captures.map(&:to_i)
      errors = { "status" => codes.sum { |kind, count| kind == "2" ? 0 : count }, "timeout" => timeout, "errored" => errored }
      data = output[/^traffic: .* \((\d+)\) data/, 1].to_i
      Wrk::Load.new(requests: done.to_i, seconds: seconds, bytes: data, errors: errors.reject { |_, count| count.zero? })
    end
  end

  # Looks at answers over HTTP/2, by curl, with the interface of Checker; less often, since each look is a process.
  class H2Checker
    PAUSE_S = 1

    attr_reader :asked, :unanswered, :complaints, :ends_by_close, :closes_unsaid

    def initialize(context, url, request)
      @context = context
      @url = url
      @request = request
      @asked = @unanswered = 0
      @complaints = []
    end

    # The bytes of the body, nil when nothing came.
    def check(patience_s: Checker::PATIENCE_S)
      @asked += 1
      told, body = ask(patience_s)
      version, status = told.split
      @unanswered += 1 if status.to_i.zero?
      wrong = wrong_with(version, status.to_i, body)
      @complaints << wrong if wrong
      body.bytesize unless wrong
    end

    def during
      reader, writer = IO.pipe
      thread = Thread.new { check until IO.select([reader], nil, nil, PAUSE_S) }
      yield
    ensure
      writer&.close
      thread&.join
      reader&.close
    end

    private

    def ask(patience_s)
      Tempfile.create("answer") do |file|
        way = @url.start_with?("https:") ? ["--http2", "--tlsv1.3"] : ["--http2-prior-knowledge"]
        argv = ["curl", "-sk", *way, "--max-time", patience_s.to_s, "-o", file.path, "-w", "%{http_version} %{http_code}", @url]
        [IO.popen(@context.on_client_core(argv), err: @context.log, &:read), File.binread(file.path)]
      end
    end

    def wrong_with(version, status, body)
      return "no answer" if status.zero?
      return "HTTP/#{version}" unless version == "2"

      @request.wrong(Checker::Answer.new(status: status, body: body))
    end
  end
end
