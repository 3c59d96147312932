# frozen_string_literal: true

require "json"

module Oribi
  # A WebSocket, as a handler gets it: a class or module whose +on_open+, +on_message+ and +on_close+ are called, each
  # call with a new object, in any worker. The frontend holds the connection; between two calls only +state+ stays.
  #
  #   class Room
  #     def self.call(env)
  #       ws = env["oribi.websocket"] or return [426, {}, []]
  #       ws.accept(Room, state: { "user" => "ann" })
  #     end
  #     def self.on_message(ws, data) = ws.send("#{ws.state["user"]}: #{data}")
  #   end
  class WebSocket
    # A handshake: env["oribi.websocket"] where the request asks for a WebSocket.
    class Handshake
      # The protocols that the client offers, preferred first.
      def protocols = @offered.split(",").map(&:strip).reject(&:empty?)

      # Accepts the WebSocket; gives the answer for the server.
      #
      # @param handler [Module] a class or module with a name, which has one or more of on_open(ws),
      #   on_message(ws, data), on_close(ws, code, reason)
      # @param protocol [String, Symbol, nil] one of {#protocols}
      # @param state [Hash] the first WebSocket#state: 4 KiB as JSON
      # @param headers [Hash] further headers of the answer
      # @param keep [Array<String>] keys of this environment that WebSocket#env has: 4 KiB as JSON
      # @param channels [Array<String>, Hash{String => String, nil}] channels whose messages the client gets, from its
      #   first moment on; a Hash names the position since which (with +ids+)
      # @param ids [Boolean] the client gets messages of channels as JSON, each with its position
      # @raise [Oribi::Error] no frontend holds the client, or one of these is not possible
      def accept(handler, protocol: nil, state: {}, headers: {}, keep: [], channels: [], ids: false)
        accept_as(Handlers.name_of(handler), protocol&.to_s, state && WebSocket.json_of(state), kept(keep),
                  Handlers.wants(handler) | (ids ? 4 : 0), subscriptions(channels, ids))
        [101, headers, []]
      end

      # @private rack.upgrade
      def upgrade(handler) = accept(handler)

      private

      def subscriptions(channels, ids)
        pairs = channels.is_a?(Hash) ? channels.to_a : Array(channels).map { |channel| [channel, nil] }
        raise Error, "channels since a position: accept needs ids: true" unless ids || pairs.all? { |_, since| since.to_s.empty? }

        pairs.flat_map { |channel, since| [WebSocket.utf8(channel), since.to_s] }
      end

      def kept(keys)
        values = keys.filter_map { |key| @env[key].then { |value| [key, value] if value.is_a?(String) } }.to_h
        JSON.generate(values.transform_values { |value| WebSocket.text(value) }) unless values.empty?
      end
    end

    # Handlers by their names.
    module Handlers
      CALLBACKS = %i[on_open on_message on_close].freeze

      module_function

      def name_of(handler)
        unless handler.is_a?(Module)
          raise Error, "the handler of a WebSocket is an object (#{handler.class}): no object lives between two messages; " \
                       "give a class or module, and keep values in state"
        end
        raise Error, "the handler of a WebSocket has no name: each call finds it by its name" unless handler.name
        raise Error, "#{handler} is not the constant of that name" unless find(handler.name).equal?(handler)
        return handler.name if CALLBACKS.any? { |name| handler.respond_to?(name) }

        raise Error, "#{handler} has none of #{CALLBACKS.join(", ")}"
      end

      # nil: there is none of this name. An error in a file that is loaded for it is the application's.
      def find(name)
        found = Object.const_get(name)
        found if found.is_a?(Module)
      rescue NameError => e
        raise if e.is_a?(NoMethodError) || !name.split("::").include?(e.name.to_s)
      end

      def wants(handler) = (handler.respond_to?(:on_open) ? 1 : 0) | (handler.respond_to?(:on_close) ? 2 : 0)
    end

    EVENTS = { "o" => :on_open, "c" => :on_close }.freeze
    private_constant :EVENTS

    # @private
    def self.utf8(text)
      text = String(text)
      text = text.encoding == Encoding::BINARY ? text.dup.force_encoding(Encoding::UTF_8) : text.encode(Encoding::UTF_8)
      raise Error, "a text that is not valid UTF-8; a binary message has the encoding BINARY" unless text.valid_encoding?

      text
    rescue EncodingError => e
      raise Error, "a text that cannot be sent: #{e.message}"
    end

    # @private what is not UTF-8 is taken for ISO-8859-1
    def self.text(bytes)
      text = bytes.dup.force_encoding(Encoding::UTF_8)
      text.valid_encoding? ? text : bytes.dup.force_encoding(Encoding::ISO_8859_1).encode(Encoding::UTF_8)
    end

    # @private a state as JSON; nil: it is empty
    def self.json_of(state)
      raise Error, "the state of a WebSocket is a Hash: no #{state.class}" unless state.is_a?(Hash)

      JSON.generate(state) unless state.empty?
    end

    # The extension defines
    #
    # +id+:: [String] of this socket alone, in its whole life
    # +protocol+:: [String, nil] the protocol that was accepted
    # <tt>send(data)</tt>, +write+:: sends a message: binary where the String's encoding is BINARY, else text. It leaves
    #   when the call has returned. Raises Oribi::Error for text that is not valid in its encoding, and for more than
    #   16 MiB in one call
    # <tt>state=</tt>:: another #state

    # Subscribes the socket to a channel when the call has returned.
    #
    # @param since [String, nil] the position after which the client has missed messages: it gets them first. The socket
    #   was accepted with +ids+
    # @raise [Oribi::Error] a name that is empty, longer than 256 bytes, or has control characters
    def subscribe(channel, since: nil) = act_on_channel("S", WebSocket.utf8(channel), nil, since.to_s, false)

    def unsubscribe(channel) = act_on_channel("U", WebSocket.utf8(channel), nil, nil, false)

    # Publishes a message to all who have subscribed to the channel, when the call has returned: binary where the
    # String's encoding is BINARY, else text; 1 MiB at most.
    #
    # @param event [String, nil] its name, 64 bytes at most
    def publish(channel, data, event: nil)
      data = String(data)
      binary = data.encoding == Encoding::BINARY
      act_on_channel("P", WebSocket.utf8(channel), event && WebSocket.utf8(event), binary ? data : WebSocket.utf8(data), binary)
    end

    # Closes the socket when the call has returned.
    #
    # @param code [Integer] 1000 to 1003, 1007 to 1014, 3000 to 4999
    # @param reason [String] at most 123 bytes of UTF-8
    def close(code = 1000, reason = "") = act("c", Integer(code), WebSocket.utf8(reason))

    # What the socket remembers from call to call: a Hash that JSON can hold, 4 KiB as JSON. Change it, or assign
    # another.
    def state = own_state || (self.state = saved.then { |json| json.empty? ? {} : JSON.parse(json) })

    # Values of the opening request's environment that +keep+ has named.
    def env = own_env || (self.own_env = kept.then { |json| json.empty? ? {} : JSON.parse(json) }.freeze)

    private

    # Called by the extension for all but messages, for which it does the same by itself.
    def serve(handler, event, reason, code)
      name = EVENTS.fetch(event)
      return unless handler.respond_to?(name)

      arguments = name == :on_close ? [code, reason] : []
      arguments = [] if name == :on_close && handler.method(name).arity == 1 # as rack.upgrade has it
      handler.public_send(name, self, *arguments)
      keep_state
    end

    # Called by #send for what is not sent as it is.
    def send_converted(data)
      data = String(data)
      return act("b", 0, data) if data.encoding == Encoding::BINARY

      act("t", 0, WebSocket.utf8(data))
    end

    def keep_state
      return unless (state = own_state)

      json = WebSocket.json_of(state) || ""
      act("s", 0, json) unless json == saved
    end
  end
end
