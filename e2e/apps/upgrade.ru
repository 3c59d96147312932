# frozen_string_literal: true

# Connections that the application takes over, for upgrade_test.rb: echoes over WebSockets, and event streams without
# events. One thread of a worker serves all of its connections.
require "websocket/driver"

# A connection, and the bytes that it has still to write. Nothing here blocks.
class Peer
  READ_BYTES = 16_384
  UNSENT_BYTES_MAX = 256 * 1024 # a client that takes nothing is let go

  attr_reader :io

  def initialize(io)
    @io = io
    @unsent = +"".b
  end

  def unsent? = !@unsent.empty?
  def finished? = @io.closed?
  def finish = @io.close

  def write(bytes)
    @unsent << bytes.b
    flush
  end

  def flush
    until @unsent.empty?
      sent = @io.write_nonblock(@unsent, exception: false)
      break if sent == :wait_writable

      @unsent = @unsent.byteslice(sent..)
    end
    finish if @unsent.bytesize > UNSENT_BYTES_MAX || (@last && @unsent.empty?)
  end

  def read
    bytes = @io.read_nonblock(READ_BYTES, exception: false)
    if bytes.nil? then finish
    elsif bytes != :wait_readable then take(bytes)
    end
  end

  # Closes once everything is written.
  def close_after
    @last = true
    flush
  end
end

class EventStream < Peer
  def begin = write(": welcome\n\n")
  def farewell = close_after
  def take(_bytes) = nil
end

# The gem websocket-driver speaks the protocol. With `accepted` the server has written the 101 already.
class Echo < Peer
  MESSAGE_BYTES_MAX = 16_384

  attr_reader :env

  def self.accept(env) = WebSocket::Driver::Hybi.generate_accept(env.fetch("HTTP_SEC_WEBSOCKET_KEY"))

  def initialize(io, env, accepted: false)
    super(io)
    @env = env
    @muted = accepted
    @driver = WebSocket::Driver.rack(self, max_length: MESSAGE_BYTES_MAX)
    @driver.on(:message) { |event| say(event.data) }
    @driver.on(:close) { close_after }
  end

  # The driver writes through this too.
  def write(bytes) = @muted ? bytes.bytesize : super

  def begin
    @driver.start
    @muted = false
  end

  # A binary message is a String of bytes, with older versions of the library an Array of numbers.
  def say(data) = data.is_a?(Array) || data.encoding == Encoding::BINARY ? @driver.binary(data) : @driver.text(data)
  def farewell = @driver.close("the server is leaving", 1001)
  def take(bytes) = @driver.parse(bytes)
end

# The thread and its connections.
class Taken
  FAREWELL_SECONDS = 1 # for what is still to be written when the worker ends

  def initialize
    @lock = Mutex.new
    @newcomers = []
    @peers = {}
  end

  # From the worker's thread.
  def enter(peer)
    @lock.synchronize do
      @newcomers << peer
      @thread = start unless @thread&.alive? # here and not at load time: a fork keeps no threads
      @bell.write_nonblock(".", exception: false)
    end
  end

  # When the worker ends.
  def leave
    @lock.synchronize do
      return unless @thread

      @leaving = true
      @bell.write_nonblock(".", exception: false)
    end
    @thread.join(FAREWELL_SECONDS * 2)
  end

  private

  def start
    @ear, @bell = IO.pipe
    Thread.new { serve }
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def serve
    turn(nil) until @leaving
    welcome # a connection that came in the last moment gets a good-bye too
    @peers.values.each { |peer| guard(peer, &:farewell) }
    deadline = now + FAREWELL_SECONDS
    turn(deadline - now) while @peers.any? && now < deadline
  end

  def turn(seconds)
    writers = @peers.values.select(&:unsent?).map(&:io)
    readable, writable = IO.select([@ear, *@peers.keys], writers, nil, seconds)
    welcome if readable&.delete(@ear)
    writable&.each { |io| guard(@peers[io], &:flush) if @peers[io] }
    readable&.each { |io| guard(@peers[io], &:read) if @peers[io] }
  end

  def welcome
    @ear.read_nonblock(1000, exception: false)
    @lock.synchronize { @newcomers.slice!(0..) }.each do |peer|
      @peers[peer.io] = peer
      guard(peer, &:begin)
    end
  end

  def guard(peer)
    yield peer
  rescue SystemCallError, IOError
    peer.finish
  ensure
    @peers.delete(peer.io) if peer.finished?
  end
end

taken = Taken.new
at_exit { taken.leave }

PLAIN = { "content-type" => "text/plain" }.freeze
text = ->(status, words, headers = {}) { [status, PLAIN.merge(headers), ["#{words}\n"]] }

# Browsers let any site open a WebSocket to any other, and tell where it came from.
own_origin = lambda do |env|
  origin = env["HTTP_ORIGIN"] or return true
  origin.split("://", 2).last == env["HTTP_HOST"]
end

# Answers as `accepted` does when the request is a WebSocket's. HTTP/1.0 knows no upgrade (RFC 9110 7.8).
socket = lambda do |env, &accepted|
  wanted = WebSocket::Driver.websocket?(env) && env["SERVER_PROTOCOL"] == "HTTP/1.1" &&
           env["HTTP_SEC_WEBSOCKET_KEY"] && env["HTTP_SEC_WEBSOCKET_VERSION"] == "13"
  next text.(426, "a WebSocket, please", "upgrade" => "websocket", "connection" => "upgrade", "sec-websocket-version" => "13") unless wanted
  next text.(403, "from another site") unless own_origin.(env)

  accepted.call
end

run(lambda do |env|
  case env["PATH_INFO"]
  when "/echo" # the whole connection: the library writes the 101
    socket.(env) do
      taken.enter(Echo.new(env["rack.hijack"].call, env))
      [-1, {}, []]
    end
  when "/echo-protocol" # the server changes the protocol (Rack 3)
    socket.(env) do
      headers = { "rack.protocol" => "websocket", "sec-websocket-accept" => Echo.accept(env) }
      [101, headers, ->(stream) { taken.enter(Echo.new(stream, env, accepted: true)) }]
    end
  when "/events" # the head is the server's
    stream = ->(io) { taken.enter(EventStream.new(io)) }
    [200, { "content-type" => "text/event-stream", "cache-control" => "no-store", "rack.hijack" => stream }, []]
  else text.(200, "an ordinary answer")
  end
end)
