# frozen_string_literal: true

require "socket"

module E2E
  # Ports for servers of tests: below those that the kernel gives to connections, one of which could take a port before
  # the server does. A process takes them in blocks that no other test takes while it lives: between the look at a port
  # and the server's bind nobody else chooses it, nor while the server is replaced.
  module Ports
    FIRST = 10_240
    LAST = 32_000
    BLOCK = 64
    BLOCKS = (LAST - FIRST) / BLOCK

    @held = []
    @free = []

    module_function

    # A port that nothing listens on.
    def take(host)
      BLOCKS.times do
        while (port = @free.shift)
          return port if unused?(host, port)
        end
        @free = next_block
      end
      raise "no free port"
    end

    def unused?(host, port)
      TCPServer.open(host, port).close
      true
    rescue Errno::EADDRINUSE
      false
    end

    # An abstract address of unix(7) marks a block: as ports are, it is the network namespace's, and it ends with the
    # process. Where there are none, processes begin at different places.
    def next_block
      BLOCKS.times do
        block = (@next = (@next || Process.pid * 101) + 1) % BLOCKS
        next unless mark(block)

        return Array.new(BLOCK) { |i| FIRST + block * BLOCK + i }
      end
      raise "all blocks of ports are taken"
    end

    def mark(block)
      return true unless RUBY_PLATFORM.include?("linux")

      @held << Socket.new(:UNIX, :STREAM).tap { |socket| socket.bind(Addrinfo.unix("\0oribi-test-ports-#{block}")) }
    rescue Errno::EADDRINUSE
      false
    end
  end

  LOCK_PORTS = Mutex.new

  def self.free_port(host = "127.0.0.1") = LOCK_PORTS.synchronize { Ports.take(host) }
end
