# frozen_string_literal: true

require_relative "worker_process"

module Oribi
  # The process that has loaded the application and forks workers from it.
  class Mold
    def initialize(core, options, loader, hooks)
      @core = core
      @options = options
      @loader = loader
      @hooks = hooks
    end

    # @return [Integer] exit code
    def run
      Processes.forget_at_exit
      return 1 unless preload

      @core.ready
      loop do
        case @core.take
        when :spawn then spawn_worker
        when :none then rest
        when :exit
          @core.destroy
          return 0
        end
      end
    end

    private

    def preload
      if @options["preload"] == "on"
        @app = @loader.load
        settle_memory
      end
      true
    rescue Exception => e # rubocop:disable Lint/RescueException -- whatever keeps an application from loading is told to the operator
      @core.failed(Failure.text(e, file: @loader.path, details: @options["verbose"] == "on"))
      false
    end

    # Objects that have grown old are not touched by later minor collections, so their pages stay shared with the workers.
    def settle_memory
      Process.respond_to?(:warmup) ? Process.warmup : 3.times { GC.start }
    end

    # Two forks, so that the worker becomes the supervisor's child.
    def spawn_worker
      @hooks.run(:before_fork)
      @core.before_fork
      pid = Processes.fork do
        @core.intermediate(Processes.fork_program { WorkerProcess.new(@core.enter_seat, @options, @loader, @hooks).run(@app) })
        0
      end
      @core.after_fork(pid)
    end

    def rest
      Processes.title(@core.title)
      @core.wait
    end
  end
end
