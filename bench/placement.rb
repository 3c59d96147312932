# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "servers"
require_relative "running"
require_relative "document"

# What requests wait while calls take a while: four workers, kept-alive connections, open-loop arrivals (bench/load/load.c). Every server gets
# the same arrivals and the same calls, drawn by the driver. Reading order: LOADS, SERVERS, Running (one server), measure.
module Bench
  module Placement
    WORKERS = 4
    CONNECTIONS = 64
    RUBY_APP = File.join(ROOT, "bench/apps/placement.ru")
    PERL_APP = File.join(ROOT, "bench/apps/placement.psgi")

    # name: in the results. of: the path whose figures count.
    Load = Struct.new(:name, :text, :paths, :rate, :of, keyword_init: true)
    LOADS = [
      Load.new(name: "sleep", text: "calls of 20 ms", paths: "/sleep/~20", rate: 100, of: "all"),
      Load.new(name: "mix", text: "calls of 1 ms, one of 100 takes 500 ms", paths: "/sleep/1:0.99,/sleep/500:0.01", rate: 150, of: "/sleep/1"),
    ].freeze

    NGINX_CONF = <<~CONF
      daemon off;
      worker_processes 1;
      pid %<dir>s/nginx.pid;
      error_log %<dir>s/error.log;
      events { worker_connections 1024; }
      http {
        access_log off;
        keepalive_requests 1000000000;
        client_body_temp_path %<dir>s/body;
        proxy_temp_path %<dir>s/proxy;
        fastcgi_temp_path %<dir>s/fastcgi;
        uwsgi_temp_path %<dir>s/uwsgi;
        scgi_temp_path %<dir>s/scgi;
        upstream unicorn { server unix:%<dir>s/unicorn.sock fail_timeout=0; }
        server {
          listen 127.0.0.1:%<port>d backlog=1024;
          location / { proxy_pass http://unicorn; }
        }
      }
    CONF

    UNICORN_CONF = <<~RUBY
      worker_processes #{WORKERS}
      listen "%<dir>s/unicorn.sock", backlog: 1024
      logger Logger.new(File::NULL)
    RUBY

    def self.oribi(binary, app, port, *more)
      [File.join(ROOT, binary), "--quiet", "--access-log", "off", "--workers", WORKERS.to_s, *more, "--bind", "127.0.0.1:#{port}", app]
    end

    def self.puma(port, threads)
      ["puma", "-q", "-e", "production", "-w", WORKERS.to_s, "-t", "#{threads}:#{threads}", "-b", "tcp://127.0.0.1:#{port}", RUBY_APP]
    end

    # Unicorn becomes a child of nginx, so that ending nginx's tree ends both.
    def self.unicorn_behind_nginx(port, dir)
      File.chmod(0o755, dir) # nginx drops to nobody when started by root, and must reach the socket
      unicorn = ["unicorn", "-E", "none", "-c", Bench.config(dir, "unicorn.rb", UNICORN_CONF), RUBY_APP].join(" ")
      nginx = "/usr/sbin/nginx -e #{dir}/error.log -c #{Bench.config(dir, "nginx.conf", NGINX_CONF, port: port)}"
      ["sh", "-c", "#{unicorn} & exec #{nginx}"]
    end

    ORIBI = { needs: File.join(ROOT, "ruby/exe/oribi"), package: "make" }.freeze
    ORIBI_PSGI = { needs: File.join(ROOT, "perl/bin/oribi-psgi"), package: "make" }.freeze
    PEER = { package: "script/setup bench" }.freeze
    SERVERS = [
      Server.new(key: "oribi", name: "Oribi (Rack)", argv: ->(port, _) { oribi("ruby/exe/oribi", RUBY_APP, port) }, **ORIBI),
      Server.new(key: "oribi-alone", name: "Oribi (Rack), helper off", argv: ->(port, _) { oribi("ruby/exe/oribi", RUBY_APP, port, "--no-helper") }, **ORIBI),
      Server.new(key: "puma", name: "Puma, 4 × 1 thread", needs: "puma", argv: ->(port, _) { puma(port, 1) }, **PEER),
      Server.new(key: "puma5", name: "Puma, 4 × 5 threads", needs: "puma", argv: ->(port, _) { puma(port, 5) }, **PEER),
      Server.new(key: "unicorn", name: "Unicorn behind nginx", needs: "unicorn", argv: ->(port, dir) { unicorn_behind_nginx(port, dir) }, **PEER),
      Server.new(key: "oribi-psgi", name: "Oribi (PSGI)", argv: ->(port, _) { oribi("perl/bin/oribi-psgi", PERL_APP, port) }, **ORIBI_PSGI),
      Server.new(key: "oribi-psgi-alone", name: "Oribi (PSGI), helper off",
                 argv: ->(port, _) { oribi("perl/bin/oribi-psgi", PERL_APP, port, "--no-helper") }, **ORIBI_PSGI),
      Server.new(key: "starlet", name: "Starlet", needs: "/usr/share/perl5/Plack/Handler/Starlet.pm",
                 argv: lambda { |port, _|
                   ["plackup", "-s", "Starlet", "-E", "none", "--host", "127.0.0.1", "--port", port.to_s, "--max-workers", WORKERS.to_s,
                    "--max-keepalive-reqs", MANY, "--max-reqs-per-child", MANY, PERL_APP]
                 }, **PEER),
      Server.new(key: "starman", name: "Starman", needs: "starman",
                 argv: lambda { |port, _|
                   ["starman", "-E", "none", "--preload-app", "--workers", WORKERS.to_s, "--max-requests", MANY, "--listen", "127.0.0.1:#{port}", PERL_APP]
                 }, **PEER),
    ].freeze

    # One server with its workers, on all cores.
    class Running < Bench::Running
      OPTIONS = Struct.new(:server_core, :close).new("0-#{Etc.nprocessors - 1}", false)
      DRIVER = File.join(ROOT, "build/bench/load")

      Row = Struct.new(:count, :errors, :mean, :p50, :p90, :p99, :p999, :max)

      def self.build_driver
        source = File.join(ROOT, "bench/load/load.c")
        return if File.exist?(DRIVER) && File.mtime(DRIVER) > File.mtime(source)

        FileUtils.mkdir_p(File.dirname(DRIVER))
        system("cc", "-std=gnu11", "-O2", "-o", DRIVER, source, "-lm") or raise "bench/load/load.c did not compile"
      end

      def initialize(server) = super(server, OPTIONS)

      # Several requests, so that every worker has answered once; those behind a proxy come up after it.
      def verify
        deadline = now + START_SECONDS
        until Array.new(8) { get }.all? { |response| response&.code == "200" && response.body == "done" }
          raise "does not answer as it should" if now > deadline

          IO.select(nil, nil, nil, 0.05)
        end
      end

      # { [path or "all", "time", "wait", "ideal" or "least"] => Row }, or nil when the server was too far behind.
      def play(load, seconds, seed)
        argv = ["-r", load.rate, "-c", CONNECTIONS, "-d", seconds, "-w", 1, "-p", load.paths, "-s", seed, "-k", WORKERS, "127.0.0.1:#{@port}"]
        output = IO.popen([DRIVER, *argv.map(&:to_s)], err: File::NULL, &:read)
        rows = output.lines.drop(1).to_h do |line|
          path, what, *numbers = line.split
          [[path, what], Row.new(*numbers.first(2).map(&:to_i), *numbers.drop(2).map(&:to_f))]
        end
        rows.empty? ? nil : rows
      end

      private

      def get
        Net::HTTP.start("127.0.0.1", @port, open_timeout: 2, read_timeout: 5) { |http| http.get("/sleep/1") }
      rescue SystemCallError, Net::OpenTimeout, Net::ReadTimeout, EOFError
        nil
      end
    end

    # Runs the loads on one server after another; yields each result, a hash. Servers that are not there are left out, and named by `absent`.
    def self.measure(keys: nil, seconds: 12, seed: 7)
      Running.build_driver
      wanted(keys).each do |server|
        running = Running.new(server)
        running.start
        LOADS.each { |load| yield result(server, load, running.play(load, seconds, seed), seconds) }
      ensure
        running&.stop
      end
    end

    def self.wanted(keys) = SERVERS.select { |server| (keys.nil? || keys.include?(server.key)) && server.missing.nil? }

    def self.absent(keys)
      SERVERS.select { |server| keys.nil? || keys.include?(server.key) }.filter_map { |server| server.missing && "#{server.name}: #{server.missing}" }
    end

    def self.result(server, load, rows, seconds)
      known = { bench: "placement", server: server.name, load: load.name, rate: load.rate, seconds: seconds }
      time, wait, ideal, least = rows && %w[time wait ideal least].map { |what| rows[[load.of, what]] }
      return known.merge(errors: "too far behind") unless time && wait&.mean && ideal

      known.merge(count: time.count, errors: rows.fetch(%w[all time]).errors, mean_ms: time.mean, p99_ms: time.p99,
                  mean_wait_ms: wait.mean, p99_wait_ms: wait.p99,
                  ideal_p99_ms: ideal.p99, ideal_mean_wait_ms: least.mean, ideal_p99_wait_ms: least.p99)
    end
  end
end
