# frozen_string_literal: true

require_relative "gemfile"
require_relative "hooks"
require_relative "loaded_files"
require_relative "loading"
require_relative "memory"
require_relative "processes"
require_relative "rails_advice"
require_relative "start_command"

module Oribi
  # A process of a server: supervisor, mold or worker. The core says what comes next; this does what only Ruby can, and
  # a fork goes on here in both processes.
  class Supervisor
    # Those that the core acts on in a worker.
    SIGNALS = %w[TERM QUIT INT USR1 USR2].freeze
    # … and in a process that is the whole server.
    ALONE = %w[HUP].freeze
    private_constant :SIGNALS, :ALONE

    # @param options [Options] after #finish
    # @param loader [#load] gives the application
    # @param command [Array<String>] command line of later generations and successors
    def initialize(options, loader, hooks = Hooks.new, command: StartCommand.current.words)
      @options = options
      @loader = loader
      @hooks = hooks
      @command = command
    end

    # Serves until told to stop. In a command that a server has started to be its next mold: until that is told to.
    #
    # @return [Integer] exit code
    # @raise [Error] when it cannot start
    def run
      Processes.sync_output
      show_failures if @options["env"] == "development" || @options["dev"] == "on"
      start = StartCommand.current
      @core = Core::Process.create(@options, "oribi", Listeners.new(@options), @command, start.environment, start.needed, nil)
      enter(@core.role)
      RailsAdvice.log_suggestion(@options) if @core.role == "supervisor"
      drive
    end

    # What programs call that have started a server (Sinatra's `quit!`): a graceful stop, unless one is under way. Does
    # nothing in the server's other processes and after the end.
    def stop
      @core.stop if @core && !@left
    end

    private

    # Answers of calls that fail are pages. The folders of the application are this one and that of its file.
    def show_failures
      require_relative "development"
      file = @loader.path
      Oribi.development = Development.new([Dir.pwd, (File.dirname(File.expand_path(file)) if file)].compact.uniq)
    end

    # @return [Integer] exit code
    def drive
      loop do
        step, *details = @core.take
        case step
        when "wait" then rest
        when "fork" then fork(*details)
        when "hook" then hook(*details)
        when "load" then attempt { load }
        when "open" then attempt { @worker = open }
        when "run" then @worker.run(@app)
        when "exit" then return leave(*details)
        end
      end
    end

    def rest
      Processes.title(@core.title)
      @core.wait
    end

    # A daemon goes on in the program that has called us; all others end here.
    def fork(kind)
      pid = kind == "daemon" ? Processes.fork_program || 0 : Processes.fork_program { child }
      @core.forked(pid)
    end

    # A worker ends as Ruby programs do: at_exit blocks, `ensure` of threads, finalizers (which remove Tempfiles), files
    # flushed. Nothing of the parent's may run in the others.
    def child
      enter(role = @core.forked(0))
      code = drive
      role == "worker" ? exit(code) : exit!(code)
    rescue Exception => e # rubocop:disable Lint/RescueException
      raise if role == "worker"

      Failure.log(e, nil, "the process died")
      exit!(1)
    end

    def enter(role)
      case role
      when "mold"
        Oribi.process = @worker = nil
        Memory.settle if @app # it was a worker
      when "worker"
        trap_signals(@core.single? ? SIGNALS + ALONE : SIGNALS)
        Memory.collect_between_requests(@options)
      end
    end

    # The core's handlers know of no Ruby. These traps stand behind them, so that code which traps a signal for a while
    # finds something to call and to put back. In a child that the application forks they do what Ruby does without a
    # trap.
    def trap_signals(names)
      worker = Process.pid
      names.each do |name|
        number = Signal.list.fetch(name)
        Trap.call(name) { Process.pid == worker ? heed(number) : raise(SignalException, name) }
        @core.retake(number)
      end
    end

    def heed(number) = @left ? exit!(0) : @core.signalled(number)

    # Whatever keeps a mold or a worker from serving is told to the operator.
    def attempt
      yield
    rescue Exception => e # rubocop:disable Lint/RescueException
      @core.failed(Failure.text(e, file: @loader.path, details: @options["verbose"] == "on"))
    end

    def hook(name, fatal, *details)
      name = name.to_sym
      @hooks.serve_until_exit { @replaced } if name == :server_ready
      arguments = details.first(Hooks::ARGUMENTS.fetch(name).size)
      fatal ? attempt { @hooks.run!(name, *arguments) } : @hooks.run(name, *arguments)
    end

    # The requests of the warm-up go through a worker of the mold, and what they leave behind is shared by the workers
    # to come.
    def load
      Gemfile.advice&.then { |text| Oribi.log(:warn, text) }
      return @app = load_application unless @core.role == "mold"

      @app = Loading.watched(@core) { load_application }
      @core.loaded_with(@broken ? "with an error, which every request gets" : Loading.frameworks)
      warm_up unless @options["warmup"].empty?
      Memory.settle
    end

    # In development the supervisor is told which files that took, and what keeps the application from loading is a
    # page.
    def load_application
      return @loader.load if @options["dev"] != "on"

      files = LoadedFiles.new(@core, [@loader.path, @options["config"].empty? ? Config::DEFAULT : @options["config"]])
      app = files.gather { @loader.load }
      files.tell
      files.around(app)
    rescue SignalException
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException -- whatever it is, the developer is to see it
      raise unless files

      files.tell(e)
      Failure.log(e, nil, "#{@loader.path || "the application"} does not load, and answers with this until a file changes")
      @broken = true
      require_relative "development"
      Development.load_failure(e, @loader.path)
    end

    def warm_up
      worker = open
      worker.run(@app)
      worker.warmed_up.close
    end

    # In a mold: for the requests of the warm-up.
    def open
      worker = @core.open(Worker.allocate, Environment.constants)
      Oribi.process = @core unless @core.role == "mold"
      worker
    end

    # What the application has printed goes before a new program, too. A mold has loaded it and does not end it: that is
    # for workers.
    def leave(code, at_once, _signal)
      exit!(code) if at_once
      @left = true
      @replaced = @core.handed_over?
      Oribi.process = nil
      @worker&.close
      mold = @core.role == "mold"
      Processes.flush_all if mold || @core.single?
      @core.destroy # of a single process that is to be started anew: does not return
      leave_lost_folder
      mold ? exit!(code) : code
    end

    # The folder of the first release may be gone, and Bundler asks for its name once more.
    def leave_lost_folder
      Dir.pwd
    rescue SystemCallError
      Dir.chdir("/")
    end
  end
end
