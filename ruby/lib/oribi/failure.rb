# frozen_string_literal: true

module Oribi
  # Exceptions told to people.
  module Failure
    LIBRARY = File.expand_path("..", __dir__)

    module_function

    # One line, and with `details` the whole backtrace below it: "config.ru:3: undefined method `foo' for nil (NoMethodError)".
    # Oribi's own errors speak for themselves.
    def text(error, details: false)
      return error.message if error.is_a?(Error)

      message = error.is_a?(SystemExit) ? "the application ended the process: #{first_line(error)}" : first_line(error)
      place = place_of(error)
      message = "#{place}: #{message}" if place && !message.start_with?(place)
      line = "#{message} (#{error.class})"
      details ? [line, *error.backtrace].join("\n  ") : line
    end

    # Class, message and backtrace of what an application raised during a call.
    def log(error, env, where)
      request = env ? " (#{env["REQUEST_METHOD"]} #{env["REQUEST_URI"]})" : ""
      Oribi.log(:error, "#{where}: #{error.class}: #{first_line(error)}#{request}", lines(error).join("\n"))
    end

    def first_line(error)
      error.message.to_s.lines(chomp: true).find { |line| !line.strip.empty? } || "no message"
    end

    # The line of the application's own code nearest to the mistake, for a syntax error the line it names.
    def place_of(error)
      return if error.is_a?(SyntaxError)

      location = error.backtrace&.find { |line| !line.start_with?(LIBRARY) && !line.include?("/gems/") && !line.start_with?("<internal:") }
      location && location[/\A.+?:\d+/]
    end

    def lines(error)
      error.message.to_s.lines(chomp: true).drop(1) + Array(error.backtrace) + cause_lines(error.cause)
    end

    def cause_lines(cause)
      cause ? ["caused by #{cause.class}: #{first_line(cause)}", *cause.backtrace] : []
    end
    private_class_method :lines, :cause_lines
  end

  # Called by the extension. @private
  def self.log_exception(error, env, where) = Failure.log(error, env, where)
end
