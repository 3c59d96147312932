# frozen_string_literal: true

module Oribi
  class Redis
    # What is made of `command`; for clients and for sessions.
    module Commands
      # Iterators over keys, or over the elements of a key: each, to_a, lazy. Of hscan and zscan each gives two (field
      # and value, member and score). match:, count:, type: as the server takes them.
      def scan(**options) = Scan.new(self, ["SCAN"], 1, options)
      def sscan(key, **options) = Scan.new(self, ["SSCAN", key], 1, options)
      def hscan(key, **options) = Scan.new(self, ["HSCAN", key], 2, options)
      def zscan(key, **options) = Scan.new(self, ["ZSCAN", key], 2, options)
    end
  end
end
