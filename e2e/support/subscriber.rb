# frozen_string_literal: true

require "json"
require_relative "event_client"
require_relative "h2_socket_client"

module E2E
  # A client of one channel with a history, over one of the transports: a thread that comes back with its id whenever
  # its connection ends, and cuts it by itself now and then. Messages are numbers from 0 on. Each has to come once and
  # in order; after a reset some may be missing.
  class Subscriber
    Transport = Struct.new(:name, :socket, :tls, :http2) do
      def cuts_each = http2 ? 150 : 40 # messages: the clients of HTTP/2 are processes
    end
    TRANSPORTS = [true, false].product([false, true], [false, true]).map do |socket, http2, tls|
      Transport.new("#{socket ? "WebSocket" : "events"}, HTTP/#{http2 ? 2 : 1}, #{tls ? "TLS" : "plain"}", socket, tls, http2)
    end.freeze
    END_OF_ALL = "end" # may come more than once
    AWAY = [SocketClient::Closed, EventClient::Ended, SystemCallError, IOError, OpenSSL::SSL::SSLError].freeze

    attr_reader :transport, :got, :resets, :ends, :refusals, :faults
    attr_writer :steady # it cuts nothing by itself any more

    # ports: { false => plain, true => TLS }
    def initialize(transport, ports, channel)
      @transport = transport
      @port = ports.fetch(transport.tls)
      @channel = channel
      @got = []
      @resets = 0
      @ends = []     # how its connections have ended, but for those that it has cut
      @refusals = [] # statuses
      @faults = []
      @thread = Thread.new { run }
      @thread.report_on_exception = false
    end

    def count = @got.size
    def listens? = !@id.nil?
    def open? = @open
    def last = @got.last || -1

    # Waits until it has got the end; raises what has ended its thread before.
    def join = @thread.value

    # Cuts its connection, from any thread; it comes back.
    def cut
      @cut = true
      @client&.close
    end

    def close
      @thread.kill
      @thread.join
      @client&.close
    rescue *AWAY, Timeout
      nil
    end

    private

    def run
      until @over
        begin
          listen
        rescue *AWAY => e
          @ends << how_it_ended(e) unless @cut
        ensure
          @client&.close
        end
      end
    end

    def listen
      @cut = @open = false
      @client = nil
      @client = open_client
      unless @client.status == (transport.socket && !transport.http2 ? 101 : 200)
        @refusals << @client.status
        @cut = true
        return
      end
      @open = true
      left = transport.cuts_each
      left -= 1 until @over || (next_one && left <= 0 && !@steady)
      @cut = true
    end

    def open_client
      return EventClient.new(@port, "/listen?#{@channel}", last_id: @id, **how_events) unless transport.socket

      client = transport.http2 ? H2SocketClient : SocketClient
      client.new(@port, "/listen?#{@channel}&#{@id}", tls: transport.tls)
    end

    def how_events
      return { tls: transport.tls } unless transport.http2

      { http2: transport.tls ? :tls : :plain }
    end

    # Of the connection: a close code, or whether an event stream has ended as it should.
    def how_it_ended(error)
      transport.socket ? error.message[/\A\[(\d+)/, 1]&.to_i || error.message : @client&.ended_well?
    rescue *AWAY
      false
    end

    # True: it was a message.
    def next_one
      transport.socket ? next_message : next_event
    end

    def next_message
      message = JSON.parse(@client.message)
      @id = message["id"]
      take_reset if message["reset"]
      message.key?("data") && take(message["data"])
    end

    def next_event
      @client.await(&:last_id) unless @id
      @id ||= @client.last_id
      event = @client.event
      @id = event.id
      event.type == "oribi.reset" ? take_reset : take(event.data)
    end

    def take_reset
      @resets += 1
      @was_reset = true
      false
    end

    def take(data)
      return @over = true if data == END_OF_ALL

      number = data.to_i
      @faults << "#{number} came after #{last}" unless number == last + 1 || (@was_reset && number > last)
      @was_reset = false
      @got << number
      true
    end
  end
end
