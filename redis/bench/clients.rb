#!/usr/bin/env ruby
# frozen_string_literal: true

# Oribi::Redis and its driver beside redis-client with hiredis: redis/bench/clients.rb [rounds]. A redis-server of its
# own, over a unix socket and TCP. In each round the clients take turns; a ratio is the median of the rounds' ratios,
# above 1 where the client is faster than redis-client with hiredis. CPU is the client's own, for one turn of the loop.
# Exit code 1 when a reply is not what it must be.
$LOAD_PATH.unshift File.expand_path("../ruby/lib", __dir__)
require "fileutils"
require "socket"
require "tmpdir"
require "hiredis-client"
require "oribi/redis"
require "oribi/redis/driver"

ROUNDS = Integer(ARGV.fetch(0, 15))
ELEMENTS = 1000
BIG = "x" * (1 << 20)
GETS = Array.new(100) { %w[GET key] }.freeze
INCRS = Array.new(100) { %w[INCR n] }.freeze

Client = Struct.new(:name, :one, :many, :quiet, keyword_init: true)

def clients(place)
  plain = Oribi::Redis.new(**place)
  drivers = { "the driver" => :oribi, "hiredis" => :hiredis }.map do |name, driver|
    client = RedisClient.config(driver: driver, **place).new_client
    many = ->(commands) { client.pipelined { |pipeline| commands.each { |words| pipeline.call(*words) } } }
    Client.new(name: name, one: ->(*words) { client.call(*words) }, many: many, quiet: many)
  end
  quiet = ->(commands) { plain.noreply(*commands) and plain.command("PING") }
  [Client.new(name: "Oribi::Redis", one: ->(*words) { plain.command(*words) }, many: ->(commands) { plain.pipeline(*commands) }, quiet: quiet), *drivers]
end

# what => [turns of a round, a turn, what it must give or nil]
SUBJECTS = {
  "one GET after the other" => [2000, ->(client) { client.one.call("GET", "key") }, "v" * 20],
  "pipelines of 100 GETs" => [200, ->(client) { client.many.call(GETS) }, ["v" * 20] * 100],
  "100 INCRs without reply, beside a pipeline" => [200, ->(client) { client.quiet.call(INCRS) }, nil],
  "a list of #{ELEMENTS}" => [200, ->(client) { client.one.call("LRANGE", "list", 0, -1) }, Array.new(ELEMENTS, &:to_s)],
  "a hash of #{ELEMENTS} pairs" => [100, ->(client) { client.one.call("HGETALL", "hash") }, Array.new(ELEMENTS) { |i| ["f#{i}", "v#{i}"] }.to_h],
  "GET of 1 MiB" => [50, ->(client) { client.one.call("GET", "big") }, BIG],
  "SET of 1 MiB" => [50, ->(client) { client.one.call("SET", "other", BIG) }, "OK"],
}.freeze

def clock(which) = Process.clock_gettime(which)
def median(values) = values.sort[values.size / 2]

# [seconds, seconds of processor] of one turn.
def measure(client, turns, turn)
  begun, used = clock(Process::CLOCK_MONOTONIC), clock(Process::CLOCK_PROCESS_CPUTIME_ID)
  turns.times { turn.call(client) }
  [clock(Process::CLOCK_MONOTONIC) - begun, clock(Process::CLOCK_PROCESS_CPUTIME_ID) - used].map { |seconds| seconds / turns }
end

def compare(place)
  all = clients(place)
  all.last.one.call("SET", "key", "v" * 20)
  all.last.one.call("RPUSH", "list", *Array.new(ELEMENTS, &:to_s))
  all.last.one.call("HSET", "hash", *Array.new(ELEMENTS) { |i| ["f#{i}", "v#{i}"] }.flatten)
  all.last.one.call("SET", "big", BIG)
  SUBJECTS.map do |what, (turns, turn, must)|
    all.each { |client| abort "#{client.name}: #{what}: not what it must be" if must && turn.call(client) != must }
    rounds = Array.new(ROUNDS) { |round| all.rotate(round).to_h { |client| [client.name, measure(client, turns, turn)] } }
    ratios = all.first(2).map { |client| format("%.2f", median(rounds.map { |one| one["hiredis"][0] / one[client.name][0] })) }
    [what, *ratios, *all.map { |client| format("%.1f", median(rounds.map { |one| one[client.name][1] }) * 1e6) }]
  end
end

Dir.mktmpdir("oribi-redis-bench") do |dir|
  port = TCPServer.open("127.0.0.1", 0) { |one| one.addr[1] }
  path = File.join(dir, "socket")
  pid = spawn("redis-server", "--port", port.to_s, "--unixsocket", path, "--dir", dir, "--save", "", %i[out err] => File::NULL)
  sleep(0.01) until File.socket?(path)
  begin
    { "unix socket" => { path: path }, "TCP" => { host: "127.0.0.1", port: port } }.each do |name, place|
      puts "#{name}, #{ROUNDS} rounds:", "", "| | Oribi::Redis | the driver | CPU, Oribi::Redis, µs | the driver | hiredis |", "|---|---:|---:|---:|---:|---:|"
      compare(place).each { |row| puts "| #{row.join(" | ")} |" }
      puts
      RedisClient.config(path: path).new_client.call("FLUSHALL")
    end
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end
end
