# frozen_string_literal: true

require_relative "free_port"
require_relative "processes"

module E2E
  # A running command with the processes below it. Started on a free port or socket, ended by pid.
  class Server
    attr_reader :pid, :dir, :address, :status

    def self.binary = File.join(ROOT, E2E.differing(:binary))

    # Variables that would set options.
    VARIABLES = %w[PORT RACK_ENV RAILS_ENV APP_ENV PLACK_ENV DANCER_ENVIRONMENT MOJO_MODE WEB_CONCURRENCY RAILS_MAX_THREADS].freeze

    # 280 KiB of text that shows where a byte went missing; served by /file and /handle.
    def self.numbers = @numbers ||= (1..50_000).map { |i| "#{i}\n" }.join

    def self.numbers_file
      @numbers_file ||= Dir.mktmpdir("oribi-e2e").then do |dir|
        Minitest.after_run { FileUtils.remove_entry(dir) }
        File.join(dir, "numbers.txt").tap { |path| File.write(path, numbers) }
      end
    end

    # options: of the command, beside the address and one worker. app: path of another application.
    # argv: replaces the whole command line (rackup and the like); %{port} and %{path} stand for the address.
    # group: the processes are a process group of their own, so that all can be found whoever their parents are.
    def initialize(transport: :tcp, options: [], app: nil, env: {}, argv: nil, dir: nil, group: false)
      @group = group
      @dir = dir || Dir.mktmpdir("oribi-e2e")
      @own_dir = dir.nil?
      @transport = transport
      @address = transport == :unix ? File.join(@dir, "socket") : ["127.0.0.1", E2E.free_port]
      @argv = argv&.map { |word| format(word, port: port, path: path) } || command_line(options, app)
      @env = { "E2E_DIR" => @dir, "E2E_FILE" => Server.numbers_file, **VARIABLES.to_h { |name| [name, nil] } }.merge(env)
      SERVERS << self
    end

    def port = @transport == :unix ? nil : @address[1]
    def path = @transport == :unix ? @address : nil
    def bind
      case @transport
      when :unix then "unix://#{@address}"
      when :frontend then "tcp://127.0.0.1:#{@address[1]}?frontend=on"
      else "127.0.0.1:#{@address[1]}"
      end
    end

    def start
      spawn_command
      E2E.wait_until("#{@argv.first} to listen; it wrote #{stderr}") do
        raise "ended at once (#{status}): #{stderr}#{stdout}" if ended?

        connect.close || true
      rescue Errno::ECONNREFUSED, Errno::ENOENT
        nil
      end
      self
    end

    # Starts it and does not wait for anything.
    def launch
      spawn_command
      self
    end

    # Runs a command line that is expected to fail, to its end.
    def run_to_end(seconds: DEADLINE)
      spawn_command
      wait(seconds: seconds)
      self
    end

    def connect(**options) = Client.new(@address, **options)

    # One request on a connection of its own.
    def get(target, fields = {})
      client = connect
      client.get(target, { "Connection" => "close" }.merge(fields))
    ensure
      client&.close
    end

    def stderr = File.read(File.join(@dir, "stderr"))
    def stdout = File.read(File.join(@dir, "stdout"))
    def said? = File.file?(File.join(@dir, "stderr"))
    def worker_pid = get("/pid").body.to_i
    def signal(name, pid = @pid) = Process.kill(name, pid)

    def ended?
      return true if @status
      return false unless @pid

      _, @status = Process.waitpid2(@pid, Process::WNOHANG)
      !@status.nil?
    end

    def wait(seconds: DEADLINE)
      E2E.wait_until("the command to end", seconds: seconds) { ended? }
      @status
    end

    # Pids of the command's process group, as of now.
    def group = Processes.in_group(@pid)

    # Pids of everything below the command, as of now, but for reapers (doc/platforms.md).
    def descendants = below.reject { |pid| Processes.title(pid).include?(" reaper of pid ") }

    def stop(signal = :TERM)
      return unless @pid

      pids = below
      unless ended?
        Process.kill(signal, @pid)
        begin
          wait
        rescue Timeout
          Process.kill(:KILL, @pid)
          wait
          @killed = true
        end
      end
      @left = left_of(pids)
      pids.each { |pid| Processes.kill(pid) }
      @status
    end

    # What stop() had to end by force: a list of pids, empty when all went by itself.
    # Reapers of a portable build (doc/platforms.md) end a moment after the server.
    def left_of(pids)
      alive = -> { pids.select { |pid| Processes.alive?(pid) } }
      E2E.wait_until("reapers to end") { alive.call.empty? } unless alive.call.empty? || !E2E.portable?
      alive.call
    rescue Timeout
      alive.call
    end

    def left_behind = [*(@pid if @killed), *@left]

    def cleanup
      stop(:KILL) unless ended?
      group.each { |pid| Processes.kill(pid) } if @group && @pid
      Processes.writing_to(File.join(@dir, "stderr")).each { |pid| Processes.kill(pid) } if @own_dir # successors, too
      FileUtils.remove_entry(@dir) if @own_dir && File.directory?(@dir)
      SERVERS.delete(self)
    end

    SERVERS = []
    Minitest.after_run { SERVERS.dup.each(&:cleanup) }

    private

    def below = Processes.below(@pid)

    # The cases write into the folders of their applications, and development would load those anew.
    def command_line(options, app)
      still = options.include?("--dev") ? [] : ["--no-dev"]
      [Server.binary, "--bind", bind, "--workers", "1", *still, *options, File.expand_path(app || E2E.differing(:app), ROOT)]
    end

    def spawn_command
      @pid = spawn(@env, *@argv, in: File::NULL, out: File.join(@dir, "stdout"), err: File.join(@dir, "stderr"),
                                 chdir: @env["E2E_CHDIR"] || ROOT, pgroup: @group || nil)
    end
  end
end
