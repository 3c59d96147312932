# frozen_string_literal: true

# A pre-forking HTTP/1.1 application server for Rack. Reading order: cli.rb (the `oribi` command), config.rb and
# hooks.rb, app_loader.rb, supervisor.rb (the processes), then the extension, whose ext/oribi/ext.h has a map of its
# own.
module Oribi
  # A mistake of the operator or the application, told in one line.
  Error = Class.new(StandardError)

  # The client has left. Writing to a Stream or taking a socket raises it; it is no mistake of the
  # application and is not logged.
  DisconnectError = Class.new(IOError)

  # Raised in a call that has run for longer than +call_timeout+, wherever it is. An Exception, so that a `rescue => e`
  # on the way does not take it for a failure of its own; `ensure` clauses run. Not rescued it becomes a 504.
  CallTimeout = Class.new(Exception) # rubocop:disable Lint/InheritException -- as said

  # Raised in a call whose client has left, where +cancel_gone+ says so. An Exception for the same reason; not rescued
  # it ends the request without an answer and without a line in the error log.
  ClientGone = Class.new(Exception) # rubocop:disable Lint/InheritException -- as said

  class << self
    # @private the process of this worker
    attr_writer :process

    # True in a worker from the moment a stop of the server is announced: what a readiness check looks at, see
    # drain_delay.
    def stopping? = @process ? @process.stopping? : false
  end
end

require_relative "oribi/version"
require_relative "oribi/empty_input"
require_relative "oribi/stream"
require_relative "oribi/form_error"
require_relative "oribi/trap"
require_relative "oribi/extension"
require_relative "oribi/websocket"
require_relative "oribi/events"
require_relative "oribi/form"
require_relative "oribi/cookie"
require_relative "oribi/http_parser"
require_relative "oribi/failure"
require_relative "oribi/debugger"
require_relative "oribi/options"
require_relative "oribi/environment"
require_relative "oribi/app_metrics"
require_relative "oribi/publish"
require_relative "oribi/railtie" if defined?(::Rails::Railtie)
