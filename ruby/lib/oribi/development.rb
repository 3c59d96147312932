# frozen_string_literal: true

require_relative "development/facts"
require_relative "development/load_failure"

module Oribi
  # What a developer sees where an answer fails: a page with the error, the lines around it, the trace and the request.
  # Loaded in development alone; the page itself is the core's (develop/failure_page.h).
  class Development
    # An application that answers every request with the page of what kept `path` from loading.
    #
    # @param exception [Exception]
    # @param path [String, nil] of the rackup file
    # @return [#call]
    def self.load_failure(exception, path) = LoadFailure.new(exception, path)

    # @param roots [Array<String>] folders of the application
    def initialize(roots) = @roots = roots

    # The page of a call that has failed. The extension calls this; where this fails, too, it sends the plain 500.
    #
    # @return [Array<String>] content type and page
    def call_failure(error, env)
      facts = Facts.new(@roots)
      facts.title("#{env["REQUEST_METHOD"]} #{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}")
      facts.error(error)
      facts.environment(env)
      facts.page
    end

    # What the client of a WebSocket is told of an exception, and the file and line of it: "KeyError: no such key",
    # "room.rb:12". The extension puts both into the reason of the close.
    #
    # @return [Array<String>]
    def socket_failure(error)
      ["#{error.class}: #{Failure.first_line(error)}", File.basename(Failure.place_of(error).to_s)]
    end
  end
end
