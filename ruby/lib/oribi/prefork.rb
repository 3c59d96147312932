# frozen_string_literal: true

require "oribi"
require_relative "hooks"
require_relative "processes"
require_relative "start_command"
require_relative "prefork/settings"
require_relative "prefork/worker"

module Oribi
  # Keeps worker processes running for any loop: queues, consumers. The server's supervisor without HTTP.
  #
  #   manager = Oribi::Prefork.new(max_workers: 4, trap_signals: { "TERM" => "TERM", "HUP" => "TERM" })
  #   until manager.signal_received == "TERM"
  #     load_config
  #     manager.start do |worker|
  #       until worker.stopping?
  #         job = queue.take or next worker.wait(1)
  #         worker.job(job.name) { job.run }
  #       end
  #     end
  #   end
  #   manager.wait_all_children
  #
  # doc/prefork.md has all options and methods, and how they differ from those of prefork_engine.
  class Prefork
    HOOKS = %i[before_fork after_fork on_child_reap].freeze

    # Called with the manager in before_fork, with manager and pid in after_fork, with manager, pid and status in
    # on_child_reap.
    attr_accessor(*HOOKS)

    # Name of the signal that ended the last start, "" while it runs.
    attr_reader :signal_received

    attr_reader :manager_pid

    # In a child the Worker, else nil.
    attr_reader :worker

    # @param settings names as symbols or strings: max_workers, spawn_interval, err_respawn_interval, trap_signals,
    #   before_fork, after_fork, on_child_reap, program (name in titles and logs), titles (false leaves process titles
    #   alone), and the options of the table in doc/prefork.md
    # @raise [Oribi::Error] for a name that is nearly an option's, or a bad value; any other name is logged
    def initialize(settings = {}, **more)
      @settings = Settings.new
      @signal_received = ""
      settings.merge(more).each do |name, value|
        HOOKS.include?(name.to_sym) ? public_send("#{name}=", value) : @settings.set(name.to_sym, value)
      end
    end

    Settings::KNOWN.each do |name|
      define_method(name) { @settings.given[name] }
      define_method("#{name}=") do |value|
        @settings.set(name, value)
        @core&.configure
      end
    end

    # Runs workers until a trapped signal comes, and says true then, in the manager. With a block each worker runs it
    # and ends; without one start says nil in the worker, which is to call #finish. A second start begins a new
    # generation beside the workers there still are.
    #
    # @yieldparam worker [Worker]
    # @return [true, nil]
    def start(&block)
      raise Error, "cannot start workers within a worker" if @worker
      return if max_workers.zero? # for debugging: the caller goes on as if it were a worker

      @settings.finish
      @signal_received = ""
      @core ? @core.resume : create
      drive(block)
    end

    # Ends a worker.
    def finish(code = 0)
      raise Error, "finish is for workers, and this is the manager" unless @worker

      end_worker { code }
    end

    # @param signal [String, Symbol, Integer]
    # @return [Integer] how many workers it was sent to
    def signal_all_children(signal)
      @core ? @core.signal_all(signal) : 0
    end

    # Worker processes there are, of all generations.
    def num_workers = @core ? @core.workers : 0

    # Waits until no worker is left, at most so many seconds (0: for ever). A second TERM, QUIT or INT meanwhile ends
    # them at once.
    #
    # @return [Integer] how many are left
    def wait_all_children(timeout = 0)
      @core&.await_workers(timeout.to_f.positive? ? (timeout * 1000).ceil : 0)
      drive(nil) if @core
      left = num_workers
      close if left.zero? && %w[TERM QUIT INT].include?(@signal_received)
      left
    end

    private

    # --- the manager ---

    # Where a manager that reloads has started this program anew, it becomes a mold of that one.
    def create
      command = StartCommand.current
      manager = [@settings.traps, @settings.left]
      @core = Core::Process.create(@settings.options, @settings.program, nil, command.words, command.environment, command.needed, manager)
      return unless @core.role == "supervisor"

      @manager_pid = Process.pid
      at_exit { close } unless @at_exit
      @at_exit = true
    end

    def close
      @core.destroy if @core && Process.pid == @manager_pid
      @core = nil
    end

    # Until a signal is trapped, or everything has ended: true. In a worker without a block: nil.
    def drive(block)
      loop do
        step, *details = @core.take
        case step
        when "wait" then rest
        when "fork" then fork(*details)
        when "hook" then hook(*details)
        when "run" then return enter(block)
        when "trapped" then return trapped(*details)
        when "done" then return true
        when "exit" then return ended(*details)
        end
      end
    end

    def trapped(signal)
      @signal_received = signal
      true
    end

    def rest
      Processes.title(@core.title) if @settings.titles
      @core.wait
    end

    # The child goes on in the program's own frames, where start may return.
    def fork(kind)
      role = @core.forked(Processes.fork_program || 0)
      @manager_pid = Process.pid if kind == "daemon" && role == "supervisor"
    end

    def hook(name, _fatal, *arguments)
      case name
      when "before_fork", "after_fork" then call(name, self, *arguments)
      when "on_worker_exit" then reaped(*arguments)
      end
    end

    def reaped(pid, status, _reason)
      two = on_child_reap.respond_to?(:arity) && on_child_reap.arity == 2
      two ? call(:on_child_reap, pid, status) : call(:on_child_reap, self, pid, status)
    end

    # Everything has ended; what ended it takes its ordinary course now.
    def ended(code, at_once, signal)
      exit!(code) if at_once
      close
      raise Error, "the workers cannot be started" unless code.zero?

      @signal_received = signal || "INT" if @signal_received.empty?
      Process.kill(signal, Process.pid) if signal
      true
    end

    # What a hook raises is logged, nothing more.
    def call(name, *arguments)
      hook = public_send(name)
      Hooks.new.add(name, hook).run(name, *arguments) if hook
    end

    # --- a worker ---

    # In the child. Gives nil, or ends the process with what the block comes to.
    def enter(block)
      trap(:CHLD, "DEFAULT")
      @inherited_tempfiles = Processes.tempfiles
      @worker = Worker.new(@core, @settings.titles)
      @core = nil
      return unless block

      end_worker do
        block.arity.zero? ? block.call : block.call(@worker)
        0
      end
    rescue SignalException => e # it came before the block began
      die_of(e.signo)
    end

    # An ordinary end would go through the frames of the manager's program and its at_exit blocks, so this one is told
    # apart: threads end, Tempfiles of the worker go, what was written to any file is there.
    def end_worker
      code = begin
        yield
      rescue SystemExit => e
        e.status
      rescue SignalException => e
        die_of(e.signo)
      rescue Exception => e # rubocop:disable Lint/RescueException -- a worker never goes on in the manager's code
        Failure.log(e, nil, "the worker died")
        1
      end
      wind_up
      exit!(code)
    end

    # A signal meanwhile asks again: nothing is waited for any more.
    def wind_up
      Processes.end_threads
      (Processes.tempfiles - @inherited_tempfiles).each(&:close!)
    rescue Exception # rubocop:disable Lint/RescueException -- a worker never goes on in the manager's code
      nil
    ensure
      Processes.flush_all
    end

    def die_of(signal)
      wind_up
      trap(signal, "SYSTEM_DEFAULT")
      Process.kill(signal, Process.pid)
    end
  end
end
