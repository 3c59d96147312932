# frozen_string_literal: true

require "io/wait"
require "openssl"
require "socket"

module Oribi
  class Redis
    # Encrypted connections, by Ruby's OpenSSL.
    module TLS
      module_function

      # options: nil, true, or a Hash of what OpenSSL::SSL::SSLContext#set_params takes.
      def context(options)
        OpenSSL::SSL::SSLContext.new.tap { |context| context.set_params(options.is_a?(Hash) ? options : {}) }
      end

      # Gives an SSLSocket over a descriptor of its own for the socket `fd`, after the handshake. host: whose name the
      # certificate must have, unless the context verifies nothing. Raises OpenSSL::SSL::SSLError, or gives nil when the
      # time is over.
      def start(fd, host, context, limit_ms)
        plain = Socket.for_fd(fd).tap { |one| one.autoclose = false }.dup
        socket = OpenSSL::SSL::SSLSocket.new(plain, context)
        socket.sync_close = true
        socket.hostname = host if host
        return plain.close unless shake(socket, limit_ms)

        socket.post_connection_check(host) if host && context.verify_mode != OpenSSL::SSL::VERIFY_NONE
        socket
      rescue OpenSSL::SSL::SSLError, SystemCallError
        plain&.close
        raise
      end

      def shake(socket, limit_ms)
        deadline = now_ms + limit_ms
        until (found = socket.connect_nonblock(exception: false)) == socket
          left = limit_ms.zero? ? nil : (deadline - now_ms) / 1000.0
          return false if left && left <= 0

          found == :wait_readable ? socket.to_io.wait_readable(left) : socket.to_io.wait_writable(left)
        end
        true
      end

      def now_ms = Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond)
    end
  end
end
