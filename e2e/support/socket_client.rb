# frozen_string_literal: true

require "digest"
require "securerandom"
require_relative "client_socket"

module E2E
  # A WebSocket client that writes every byte itself, over TCP or TLS: what no library would send, too.
  class SocketClient
    include ClientSocket

    Closed = Class.new(StandardError)
    GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" # RFC 6455 1.3
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10

    attr_reader :status, :fields, :io

    # fields: further fields of the handshake; nil leaves one of ours out.
    def initialize(port, path = "/", tls: nil, fields: {}, method: "GET", version: "HTTP/1.1", early: "")
      @tcp, @io = open_socket(port, tls)
      @read = +"".b
      @key = SecureRandom.base64(16)
      ours = { "Host" => "localhost:#{port}", "Upgrade" => "websocket", "Connection" => "Upgrade", "Sec-WebSocket-Key" => @key,
               "Sec-WebSocket-Version" => "13" }.merge(fields).compact
      @io.write("#{method} #{path} #{version}\r\n#{ours.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n#{early}")
      read_head
    end

    def open? = status == 101
    def accepted? = fields["sec-websocket-accept"] == Digest::SHA1.base64digest(@key + GUID)

    def self.frame(data, opcode: TEXT, last: true, mask: SecureRandom.bytes(4))
      data = data.b
      length = case data.bytesize
               when 0..125 then [0x80 | data.bytesize].pack("C")
               when 126..65_535 then [0x80 | 126, data.bytesize].pack("Cn")
               else [0x80 | 127, data.bytesize].pack("CQ>")
               end
      [(last ? 0x80 : 0) | opcode].pack("C") + length + mask + masked(data, mask)
    end

    def self.masked(data, mask)
      words = mask * ((data.bytesize + 3) / 4)
      data.unpack("C*").zip(words.unpack("C*")).map { |byte, key| byte ^ key }.pack("C*")
    end

    def write(bytes) = @io.write(bytes)
    def say(data, **how) = write(self.class.frame(data, opcode: data.encoding == Encoding::BINARY ? BINARY : TEXT, **how))
    def close_with(code, reason = "") = write(self.class.frame([code].pack("n") + reason, opcode: CLOSE))

    # [opcode, payload] of the next frame; Pings are answered and passed over.
    def frame
      loop do
        first, length = take(2).unpack("CC")
        raise "a masked frame of the server" if length & 0x80 != 0

        length = take(2).unpack1("n") if length == 126
        length = take(8).unpack1("Q>") if length == 127
        payload = take(length)
        opcode = first & 15
        return [opcode, payload] unless opcode == PING && @answers != false

        write(self.class.frame(payload, opcode: PONG))
      end
    end

    def ignore_pings = @answers = false

    # The next message: text as UTF-8.
    def message
      opcode, payload = frame
      raise Closed, payload.unpack("na*").inspect if opcode == CLOSE

      opcode == TEXT ? payload.force_encoding(Encoding::UTF_8) : payload
    end

    def ask(data) = say(data).then { message }

    # [code, reason] of the server's Close frame, which is answered; then the connection must end.
    def read_close
      payload = nil
      loop do
        opcode, payload = frame
        break if opcode == CLOSE
      end
      code, reason = payload.empty? ? [1005, ""] : payload.unpack("na*")
      begin
        close_with(code == 1005 ? 1000 : code)
      rescue SystemCallError, OpenSSL::SSL::SSLError
        nil # the server waits for no answer
      end
      raise "bytes behind the Close frame" unless ended?

      close
      [code, reason]
    end

    def ended?
      more
      false
    rescue Closed
      true
    end

    def read_to_end
      loop { more }
    rescue Closed
      @read
    end

    def close
      @tcp.close unless @tcp.closed?
    end

    # Reads nothing more, but the kernel's buffers hold little.
    def body = @body ||= fields["content-length"] ? take(fields["content-length"].to_i) : ""

    private

    def read_head
      more until (at = @read.index("\r\n\r\n"))
      lines = @read.slice!(0, at + 4).split("\r\n")
      @status = lines.shift[9, 3].to_i
      @fields = lines.to_h { |line| line.split(": ", 2).then { |name, value| [name.downcase, value] } }
    end

    def take(n)
      more while @read.bytesize < n
      @read.slice!(0, n)
    end

    def more
      @read << (next_bytes(@io, @tcp) or raise Closed, "the connection has ended")
    end
  end
end
