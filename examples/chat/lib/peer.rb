# frozen_string_literal: true

require "websocket/driver"

module Chat
  # One socket of the room: what it has still to write, and where it stands in the journal (nil: it does not listen).
  # Nothing here blocks.
  class Peer
    READ_BYTES = 16_384
    UNSENT_BYTES_MAX = 256 * 1024 # a client that takes nothing is let go

    attr_reader :io, :place

    def initialize(io, place: nil)
      @io = io
      @place = place
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

    # found: place in the journal => what stands behind it
    def catch_up(found)
      found[@place].each do |id, message|
        break if finished?

        @place = id
        give(id, message)
      end
    end

    private

    # Closes once everything is written.
    def close_after
      @last = true
      flush
    end
  end

  # Server-sent events: text in one direction, what the client sends is of no interest.
  class EventStream < Peer
    def begin = write(": welcome\n\n")
    def give(id, message) = write("id: #{id}\ndata: #{message}\n\n")
    def ping = write(":\n\n")
    def farewell = close_after
    def take(_bytes) = nil
  end

  # A WebSocket; the gem websocket-driver speaks the protocol. With `accepted` the server has written the 101 already.
  class Socket < Peer
    MESSAGE_BYTES_MAX = 16_384

    attr_reader :env

    # What Sec-WebSocket-Accept must say.
    def self.accept(env) = WebSocket::Driver::Hybi.generate_accept(env.fetch("HTTP_SEC_WEBSOCKET_KEY"))

    def initialize(io, env, accepted: false, place: nil, &on_message)
      super(io, place: place)
      @env = env
      @muted = accepted
      @driver = WebSocket::Driver.rack(self, max_length: MESSAGE_BYTES_MAX)
      @driver.on(:message) { |event| on_message.call(self, event.data) }
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
    def give(_id, message) = @driver.text(message)
    def ping = @driver.ping
    def farewell = @driver.close("the server is leaving", 1001)
    def take(bytes) = @driver.parse(bytes)
  end
end
