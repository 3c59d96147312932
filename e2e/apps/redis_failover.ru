# frozen_string_literal: true

$LOAD_PATH.unshift(File.expand_path("../../redis/ruby/lib", __dir__))
require "oribi/redis"

# Keeps a session for each visitor and counts all visits, in the master that the Sentinels name; redis_failover.psgi is
# its twin. /visit?visitor=V&n=N&kept=1: a line for each reply, and "failed CLASS CODE MESSAGE" behind the last of them
# where one is an error. kept: the replica has the session, as WAIT says.
class FailoverApp
  TEXT = { "content-type" => "text/plain" }.freeze

  def initialize
    @redis = Oribi::Redis.new(sentinels: ENV.fetch("E2E_SENTINELS", "").split(","), service: "main", connect_timeout_ms: 300)
  end

  def call(env)
    query = env["QUERY_STRING"].split("&").to_h { |pair| pair.split("=", 2) }
    lines = []
    visit(lines, query["visitor"], query["n"], query["kept"] == "1") if env["PATH_INFO"] == "/visit"
    [200, TEXT.dup, [lines.map { |line| "#{line}\n" }.join]]
  end

  private

  def visit(lines, visitor, number, kept)
    session = "#{visitor}:#{number}"
    lines << "echo #{@redis.command("ECHO", session)}"
    set = ["SET", "session:#{visitor}", session]
    lines << "set #{kept ? replies(set, ["WAIT", 1, 200]) : @redis.command(*set)}"
    lines << "get #{@redis.command("GET", "session:#{visitor}")}"
    lines << "incr #{@redis.command("INCR", "visits")}"
  rescue Oribi::Redis::Error => e
    lines << "failed #{e.class} #{e.code if e.respond_to?(:code)} #{e.message}"
  end

  def replies(*commands)
    found = @redis.pipeline(*commands)
    raise found.grep(Oribi::Redis::Error).first if found.grep(Oribi::Redis::Error).any?

    found.join(" ")
  end
end

run FailoverApp.new
