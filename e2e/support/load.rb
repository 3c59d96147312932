# frozen_string_literal: true

require_relative "native_driver"

module E2E
  # The clients of load/load.c. They ask until their requests are done.
  class Load < NativeDriver
    SOURCE = File.join(ROOT, "e2e/load/load.c")
    BINARY = File.join(ROOT, "build/e2e/load")

    # A request without its answer: when (ms of the monotonic clock), on a fresh or kept connection, which worker had it
    # (0: unknown), why.
    Lost = Struct.new(:at_ms, :kind, :worker, :reason)

    # requests: of all clients together. rate: requests a second of all together, 0: as many as can be.
    def initialize(address, requests:, clients: 20, rate: 0)
      super()
      target = address.is_a?(String) ? address : address.join(":")
      begin_driver(target, clients, requests, rate, mode: "r+", flags: ["-pthread"])
      @output = +""
    end

    # Waits so many seconds at most; true when all requests are done.
    def done_within?(seconds)
      deadline = E2E.clock + seconds
      loop do
        return true if @io.closed?
        return false unless @io.wait_readable([deadline - E2E.clock, 0].max)

        chunk = @io.read_nonblock(65_536, exception: false)
        chunk.nil? ? @io.close : chunk.is_a?(String) && @output << chunk
      end
    end

    # Ends clients that have no end of their own (requests: 0), each after its answer.
    def finish(seconds = DEADLINE * E2E.patience)
      @io.close_write
      raise Timeout, "the clients do not end" unless done_within?(seconds)
    end

    # After that: {"answered", "lost", "connections", "found_closed", "seconds", "slowest_ms"}.
    def summary = JSON.parse(@output.lines.last)

    def lost
      @output.scan(/^lost (\d+) (\w+) (\d+) (.*)$/).map { |at, kind, worker, reason| Lost.new(at.to_i, kind, worker.to_i, reason) }
    end
  end
end
