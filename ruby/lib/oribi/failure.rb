# frozen_string_literal: true

module Oribi
  # Exceptions told to people.
  module Failure
    OURS = [File.expand_path("..", __dir__), File.expand_path("../../exe", __dir__)].freeze
    BYTES = [Encoding::UTF_8, Encoding::BINARY, Encoding::US_ASCII].freeze

    module_function

    # One line, and with `details` the whole backtrace below it: "config.ru:3: undefined method `foo' for nil
    # (NoMethodError)". Where the backtrace knows no line of the application, it is `file` that is named. Oribi's own
    # errors speak for themselves.
    def text(error, file: nil, details: false)
      return legible(error.message) if error.is_a?(Error)

      message = error.is_a?(SystemExit) ? "the application ended the process: #{first_line(error)}" : first_line(error)
      place = place_of(error) || file
      message = "#{place}: #{message}" if place && !message.start_with?(place)
      line = "#{message} (#{error.class})"
      details ? [line, *Array(error.backtrace).map { |call| legible(call) }].join("\n  ") : line
    end

    # What is told to the operator: a line for each mistake; lines that begin with blanks belong to the one above.
    #
    # @return [Array<String>]
    def lines_of(error) = error.message.lines(chomp: true).map { |line| line.start_with?(" ") ? line : "oribi: #{line}" }

    # "GET /path: the application died: RuntimeError: words" and the application's part of the backtrace. `line` is that
    # of the request, if there is one. A request that is at fault itself is told in one line; its status is the result.
    def log(error, line, what)
      status = status_of(error)
      what = "the request is refused" if status
      text = [*line, what, error.class, first_line(error)].map { |part| legible(part) }.join(": ")
      status ? Oribi.log(:info, text) : Oribi.log(:error, text, lines(error).join("\n"))
      status
    end

    # 400 to 499 for an error that says so; nil for mistakes of the application.
    def status_of(error)
      error.status if defined?(Form::Error) && error.is_a?(Form::Error) && (400..499).cover?(error.status)
    end

    def first_line(error)
      legible(error.message).lines(chomp: true).find { |line| !line.strip.empty? } || "no message"
    end

    # What the system says, without Ruby's own words around it.
    def reason(error) = error.message[/\A[^@]+/].strip.downcase

    # Messages come in every encoding and broken ones, often with the very bytes that are their reason. Those are shown
    # as \xHH, and so is NUL, with which no text of C goes on.
    def legible(text)
      text = text.to_s
      text = text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace) unless BYTES.include?(text.encoding)
      text = text.dup.force_encoding(Encoding::UTF_8)
      text = text.scrub { |bytes| bytes.unpack("C*").map { |byte| format("\\x%02X", byte) }.join }
      text.include?("\0") ? text.gsub("\0", "\\x00") : text
    end

    # The line of the application's own code nearest to the mistake, for a syntax error the line it names.
    def place_of(error)
      return if error.is_a?(SyntaxError) # its message begins with the place

      location = error.backtrace&.find { |line| !line.start_with?(*OURS, "<internal:") && !line.include?("/gems/") }
      location && location[/\A.+?:\d+/]
    end

    def lines(error)
      (legible(error.message).lines(chomp: true).drop(1) + trace(error) + cause_lines(error.cause)).map { |line| legible(line) }
    end

    # Without frames of ours: nobody looks there for a mistake of the application's. A call that is told of its deadline
    # has not called `raise` itself.
    def trace(error)
      lines = Array(error.backtrace).reject { |line| line.start_with?(*OURS) }
      lines.shift if (error.is_a?(CallTimeout) || error.is_a?(ClientGone)) && lines.first&.match?(/:in [`'](?:Thread#)?raise'\z/)
      lines
    end

    def cause_lines(cause)
      cause ? ["caused by #{cause.class}: #{first_line(cause)}", *trace(cause)] : []
    end
    private_class_method :status_of, :lines, :trace, :cause_lines
  end

  # Called by the extension. Gives the status that answers, where the exception says which. @private
  def self.log_exception(error, line, what) = Failure.log(error, line, what)

  class << self
    # @private in development what answers a failed call with a page; nil: the core's plain answer does
    attr_writer :development

    # Called by the extension, also to find out that there is none: nil.
    def failure_page(error, env) = @development&.call_failure(error, env)

    # Called by the extension for a call of a WebSocket, as failure_page.
    def socket_failure(error) = @development&.socket_failure(error)
  end
end
