# frozen_string_literal: true

# What the tests of the binding share: a worker in a thread of the test process, and a client that speaks raw HTTP to
# it.
#
#   serve(app) { |client| response = client.get("/") }
#
# Every application runs under Rack::Lint unless it is told not to. Waiting ends with a condition; the deadline turns a
# hang into a failure.
require "minitest/autorun"
require "rack"
require "rack/lint"
require "open3"
require "socket"
require "stringio"
require "timeout"
require "tmpdir"
require "uri" # rack/lint of Rack 2 forgets it
require "oribi"
require_relative "../../e2e/support/waiting"

# What gems of the machine would add to all tests, Rails for one, is not for ours, and takes longest to load.
def Minitest.load_plugins = nil

# Keeps what would be logged, so that a test can look at it.
module Recorder
  FAILURES = []

  def log_exception(error, line, what)
    FAILURES << [error, what]
    super
  end
end
Oribi.singleton_class.prepend(Recorder)

class BindingTest < Minitest::Test
  DEADLINE = 30 * E2E.patience # longer on a busy machine
  RACK3 = Rack.release.to_i >= 3
  RUBY = RbConfig.ruby
  ROOT = File.expand_path("../..", __dir__)

  Response = Struct.new(:status, :fields, :body, :interim) do
    def [](name) = fields.find { |key, _| key.casecmp?(name) }&.last
    def all(name) = fields.select { |key, _| key.casecmp?(name) }.map(&:last)
  end

  # One connection at a time; reads exactly what the framing says.
  class Client
    attr_reader :socket

    def initialize(&connect)
      @connect = connect
      @socket = connect.call
    end

    def reconnect
      @socket.close
      @socket = @connect.call
    end

    def get(target, headers = {}, **options) = request("GET", target, headers, **options)
    def post(target, body, headers = {}) = request("POST", target, headers, body: body)

    def request(method, target, headers = {}, body: nil, version: "1.1")
      fields = { "Host" => "example.test" }.merge(headers)
      fields["Content-Length"] = body.bytesize if body && !fields.key?("Transfer-Encoding")
      send_raw("#{method} #{target} HTTP/#{version}\r\n#{fields.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n#{body}")
      read_response(head: method == "HEAD")
    end

    def send_raw(bytes) = @socket.write(bytes)

    def read_response(head: false)
      interim = []
      loop do
        response = read_head
        return with_body(response, head, interim) unless response.status.between?(100, 199)

        interim << response
      end
    end

    # nil at the end of the connection.
    def read_eof = @socket.read

    def close = @socket.close

    private

    def read_head
      line = @socket.gets("\r\n") or raise EOFError, "connection ended before an answer"
      fields = []
      until (field = @socket.gets("\r\n")) == "\r\n"
        raise EOFError, "connection ended in a head" unless field

        fields << field.chomp("\r\n").split(": ", 2)
      end
      Response.new(line[%r{\AHTTP/1\.1 (\d{3}) }, 1].to_i, fields, +"", [])
    end

    def with_body(response, head, interim)
      response.interim = interim
      return response if head || [204, 304].include?(response.status)

      if response["transfer-encoding"] == "chunked"
        read_chunks(response.body)
      elsif (length = response["content-length"])
        response.body = @socket.read(length.to_i)
      else
        response.body = @socket.read
      end
      response
    end

    def read_chunks(body)
      loop do
        line = @socket.gets("\r\n") or raise EOFError, "connection ended in a chunked body"
        size = line.to_i(16)
        body << @socket.read(size)
        @socket.read(2)
        break if size.zero?
      end
    end
  end

  def setup
    @log = Dir.mktmpdir("oribi-test")
    @workers = []
    Recorder::FAILURES.clear
  end

  def teardown
    @workers.each { |thread| thread.kill if thread.alive? }
    FileUtils.rm_rf(@log)
  end

  # Runs a worker while the block runs.
  #
  # @param transport :unix, :tcp or :tcp6
  # @param lint wrap the application in Rack::Lint
  def serve(app, transport: :unix, lint: true, constants: {}, **settings)
    app = Rack::Lint.new(app) if lint
    bind = { unix: File.join(@log, "s"), tcp: "127.0.0.1:0", tcp6: "[::1]:0" }.fetch(transport)
    options = Oribi::Options.new.set("bind", bind).set("quiet", true).set("workers", 1)
    settings.each { |name, value| options.set(name, value) }
    listeners = Oribi::Listeners.new(options.finish)
    worker = nil
    thread = Thread.new do
      worker = Oribi::Worker.new(options, listeners, nil, Oribi::Environment.constants(errors: errors).merge(constants))
      worker.run(app)
    end
    thread.report_on_exception = false
    @workers << thread
    wait_until("the worker") { worker || thread.join(0) }
    client = Client.new { connect(listeners.addresses.first) }
    Timeout.timeout(DEADLINE) { yield client, worker }
  ensure
    client&.close
    worker&.stop
    assert thread.join(DEADLINE), "worker did not stop" if thread
    worker&.close
    listeners&.close(true)
    lint_errors = failures_of(Rack::Lint::LintError)
    assert_empty lint_errors.map(&:message)
  end

  # Exceptions of this class that the worker met.
  def failures_of(kind) = Recorder::FAILURES.map(&:first).grep(kind)

  def connect(address)
    if address.start_with?("unix://")
      UNIXSocket.new(address.delete_prefix("unix://"))
    else
      host, port = address.delete_prefix("tcp://").match(/\A\[?(.+?)\]?:(\d+)\z/).captures
      TCPSocket.new(host, port)
    end
  end

  # rack.errors of the served applications.
  def errors = @errors ||= StringIO.new

  # What is written to the error log while the block runs.
  def capture_log
    path = File.join(@log, "log")
    saved = $stderr.dup
    $stderr.reopen(path, "w")
    yield
  ensure
    $stderr.reopen(saved)
    saved.close
    @logged = File.binread(path)
  end

  attr_reader :logged

  def wait_until(what)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + DEADLINE
    until (result = yield)
      flunk "waited #{DEADLINE} s for #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      Thread.pass
    end
    result
  end

  # A test file once more in a process with Rack 2.2: its output and status.
  def with_rack2(file)
    home = ENV["ORIBI_RACK2_HOME"] || File.join(ROOT, "build/rack2")
    rack2 = Dir["#{home}/gems/rack-2.2*/lib"].max_by { |path| Gem::Version.new(path[/rack-([\d.]+)/, 1]) } or skip "no rack 2.2 in #{home}"
    Open3.capture2e({ "RUBYOPT" => nil }, RUBY, "-W0", "-I#{rack2}", "-I#{ROOT}/ruby/lib", "-I#{__dir__}", file)
  end

  def text(body, headers = {}, status: 200) = [status, { "content-type" => "text/plain" }.merge(headers), body]
end
