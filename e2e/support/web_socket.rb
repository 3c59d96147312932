# frozen_string_literal: true

require "websocket/driver"

module E2E
  # A WebSocket client: a packaged library speaks the protocol, this gives it a socket and deadlines.
  class WebSocketClient
    KEY = "dGhlIHNhbXBsZSBub25jZQ==" # RFC 6455 1.3, and what must be answered to it:
    ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

    def self.request(path, fields = {})
      fields = { "Host" => "localhost", "Upgrade" => "websocket", "Connection" => "Upgrade", "Sec-WebSocket-Key" => KEY,
                 "Sec-WebSocket-Version" => "13" }.merge(fields)
      "GET #{path} HTTP/1.1\r\n#{fields.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n"
    end

    # A frame of a client, whose mask is zeros: bytes that can be read in a test.
    def self.frame(text, opcode: 1, last: true)
      length = text.bytesize < 126 ? [0x80 | text.bytesize].pack("C") : [0x80 | 126, text.bytesize].pack("Cn")
      [(last ? 0x80 : 0) | opcode].pack("C") + length + "\0\0\0\0" + text.b
    end

    attr_reader :url, :client, :messages, :closed

    def initialize(client, path)
      @client = client
      @url = "ws://localhost#{path}"
      @messages = []
      @driver = WebSocket::Driver.client(self)
      @driver.on(:open) { @open = true }
      @driver.on(:message) { |event| @messages << event.data }
      @driver.on(:close) { |event| @closed = [event.code, event.reason] }
      @driver.start
      pump("the handshake") { @open }
    end

    def write(bytes) = @client.send_raw(bytes)
    def say(text) = @driver.text(text)
    def say_binary(bytes) = @driver.binary(bytes)
    def close(code = 1000, reason = "") = @driver.close(reason, code)

    def next_message
      pump("a message") { @messages.any? }
      @messages.shift
    end

    # [code, reason] of the server's close, after which the connection must end.
    def read_close
      pump("the close") { @closed }
      raise "bytes after the close: #{@client.read_to_end.inspect}" unless @client.closed?

      @closed
    end

    # True when the server answers a ping within the deadline.
    def ping
      answered = false
      @driver.ping("are you there") { answered = true }
      pump("the pong") { answered }
    end

    private

    def pump(what)
      deadline = E2E.deadline(DEADLINE)
      until (result = yield)
        @client.socket.wait_readable([deadline - E2E.clock, 0].max) or raise Timeout, "waited for #{what}"
        bytes = @client.socket.read_nonblock(65_536, exception: false)
        raise Client::Closed, "closed while waiting for #{what}" if bytes.nil?

        @driver.parse(bytes) unless bytes == :wait_readable
      end
      result
    end
  end
end
