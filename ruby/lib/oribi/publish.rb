# frozen_string_literal: true

module Oribi
  class << self
    # Publishes a message to all who have subscribed to the channel: WebSockets and event streams, doc/publish.md. From
    # a call, a thread, a job that the application has forked; and from a console or another program of the same user,
    # which finds the server by the folder it runs in, or by the control socket that ORIBI_CONTROL names.
    #
    # @param channel [String, Symbol] 1 to 256 bytes of UTF-8, no control character
    # @param data [String] at most 1 MiB; text, unless its encoding is BINARY
    # @param event [String, Symbol, nil] name of the event, for event streams: at most 64 bytes
    # @param binary [Boolean, nil] whether it is bytes whatever its encoding
    # @return [nil] the server has it
    # @raise [Oribi::Error] it is not possible, no server answers, or there was no room for a second
    def publish(channel, data, event: nil, binary: nil)
      data = String(data)
      binary = data.encoding == Encoding::BINARY if binary.nil?
      publish_bytes(utf8(channel.to_s), event && utf8(event.to_s), binary ? data : utf8(data), binary)
    end

    private

    def utf8(text)
      return text if text.encoding == Encoding::UTF_8 || text.ascii_only?

      text.encoding == Encoding::BINARY ? text.dup.force_encoding(Encoding::UTF_8) : text.encode(Encoding::UTF_8)
    rescue EncodingError => e
      raise Error, "publish: a text that is not possible: #{e.message}"
    end
  end
end
