# frozen_string_literal: true

module Oribi
  # What a body that responds to +call+ gets: it reads the request's body and writes the answer's.
  #
  #   [200, { "content-type" => "text/event-stream" }, ->(stream) { 3.times { |i| stream << "data: #{i}\n\n" } }]
  #
  # The answer ends when the stream is closed, at the latest when +call+ returns, and the connection is kept. A stream
  # may also outlive the call in a thread, if nothing was written before the thread took over: then it becomes the
  # socket itself, the answer ends with the connection, and the application must close the stream.
  class Stream
    def initialize(output, input)
      @output = output
      @input = input
      @owner = Thread.current
      @lock = Thread::Mutex.new
      @socket = nil
      @reads = true
      @writes = true
    end

    # As IO#read, from the request's body.
    def read(length = nil, buffer = nil)
      raise IOError, "not opened for reading" unless @reads

      buffer ? @input.read(length, buffer) : @input.read(length)
    end

    # Sends the parts: the first at once, those that follow fast together, within a millisecond.
    #
    # @return [Integer] bytes written
    # @raise [Oribi::DisconnectError] an IOError: the client has left
    def write(*parts)
      @lock.synchronize { parts.sum { |part| sink.write(part.to_s) } }
    end

    def <<(part)
      write(part)
      self
    end

    # As IO#syswrite: sends the part at once.
    #
    # @return [Integer] bytes written
    def syswrite(part) = write(part).tap { flush }

    # Sends what was written now, or the head of the answer even before its first byte.
    def flush
      @lock.synchronize { sink.flush }
      self
    end

    def close_read
      @reads = false
      nil
    end

    # Ends the answer.
    def close_write
      @lock.synchronize { finish } if @writes
      nil
    end

    def close
      close_read
      close_write
    end

    def closed? = !@reads && !@writes

    # The server calls it once the body's +call+ has returned.
    # @private
    def leave
      @lock.synchronize do
        next unless @writes && !@socket

        @output.untouched? ? @socket = @output.detach : finish
      end
    end

    private

    # Where bytes go now. Another thread than the call's may not use the server's output, because it could go on after
    # the call.
    def sink
      raise IOError, "closed stream" unless @writes

      @socket ||= @output.detach if !Thread.current.equal?(@owner) && @output.untouched?
      @socket || @output
    end

    def finish
      @writes = false
      @socket ? @socket.close : @output.finish
    end
  end
end
