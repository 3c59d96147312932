# frozen_string_literal: true

module Oribi
  # rack.input of a request without a body, made by the extension without a call to initialize. It reads with the
  # methods that a body's StringIO or File has, so that no application fails for want of a body.
  class EmptyInput
    include Enumerable

    def read(length = nil, buffer = nil)
      raise ArgumentError, "negative length #{length} given" if length&.negative?

      buffer&.clear
      return if length&.positive?

      buffer || String.new
    end

    def gets(*) = nil
    def getc = nil
    def getbyte = nil
    def each(*) = block_given? ? self : [].each
    def readlines(*) = []
    def readpartial(*) = raise(EOFError, "end of file reached")
    def rewind = 0
    def seek(*) = 0
    def lineno = 0
    def pos = 0
    def size = 0
    def eof? = true
    def sync = true
    def binmode = self
    def binmode? = true
    def external_encoding = Encoding::BINARY
    def set_encoding(*) = self
    def close = nil
    def closed? = false
    def inspect = "#<Oribi::EmptyInput>"

    %i[each_line each_byte each_char].each { |name| alias_method name, :each }
    %i[readline readchar readbyte sysread read_nonblock].each { |name| alias_method name, :readpartial }
    alias length size
    alias eof eof?
    alias tell pos
  end
end
