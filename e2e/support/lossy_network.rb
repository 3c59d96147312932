# frozen_string_literal: true

module E2E
  # A network that does not keep what networks promise: hands on connections to an address, and stalls, cuts or corrupts
  # them while told to.
  class LossyNetwork
    STALL_SECONDS = 0.3
    LINGER_NONE = [1, 0].pack("ii") # closing sends RST (socket(7), SO_LINGER)

    attr_reader :faults, :port

    def initialize(to)
      @to = to
      @server = TCPServer.new("127.0.0.1", 0)
      @port = @server.addr[1]
      @mode = nil
      @faults = Hash.new(0)
      @random = Random.new(1)
      @lock = Mutex.new
      @thread = Thread.new { accept }
    end

    # :stall, :cut, :corrupt, or nil: as a network should be.
    attr_writer :mode

    def stop
      @server.close
      @thread.join
    end

    private

    def accept
      loop { Thread.new(@server.accept) { |client| hand_on(client) } }
    rescue IOError, Errno::EBADF
      nil
    end

    def hand_on(client)
      server = TCPSocket.new(*@to, connect_timeout: 2)
      ways = { client => server, server => client }
      loop do
        IO.select(ways.keys).first.each do |from|
          bytes = from.readpartial(65_536)
          return cut(client, server) unless deliver(bytes, ways[from], to_node: from == client)
        end
      end
    rescue SystemCallError, IOError
      nil
    ensure
      client.close
      server&.close
    end

    # One chunk in eight meets the fault.
    def fault
      @lock.synchronize do
        return unless @mode && @random.rand(8).zero?

        @faults[@mode] += 1
        @mode
      end
    end

    def deliver(bytes, to, to_node:)
      case fault
      when :cut then return false
      when :stall then IO.select(nil, nil, nil, STALL_SECONDS)
      when :corrupt then bytes.setbyte(to_node ? 1 : 5, 0) # of a method, a PROXY header or a status line
      end
      to.write(bytes)
    end

    def cut(*sockets)
      sockets.each { |socket| socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, LINGER_NONE) }
    end
  end
end
