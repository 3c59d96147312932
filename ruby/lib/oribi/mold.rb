# frozen_string_literal: true

require_relative "memory"
require_relative "worker_process"

module Oribi
  # The process that has loaded the application and forks workers from it.
  class Mold
    # @param app [#call, nil] loaded already: the mold was a worker
    def initialize(core, options, loader, hooks, app = nil)
      @core = core
      @options = options
      @loader = loader
      @hooks = hooks
      @app = app
    end

    # Loads the application, then forks workers until told to end.
    #
    # @return [Integer] exit code
    def run
      Processes.forget_at_exit
      return 1 unless preload

      @core.ready
      serve
    end

    # @return [Integer] exit code
    def serve
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
        warm_up unless @options["warmup"].empty?
        Memory.settle
      end
      true
    rescue Exception => e # rubocop:disable Lint/RescueException -- whatever keeps an application from loading is told to the operator
      @core.failed(Failure.text(e, file: @loader.path, details: @options["verbose"] == "on"))
      false
    end

    # The requests go through a worker of this process, and what they leave behind is shared by those to come.
    def warm_up
      worker = @core.warm_up(Worker.allocate, Environment.constants)
      worker.run(@app)
      worker.warmed_up.close
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
