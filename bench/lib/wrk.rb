# frozen_string_literal: true

require "json"

module Bench
  # wrk for a round: closed loop, as fast as the server answers.
  class Wrk
    Load = Struct.new(:requests, :seconds, :bytes, :errors, keyword_init: true) do
      def per_second = requests / seconds
    end

    SCRIPT = File.join(ROOT, "bench/load/wrk.lua")
    TIMEOUT_S = 10

    def self.missing = system("command -v wrk >/dev/null") ? nil : "wrk is missing (script/setup bench)"

    # body_path: where the request's body lies, if it has one. paths_path: where the paths lie that are asked for by
    # turns in place of the request's own, one a line.
    def initialize(context, request, connections:, body_path: nil, paths_path: nil, pipeline: 1, scheme: "http")
      @scheme = scheme
      @context = context
      @request = request
      @connections = connections
      fields = request.fields.map { |name, value| "#{name}: #{value}" }.join("\n")
      @env = { "WRK_METHOD" => request.verb, "WRK_BODY" => body_path, "WRK_FIELDS" => fields, "WRK_PIPELINE" => pipeline.to_s,
               "WRK_PATHS" => paths_path }
    end

    # wrk knows whole seconds only, and ends early and in order when it is interrupted.
    def run(address, seconds)
      argv = ["timeout", "-s", "INT", seconds.round(2).to_s, "wrk", "-t", "1", "-c", @connections.to_s, "-d", "#{seconds.ceil + TIMEOUT_S}s",
              "--timeout", "#{TIMEOUT_S}s", "-s", SCRIPT, "#{@scheme}://#{address}#{@request.path}"]
      output = IO.popen(@env, @context.on_client_core(argv), err: %i[child out], &:read)
      line = output.lines.last.to_s
      raise "wrk did not finish: #{output.strip[0, 200]}" unless line.start_with?("{")

      counts = JSON.parse(line)
      errors = counts.slice("connect", "read", "write", "status", "timeout").reject { |_, count| count.zero? }
      Load.new(requests: counts["requests"], seconds: counts["us"] / 1e6, bytes: counts["bytes"], errors: errors)
    end
  end
end
