# frozen_string_literal: true

require "socket"
require_relative "tools"

module Isucon4
  # A program beside the servers under measurement, on the client's core: started, waited for, ended by its pid.
  class Beside
    START_SECONDS = 30
    attr_reader :listen

    def initialize(context)
      @context = context
      @dir = context.scratch(self.class.name.split("::").last)
      @port = TCPServer.open("127.0.0.1", 0) { |socket| socket.addr[1] }
      @listen = "127.0.0.1:#{@port}"
    end

    def start
      log = File.join(@dir, "out")
      @pid = spawn(*pinned(argv), in: File::NULL, out: log, err: %i[child out], pgroup: true)
      deadline = now + START_SECONDS
      until listening?
        raise "#{self.class} ended: #{File.read(log)[0, 300]}" if ended?
        raise "#{self.class} did not listen" if now > deadline

        IO.select(nil, nil, nil, 0.01)
      end
      self
    rescue StandardError
      stop
      raise
    end

    def stop
      return if @pid.nil? || ended?

      Process.kill(:TERM, @pid)
      Process.wait(@pid)
      @ended = true
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def pinned(argv) = @context.on_client_core(argv)
    def ended? = @ended ||= !Process.waitpid(@pid, Process::WNOHANG).nil?

    def listening?
      TCPSocket.new("127.0.0.1", @port).close || true
    rescue Errno::ECONNREFUSED
      false
    end
  end

  # nginx as the contest had it.
  class Front < Beside
    NGINX = "/usr/sbin/nginx"

    def initialize(upstream, data, context)
      super(context)
      raise "nginx is missing (script/setup bench)" unless File.exist?(NGINX)

      values = { dir: @dir, upstream: upstream, port: @port, public: data.public_dir }
      @conf = File.join(@dir, "nginx.conf")
      File.write(@conf, format(File.read(File.join(HERE, "nginx.conf")), values))
      reach(upstream)
    end

    private

    # Started by root, nginx's worker is nobody, who must come in too.
    def reach(upstream)
      return unless Process.uid.zero?

      { File.dirname(upstream) => 0o755, @dir => 0o755, upstream => 0o777 }.each { |path, mode| File.chmod(mode, path) }
    end

    def argv = [NGINX, "-e", "#{@dir}/error.log", "-c", @conf]
  end

  # The bank in C: the driver's own limit. It has the server's core, as the servers have.
  class Perfect < Beside
    def initialize(data, context)
      super(context)
      @data = data
    end

    private

    def pinned(argv) = @context.on_server_core(argv)
    def argv = [Isucon4.perfect, @port.to_s, @data.users_path, @data.public_dir]
  end
end
