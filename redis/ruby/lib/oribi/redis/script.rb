# frozen_string_literal: true

require "digest/sha1"

module Oribi
  class Redis
    # A script in Lua.
    class Script
      attr_reader :sha

      def initialize(client, source)
        @client = client
        @source = source
        @sha = Digest::SHA1.hexdigest(source)
      end

      def call(keys = [], *arguments)
        @client.command("EVALSHA", @sha, keys.size, *keys, *arguments)
      rescue CommandError => e
        raise unless e.code == "NOSCRIPT"

        @client.command("EVAL", @source, keys.size, *keys, *arguments)
      end
    end
  end
end
