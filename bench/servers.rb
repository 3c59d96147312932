# frozen_string_literal: true

require "fileutils"

# The servers that bench/hello knows and how each is started with one worker, keep-alive where it has it, and no access log.
module Bench
  ROOT = File.expand_path("..", __dir__)
  RUBY_APP = File.join(ROOT, "bench/apps/hello.ru")
  PERL_APP = File.join(ROOT, "bench/apps/hello.psgi")
  PERL_LENGTH_APP = File.join(ROOT, "bench/apps/hello-length.psgi")
  MANY = "1000000000"
  ORIBI_OPTIONS = ["--quiet", "--workers", "1", "--access-log", "off"].freeze

  # key: for --only. needs: a file or a command. argv: of port and a scratch folder. env: of whether each request has its connection.
  Server = Struct.new(:key, :name, :needs, :package, :argv, :env, keyword_init: true) do
    # Why it cannot be had, or nil.
    def missing
      found = needs.include?("/") ? File.exist?(needs) : system("command -v #{needs} >/dev/null")
      found ? nil : "#{needs.delete_prefix("#{ROOT}/")} is missing (#{package})"
    end
  end

  # Compiled when first wanted, with what the core is compiled with.
  def self.bare
    binary = File.join(ROOT, "build/bench/bare")
    source = File.join(ROOT, "bench/bare.c")
    unless File.exist?(binary) && File.mtime(binary) > File.mtime(source)
      FileUtils.mkdir_p(File.dirname(binary))
      system("cc", "-O2", "-o", binary, source) or raise "bench/bare.c did not compile"
    end
    binary
  end

  NGINX_CONF = <<~CONF
    daemon off;
    worker_processes 1;
    pid %<dir>s/nginx.pid;
    error_log %<dir>s/error.log;
    events { worker_connections 1024; }
    http {
      access_log off;
      sendfile on;
      tcp_nopush on;
      default_type text/plain;
      keepalive_requests 1000000000;
      client_body_temp_path %<dir>s/body;
      proxy_temp_path %<dir>s/proxy;
      fastcgi_temp_path %<dir>s/fastcgi;
      uwsgi_temp_path %<dir>s/uwsgi;
      scgi_temp_path %<dir>s/scgi;
      server {
        listen 127.0.0.1:%<port>d;
        root %<dir>s;
        location = / { try_files /hello.txt =404; }
      }
    }
  CONF

  UNICORN_CONF = <<~RUBY
    worker_processes 1
    listen "127.0.0.1:%<port>d", backlog: 1024
    logger Logger.new(File::NULL)
  RUBY

  # Writes a configuration into the scratch folder and gives its path.
  def self.config(dir, name, text, **values)
    File.join(dir, name).tap { |path| File.write(path, format(text, dir: dir, **values)) }
  end

  SERVERS = [
    Server.new(key: "bare", name: "bare C loop", needs: "cc", package: "script/setup run",
               argv: ->(port, _dir) { [bare, port.to_s] }, env: ->(close) { close ? { "BARE_CLOSE" => "1" } : {} }),
    Server.new(key: "nginx", name: "nginx, 13-byte file", needs: "/usr/sbin/nginx", package: "script/setup bench",
               argv: lambda { |port, dir|
                 File.write(File.join(dir, "hello.txt"), "Hello, World!")
                 # nginx drops to nobody when started by root, and must reach its file.
                 File.chmod(0o755, dir)
                 ["/usr/sbin/nginx", "-e", "#{dir}/error.log", "-c", config(dir, "nginx.conf", NGINX_CONF, port: port)]
               }),
    Server.new(key: "oribi", name: "Oribi (Rack)", needs: File.join(ROOT, "ruby/exe/oribi"), package: "make",
               argv: ->(port, _) { [File.join(ROOT, "ruby/exe/oribi"), *ORIBI_OPTIONS, "--bind", "127.0.0.1:#{port}", RUBY_APP] }),
    Server.new(key: "oribi-psgi", name: "Oribi (PSGI)", needs: File.join(ROOT, "perl/bin/oribi-psgi"), package: "make",
               argv: ->(port, _) { [File.join(ROOT, "perl/bin/oribi-psgi"), *ORIBI_OPTIONS, "--bind", "127.0.0.1:#{port}", PERL_APP] }),
    Server.new(key: "puma", name: "Puma, 1 thread", needs: "puma", package: "script/setup bench",
               argv: ->(port, _) { ["puma", "-q", "-e", "production", "-w", "0", "-t", "1:1", "-b", "tcp://127.0.0.1:#{port}", RUBY_APP] }),
    Server.new(key: "puma5", name: "Puma, 5 threads", needs: "puma", package: "script/setup bench",
               argv: ->(port, _) { ["puma", "-q", "-e", "production", "-w", "0", "-t", "5:5", "-b", "tcp://127.0.0.1:#{port}", RUBY_APP] }),
    Server.new(key: "unicorn", name: "Unicorn (no keep-alive)", needs: "unicorn", package: "script/setup bench",
               argv: ->(port, dir) { ["unicorn", "-E", "none", "-c", config(dir, "unicorn.rb", UNICORN_CONF, port: port), RUBY_APP] }),
    Server.new(key: "starlet", name: "Starlet", needs: "/usr/share/perl5/Plack/Handler/Starlet.pm", package: "script/setup bench",
               argv: lambda { |port, _|
                 ["plackup", "-s", "Starlet", "-E", "none", "--host", "127.0.0.1", "--port", port.to_s, "--max-workers", "1",
                  "--max-keepalive-reqs", MANY, "--max-reqs-per-child", MANY, PERL_APP]
               }),
    Server.new(key: "starman", name: "Starman", needs: "starman", package: "script/setup bench",
               argv: lambda { |port, _|
                 ["starman", "-E", "none", "--preload-app", "--workers", "1", "--max-requests", MANY, "--listen", "127.0.0.1:#{port}", PERL_APP]
               }),
    Server.new(key: "uwsgi", name: "uWSGI, psgi plugin", needs: "uwsgi-core", package: "script/setup bench",
               argv: lambda { |port, _|
                 ["uwsgi-core", "--plugin", "psgi", "--http11-socket", "127.0.0.1:#{port}", "--psgi", PERL_LENGTH_APP, "-p", "1", "--disable-logging"]
               }),
  ].freeze
end
