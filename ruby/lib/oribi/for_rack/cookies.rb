# frozen_string_literal: true

module Oribi
  module ForRack
    # Goes before Rack::Utils.parse_cookies_header, for which Rack has no hook.
    module Cookies
      # False, and nothing is hooked in: names are decoded, as in the first releases of Rack 2.2.
      def self.install
        return false if ::Rack::Utils.parse_cookies_header("%61=1; b; b=%").to_a != [["%61", "1"], ["b", nil]]

        ::Rack::Utils.singleton_class.prepend(self)
        true
      end

      def parse_cookies_header(header) = ForRack.cookies(header) || super
    end
  end
end
