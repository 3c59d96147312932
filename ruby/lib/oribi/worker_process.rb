# frozen_string_literal: true

module Oribi
  # The process that serves. It ends as Ruby programs do, so at_exit handlers of the application run in it.
  class WorkerProcess
    def initialize(seat, options, loader, hooks)
      @seat = seat
      @options = options
      @loader = loader
      @hooks = hooks
    end

    # @param app [#call, nil] nil: not loaded yet
    def run(app)
      index = @seat.index
      trap_signals
      worker, app = start(app, index)
      @seat.ready(worker)
      Oribi.seat = @seat
      @hooks.run(:after_worker_ready, index)
      fork_mold(app) while worker.run(app) == :fork_mold
      @hooks.run(:before_worker_exit, index)
      Oribi.seat = nil
      @left = true
      @seat.leave(worker)
      worker.close
    end

    # Those that the core acts on in a worker.
    SIGNALS = %w[TERM QUIT INT USR1 USR2].freeze
    private_constant :SIGNALS

    private

    # The core's handlers know of no Ruby. These traps stand behind them, so that code which traps a signal for a while finds something to call and
    # to put back. In a child that the application forks they do what Ruby does without a trap.
    def trap_signals
      worker = Process.pid
      SIGNALS.each do |name|
        number = Signal.list.fetch(name)
        Trap.call(name) { Process.pid == worker ? heed(number) : raise(SignalException, name) }
        @seat.retake(number)
      end
    end

    def heed(number) = @left ? exit!(0) : @seat.signal(number)

    # Two forks, as for a worker: the mold becomes the supervisor's child. This worker goes on until it is replaced.
    def fork_mold(app)
      @hooks.run(:before_refork, @seat.index)
      @seat.before_fork
      pid = Processes.fork do
        Processes.fork { become_mold(app) }
        0
      end
      @seat.after_fork(pid)
    end

    def become_mold(app)
      Oribi.seat = nil
      core = @seat.promote or return 1
      Memory.settle
      Mold.new(core, @options, @loader, @hooks, app).serve
    end

    def start(app, index)
      Memory.collect_between_requests(@options)
      @hooks.run!(:after_fork, index)
      app ||= @loader.load
      [@seat.open(Worker.allocate, Environment.constants), app]
    rescue Exception => e # rubocop:disable Lint/RescueException -- the supervisor counts and reports every failed start
      @seat.failed(Failure.text(e, file: @loader.path, details: @options["verbose"] == "on"))
      exit!(1)
    end
  end
end
