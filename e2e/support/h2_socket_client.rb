# frozen_string_literal: true

require "json"
require_relative "socket_client"

module E2E
  # A SocketClient over a stream of HTTP/2, which another process speaks (h2_sockets.py).
  class H2SocketClient < SocketClient
    PYTHON = "/usr/bin/python3" # where packages of the system are
    PROGRAM = File.join(__dir__, "h2_sockets.py")
    OF_HTTP1 = %w[Upgrade Connection Sec-WebSocket-Key].freeze

    def self.here? = @here ||= system({ "LD_PRELOAD" => nil }, PYTHON, "-c", "import h2", err: File::NULL)

    WINDOW = 65_535 # RFC 9113 6.9.2

    # So many of one connection.
    def self.together(count, port, path = "/", tls: nil, fields: {}, window: WINDOW)
      connect(count, port, path, tls, fields, window).map { |near| new(port, path, near: near) }
    end

    # The process ends when these sockets have, or the server's connection.
    def self.connect(count, port, path, tls, fields, window)
      pairs = Array.new(count) { UNIXSocket.pair }
      far = pairs.map(&:last)
      fields = { "Sec-WebSocket-Version" => "13" }.merge(fields.except(*OF_HTTP1)).compact.to_a
      pid = Process.spawn({ "LD_PRELOAD" => nil }, PYTHON, PROGRAM, port.to_s, tls ? "tls" : "plain", path, fields.to_json, window.to_s,
                          *far.map { |io| io.fileno.to_s }, far.to_h { |io| [io, io] })
      far.each(&:close)
      Process.detach(pid)
      pairs.map(&:first)
    end
    private_class_method :connect

    def initialize(port, path = "/", tls: nil, fields: {}, early: "", near: nil)
      @tcp = @io = near || self.class.send(:connect, 1, port, path, tls, fields, WINDOW).first
      @read = +"".b
      @io.write(early)
      read_head
    end

    def open? = status == 200
    def accepted? = fields.keys.none? { |name| %w[sec-websocket-accept upgrade connection].include?(name) }
  end
end
