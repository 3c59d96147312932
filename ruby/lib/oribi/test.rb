# frozen_string_literal: true

require "digest"
require "fileutils"
require "openssl"
require "rbconfig"
require "securerandom"
require "socket"
require "tmpdir"
require "uri"
require "uri/wss" # which "uri" of Ruby 3.1 leaves out

module Oribi
  # For tests of applications: a server for a rackup file, and a client of WebSockets. Loaded by
  # <tt>require "oribi/test"</tt> alone; it needs no extension in the test's process.
  #
  #   Oribi::Test.serve("config.ru") do |server|
  #     ws = server.websocket("/chat")
  #     ws.send("hello")
  #     assert_equal "hello", ws.receive
  #     ws.close
  #   end
  module Test
    Error = Class.new(StandardError)
    Timeout = Class.new(Error)

    # The server has not accepted a handshake.
    class Refused < Error
      attr_reader :status, :headers

      def initialize(status, headers)
        @status = status
        @headers = headers
        super("the server answers the handshake with #{status}")
      end
    end

    # Starts a server; with a block it is stopped behind it.
    #
    # @param rackup [String] the application's file
    # @param options [Array<String>] words for the command line: "--workers", "2"
    # @param env [Hash] further environment variables
    # @param timeout [Numeric] seconds to wait for it, and the default of its clients
    # @return [Server] without a block; else what the block gives
    def self.serve(rackup = "config.ru", options: [], env: {}, timeout: 10)
      server = Server.new(rackup, options, env, timeout)
      return server unless block_given?

      begin
        yield server
      ensure
        server.stop
      end
    end

    def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # A server of a test: one worker and a frontend, at a free port of 127.0.0.1.
    class Server
      ROOT = File.expand_path("../..", __dir__)
      TRIES = 3 # the port may be taken meanwhile

      attr_reader :port, :pid

      def initialize(rackup, options, env, timeout)
        @timeout = timeout
        @dir = Dir.mktmpdir("oribi-test")
        TRIES.times do |i|
          start(File.expand_path(rackup), options, env)
          break if up?
          raise Error, "the server did not start:\n#{log}" if i == TRIES - 1 || !log.include?("in use")
        end
      rescue StandardError
        stop
        raise
      end

      def url = "http://127.0.0.1:#{port}"

      # Opens a WebSocket; the arguments are those of WebSocket.new.
      def websocket(path = "/", timeout: @timeout, **how) = WebSocket.new("ws://127.0.0.1:#{port}#{path}", timeout: timeout, **how)

      # All that the server has written.
      def log = File.read(File.join(@dir, "log"))

      def stop
        return unless @dir

        terminate if @pid
        FileUtils.remove_entry(@dir)
        @dir = @pid = nil
      end

      private

      def start(rackup, options, env)
        @port = TCPServer.open("127.0.0.1", 0) { |free| free.addr[1] }
        words = ["--bind", "tcp://127.0.0.1:#{@port}?frontend=on", *apart, *options, rackup]
        @pid = Process.spawn(env, RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/oribi", *words, chdir: File.dirname(rackup), %i[out err] => "#{@dir}/log")
      end

      # The configuration file is the application's, whose server may run meanwhile: files and addresses are the test's.
      def apart
        files = %w[control status pid].zip(%w[--control --status --pid-file]).flat_map { |name, option| [option, "#{@dir}/#{name}"] }
        [*files, *%w[--workers 1 --no-dev --no-daemonize --no-quiet --error-log - --frontend-drain 0]]
      end

      def up?
        deadline = Test.now + @timeout
        until log.include?("listening on")
          if Process.wait(@pid, Process::WNOHANG)
            @pid = nil
            return false
          end
          raise Timeout, "the server is not up after #{@timeout} s:\n#{log}" if Test.now > deadline

          sleep(0.01)
        end
        true
      end

      # Nobody reads the clients' Close frames meanwhile, for which the server would wait.
      def terminate
        WebSocket.leave(@port)
        Process.kill(:TERM, @pid)
        deadline = Test.now + @timeout
        until Process.wait(@pid, Process::WNOHANG)
          Process.kill(:KILL, @pid) if Test.now > deadline
          sleep(0.01)
        end
      end
    end

    # A client of a WebSocket, with deadlines: nothing waits longer than +timeout+ seconds.
    class WebSocket
      GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" # RFC 6455 1.3
      TEXT = 1
      BINARY = 2
      CLOSE = 8
      PING = 9
      PONG = 10
      MESSAGE_BYTES_MAX = 64 * 1024 * 1024
      GOING_AWAY = 1001

      @all = ObjectSpace::WeakMap.new

      class << self
        # @api private
        def note(socket) = @all[socket] = true

        # @api private
        def leave(port) = @all.each_key { |socket| socket.leave(port) }
      end

      # The protocol that the server has chosen, nil: none.
      attr_reader :protocol

      # Fields of the answer, their names in lower case.
      attr_reader :headers

      # Of the server's Close frame; nil before it, 1006 where the connection ended without one.
      attr_reader :close_code, :close_reason

      # @param url [String] ws:// or wss://, whose certificate is not verified
      # @param protocols [Array<String>] that are offered
      # @param headers [Hash] further fields of the handshake: "Cookie", "Origin"
      # @param timeout [Numeric] seconds, for each wait
      # @raise [Refused] the server has not accepted
      def initialize(url, protocols: [], headers: {}, timeout: 10)
        @uri = URI(url)
        @timeout = timeout
        @bytes = +"".b
        @message = +"".b
        @io = connect
        handshake(protocols, headers)
        self.class.note(self)
      rescue StandardError
        @tcp&.close
        raise
      end

      # Sends a message: binary where the String's encoding is BINARY, else text.
      def send(data)
        data = String(data)
        binary = data.encoding == Encoding::BINARY
        write(binary ? BINARY : TEXT, binary ? data : data.encode(Encoding::UTF_8))
        self
      end

      # The next message: text as UTF-8, a binary one with the encoding BINARY. nil: the socket is closed.
      #
      # @raise [Timeout]
      def receive(timeout: @timeout)
        deadline = Test.now + timeout
        message = nil
        message = take_frame(deadline) until message || @close_code
        message || nil
      end

      # Closes it, and waits for the server's Close frame and the end of the connection; messages before it are lost.
      def close(code = 1000, reason = "", timeout: @timeout)
        deadline = Test.now + timeout
        unless @close_code
          write(CLOSE, [code].pack("n") + reason.encode(Encoding::UTF_8).b)
          @closing = true
        end
        take_frame(deadline) until @close_code
        @tcp.close
        self
      end

      def closed? = !@close_code.nil?

      # Ends the connection without a Close frame.
      def cut = @tcp.close

      # Closes it, where its server is the one at this port, and waits for nothing: what was sent can still be received.
      #
      # @api private
      def leave(port)
        return if @uri.port != port || @closing || closed? || @tcp.closed?

        @closing = true
        write(CLOSE, [GOING_AWAY].pack("n"), timeout: 0)
      rescue Timeout
        nil # the server does not read it: it is in a call
      end

      private

      def connect
        @tcp = Socket.tcp(@uri.host, @uri.port || (@uri.scheme == "wss" ? 443 : 80), connect_timeout: @timeout)
        @tcp.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
        return @tcp unless @uri.scheme == "wss"

        tls = OpenSSL::SSL::SSLSocket.new(@tcp, OpenSSL::SSL::SSLContext.new.tap { |context| context.verify_mode = OpenSSL::SSL::VERIFY_NONE })
        tls.hostname = @uri.host
        deadline = Test.now + @timeout
        while (wanted = tls.connect_nonblock(exception: false)).is_a?(Symbol)
          await(wanted, deadline, "the server does not answer the handshake of TLS")
        end
        tls
      end

      def handshake(protocols, headers)
        key = SecureRandom.base64(16)
        fields = { "Host" => "#{@uri.host}:#{@uri.port}", "Connection" => "Upgrade", "Upgrade" => "websocket", "Sec-WebSocket-Version" => "13",
                   "Sec-WebSocket-Key" => key }
        fields["Sec-WebSocket-Protocol"] = protocols.join(", ") unless protocols.empty?
        push("GET #{@uri.request_uri} HTTP/1.1\r\n#{fields.merge(headers).map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n")
        status = read_head
        raise Refused.new(status, @headers) unless status == 101 && @headers["sec-websocket-accept"] == Digest::SHA1.base64digest(key + GUID)

        @protocol = @headers["sec-websocket-protocol"]
      end

      def read_head
        deadline = Test.now + @timeout
        more(deadline) or raise(Error, "the connection ended in the handshake") until (at = @bytes.index("\r\n\r\n"))
        lines = @bytes.slice!(0, at + 4).split("\r\n")
        @headers = lines.drop(1).to_h { |line| line.split(":", 2).then { |name, value| [name.downcase, value.strip] } }
        lines.first[9, 3].to_i
      end

      # The message that ends with the next frame; nil: none does. Pings are answered.
      def take_frame(deadline)
        first, payload = whole_frame(deadline)
        return closed(1006, "") unless payload

        case first & 15
        when PING then write(PONG, payload) unless @closing
        when CLOSE then take_close(payload)
        when 0, TEXT, BINARY then take_piece(first, payload)
        end
      end

      # [first byte, payload]; nil: the connection has ended before. What has come of a frame when the time is over is
      # there for the next wait.
      def whole_frame(deadline)
        await_bytes(2, deadline) or return
        short = @bytes.getbyte(1) & 127
        head = { 126 => 4, 127 => 10 }.fetch(short, 2)
        await_bytes(head, deadline) or return
        length = { 126 => "n", 127 => "Q>" }[short].then { |format| format ? @bytes.unpack1("@2#{format}") : short }
        raise Error, "a message of #{length} bytes" if length > MESSAGE_BYTES_MAX

        await_bytes(head + length, deadline) or return
        [@bytes.slice!(0, head).getbyte(0), @bytes.slice!(0, length)]
      end

      def take_piece(first, payload)
        @binary = first & 15 == BINARY unless (first & 15).zero?
        @message << payload
        return nil if (first & 128).zero?

        message = @message
        @message = +"".b
        @binary ? message : message.force_encoding(Encoding::UTF_8)
      end

      def take_close(payload)
        write(CLOSE, payload.byteslice(0, 2)) unless @closing
        code, reason = payload.unpack("na*")
        closed(code || 1005, reason.to_s.dup.force_encoding(Encoding::UTF_8))
      end

      def closed(code, reason)
        @close_code = code
        @close_reason = reason
        nil
      end

      def write(opcode, data, timeout: @timeout)
        data = data.b
        mask = SecureRandom.bytes(4)
        head = [128 | opcode].pack("C") + (data.bytesize < 126 ? [128 | data.bytesize].pack("C") : [254, data.bytesize].pack("Cn"))
        head = [128 | opcode, 255, data.bytesize].pack("CCQ>") if data.bytesize > 65_535
        words = (mask * ((data.bytesize / 4) + 1)).unpack("N*")
        padded = data + "\0\0\0\0"
        masked = padded.byteslice(0, words.size * 4).unpack("N*").zip(words).map { |a, b| a ^ b }.pack("N*").byteslice(0, data.bytesize)
        push(head + mask + masked, timeout: timeout)
      rescue SystemCallError, OpenSSL::SSL::SSLError, IOError => e
        raise Error, "the message cannot be sent: #{e.message}" unless opcode == CLOSE || opcode == PONG
      end

      def push(bytes, timeout: @timeout)
        deadline = Test.now + timeout
        until bytes.empty?
          sent = @io.write_nonblock(bytes, exception: false)
          next bytes = bytes.byteslice(sent..) if sent.is_a?(Integer)

          await(sent, deadline, "the server does not read")
        end
      end

      # What a call that does not wait asks for; `late` says what it waited for in vain.
      def await(wanted, deadline, late)
        left = deadline - Test.now
        raise Timeout, late if left <= 0

        wanted == :wait_writable ? @tcp.wait_writable(left) : @tcp.wait_readable(left)
      end

      # False: the connection has ended before.
      def await_bytes(count, deadline)
        more(deadline) or return false while @bytes.bytesize < count
        true
      end

      def more(deadline)
        loop do
          part = @io.read_nonblock(65_536, exception: false)
          return part && (@bytes << part) unless %i[wait_readable wait_writable].include?(part)

          await(part, deadline, "nothing has come from the server")
        end
      rescue SystemCallError, OpenSSL::SSL::SSLError, IOError
        nil
      end
    end
  end
end
