# frozen_string_literal: true

module E2E
  # A client of HTTP/2 that sends the frames it is told to, over an E2E::Client (RFC 9113 4.1). Field blocks are written
  # without a dynamic table, and are not read.
  class Frames
    TYPES = { data: 0, headers: 1, rst_stream: 3, settings: 4, push_promise: 5, ping: 6, goaway: 7, window_update: 8 }.freeze
    END_STREAM = 1
    END_HEADERS = 4
    INITIAL_WINDOW_SIZE = 4
    Frame = Struct.new(:type, :flags, :stream, :payload)

    def self.frame(type, stream, payload = "", flags: 0)
      [payload.bytesize >> 16, payload.bytesize & 0xffff, TYPES.fetch(type), flags, stream].pack("CnCCN") + payload.b
    end

    # settings: number => value
    def initialize(client, settings = {})
      @client = client
      @client.send_raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n#{self.class.frame(:settings, 0, settings.map { |pair| pair.pack("nN") }.join)}")
    end

    def send(type, stream, payload = "", flags: 0) = @client.send_raw(self.class.frame(type, stream, payload, flags: flags))

    def get(stream, path) = send(:headers, stream, "\x82".b + about(path), flags: END_STREAM | END_HEADERS)
    def post(stream, path) = send(:headers, stream, "\x83".b + about(path), flags: END_HEADERS)

    # RFC 7541 6.2.2: :scheme http, and literals for :path and :authority.
    def about(path) = "\x86\x04".b + [path.bytesize].pack("C") + path.b + "\x01\x01a".b

    def next_frame
      high, low, type, flags, stream = @client.read_bytes(9).unpack("CnCCN")
      Frame.new(TYPES.key(type), flags, stream, @client.read_bytes((high << 16) + low))
    end

    # The next frame of this type, others are passed over.
    def await(type)
      frame = next_frame until frame&.type == type
      frame
    end
  end
end
