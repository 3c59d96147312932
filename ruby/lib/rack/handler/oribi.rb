# frozen_string_literal: true

require "rack"
require "oribi/handler"

# With Rack 3 the rackup gem looks here only when it has not found rackup/handler/oribi.
if Gem::Version.new(Rack.release) >= Gem::Version.new("3")
  require "rackup/handler/oribi"
else
  module Rack
    module Handler
      Oribi = ::Oribi::Handler

      register "oribi", "Rack::Handler::Oribi"
      register "Oribi", "Rack::Handler::Oribi"
    end
  end
end
