# frozen_string_literal: true

require_relative "hooks"
require_relative "processes"
require_relative "mold"

module Oribi
  # The process that starts, watches and ends all others. The core decides; this only forks and runs hooks. It never runs the application.
  class Supervisor
    # @param options [Options] after #finish
    # @param loader [#load] gives the application
    # @param command [Array<String>, nil] command line of later generations and successors; nil: this process's own
    def initialize(options, loader, hooks = Hooks.new, command: nil)
      @options = options
      @command = command
      @loader = loader
      @hooks = hooks
    end

    # Serves until told to stop.
    #
    # @return [Integer] exit code
    # @raise [Error] when it cannot start
    def run
      listeners = Listeners.new(@options)
      return mold(Core::Mold.inherit(@options, listeners)) if Core::Mold.inherited?

      @host = Core::Host.create(@options, listeners, @command)
      code = nil
      code = turn while code.nil?
      code
    end

    private

    # Does the next thing; gives the exit code when that was the last.
    def turn
      action, *details = @host.take
      case action
      when :none then rest
      when :fork_mold then @host.forked(Processes.fork { enter_mold })
      when :fork_daemon then daemonize
      when :hook then hook(*details)
      when :exit
        @host.destroy
        return details.first
      end
      nil
    end

    def rest
      Processes.title(@host.title)
      @host.wait
    end

    def mold(core) = Mold.new(core, @options, @loader, @hooks).run

    def enter_mold
      mold(@host.enter_mold)
    rescue Error
      1 # the supervisor has been told why
    end

    def daemonize
      pid = Processes.fork_program
      pid.nil? ? @host.daemon_enter : exit!(@host.daemon_wait(pid))
    end

    def hook(name, pid, status, reason)
      name = name.to_sym
      name == :on_worker_exit ? @hooks.run(name, pid, status, reason) : @hooks.run(name)
    end
  end
end
