# frozen_string_literal: true

require "fileutils"
require "shellwords"
require "tmpdir"
require_relative "pages"
require_relative "free_port"
require_relative "waiting"
require_relative "unit"

module E2E
  # Follows a page as a reader would, in a fresh folder: writes its files, runs its commands one by one, and compares
  # what they print with what the page shows. Reading order: follow, run, run_shell, serve, matches?.
  #
  # Other than on the reader's machine: ports are free ones; /etc, /srv and the like lie below the folder; installing
  # is looking whether the thing is here; systemctl is a Unit. A command that is a server goes on until ^C, the next
  # server or the end.
  class Follower
    Mismatch = Class.new(StandardError)

    SERVER = %r{\A(?:\w+=\S+\ |bundle\ exec\ |carton\ exec\ )*(?:oribi|oribi-psgi|script/server|rackup|plackup|puma|unicorn|pitchfork|passenger\ start|
                starman|start_server|uwsgi)(?!\S)
                (?!\ +(?:ctl|check|import|init|publish)\b)(?!.*(?:--version|--help|--check|--print-config|--completion|\||\ >))}x
    ROOTS = %r{(?<![\w./~-])/(etc|srv|run|var|tmp)/}
    # What differs from run to run, in output.
    VARYING = [/\d{4}-\d\d-\d\dT[\d:.]+Z/, /(?<=oribi\[)\d+/, /(?<=pid )\d+/, %r{\d\d/\w{3}/\d{4}:[\d:]+ [+-]\d{4}}, /\w{3}, \d\d \w{3} \d{4} [\d:]+ GMT/,
               /\d+\.\d+(?= s\b)/, /(?<=oribi |oribi-psgi |ruby |perl |rack |curl\/)\d+\.\d+[\d.]*/].freeze

    # pid: of the server that runs.
    attr_reader :home, :ran, :pid

    # @param ports [Hash] port of the page => port here, for all that the page names
    def initialize(ports: {}, env: {})
      @top = File.realpath(Dir.mktmpdir("oribi-page"))
      @home = File.join(@top, "home")
      @bin = File.join(@top, "bin")
      FileUtils.mkdir_p([@home, @bin, *%w[etc srv run var tmp].map { |name| File.join(@top, name) }])
      @ports = ports.transform_keys(&:to_s)
      @env = { **Server::VARIABLES.to_h { |name| [name, nil] }, "PORT" => @ports["9292"]&.to_s, "NO_COLOR" => "1", "LC_ALL" => "C.UTF-8",
               "PATH" => "#{@bin}:#{ENV.fetch("PATH")}", "HOME" => @home, **Follower.libraries, **env }
      @ran = []
      install_programs
    end

    # So that rackup and plackup find the server.
    def self.libraries
      perl = %w[perl/blib/lib perl/blib/arch].map { |dir| File.join(ROOT, dir) }
      { "RUBYLIB" => File.join(ROOT, "ruby/lib"), "PERL5LIB" => [*perl, *ENV["PERL5LIB"]].join(":") }
    end

    # @param blocks [Array<Page::Block>] in the order of the page
    def follow(blocks)
      blocks.each do |block|
        write(block.file, block.text) if block.file
        block.commands.each { |command| run(command) } unless block.file
      rescue Mismatch, Timeout, SystemCallError => e
        raise Mismatch, "line #{block.line}: #{e.message}"
      end
    end

    def write(path, text)
      path = here(path)
      FileUtils.mkdir_p(File.dirname(File.expand_path(path, directory)))
      File.write(File.expand_path(path, directory), here(text))
    end

    def run(command)
      text = here(command.text)
      @ran << command.text
      case text
      when "^C" then stop
      when /\A(?:sudo )?systemctl (.*)/ then show(command, unit_answer($1.sub(/ +#.*/, "").shellsplit))
      when /\A(?:sudo )?journalctl\b.*-u (\S+)/ then show(command, units.fetch($1).journal)
      when SERVER then serve(text, command)
      else
        output, code = run_shell(text)
        failing = code != 0 && command.output.to_s.empty? # a page that shows a failure shows its words
        raise Mismatch, "#{command.text}: exit code #{code}\n#{output}" if failing

        show(command, output)
      end
    end

    # As Ctrl-C does it: the signal goes to the group.
    def stop
      return unless @pid

      Process.kill(:INT, -@pid)
      E2E.wait_until("the server to end") { Process.waitpid(@pid, Process::WNOHANG) }
      @pid = nil
    end

    def end_all
      stop
      units.each_value(&:stop)
    ensure
      Process.kill(:KILL, -@pid) if @pid # it has not ended by itself, which a test has told
      end_shell
      FileUtils.remove_entry(@top)
    end

    # The page's text, for this machine.
    def here(text)
      ports = text.gsub(/(?<![\w.])(?:#{@ports.keys.join("|")})(?!\w)/) { |port| @ports.fetch(port).to_s }
      ports.gsub(ROOTS) { "#{@top}/#{$1}/" }
    end

    private

    # --- installed programs ---

    INSTALLERS = {
      "gem" => 'case "$1" in install|update) shift; for name; do case $name in -*|oribi) ;; *) ruby -e \'gem ARGV[0]\' "$name" || exit 1;; esac; done;; esac',
      "cpanm" => 'for name; do case $name in -*|Oribi) ;; *) perl -e \'eval "require $ARGV[0]" or die $@\' "$name" || exit 1;; esac; done',
      "sudo" => 'exec "$@"',
      "bundle" => '[ "$1" = exec ] && shift && exec "$@"',
      "chown" => ":",
    }.freeze

    def install_programs
      programs = INSTALLERS.merge("oribi" => "exec '#{ROOT}/ruby/exe/oribi' \"$@\"", "oribi-psgi" => "exec '#{ROOT}/perl/bin/oribi-psgi' \"$@\"")
      programs.each do |name, script|
        path = File.join(@bin, name)
        File.write(path, "#!/bin/sh\n#{script}\n")
        File.chmod(0o755, path)
      end
    end

    # --- the reader's shell: one, so that its folder and its jobs last ---

    def run_shell(text)
      @shell ||= IO.popen([@env, "bash", { chdir: @home, out: File::NULL, err: File::NULL, pgroup: true }], "w")
      output, code = %w[output code].map { |name| File.join(@top, name) }
      FileUtils.rm_f(code)
      @shell.puts "{ #{text}\n} >'#{output}' 2>&1 </dev/null; echo $? >'#{code}.new'; mv '#{code}.new' '#{code}'"
      @shell.flush
      E2E.wait_until("#{text} to end") { File.exist?(code) }
      [File.read(output), File.read(code).to_i]
    end

    def directory = @shell ? File.readlink("/proc/#{@shell.pid}/cwd") : @home

    def end_shell
      return unless @shell

      Process.kill(:KILL, -@shell.pid) # with what still runs below it
      @shell.close
    end

    # --- servers ---

    def serve(text, command)
      stop
      log = File.join(@top, "server.log")
      @pid = spawn(@env, "bash", "-c", "exec #{text}", chdir: directory, in: File::NULL, out: log, err: %i[child out], pgroup: true)
      E2E.wait_until("what #{command.text} shows; it wrote #{File.read(log)}") do
        if Process.waitpid(@pid, Process::WNOHANG)
          @pid = nil
          break if !command.output.to_s.empty? && matches?(command.output, File.read(log)) # the page shows why it does not start

          raise Mismatch, "#{command.text} ended:\n#{File.read(log)}"
        end
        command.output.to_s.empty? ? listening? : matches?("#{command.output.rstrip}…", File.read(log)) # more may follow
      end
    rescue Timeout
      raise Mismatch, "#{command.text} wrote\n#{File.read(log)}and not\n#{command.output}"
    end

    def listening?
      TCPSocket.open("127.0.0.1", @ports.fetch("9292")) { true }
    rescue Errno::ECONNREFUSED
      false
    end

    # --- systemd ---

    def units = @units ||= Hash.new { |known, name| known[name] = Unit.new(name, File.join(@top, "etc/systemd/system"), @top, @env) }

    def unit_answer(words)
      verb, name = words.grep_v(/\A-/)
      return units[name.delete_suffix(".service")].public_send(verb.tr("-", "_")) unless verb == "daemon-reload"

      Unit.verify(File.join(@top, "etc/systemd/system"), @top).tap { |found| raise Mismatch, "systemd says #{found}" unless found.empty? }
    end

    # --- comparison ---

    def show(command, output)
      return if command.output.nil? || command.output.empty? || matches?(command.output, output)

      raise Mismatch, "#{command.text} printed\n#{output}and not\n#{here(command.output)}"
    end

    def matches?(shown, printed)
      pattern = VARYING.reduce(here(shown).rstrip) { |text, varying| text.gsub(varying, "…") }
      actual = VARYING.reduce(printed.rstrip) { |text, varying| text.gsub(varying, "…") }
      actual.match?(/\A#{pattern.split("…", -1).map { |part| Regexp.escape(part) }.join(".*?")}\z/m)
    end
  end
end
