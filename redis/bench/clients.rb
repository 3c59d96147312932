#!/usr/bin/env ruby
# frozen_string_literal: true

# Oribi::Redis and its driver beside redis-client with hiredis and with its own driver:
#   redis/bench/clients.rb SUBJECT PATH|PORT [--rounds N] [--seconds S]
# As redis/bench/clients.pl, which says what is done and printed.
$LOAD_PATH.unshift File.expand_path("../ruby/lib", __dir__)
require "json"
require "optparse"
require "oribi/redis"
require "oribi/redis/driver"

options = { rounds: 15, seconds: 0.1 }
OptionParser.new do |parser|
  parser.on("--rounds N", Integer) { |n| options[:rounds] = n }
  parser.on("--seconds S", Float) { |s| options[:seconds] = s }
end.parse!(ARGV)
SUBJECT, ADDRESS = ARGV
abort "usage: redis/bench/clients.rb SUBJECT PATH|PORT [--rounds N] [--seconds S]" unless ARGV.size == 2

PLACE = (ADDRESS.include?("/") ? { path: ADDRESS } : { host: "127.0.0.1", port: Integer(ADDRESS) }).freeze
BIG = "x" * (1 << 20)
GETS = Array.new(100) { %w[GET key] }.freeze
LIST = Array.new(1000) { |i| "item #{i}" }.freeze
HASH = Array.new(500) { |i| ["f#{i}", "value #{i}"] }.to_h.freeze

Client = Struct.new(:name, :one, :many)

def driver(name, driver, *libraries)
  libraries.each { |library| require library }
  client = RedisClient.config(driver: driver, read_timeout: 30, **PLACE).new_client
  Client.new(name, client.method(:call), ->(commands) { client.pipelined { |pipeline| commands.each { |words| pipeline.call(*words) } } })
rescue LoadError
  warn "clients.rb: #{name} is missing (script/setup bench)"
  nil
end

def clients
  ours = Oribi::Redis.new(read_timeout_ms: 30_000, **PLACE)
  own = Client.new("Oribi::Redis (Ruby)", ours.method(:command), ->(commands) { ours.pipeline(*commands) })
  drivers = [driver("redis-client, oribi", :oribi), driver("redis-client, hiredis", :hiredis, "hiredis-client"), driver("redis-client, ruby", :ruby)]
  [own, *drivers.compact]
end

# subject => [commands of a turn, a turn, what it must give]
SUBJECTS = {
  "get" => [1, ->(client) { client.one.call("GET", "key") }, "v" * 20],
  "pipeline" => [100, ->(client) { client.many.call(GETS) }, ["v" * 20] * 100],
  "list" => [1, ->(client) { client.one.call("LRANGE", "list", 0, -1) }, LIST],
  "hash" => [1, ->(client) { client.one.call("HGETALL", "hash") }, HASH],
  "1m" => [1, ->(client) { client.one.call("GET", "large") }, BIG],
}.freeze

def fill(client)
  commands = [["FLUSHALL"], ["SET", "key", "v" * 20]]
  commands << { "list" => ["RPUSH", "list", *LIST], "hash" => ["HSET", "hash", *HASH.flatten], "1m" => ["SET", "large", BIG] }[SUBJECT]
  client.many.call(commands.compact)
end

def clock(which) = Process.clock_gettime(which)

# Seconds and own seconds of processor.
def measure(client, turns, turn)
  begun, used = clock(Process::CLOCK_MONOTONIC), clock(Process::CLOCK_PROCESS_CPUTIME_ID)
  turns.times { turn.call(client) }
  [clock(Process::CLOCK_MONOTONIC) - begun, clock(Process::CLOCK_PROCESS_CPUTIME_ID) - used]
end

commands, turn, must = SUBJECTS.fetch(SUBJECT) { abort "clients.rb: no subject '#{SUBJECT}' (#{SUBJECTS.keys.join(", ")})" }
all = clients
fill(all.first)
all.each { |client| abort "clients.rb: #{client.name} does not give what it must" unless turn.call(client) == must }

2.times { measure(all.first, 10, turn) }
turns = 10
turns *= 2 while measure(all.first, turns, turn)[0] < options[:seconds] / 2 && turns < 1 << 24
rounds = Array.new(options[:rounds]) { |round| all.rotate(round).to_h { |client| [client.name, measure(client, turns, turn)] } }
all.each do |client|
  wall, cpu = rounds.map { |round| round[client.name].map { |seconds| seconds / turns / commands * 1e6 } }.transpose
  puts JSON.generate(server: client.name, wall_us: wall, cpu_us: cpu)
end
