# frozen_string_literal: true

require "io/wait"

module Oribi
  class Redis
    # What is published to channels, on a connection of its own. When that is lost, it raises ConnectionError, and what
    # is published until the next subscription is missed.
    #
    #     subscription = redis.subscribe("news")
    #     while (message = subscription.next(5000))
    #       puts message[:channel], message[:message]
    #     end
    class Subscription
      MESSAGES = { "message" => %i[channel message], "pmessage" => %i[pattern channel message], "smessage" => %i[channel message] }.freeze

      def initialize(session, name, channels)
        @session = session
        @link = session.ready
        listen(name, channels)
      end

      %w[subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe].each do |name|
        define_method(name) { |*channels| listen(name.upcase, channels) }
      end

      # The next message: { channel:, message: }, with pattern: for patterns. nil when so many milliseconds are over;
      # without them it waits for ever.
      def next(limit_ms = nil)
        deadline = limit_ms && now_ms + limit_ms
        loop do
          event = next_event(deadline && [deadline - now_ms, 0].max) or return
          names = MESSAGES[event.first] and return names.zip(event.drop(1)).to_h
        end
      end

      # The same with what else Redis sends, confirmations too: ["subscribe", "news", 1].
      def next_event(limit_ms = nil)
        raise ConnectionError, "the subscription is closed" unless @link.open?

        deadline = limit_ms && now_ms + limit_ms
        until @link.push?
          left = deadline && deadline - now_ms
          return if left && left <= 0

          wait(left)
        end
        @link.read_ms = 0
        event = @link.next_push
        event.is_a?(CommandError) ? raise(event) : event
      end

      def close = @session.close

      private

      def listen(name, channels)
        @link.listen([name, *channels])
        self
      rescue TypeError, ArgumentError => e
        raise UsageError, e.message
      end

      def wait(left_ms)
        io = IO.for_fd(@link.fileno, autoclose: false)
        io.wait_readable(left_ms && left_ms / 1000.0)
      end

      def now_ms = Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond)
    end
  end
end
