# frozen_string_literal: true

require "fileutils"
require "socket"
require_relative "waiting"

module E2E
  # A server of an installed unit in a Userland, started as systemd starts it: by the unit's user, with its
  # capabilities, its folders and its environment; it is up when it has notified so. The sandbox of the unit is left
  # out.
  class PackagedUnit
    FOLDERS = { "RuntimeDirectory" => "/run", "StateDirectory" => "/var/lib", "LogsDirectory" => "/var/log" }.freeze
    NOTIFY = "/run/notify"

    attr_reader :pid

    # name: of the package; server: what stands for %i.
    def initialize(userland, name, server)
      @userland = userland
      @server = server
      @unit = File.read(Dir["#{userland.dir}/{usr/,}lib/systemd/system/#{name}@.service"].first).gsub("%i", server)
      @log = userland.path("/root/#{server}.log")
    end

    def setting(key) = @unit[/^#{key}=(.*)$/, 1]
    def user = setting("User")
    def log = File.exist?(@log) ? File.read(@log) : ""

    def start
      @said = []
      FOLDERS.each { |key, above| @userland.run("install -d -o #{user} -g #{setting("Group")} #{above}/#{setting(key)}") }
      listen
      @pid = spawn("chroot", @userland.dir, "setpriv", *rights, "env", "-i", *environment, "sh", "-c",
                   "cd #{setting("WorkingDirectory")} && exec #{setting("ExecStart")}", in: File::NULL, out: @log, err: %i[child out])
      Process.detach(@pid)
      hear("READY=1")
    end

    def restart
      stop
      start
    end

    def stop
      return unless @pid && alive?

      Process.kill(:TERM, @pid)
      E2E.wait_until("#{@server} to end; it wrote #{log}") { !alive? }
      @pid = nil
    end

    # Waits for this notification. One of MAINPID is followed.
    def hear(line)
      E2E.wait_until("#{line} of #{@server}; it wrote #{log}") do
        raise "#{@server} ended: #{log}" unless alive?

        @said.include?(line)
      end
    end

    def forget_notifications = @said.clear

    private

    def rights
      capabilities = setting("AmbientCapabilities").split.map { |one| one.downcase.sub("cap_", "+") }.join(",")
      ["--reuid", user, "--regid", setting("Group"), "--init-groups", "--inh-caps", capabilities, "--ambient-caps", capabilities,
       *("--no-new-privs" if setting("NoNewPrivileges") == "yes")]
    end

    def environment
      folders = FOLDERS.map { |key, above| "#{key.sub("Directory", "").upcase}_DIRECTORY=#{above}/#{setting(key)}" }
      ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG=C.UTF-8", "NOTIFY_SOCKET=#{NOTIFY}", setting("Environment"), *folders]
    end

    def listen
      @socket&.close
      FileUtils.rm_f(@userland.path(NOTIFY))
      Dir.chdir(@userland.path("/run")) { @socket = Socket.new(:UNIX, :DGRAM).tap { |one| one.bind(Addrinfo.unix("notify")) } }
      File.chmod(0o777, @userland.path(NOTIFY))
    end

    def alive?
      read_notifications
      Processes.alive?(@pid) # the successor of an upgrade is no child of ours
    end

    def read_notifications
      @said.concat(@socket.recv_nonblock(4096).lines(chomp: true)) while true
    rescue IO::WaitReadable
      @said.grep(/\AMAINPID=(\d+)/) { @pid = $1.to_i }
    end
  end
end
