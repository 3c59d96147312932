# frozen_string_literal: true

module Oribi
  # Forking as the core's process control wants it.
  module Processes
    REFUSAL = "URG" # ignored by default, so that a stray one does no harm
    private_constant :REFUSAL

    module_function

    # Forks a process that ends as Ruby programs do. Where the system has no process to give, Ruby's fork tries again
    # until it has: the signal that the extension sends then breaks that off.
    def fork_program(&block)
      forking = Thread.current
      before = Trap.call(REFUSAL) { forking.raise(Errno::EAGAIN) }
      untrap = -> { Trap.call(REFUSAL, before || "SYSTEM_DEFAULT") }
      Core.with_refusal_signal(Signal.list.fetch(REFUSAL)) { block ? Process.fork { untrap.call && block.call } : Process.fork }
    rescue SystemCallError => e
      -e.errno
    ensure
      untrap&.call
    end

    # Standard output of a server is read while it runs: what is printed is to be seen at once.
    def sync_output
      [$stdout, STDOUT].uniq.each { |io| io.sync = true if io.respond_to?(:sync=) }
    rescue IOError # closed
      nil
    end

    # What the program has written and not sent yet, to any file: for a process that ends by exit!.
    def flush_all
      ObjectSpace.each_object(IO) do |io|
        io.flush unless io.closed?
      rescue SystemCallError, IOError
        nil
      end
      [$stdout, $stderr].each { |io| io.flush if io.respond_to?(:flush) }
    rescue SystemCallError, IOError
      nil
    end

    # Ends the other threads, whose `ensure` runs, as at the end of any Ruby program.
    def end_threads = (Thread.list - [Thread.current]).each(&:kill).each { |thread| thread.join(nil) rescue nil } # rubocop:disable Style/RescueModifier

    def tempfiles = defined?(Tempfile) ? ObjectSpace.each_object(Tempfile).to_a : []

    def title(text) = text && Process.setproctitle(text)
  end
end
