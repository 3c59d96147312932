# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "client"
require_relative "waiting"

module E2E
  # Debian's nginx with a block of configuration that a page or an example prints. One process serves, so that what it
  # keeps open to the server can be counted.
  class Nginx
    def self.missing = ENV.fetch("PATH").split(":").any? { |dir| File.executable?("#{dir}/nginx") } ? nil : "no nginx here"

    # Where a block belongs: it opens a `server`, is what stands in one, or has the whole file.
    def self.whole(block, port, around: ->(text) { "server { listen 80;\n#{text}\n}" })
      block = block.sub(/^events \{.*?^\}\n/m, "").sub(/^http \{\n(.*)^\}\n/m, "\\1").sub(/^\s*access_log .*\n/, "")
      block = around.(block) unless block.match?(/^\s*server \{/)
      block.gsub(/\blisten 80\b/, "listen 127.0.0.1:#{port}")
    end

    # @param http [String] what stands in `http`
    def initialize(http)
      @dir = Dir.mktmpdir("oribi-nginx")
      temp = %w[client_body proxy fastcgi uwsgi scgi].map { |kind| "#{kind}_temp_path #{kind};" }.join(" ")
      File.write("#{@dir}/nginx.conf", <<~CONF)
        daemon off; worker_processes 1; pid nginx.pid; error_log stderr; #{"user root;" if Process.uid.zero?}
        events { worker_connections 64; }
        http { access_log off; #{temp}
        #{http} }
      CONF
      @pid = spawn("nginx", "-e", "stderr", "-p", @dir, "-c", "#{@dir}/nginx.conf", err: "#{@dir}/log")
    end

    def log = File.read("#{@dir}/log")

    def wait_for(port)
      E2E.wait_until("nginx; it wrote #{log}") do
        TCPSocket.open("127.0.0.1", port) { true }
      rescue Errno::ECONNREFUSED
        raise "nginx ended: #{log}" if Process.waitpid(@pid, Process::WNOHANG)
      end
    end

    def stop
      Process.kill(:TERM, @pid)
      Process.wait(@pid)
    rescue Errno::ESRCH, Errno::ECHILD
      nil
    ensure
      FileUtils.rm_rf(@dir)
    end
  end
end
