# frozen_string_literal: true

require "rack/version"

module Oribi
  # The constant entries of every request's environment that depend on what is installed. They are the same objects each
  # time, and so frozen; but for $stderr, which is the process's whatever its name.
  module Environment
    module_function

    def constants(errors: $stderr)
      entries = { "rack.errors" => errors, "SERVER_SOFTWARE" => "oribi/#{VERSION}".freeze }
      entries.merge!("rack.version" => Rack::VERSION.dup.freeze, "HTTP_VERSION" => "HTTP/1.1") if rack2?
      entries
    end

    # Rack before 3 wants its version, and the protocol's under a second name.
    def rack2? = Rack.release.to_i < 3

    # Until Rack 3.0 HTTP_VERSION, where it is, has to be the protocol's version: no place for a client's "Version".
    def versions? = (Rack.release.split(".").first(2).map(&:to_i) <=> [3, 1]) >= 0
  end
end
