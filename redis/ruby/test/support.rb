# frozen_string_literal: true

require "fileutils"
require "minitest/autorun"
require "socket"
require "timeout"
require "tmpdir"
require "oribi/redis"

# What gems of the machine would add to all tests, Rails for one, is not for ours, and takes longest to load.
def Minitest.load_plugins = nil

# What the tests of the client share: a redis-server of each test's own, and servers that follow a script.
module Support
  DEADLINE_S = 120 # turns a hang into a failure, also on a machine with much else to do

  # A redis-server on a unix socket and a port, in a folder that goes with it.
  class Server
    attr_reader :path, :port, :dir

    def initialize(*options)
      @dir = Dir.mktmpdir("oribi-redis")
      @path = File.join(@dir, "socket")
      @port = TCPServer.open("127.0.0.1", 0) { |one| one.addr[1] }
      @options = options
      start
    end

    def start
      # A sanitizer's run-time is for ruby alone.
      plain = { "LD_PRELOAD" => nil }
      @pid = spawn(plain, "redis-server", "--port", @port.to_s, "--bind", "127.0.0.1", "--unixsocket", @path, "--dir", @dir, "--save", "", *@options,
                   %i[out err] => File.join(@dir, "log"))
      Support.wait_until("redis-server: #{@dir}/log") { UNIXSocket.open(@path) { |one| one.write("PING\r\n"); one.gets.match?(/PONG|NOAUTH/) } rescue false }
    end

    def kill
      Process.kill(:KILL, @pid)
      Process.wait(@pid)
      FileUtils.rm_f(@path)
    end

    def stop
      kill
    rescue Errno::ESRCH, Errno::ECHILD
      nil
    ensure
      FileUtils.remove_entry(@dir)
    end
  end

  # Accepts connections, and gives each to the block, in turn: |socket, number|. What the block does not close stays
  # open.
  class Scripted
    attr_reader :port, :accepted

    def initialize(&script)
      @listener = TCPServer.new("127.0.0.1", 0)
      @port = @listener.addr[1]
      @accepted = 0
      @open = []
      @thread = Thread.new { serve(script) }
    end

    def stop
      @thread.kill
      [@listener, *@open].each { |one| one.close unless one.closed? }
    end

    private

    def serve(script)
      loop do
        socket = @listener.accept
        @open << socket
        number = @accepted
        @accepted += 1
        script.call(socket, number)
      rescue IOError, SystemCallError
        next
      end
    end
  end

  module_function

  def wait_until(what)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + DEADLINE_S
    until (found = yield)
      raise "waited #{DEADLINE_S} s for #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      sleep(0.01)
    end
    found
  end

  # Reads one command, as the client writes it; nil at the end.
  def read_command(socket)
    count = socket.gets or return
    Array.new(count[1..].to_i) { socket.read(socket.gets[1..].to_i).tap { socket.read(2) } }
  end
end

class RedisTest < Minitest::Test
  include Support

  def setup
    @ends = []
  end

  def teardown
    @ends.reverse_each(&:stop)
  end

  def server(...) = @server ||= Server.new(...).tap { |one| @ends << one }
  def scripted(&block) = Scripted.new(&block).tap { |one| @ends << one }
  def redis(**options) = Oribi::Redis.new(path: server.path, **options)

  # A client of a server that follows a script; without HELLO.
  def against(**options, &block)
    one = scripted(&block)
    [Oribi::Redis.new(host: "127.0.0.1", port: one.port, protocol: 2, reconnect_delay_ms: 1, reconnect_delay_max_ms: 2, **options), one]
  end
end
