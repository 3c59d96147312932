# frozen_string_literal: true

require "fileutils"
require "shellwords"
require "socket"
require_relative "waiting"

module E2E
  # A service as systemd runs it, for pages: starts, reloads and stops what the unit's lines say, and hears its
  # notifications. The user and the sandbox of the unit are left out: systemd-analyze has looked at those lines.
  class Unit
    # @return [String] what systemd-analyze says of these units: "" is well. It speaks of every unit that it meets,
    #   those of other packages too.
    def self.findings(*paths, env: {})
      output = IO.popen([env, "systemd-analyze", "verify", "--man=no", *paths, { err: %i[child out] }], &:read)
      names = paths.map { |path| File.basename(path) }
      output.lines.select { |line| names.any? { |name| line.include?(name) } }.join
    end

    # @return [String] what systemd-analyze finds in the units of the folder
    def self.verify(folder, top)
      units = Dir["#{folder}/*.{service,socket}"]
      raise "no unit in #{folder}" if units.empty?
      return "" unless system("command -v systemd-analyze >/dev/null")

      # systemd looks for programs itself, and not along PATH.
      checked = units.map do |path|
        File.join(top, File.basename(path)).tap { |copy| File.write(copy, File.read(path).gsub("/usr/local/bin/", "#{top}/bin/")) }
      end
      findings(*checked)
    end

    def initialize(name, folder, top, env)
      @name = name
      @path = File.join(folder, "#{name}.service")
      @top = top
      @env = env
    end

    def enable = start

    def start
      @notify = File.join(@top, "notify")
      @socket = Socket.new(:UNIX, :DGRAM).tap { |socket| socket.bind(Addrinfo.unix(@notify)) }
      folders
      @pid = spawn(environment, *words("ExecStart"), chdir: setting("WorkingDirectory"), in: File::NULL, out: log, err: %i[child out], pgroup: true)
      Process.detach(@pid)
      hear("READY=1")
      ""
    end

    def is_active = alive? ? "active\n" : "inactive\n"
    def is_enabled = "enabled\n"

    # systemctl reload waits for the command, and fails with it.
    def reload
      output = IO.popen([environment, *words("ExecReload"), { err: %i[child out], chdir: setting("WorkingDirectory") }], &:read)
      return "" if $?.success?

      File.write(log, output, mode: "a")
      "Job for #{@name}.service failed.\n"
    end

    def restart
      stop
      start
    end

    def stop
      return "" unless alive?

      Process.kill(:TERM, @pid)
      E2E.wait_until("#{@name} to end") { !alive? }
      @pid = nil
      @socket.close
      File.unlink(@notify)
      ""
    end

    def journal = File.read(log)

    private

    def log = File.join(@top, "#{@name}.journal")
    def setting(key) = File.read(@path)[/^#{key}=(.*)$/, 1]
    def all(key) = File.read(@path).scan(/^#{key}=(.*)$/).flatten
    def words(key) = setting(key).gsub("/usr/local/bin/", "#{@top}/bin/").gsub("$MAINPID", @pid.to_s).shellsplit
    def environment = { **@env, "PORT" => nil, "NOTIFY_SOCKET" => @notify, **all("Environment").flat_map(&:shellsplit).to_h { |pair| pair.split("=", 2) } }

    def alive?
      return false unless @pid

      read_notifications
      E2E::Processes.alive?(@pid) # the successor of an upgrade is no child of ours
    end

    def folders
      { "RuntimeDirectory" => "run", "LogsDirectory" => "var/log", "StateDirectory" => "var/lib" }.each do |key, below|
        all(key).each { |name| FileUtils.mkdir_p(File.join(@top, below, name)) }
      end
    end

    def read_notifications
      (@said ||= []).concat(@socket.recv_nonblock(4096).lines(chomp: true)) while true
    rescue IO::WaitReadable
      @said.grep(/\AMAINPID=(\d+)/) { @pid = $1.to_i }
    end

    def hear(line)
      E2E.wait_until("#{line} of #{@name}; it wrote #{journal}") do
        raise "#{@name} ended: #{journal}" unless alive?

        [*@said].include?(line)
      end
    end
  end
end
