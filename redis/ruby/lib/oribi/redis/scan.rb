# frozen_string_literal: true

module Oribi
  class Redis
    # An iterator over what SCAN and its like give; it asks as it goes. An element may come twice, as Redis says.
    class Scan
      include Enumerable

      def initialize(client, command, width, options)
        @client = client
        @command = command
        @width = width
        @options = options.flat_map { |name, value| [name.to_s.upcase, value] }
      end

      def each(&block)
        return to_enum unless block

        cursor = "0"
        loop do
          cursor, found = @client.command(@command.first, *@command.drop(1), cursor, *@options)
          @width == 1 ? found.each(&block) : found.each_slice(@width) { |pair| yield(*pair) }
          return self if cursor == "0"
        end
      end
    end
  end
end
