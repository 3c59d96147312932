# frozen_string_literal: true

require "json"

module Chat
  # A room is a channel of the server: whoever is in it has subscribed to it, and the server remembers what was said
  # (`history` in config/oribi.rb). Nothing is kept here, and each call may come to another worker.
  class Room
    PATH = %r{\A/rooms/([a-z0-9-]{1,40})\z}
    CHARS_MAX = { "key" => 64, "nick" => 40, "text" => 500 }.freeze
    NO_MESSAGE = 4000 # close code, which the page knows

    # A WebSocket is for those who speak, an event stream for those who only read.
    def self.call(env)
      room = env["PATH_INFO"][PATH, 1] or return plain(404, "no room")
      channel = "room:#{room}"
      if (ws = env["oribi.websocket"])
        since = env["QUERY_STRING"][/\Asince=([\w-]+)\z/, 1] # the last message that the page has
        ws.accept(self, channels: { channel => since }, ids: true, state: { "channel" => channel })
      elsif (events = env["oribi.events"])
        events.stream(channels: [channel], retry: 1000)
      else
        plain(426, "a WebSocket or an event stream, please", "upgrade" => "websocket", "connection" => "upgrade")
      end
    end

    # The page sends {"key": "…", "nick": "Ann", "text": "Hello"}. What is published comes back to it, too.
    def self.on_message(ws, data)
      message = read(data) or return ws.close(NO_MESSAGE, "not a message")
      ws.publish(ws.state["channel"], JSON.generate(message.merge("at" => Time.now.to_i)))
    end

    class << self
      private

      def read(data)
        said = JSON.parse(data)
        return unless said.is_a?(Hash) && CHARS_MAX.keys.all? { |name| said[name].is_a?(String) }

        message = CHARS_MAX.to_h { |name, max| [name, said[name].scrub.strip[0, max]] }
        message if message.values.none?(&:empty?)
      rescue JSON::ParserError
        nil
      end

      def plain(status, words, headers = {}) = [status, { "content-type" => "text/plain" }.merge(headers), ["#{words}\n"]]
    end
  end
end
