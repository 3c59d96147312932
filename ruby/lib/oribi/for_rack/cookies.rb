# frozen_string_literal: true

module Oribi
  module ForRack
    # Goes before Rack::Utils.parse_cookies_header, for which Rack has no hook.
    module Cookies
      def self.install = ::Rack::Utils.singleton_class.prepend(self)

      def parse_cookies_header(header) = ForRack.cookies(header) || super
    end
  end
end
