# frozen_string_literal: true

module Oribi
  # Forms, as a browser sends them.
  module Form
    # A body, query or cookie that is none, or more of it than allowed.
    class Error < StandardError
      # @return [Integer] what answers such a request: 400 or 413
      attr_reader :status

      def initialize(message, status = 400)
        super(message)
        @status = status
      end
    end
  end
end
