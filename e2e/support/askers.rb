# frozen_string_literal: true

module E2E
  # A few clients that ask for a page until they are told to stop, half of them on kept connections. A request is lost
  # when it was sent on a fresh connection, or on one that the server had not announced to close, and no full answer
  # came, or one with an error.
  class Askers
    attr_reader :lost

    def initialize(*addresses, path: "/")
      @path = path
      @stop = false
      @answered_at = Queue.new
      @lost = Queue.new
      @threads = addresses.product([false, true]).map { |address, keeps| Thread.new { ask(address, keeps) } }
    end

    def answered = @answered_at.size

    # Those that were answered after that moment of E2E.clock. Only once all have stopped.
    def answered_since(moment) = Array.new(@answered_at.size) { @answered_at.pop }.count { |at| at > moment }

    def stop
      @stop = true
      @threads.each(&:join)
      Array.new(@lost.size) { @lost.pop }
    end

    private

    def ask(address, keeps)
      client = nil
      until @stop
        client = nil if client && !client.quiet? # closed while nothing was asked: nothing is lost
        client ||= Client.new(address)
        response = client.get(@path, keeps ? {} : { "Connection" => "close" })
        response.status == 200 ? @answered_at << E2E.clock : @lost << "status #{response.status}"
        client = client.close if response.close?
        IO.select(nil, nil, nil, 0.002) # a pace, not a wait: other processes want the machine too
      end
    rescue StandardError => e
      @lost << "#{address}, kept: #{keeps}, #{e.class}: #{e.message}"
      client = nil
      retry unless @stop
    ensure
      client&.close
    end
  end
end
