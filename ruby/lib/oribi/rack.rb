# frozen_string_literal: true

# One line makes Rack::Request, and so Sinatra, Roda, Hanami and Rails, read query strings, forms, multipart bodies and
# cookies with Oribi's C core:
#
#   require "oribi/rack"
#
# Results, exceptions and limits stay those of the installed Rack (2.2 to 3.2): what the core does not read as that Rack
# does, Rack's own code reads. No Oribi server is needed. doc/forms.md lists what is hooked in, and where not to use it.
require "rack"
require "rack/utils"
require "rack/multipart"
require "tempfile"
require "oribi"

module Oribi
  # What oribi/rack puts in the place of Rack's parsers. The methods in C are modules of their own: Queries, QueryPairs
  # and Names go before Rack::QueryParser's methods.
  module ForRack
    use(::Rack::QueryParser::Params, ::Rack.release.to_i < 3)
  end
end

require_relative "for_rack/query_parser"
require_relative "for_rack/cookies"
require_relative "for_rack/uploads"
require_relative "for_rack/frame"
require_relative "for_rack/parser"

Oribi::ForRack::QueryParser.install
Oribi::ForRack::Cookies.install
Oribi::ForRack::Parser.install
