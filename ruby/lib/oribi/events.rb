# frozen_string_literal: true

module Oribi
  # Server-sent events: env["oribi.events"] of a GET that accepts text/event-stream, as EventSource does. The frontend
  # holds the client and sends what is published to its channels; the application's call ends at once.
  #
  #   events = env["oribi.events"] or return [406, {}, []]
  #   events.stream(channels: ["news"])
  class Events
    # The id of the last event that the client has: Last-Event-ID, which a browser sends when it comes back.
    #
    # @return [String, nil]
    attr_reader :last_event_id

    # Makes the request an event stream; gives the answer for the server.
    #
    # @param channels [Array<String>] at most 256, each of at most 256 bytes
    # @param retry [Integer, nil] milliseconds after which a client comes back when the stream has ended
    # @param headers [Hash] further headers of the answer
    # @param since [String, nil] an id of this stream in the place of Last-Event-ID; "": the client gets nothing of what
    #   it has missed
    # @raise [Oribi::Error] no frontend holds the client, or one of these is not possible
    def stream(channels:, retry: nil, headers: {}, since: nil)
      names = Array(channels).map { |channel| Events.bytes(channel) }
      stream_as(names, binding.local_variable_get(:retry)&.then { |ms| Integer(ms) }, (since || last_event_id)&.to_s)
      [200, { "content-type" => "text/event-stream", "cache-control" => "no-cache" }.merge(headers), []]
    end

    # @private the name of a channel: UTF-8, unless it is BINARY
    def self.bytes(channel)
      name = channel.is_a?(Symbol) ? channel.name : String(channel)
      name.encoding == Encoding::BINARY ? name : name.encode(Encoding::UTF_8)
    rescue EncodingError => e
      raise Error, "the name of a channel is no text: #{e.message}"
    end
  end
end
