# frozen_string_literal: true

require "socket"

module Bench
  # Asks a server for one answer at a time and lays it against what it must be: before, after and, in a thread of its
  # own, during the load.
  class Checker
    Answer = Struct.new(:status, :length, :body, :wire_bytes, keyword_init: true)
    Silent = Class.new(StandardError)

    PAUSE_S = 0.1
    LARGE_PAUSE_S = 1
    LARGE_BYTES = 1 << 20
    PATIENCE_S = 5

    # ends_by_close: answers without a length, as HTTP/1 has it (RFC 9112, 6.3). closes_unsaid: was asked to close, and
    # does not say that it will (9.6). wrk calls the end of either a read error.
    attr_reader :asked, :unanswered, :complaints, :ends_by_close, :closes_unsaid

    # connect: a callable that gives a connected socket.
    def initialize(connect, request)
      @connect = connect
      @request = request
      @asked = 0
      @unanswered = 0
      @complaints = []
    end

    # One answer on a connection of its own. Silent when none came in time.
    def answer(patience_s: PATIENCE_S)
      socket = @connect.call
      deadline = now + patience_s
      text = @request.to_s
      write(socket, text, deadline)
      read(socket, deadline)
    ensure
      socket&.close
    end

    # Complains (and remembers it) when the answer is wrong; gives the bytes of it on the wire.
    def check(patience_s: PATIENCE_S)
      @asked += 1
      found = answer(patience_s: patience_s)
      wrong = @request.wrong(found)
      @complaints << wrong if wrong
      found.wire_bytes
    rescue Silent, SystemCallError, EOFError => e
      @unanswered += 1
      @complaints << "no answer: #{e.message}" if e.is_a?(EOFError)
      nil
    end

    # Checks now and then while the block runs. A server that gives all its workers to the connections it has lets a
    # newcomer wait: that is told as unanswered, it is not an error.
    def during
      ended = false
      thread = Thread.new do
        until ended
          sleep pause_s
          check(patience_s: 0.5) unless ended
        end
      end
      yield
    ensure
      ended = true
      thread&.join
    end

    private

    def pause_s = @request.body.to_s.bytesize > LARGE_BYTES ? LARGE_PAUSE_S : PAUSE_S
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def wait(socket, write, deadline)
      ready = write ? IO.select(nil, [socket], nil, deadline - now) : IO.select([socket], nil, nil, deadline - now) if now < deadline
      ready or raise Silent, "nothing within the time"
    end

    # Answers that come before the whole request was taken end the writing.
    def write(socket, text, deadline)
      until text.empty?
        wait(socket, true, deadline)
        sent = socket.write_nonblock(text, exception: false)
        text = text.byteslice(sent..) if sent.is_a?(Integer)
      end
    end

    def more(socket, buffer, deadline)
      wait(socket, false, deadline)
      part = socket.read_nonblock(256 * 1024, exception: false)
      raise EOFError, "closed after #{buffer.bytesize} bytes" if part.nil?

      buffer << part unless part == :wait_readable
    end

    def read(socket, deadline)
      buffer = String.new(encoding: Encoding::BINARY)
      more(socket, buffer, deadline) until (head_end = buffer.index("\r\n\r\n"))
      head = buffer[0, head_end]
      start = head_end + 4
      return Answer.new(status: 304, body: "", wire_bytes: start) if head.start_with?("HTTP/1.1 304")

      length = head[/^content-length:\s*(\d+)/i, 1]&.to_i
      chunked = head.match?(/^transfer-encoding:.*chunked/i)
      @ends_by_close = !length && !chunked
      @closes_unsaid = @request.fields["Connection"] == "close" && !head.match?(/^connection:.*close/i)
      body = if length then counted(socket, buffer, start, length, deadline)
             elsif chunked then chunks(socket, buffer, start, deadline)
             else until_end(socket, buffer, start, deadline)
             end
      Answer.new(status: head[/\AHTTP\/1\.\d (\d+)/, 1].to_i, length: length, body: body, wire_bytes: buffer.bytesize)
    end

    def counted(socket, buffer, start, length, deadline)
      more(socket, buffer, deadline) while buffer.bytesize < start + length
      buffer.byteslice(start..)
    end

    def until_end(socket, buffer, start, deadline)
      loop { more(socket, buffer, deadline) }
    rescue EOFError
      buffer.byteslice(start..)
    end

    def chunks(socket, buffer, pos, deadline)
      body = String.new(encoding: Encoding::BINARY)
      loop do
        more(socket, buffer, deadline) until (line_end = buffer.index("\r\n", pos))
        size = buffer[pos...line_end].hex
        pos = line_end + 2
        more(socket, buffer, deadline) while buffer.bytesize < pos + size + 2
        return body if size.zero?

        body << buffer.byteslice(pos, size)
        pos += size + 2
      end
    end
  end
end
