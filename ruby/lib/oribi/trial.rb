# frozen_string_literal: true

module Oribi
  # Runs what an application may end (exit!, a crash of an extension, kill) in a child, so that the caller outlives it.
  module Trial
    BYTES_MAX = 48 * 1024 # less than a pipe holds: the child never waits for the caller
    COMPLETE = "\0complete"

    module_function

    # Calls the block in a child. What it prints to standard output goes to standard error.
    #
    # @yieldreturn [Array<String>] texts without NUL; together cut at BYTES_MAX
    # @return [Array<String>]
    # @raise [Oribi::Error] when the process ended before the block did
    def run(&block)
      reader, writer = IO.pipe(binmode: true)
      pid = fork { answer(writer, &block) }
      writer.close
      status = Process.wait2(pid).last
      text = reader.read_nonblock(BYTES_MAX + COMPLETE.bytesize, exception: false)
      raise Error, "the application ended the process while it was loaded (#{fate(status)})" unless text.is_a?(String) && text.end_with?(COMPLETE)

      text.force_encoding(Encoding::UTF_8).split("\0", -1)[1..-2]
    ensure
      reader&.close
    end

    def answer(writer)
      $stdout.flush
      STDOUT.reopen(STDERR)
      text = yield.map { |part| "\0#{part}" }.join.b.byteslice(0, BYTES_MAX) # a NUL before each
      writer.write(text, COMPLETE)
      $stdout.flush
      $stderr.flush
    ensure
      exit!(0) # without what the application has left for the end
    end

    def fate(status) = status.signaled? ? "signal #{Signal.signame(status.termsig)}" : "exit code #{status.exitstatus}"
    private_class_method :answer, :fate
  end
end
