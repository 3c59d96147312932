# frozen_string_literal: true

require "rackup/handler"
require "oribi/handler"

module Rackup
  module Handler
    Oribi = ::Oribi::Handler

    register :oribi, Oribi
  end
end
