# frozen_string_literal: true

require "socket"

module E2E
  # Below the ports that the kernel gives to connections: one of those could take a port before the server does.
  PORTS = (10_240..32_000).to_a.freeze

  # A port that nothing listens on. Each process of a run begins at another place.
  def self.free_port(host = "127.0.0.1")
    @next_port ||= Process.pid * 101
    PORTS.size.times do
      port = PORTS[(@next_port += 1) % PORTS.size]
      return TCPServer.open(host, port) { port }
    rescue Errno::EADDRINUSE
      next
    end
    raise "no free port"
  end
end
