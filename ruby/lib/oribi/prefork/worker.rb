# frozen_string_literal: true

module Oribi
  class Prefork
    # What a worker's loop asks and tells. A worker that uses none of this is ended by TERM, QUIT and INT as any Ruby
    # program; from the first use on TERM and QUIT only ask, and it ends when its loop does.
    class Worker
      def initialize(process, titles)
        @process = process
        @titles = titles
        show_title
      end

      # Number of the slot of this worker, 0 and up; later workers use it again.
      def index = @process.index

      def generation = @process.generation

      # Is the loop to end? True once the worker was told to stop, has done jobs_max jobs, or the manager is gone.
      def stopping? = @process.jobs_stopping?

      # Becomes readable when stopping? may have become true; for IO.select beside the queue's own. Never read from it.
      #
      # @return [IO]
      def io
        @process.jobs_watch_signals
        @io ||= IO.for_fd(@process.jobs_wake_fd, autoclose: false)
      end

      # Waits for so many seconds (nil: for ever), or until the worker is to stop.
      #
      # @return [Boolean] stopping?
      def wait(seconds = nil)
        deadline = seconds && Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
        show_title(rest: true)
        until stopping?
          left = deadline && deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
          break if left&.<=(0)

          io.wait_readable(left)
        end
        stopping?
      end

      # Runs a job: a stop waits for its end, and memory_max, age_max and reloads look at the worker before or after it.
      #
      # @param text [String] shown in the status while it runs
      def job(text = "")
        pid = Process.pid
        @process.jobs_begin(text.to_s)
        show_title
        yield
      ensure
        if Process.pid == pid # and no child that the job forked
          @process.jobs_end
          show_title
        end
      end

      private

      def show_title(rest: false)
        title = @titles && @process.jobs_title(rest)
        Process.setproctitle(title) if title
      end
    end
  end
end
