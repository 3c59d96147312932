# frozen_string_literal: true

require "rack"
require_relative "lib/redis_sessions"

# Counts the visits of each browser. One client for all threads and workers: each process opens connections of its own.
use RedisSessions, redis: Oribi::Redis.new

run(lambda do |env|
  session = env["rack.session"]
  session["visits"] = session["visits"].to_i + 1
  [200, { "content-type" => "text/plain" }, ["visit #{session["visits"]}\n"]]
end)
