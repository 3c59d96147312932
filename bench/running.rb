# frozen_string_literal: true

require "etc"
require "fileutils"
require "net/http"
require "socket"
require "tmpdir"

module Bench
  # One server under measurement: started and pinned, loaded for a round at a time, verified, ended by pid.
  class Running
    START_SECONDS = 20
    TICKS = Etc.sysconf(Etc::SC_CLK_TCK)

    Round = Struct.new(:requests, :seconds, :cpu_seconds, :errors, keyword_init: true) do
      def per_second = requests / seconds
      def cpu_us = cpu_seconds / requests * 1e6
    end

    attr_reader :server, :rounds

    def initialize(server, options)
      @server = server
      @options = options
      @rounds = []
      @dir = Dir.mktmpdir("oribi-bench")
      @port = TCPServer.open("127.0.0.1", 0) { |socket| socket.addr[1] }
    end

    def start
      env = (server.env&.call(@options.close) || {}).merge("PORT" => nil, "RACK_ENV" => nil)
      @pid = spawn(env, "taskset", "-c", @options.server_core.to_s, *server.argv.call(@port, @dir).map(&:to_s),
                   in: File::NULL, out: File.join(@dir, "out"), err: %i[child out], pgroup: true)
      deadline = now + START_SECONDS
      until listening?
        raise "ended at its start: #{File.read(File.join(@dir, "out")).strip}" if ended?
        raise "did not listen within #{START_SECONDS} s" if now > deadline

        IO.select(nil, nil, nil, 0.02)
      end
      verify
    rescue StandardError
      stop
      raise
    end

    # The answer is 200, 13 bytes long and the right ones.
    def verify
      Net::HTTP.start("127.0.0.1", @port) do |http|
        response = http.get("/", @options.fields)
        length = response["content-length"]
        unless response.code == "200" && response.body == "Hello, World!" && [nil, "13"].include?(length)
          raise "#{server.name} answered #{response.code}, length #{length.inspect}, body #{response.body.inspect[0, 60]}"
        end
      end
    end

    def round(seconds) = @rounds << load(seconds)

    def load(seconds)
      before = cpu_seconds
      fields = @options.fields.flat_map { |name, value| ["-H", "#{name}: #{value}"] }
      output = IO.popen(["taskset", "-c", @options.client_core.to_s, "wrk", "-t", "1", "-c", CONNECTIONS.to_s, "-d", "#{seconds}s", *fields,
                         "http://127.0.0.1:#{@port}/"], &:read)
      used = cpu_seconds - before
      requests, took, unit = output.match(/(\d+) requests in ([\d.]+)(ms|s|m)\b/)&.captures
      raise "no answers under load: #{output.lines.grep(/requests in|errors/).join.strip}" unless requests && requests.to_i.positive?

      Round.new(requests: requests.to_i, seconds: took.to_f * { "ms" => 0.001, "s" => 1, "m" => 60 }.fetch(unit), cpu_seconds: used,
                errors: output[/Non-2xx.*|Socket errors:.*/])
    end

    def stop
      if @pid && !ended?
        below = tree
        Process.kill(:TERM, @pid)
        deadline = now + 10
        IO.select(nil, nil, nil, 0.02) until ended? || now > deadline
        below.each { |pid| kill(pid) }
        Process.wait(@pid) unless ended?
      end
      FileUtils.rm_rf(@dir)
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def ended?
      @ended ||= !Process.waitpid(@pid, Process::WNOHANG).nil?
    end

    def listening?
      TCPSocket.new("127.0.0.1", @port).close || true
    rescue Errno::ECONNREFUSED
      false
    end

    def kill(pid)
      Process.kill(:KILL, pid)
    rescue Errno::ESRCH
      nil
    end

    # "pid (comm) state ppid ..." without the first two.
    def stat(pid)
      text = File.read("/proc/#{pid}/stat")
      text[(text.rindex(")") + 2)..].split
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end

    def tree
      parents = Dir.children("/proc").grep(/\A\d+\z/).to_h { |pid| [pid.to_i, stat(pid)&.at(1).to_i] }
      found = [@pid]
      found.each { |one| found.concat(parents.filter_map { |pid, parent| pid if parent == one }) }
    end

    # User and system time of the tree, with that of children already reaped (proc(5): utime stime cutime cstime).
    def cpu_seconds = tree.sum { |pid| stat(pid)&.values_at(11, 12, 13, 14).to_a.sum(&:to_i) } / TICKS.to_f
  end
end
