# frozen_string_literal: true

require "fileutils"
require "open3"
require "socket"
require_relative "../lib/workload"

# The Redis client in both languages beside others, each in a process of its own on the load generators' core, and a
# redis-server of the run's own on the servers' core, by unix socket and by TCP. redis/bench/clients.pl and clients.rb
# say what is asked; here "requests" are commands, and the CPU is the client's. `--only redis` means all of them.
module Bench
  class RedisClients < Workload
    SCRIPTS = { "perl" => "redis/bench/clients.pl", "ruby" => "redis/bench/clients.rb" }.freeze
    SUBJECTS = { "get" => "one GET after the other, 20 bytes", "pipeline" => "pipelines of 100 GETs", "noreply" => "100 INCRs whose replies are read later",
                 "list" => "a list of 1,000 texts", "hash" => "a hash of 500 pairs", "1m" => "GET of 1 MiB" }.freeze
    PLACES = { "" => "unix socket", "-tcp" => "TCP" }.freeze
    LANGUAGES = { "noreply" => %w[perl] }.freeze
    ROUNDS = 15
    CONTESTANTS = 7
    TURN_S = (0.02..0.4).freeze
    START_S = 20
    LATE_S = 60 # beyond the workload's share
    REDIS = %w[/usr/bin/redis-server /usr/bin/redis-check-rdb].freeze # one binary under two names

    class << self
      attr_reader :subject, :tcp

      def define(subject, place)
        Class.new(self) do
          @subject = subject
          @tcp = place == "-tcp"
          register "redis-#{subject}#{place}", about: "Redis: #{SUBJECTS.fetch(subject)}, #{PLACES.fetch(place)}", family: "redis", weight: 0.2, quick: false
        end
      end
    end

    def results(&block)
      with_server do |address|
        languages = LANGUAGES.fetch(self.class.subject, SCRIPTS.keys)
        languages.each { |language| measure(language, address, share_s / languages.size, &block) }
      end
    end

    private

    # One script; what it says of a contestant that is missing becomes a note of its own contestants.
    def measure(language, address, share)
      progress(language)
      rounds = [context.rounds_min, context.quick? ? 1 : ROUNDS].max
      seconds = (share / rounds / CONTESTANTS).clamp(TURN_S.begin, TURN_S.end)
      script = File.join(ROOT, SCRIPTS.fetch(language))
      argv = [language, script, self.class.subject, address, "--rounds", rounds.to_s, "--seconds", seconds.round(3).to_s]
      output, errors, status = Open3.capture3(*context.on_client_core(["timeout", (share + LATE_S).ceil.to_s, *argv]))
      raise "#{SCRIPTS.fetch(language)}: #{errors.lines.last.to_s.strip}" unless status.success?

      note = errors.lines.map(&:strip).reject(&:empty?).join("; ").then { |text| text.empty? ? nil : text }
      output.each_line.map { |line| JSON.parse(line, symbolize_names: true) }.each do |one|
        yield result(one[:server], "requests_per_second", one[:wall_us].map { |us| 1e6 / us }, unit: "1/s", better: "higher", note: note)
        yield result(one[:server], "cpu_us_per_request", one[:cpu_us], unit: "µs", better: "lower")
      end
    end

    # Gives the block a socket's path, or a port.
    def with_server
      binary = REDIS.find { |path| File.exist?(path) } or raise "redis is missing (script/setup bench)"
      dir = context.scratch("redis")
      path = File.join(dir, "socket")
      port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      argv = [binary, "--port", port.to_s, "--bind", "127.0.0.1", "--unixsocket", path, "--save", "", "--dir", dir]
      pid = spawn(*server_argv(argv), %i[out err] => File.join(dir, "log"))
      await(path, dir)
      yield self.class.tcp ? port.to_s : path
    ensure
      Process.kill(:KILL, pid) && Process.wait(pid) if pid
    end

    # redis-check-rdb is the server when it is called so.
    def server_argv(argv) = context.on_server_core(["bash", "-c", 'exec -a redis-server "$@"', "redis-server", *argv])

    def await(path, dir)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + START_S
      begin
        UNIXSocket.new(path).close
      rescue SystemCallError
        raise "redis-server does not answer: #{dir}/log" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

        IO.select(nil, nil, nil, 0.02)
        retry
      end
    end

    SUBJECTS.each_key { |subject| PLACES.each_key { |place| define(subject, place) } }
  end
end
