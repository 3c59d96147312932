# frozen_string_literal: true

require "openssl"
require "socket"

module E2E
  # Common to clients that read and write bytes themselves: a connection over TCP or TLS, and reading with a
  # deadline.
  module ClientSocket
    # [the TCP socket, the stream to read and write]
    def open_socket(port, tls)
      tcp = TCPSocket.new("127.0.0.1", port)
      tcp.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      return [tcp, tcp] unless tls

      context = OpenSSL::SSL::SSLContext.new
      context.alpn_protocols = ["http/1.1"]
      [tcp, OpenSSL::SSL::SSLSocket.new(tcp, context).tap { |one| one.sync_close = true }.connect]
    end

    # The bytes that come next; nil: the connection has ended, with or without an error.
    def next_bytes(io, tcp)
      deadline = E2E.deadline(DEADLINE)
      loop do
        bytes = io.read_nonblock(65_536, exception: false)
        return bytes if bytes.nil? || bytes.is_a?(String)

        tcp.wait_readable([deadline - E2E.clock, 0].max) or raise Timeout, "waited for bytes of the server"
      end
    rescue SystemCallError, OpenSSL::SSL::SSLError
      nil
    end
  end
end
