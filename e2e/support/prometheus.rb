# frozen_string_literal: true

require "fileutils"
require "json"
require "net/http"
require "tmpdir"

module E2E
  # A Prometheus of a test's own, with a folder and a port of its own. The configuration is prometheus.yml in `dir`;
  # it begins with an empty one.
  class Prometheus
    attr_reader :dir, :port, :pid

    def self.here? = %w[prometheus promtool].all? { |name| system("command -v #{name} >/dev/null") }

    def initialize
      @dir = Dir.mktmpdir("oribi-prometheus")
      @port = E2E.free_port
      File.write(config, "global: {}\n")
      @pid = spawn("prometheus", "--config.file=#{config}", "--storage.tsdb.path=#{@dir}/data", "--log.level=warn",
                   "--web.listen-address=127.0.0.1:#{@port}", %i[out err] => File.join(@dir, "log"), chdir: @dir)
      E2E.wait_until("Prometheus to be ready") { ended? ? raise(log) : ready? }
    end

    def config = File.join(@dir, "prometheus.yml")
    def log = File.read(File.join(@dir, "log"))

    # Labels => value of what an expression gives now. Raises for one that is wrong.
    def query(expression)
      get("/api/v1/query?#{URI.encode_www_form(query: expression)}").fetch("result").to_h { |one| [one["metric"], one["value"][1].to_f] }
    end

    def rules = get("/api/v1/rules").fetch("groups").flat_map { |group| group["rules"] }

    def cleanup
      Process.kill(:KILL, @pid) && Process.wait(@pid) unless @ended # nothing of its data is kept
      @http&.finish
      FileUtils.remove_entry(@dir)
    end

    private

    def ended? = @ended ||= Process.wait(@pid, Process::WNOHANG)

    def http = @http ||= Net::HTTP.start("127.0.0.1", @port)

    def ready?
      http.get("/-/ready").is_a?(Net::HTTPOK)
    rescue Errno::ECONNREFUSED
      nil
    end

    def get(path)
      answer = JSON.parse(http.get(path).body)
      raise "#{path}: #{answer["error"]}" unless answer["status"] == "success"

      answer["data"]
    end
  end
end
