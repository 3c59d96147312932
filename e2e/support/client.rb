# frozen_string_literal: true

module E2E
  # One raw connection: sends bytes as told, reads answers exactly, every wait with a deadline.
  class Client
    Closed = Class.new(StandardError)

    attr_reader :socket

    # address: a path for unix sockets, else [host, port].
    def initialize(address, receive_buffer: nil)
      @address = address
      @socket = receive_buffer ? small_socket(address, receive_buffer) : open_socket(address)
      @buffer = +"".b
    end

    def send_raw(bytes)
      deadline = E2E.deadline(DEADLINE)
      bytes = bytes.b
      until bytes.empty?
        sent = @socket.write_nonblock(bytes, exception: false)
        if sent == :wait_writable
          @socket.wait_writable(deadline - E2E.clock) or raise Timeout, "#{bytes.bytesize} bytes not taken"
        else
          bytes = bytes.byteslice(sent..)
        end
      end
      self
    end

    # Sends the pieces one by one, each after the server has read the one before.
    def send_pieces(*pieces)
      pieces.each do |piece|
        send_raw(piece)
        E2E.wait_until("the server to read #{piece.inspect[0, 60]}") { unread_by_peer.zero? }
      end
      self
    end

    def request(method, target, fields = {}, body = nil, version: "1.1")
      fields = { "Host" => "localhost" }.merge(fields)
      fields["Content-Length"] ||= body.bytesize if body && !fields.key?("Transfer-Encoding")
      head = fields.map { |name, value| "#{name}: #{value}\r\n" }.join
      send_raw("#{method} #{target} HTTP/#{version}\r\n#{head}\r\n#{body}")
    end

    def get(target, fields = {}, **options) = request("GET", target, fields, **options).read_response
    def head(target, fields = {}) = request("HEAD", target, fields).read_response(head: true)
    def post(target, body, fields = {}, **options) = request("POST", target, fields, body, **options).read_response

    # Reads one final answer, keeping the 1xx before it; `head`: it answers a HEAD request.
    def read_response(head: false, seconds: DEADLINE)
      @deadline = E2E.deadline(seconds)
      interim = []
      loop do
        response = Response.new(read_until("\r\n\r\n"), interim: interim)
        read_body(response, response.frame(head))
        return response unless response.interim?

        interim << response
      end
    end

    def read_interim(seconds: DEADLINE)
      @deadline = E2E.deadline(seconds)
      Response.new(read_until("\r\n\r\n")).tap { |response| response.frame(false) }
    end

    # Only the head, for answers whose body is read later or never.
    def read_head(seconds: DEADLINE)
      @deadline = E2E.deadline(seconds)
      Response.new(read_until("\r\n\r\n"))
    end

    def read_bytes(count, seconds: DEADLINE)
      @deadline = E2E.deadline(seconds)
      take(count)
    end

    # One chunk of a body whose head was read; empty: the last.
    def read_chunk(seconds: DEADLINE)
      @deadline = E2E.deadline(seconds)
      take_chunk
    end

    # All bytes until the server closes; ECONNRESET raises.
    def read_to_end(seconds: DEADLINE)
      @deadline = E2E.deadline(seconds)
      nil while fill
      @buffer.slice!(0, @buffer.bytesize)
    end

    # True when the server closed in good order and sent nothing more.
    def closed?(seconds: DEADLINE) = read_to_end(seconds: seconds).empty?

    # True when nothing is there to be read at this moment, and the connection stands.
    def quiet? = @buffer.empty? && @socket.read_nonblock(1, exception: false) == :wait_readable

    # True when something is there to be read, or the end.
    def readable? = !@buffer.empty? || !@socket.wait_readable(0).nil?

    def half_close = @socket.close_write
    def close = @socket.close

    # Closes so that the server sees a reset instead of an end.
    def reset
      @socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii")) if tcp?
      @socket.close
    end

    def tcp? = !@address.is_a?(String)

    private

    def open_socket(address)
      socket = tcp? ? TCPSocket.new(*address) : UNIXSocket.new(address)
      socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) if tcp?
      socket
    end

    # A client that can hold only a few bytes unread: the server's writes fall short early.
    def small_socket(address, bytes)
      return open_socket(address) unless tcp?

      socket = Socket.new(Addrinfo.tcp(*address).ipv6? ? :INET6 : :INET, :STREAM)
      socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_RCVBUF, bytes)
      socket.connect(Addrinfo.tcp(*address).to_sockaddr)
      socket
    end

    SIOCOUTQ = 0x5411

    # Bytes that we sent and the server has not read: for unix sockets Linux tells (unix(7), SIOCOUTQ); for TCP the
    # receive queue of the peer's end is in /proc/net/tcp. Elsewhere nobody tells, and the server gets a moment.
    def unread_by_peer
      return IO.select(nil, nil, nil, 0.02).to_a.size unless File.exist?("/proc/net/tcp")

      unless tcp?
        count = [0].pack("i")
        @socket.ioctl(SIOCOUTQ, count)
        return count.unpack1("i")
      end
      ours = @socket.local_address.ip_port
      theirs = @socket.remote_address.ip_port
      table = @socket.local_address.ipv6? ? "/proc/net/tcp6" : "/proc/net/tcp"
      row = File.foreach(table).find { |line| line =~ /\A\s*\d+: \h+:(\h{4}) \h+:(\h{4}) / && [$1.hex, $2.hex] == [theirs, ours] }
      row ? row.split[4].split(":").last.hex : 0
    end

    def read_body(response, framing)
      response.body = case framing
                      when :none then +""
                      when :length then take(response["content-length"].to_i)
                      when :chunked then read_chunks
                      when :close
                        nil while fill
                        @buffer.slice!(0, @buffer.bytesize)
                      end
    end

    def read_chunks
      body = +"".b
      loop do
        data = take_chunk
        return body if data.empty?

        body << data
      end
    end

    def take_chunk
      line = read_until("\r\n")
      raise Response::Malformed, "chunk size #{line.inspect}" unless line.match?(/\A\h+\z/)

      data = take(line.hex)
      raise Response::Malformed, "chunk of #{line.hex} not ended by CRLF" unless take(2) == "\r\n"

      data
    end

    def take(count)
      until @buffer.bytesize >= count
        fill or raise Closed, "closed after #{@buffer.bytesize} of #{count} bytes: #{@buffer[0, 200].inspect}"
      end
      @buffer.slice!(0, count)
    end

    def read_until(mark)
      from = 0
      until (at = @buffer.index(mark, from))
        from = [@buffer.bytesize - mark.bytesize, 0].max
        fill or raise Closed, "closed while waiting for #{mark.inspect} in #{@buffer[0, 200].inspect}"
      end
      text = @buffer.slice!(0, at)
      @buffer.slice!(0, mark.bytesize)
      text
    end

    # One read into the buffer; nil at the end.
    def fill
      chunk = @socket.read_nonblock(65_536, exception: false)
      while chunk == :wait_readable
        @socket.wait_readable([@deadline - E2E.clock, 0].max) or raise Timeout, "nothing came; so far #{@buffer[0, 200].inspect}"
        chunk = @socket.read_nonblock(65_536, exception: false)
      end
      chunk && @buffer << chunk
    end
  end
end
