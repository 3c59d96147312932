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

    # What was given to at_exit so far will not run in this process and its children; what is given to it from now on
    # will. What such a process dies of is printed here, since Ruby prints it only after the last at_exit block.
    def forget_at_exit
      at_exit do
        error = $!
        told = [NilClass, SystemExit, SignalException].any? { |kind| error.is_a?(kind) }
        $stderr.write(error.full_message(highlight: false)) unless told
        exit!(error.nil? || (error.is_a?(SystemExit) && error.success?) ? 0 : error.is_a?(SystemExit) ? error.status : 1)
      end
    end

    def title(text) = text && Process.setproctitle(text)
  end
end
