# frozen_string_literal: true

module Oribi
  # Forking as the core's process control wants it.
  module Processes
    module_function

    # Forks a process that ends with the code the block returns, without at_exit handlers: those are its parent's.
    #
    # @return [Integer] the child's pid, or the negative errno when there is none
    def fork(&block)
      Process.fork { exit!(guard(&block)) }
    rescue SystemCallError => e
      -e.errno
    end

    # Forks a process that ends as Ruby programs do.
    def fork_program(&block)
      Process.fork(&block)
    rescue SystemCallError => e
      -e.errno
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

    def guard
      yield
    rescue Exception => e # rubocop:disable Lint/RescueException -- nothing of the parent's may run in this process
      Failure.log(e, nil, "process")
      1
    end
    private_class_method :guard
  end
end
