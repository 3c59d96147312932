# frozen_string_literal: true

module Oribi
  # Signal.trap as Ruby has it. Debuggers and others put methods of their own before it, some of which know no numbers
  # (debug 1.4, a part of Ruby 3.1); the server's signals have no names, and no code but the server's needs them.
  module Trap
    ORIGINAL = Signal.method(:trap).then do |method|
      method = method.super_method while method.source_location && method.super_method
      method
    end
    private_constant :ORIGINAL

    # @param signal [String, Integer]
    # @param command [String, Proc, nil] instead of the block
    # @return [Object] what was there before
    def self.call(signal, command = nil, &block) = ORIGINAL.call(signal, command || block)
  end
end
