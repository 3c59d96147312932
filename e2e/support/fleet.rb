# frozen_string_literal: true

require "English"
require_relative "free_port"
require_relative "load"
require_relative "namespaces"

module E2E
  # Three nodes of examples/fleet on machines of their own, and what stands before them.
  class Fleet
    EXAMPLE = File.join(ROOT, "examples/fleet")
    NAMES = { "one" => "10.77.0.11", "two" => "10.77.0.12", "three" => "10.77.0.13" }.freeze
    CONFIG = E2E::RUBY ? "config/oribi.rb" : "config/oribi.pl"
    APP = File.join(ROOT, "e2e/apps/restarts#{E2E.differing(:app_extension)}")

    # A line of an access log, the balancer's or a node's. cut: HAProxy lost the node within an answer that had begun.
    Line = Struct.new(:client, :server, :status, :id, :method, :cut) do
      def well? = status == 200 && !cut
    end

    # One node, started and ended as an operator would.
    class Node
      attr_reader :name, :machine, :dir

      # options: beside those of the example's configuration.
      def initialize(name, address, dir, options)
        @name = name
        @dir = "#{dir}/#{name}"
        FileUtils.mkdir_p("#{@dir}/log")
        @machine = Namespaces::Machine.new(name, address)
        @options = options
      end

      def argv
        [*@machine.words, Server.binary, "--config", "#{EXAMPLE}/#{CONFIG}", "--chdir", @dir, "--env", "production", "--daemonize",
         "--pid-file", pid_file, "--control", "#{@dir}/control", "--error-log", "#{@dir}/errors", *@options, APP]
      end

      def start
        system(*argv, out: "#{@dir}/start", err: "#{@dir}/start") or raise "#{name}: #{File.read("#{@dir}/start")}#{errors}"
      end

      def pid_file = "#{@dir}/pid"
      def errors = File.exist?("#{@dir}/errors") ? File.read("#{@dir}/errors") : ""
      def supervisor = File.read(pid_file).to_i
      def pids = @machine.pids
      def signal(name) = pids.each { |pid| Process.kill(name, pid) rescue Errno::ESRCH }

      # As when the machine loses its power.
      def kill
        signal(:KILL)
        E2E.wait_until("#{name} to be gone") { pids.empty? }
      end

      # TERM to the supervisor; all is gone after it.
      def stop
        Process.kill(:TERM, supervisor)
        E2E.wait_until("#{name} to end: #{errors[-800..] || errors}") { pids.empty? }
      end

      def lines
        File.readlines("#{@dir}/log/access.log").map do |line|
          client, status, id, request = line.chomp.split(" ", 4)
          Line.new(client, name, status.to_i, id, request[/\w+/])
        end
      end
    end

    attr_reader :nodes, :dir, :front

    # proxy: nodes learn of clients by the PROXY protocol, and give requests their ids.
    def initialize(dir, unix: false, proxy: false)
      @dir = dir
      @unix = unix
      @proxy = proxy
      @front = ["127.0.0.1", E2E.free_port]
      @nodes = NAMES.map do |name, address|
        bind = ["--bind", "unix://#{dir}/#{name}/socket", "--trusted-proxies", "unix"] if unix
        bind = ["--bind", "tcp://0.0.0.0:9292?proxy=on", "--request-id-header", "X-Request-Id"] if proxy
        Node.new(name, address, dir, ["--drain-delay", "300ms", *bind])
      end
      @nodes.each(&:start)
    end

    def node(name) = @nodes.find { |one| one.name == name }
    def stats_socket = "#{@dir}/admin.sock"

    # Replaced in a file of the example; each must be there.
    def example(name, replaced)
      replaced.reduce(File.read("#{EXAMPLE}/#{name}")) do |text, (from, to)|
        raise "#{name} has no #{from}" unless text.include?(from)

        text.gsub(from, to)
      end
    end

    # addresses: { "three" => "127.0.0.1:1" } of servers that are not reached directly. timeout: of a node's answer.
    def haproxy(addresses: {}, timeout: "30s")
      # HAProxy drops lines of a log that several of its threads write to.
      replaced = { "bind :80" => "bind 127.0.0.1:#{front[1]}", "/run/haproxy/admin.sock" => stats_socket,
                   "log 127.0.0.1:514 local0" => "nbthread 1\n    log stdout format raw local0", "timeout server 30s" => "timeout server #{timeout}",
                   "check inter 1s" => "check inter 200ms", "agent-inter 2s" => "agent-inter 200ms" }
      if @proxy
        replaced.update("rise 1 weight" => "rise 1 send-proxy-v2 weight", " %ID " => " %[capture.res.hdr(0)] ",
                        "option forwardfor" => "capture response header X-Request-Id len 64")
      end
      NAMES.each do |name, address|
        at = addresses[name] || ("unix@#{@dir}/#{name}/socket" if @unix)
        replaced["server #{name} #{address}:9292"] = "server #{name} #{at} agent-addr #{address}" if at
      end
      run("haproxy", "-db", "-f", write("haproxy.cfg", example("haproxy.cfg", replaced)), log: "balancer.log")
      E2E.wait_until("all nodes to be up: #{states}") { states.values.all?("UP") && answers? }
    end

    def nginx
      replaced = { "listen 80" => "listen 127.0.0.1:#{front[1]}", "/var/log/nginx/board.log" => "#{@dir}/balancer.log" }
      head = "daemon off; pid #{@dir}/nginx.pid; error_log #{@dir}/nginx.errors;\n"
      run("nginx", "-e", "#{@dir}/nginx.errors", "-p", @dir, "-c", write("nginx.conf", head + example("nginx.conf", replaced)), log: "nginx.out")
      E2E.wait_until("nginx") { answers? }
    end

    # { "one" => "UP", ... }, by HAProxy.
    def states
      UNIXSocket.open(stats_socket) do |socket|
        socket.write("show stat\n")
        head, *rows = socket.read.lines(chomp: true)
        names = head.delete_prefix("# ").split(",")
        rows.map { |row| names.zip(row.split(",")).to_h }.select { |row| NAMES.key?(row["svname"]) }.to_h { |row| row.values_at("svname", "status") }
      end
    rescue Errno::ENOENT, Errno::ECONNREFUSED
      {}
    end

    # The nodes that a balancer's line of the example's log format can name.
    def balancer_lines(pattern)
      File.readlines("#{@dir}/balancer.log").filter_map do |line|
        found = line.match(pattern) or next
        cut = found.names.include?("end") && found[:end].start_with?("SD")
        Line.new(found[:client], NAMES.key(found[:server]) || found[:server], found[:status].to_i, found[:id], found[:method], cut)
      end
    end

    HAPROXY_LINE = /\A(?<client>\S+) \[\S+\] (?<server>\S+) -?\d+ (?<status>-?\d+) (?<end>\S+) \+?\d+ (?<id>\S+) "(?<method>[\w<>]+)/

    # The last of the nodes that nginx asked.
    NGINX_LINE = /\A(?<client>\S+) \[\S+\] (?:\S+, )*(?<server>[\d.]+):\d+ \S+ (?<status>\d+) (?<id>\S+) "(?<method>\w+)/

    # What an operator gives to examples/fleet/roll: the node ends and is started anew.
    def restart_command
      path = write("restart", <<~SH)
        case $1 in
        #{@nodes.map { |node| "#{node.name}) set -- #{node.pid_file} #{node.argv.join(" ")};;" }.join("\n")}
        esac
        pid=$(cat "$1"); kill -TERM "$pid"
        while [ -e "/proc/$pid" ]; do sleep 0.02; done
        shift
        exec "$@"
      SH
      "sh #{path} %s"
    end

    # What it said, and its exit code.
    def roll(*words, names: NAMES.keys)
      output = IO.popen(["#{EXAMPLE}/roll", *words, *names, { err: %i[child out] }], &:read)
      [output, $CHILD_STATUS.exitstatus]
    end

    def stop
      if @balancer
        Process.kill(:TERM, @balancer) # its workers go with it
        Process.wait(@balancer)
      end
      @nodes.each { |node| node.machine.remove }
    end

    private

    def write(name, text) = "#{@dir}/#{name}".tap { |path| File.write(path, text) }
    def run(*argv, log:) = @balancer = spawn(*argv, in: File::NULL, %i[out err] => ["#{@dir}/#{log}", "a"])

    def answers?
      client = Client.new(front)
      client.get("/").status == 200
    rescue StandardError
      false
    ensure
      client&.close
    end
  end
end
