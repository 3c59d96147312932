# frozen_string_literal: true

module Oribi
  # Forms (application/x-www-form-urlencoded) and query strings.
  #
  #   Oribi::Form.parse("a=1&b=2&b")          # => [["a", "1"], ["b", "2"], ["b", nil]]
  #   Oribi::Form.nested("user[tags][]=x")    # => {"user" => {"tags" => ["x"]}}
  #   Oribi::Form.build(user: { tags: ["x"] }) # => "user%5Btags%5D%5B%5D=x"
  #
  # The rules are those of Rack 3.2: `&` separates, a pair without `=` has the value nil, `%` needs two hexadecimal
  # digits. Strings are tagged as UTF-8 and not checked.
  #
  # Maxima: +pairs_max+ pairs, +key_bytes_max+ bytes of one key, +bytes_max+ bytes of the whole, and +depth_max+ hashes
  # and arrays in one another. More of them is an Error with status 413; what is no form, one with 400.
  module Form
    class << self
      # @param string [String, nil]
      # @param semicolon [Boolean] `;` separates too
      # @return [Array<Array(String, (String, nil))>] all pairs in their order
      def parse(string, semicolon: false, pairs_max: PAIRS_MAX, key_bytes_max: KEY_BYTES_MAX, bytes_max: BYTES_MAX)
        read_pairs(string || "", semicolon, pairs_max, key_bytes_max, bytes_max)
      end

      # Keys with brackets become hashes and arrays, as with Rack::Utils.parse_nested_query.
      # @param (see #parse)
      # @return [Hash{String => String, nil, Hash, Array}]
      def nested(string, semicolon: false, pairs_max: PAIRS_MAX, key_bytes_max: KEY_BYTES_MAX, bytes_max: BYTES_MAX, depth_max: DEPTH_MAX)
        read_nested(string || "", semicolon, pairs_max, key_bytes_max, bytes_max, depth_max)
      end

      # The way back: of pairs, or of a hash. Arrays and hashes among the values get keys with brackets; nil has no `=`.
      # @param pairs [Hash, Array<Array(#to_s, Object)>]
      # @return [String]
      def build(pairs)
        parts = []
        pairs.each { |key, value| append(parts, key.to_s, value) }
        parts.join("&")
      end

      private

      def append(parts, key, value)
        case value
        when Hash then value.each { |inner, of_it| append(parts, "#{key}[#{inner}]", of_it) }
        when Array then value.each { |element| append(parts, "#{key}[]", element) }
        when nil then parts << escape(key)
        else parts << "#{escape(key)}=#{escape(value)}"
        end
      end
    end
  end
end
