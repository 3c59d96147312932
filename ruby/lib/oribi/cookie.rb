# frozen_string_literal: true

module Oribi
  # Cookies of a request, and of an answer.
  #
  #   Oribi::Cookie.parse(env["HTTP_COOKIE"])                       # => {"session" => "a b"}
  #   Oribi::Cookie.bake("session", value: "a b", http_only: true)  # => "session=a+b; httponly"
  #
  # The rules are those of Rack 3.2, and strings are tagged as UTF-8. +parse+ takes the first of several cookies with
  # one name, and raises Form::Error (413) for more than a megabyte or 65,536 of them.
  module Cookie
    SAME_SITE = { lax: 1, strict: 2, none: 3 }.freeze
    private_constant :SAME_SITE

    class << self
      # @param name [#to_s] a token (RFC 9110, 5.6.2)
      # @param cookie [Hash, #to_s] the value, or a hash with +value+ and any of +domain+, +path+, +max_age+, +expires+
      #   (a Time, a Date, or a date as it is to be written), +secure+, +http_only+ (or +httponly+), +same_site+ (:lax,
      #   :strict, :none, true for :strict) and +partitioned+. An array of values has `&` between them
      # @return [String] for a set-cookie header
      # @raise [ArgumentError] for a name that is no token, or an attribute with a semicolon or a control
      def bake(name, cookie)
        cookie = { value: cookie } unless cookie.is_a?(Hash)
        bake_parts(name.to_s, values(cookie[:value]), text(cookie[:domain]), text(cookie[:path]), expires(cookie[:expires]),
                   text(cookie[:max_age]), same_site(cookie[:same_site]), cookie[:secure], cookie.fetch(:httponly) { cookie[:http_only] }, cookie[:partitioned])
      end

      private

      def values(value) = (value.is_a?(Array) ? value : [value]).map(&:to_s)

      def text(value) = value ? value.to_s : nil

      def expires(value)
        return value || nil if !value || value.is_a?(String)

        value = value.to_time if value.respond_to?(:to_time)
        raise ArgumentError, "expires is a Time, a Date or a String, not #{value.class}" unless value.respond_to?(:to_i)

        date(value.to_i)
      end

      def same_site(value)
        return 0 unless value
        return SAME_SITE[:strict] if value == true

        SAME_SITE.fetch(value.to_s.downcase.to_sym) { raise ArgumentError, "same_site is lax, strict or none, not #{value.inspect}" }
      end
    end
  end
end
