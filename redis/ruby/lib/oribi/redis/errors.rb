# frozen_string_literal: true

module Oribi
  class Redis
    # Of all that this client raises.
    class Error < StandardError; end

    # The connection cannot be made, or has ended.
    class ConnectionError < Error; end

    # A time limit.
    class TimeoutError < Error; end

    # No reply, too long or too deep a reply, or one that nobody asked for.
    class ProtocolError < Error; end

    # The caller's mistake: nothing was sent, and the connection goes on.
    class UsageError < Error; end

    # What the server said. code is its first word: WRONGTYPE, LOADING, READONLY, OOM, NOPERM, ...
    class CommandError < Error
      def self.parse(text) = new(text)
      def code = message[/\A[A-Z]+/] || ""
    end
  end
end
