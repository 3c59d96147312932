# frozen_string_literal: true

require "json"
require "open3"
require "support"
require "oribi/redis/driver"

# Programs that nobody here wrote, over the driver: each where its gem is installed.
class ProgramsTest < RedisTest
  JOBS = 200

  def need(*libraries)
    libraries.each { |library| require library }
  rescue LoadError => e
    skip "#{e.message} (script/setup redis)"
  end

  def redis_gem(**options) = Redis.new(driver: :oribi, path: server.path, **options)

  def test_the_gem_redis
    need "redis"
    one = redis_gem
    assert_equal "OK", one.set("a", "1")
    assert_equal [2, "2", ["a"]], one.pipelined { |p| p.incr("a"); p.get("a"); p.keys("*") }
    assert_equal [3, true], one.multi { |t| t.incr("a"); t.expire("a", 60) }
    one.hset("h", { "f" => "1", "g" => "ü" })
    assert_equal({ "f" => "1", "g" => "ü" }, one.hgetall("h"))
    one.zadd("z", [[1.5, "x"], [2, "y"]])
    assert_equal [["x", 1.5], ["y", 2.0]], one.zrange("z", 0, -1, with_scores: true)
    assert_equal %w[f g], one.hscan_each("h").map(&:first).sort
    assert_nil(one.watch("a") { redis_gem.set("a", "other"); one.multi { |t| t.set("a", "mine") } })
    assert_equal "other", one.get("a")
    assert_raises(Redis::CommandError) { one.lpush("a", "x") }
    assert_raises(Redis::TimeoutError) { redis_gem(timeout: 0.5, reconnect_attempts: 0).call("BLPOP", "q", 0) }
    assert_equal %w[q x], [one.lpush("q", "x"), redis_gem(timeout: 1).blpop("q", timeout: 5)].last
    assert_nil redis_gem(timeout: 2).blpop("q", timeout: 0.1)
    assert_raises(Redis::CannotConnectError) { Redis.new(driver: :oribi, path: "#{server.path}-none").ping }
  end

  def test_the_gem_redis_publishes_and_subscribes
    need "redis"
    heard = []
    ready = Thread::Queue.new
    listener = Thread.new do
      redis_gem.subscribe("c") do |on|
        on.subscribe { ready << true }
        on.message { |_, text| text == "end" ? redis_gem.publish("d", "x") && (raise StopIteration) : heard << text }
      end
    rescue StopIteration
      nil
    end
    ready.pop
    other = redis_gem
    5.times { |i| other.publish("c", "text #{i}") }
    other.publish("c", "end")
    assert listener.join(DEADLINE_S)
    assert_equal Array.new(5) { |i| "text #{i}" }, heard
  end

  def test_the_cache_of_rails
    need "active_support", "active_support/cache", "active_support/cache/redis_cache_store"
    failures = []
    cache = ActiveSupport::Cache::RedisCacheStore.new(driver: :oribi, path: server.path, namespace: "n", reconnect_attempts: 0, pool: { size: 3 },
                                                      error_handler: ->(exception:, **) { failures << exception.class })
    assert_equal "made", cache.fetch("a", expires_in: 60) { "made" }
    assert_equal "made", cache.fetch("a") { flunk }
    assert cache.write("large", "x" * 200_000)
    assert_equal "x" * 200_000, cache.read("large")
    cache.write_multi({ "b" => 1, "c" => { list: [1, nil, "ü"] } })
    assert_equal({ "a" => "made", "b" => 1, "c" => { list: [1, nil, "ü"] } }, cache.read_multi("a", "b", "c", "none"))
    assert_equal [1, 3], [cache.increment("n"), cache.increment("n", 2)]
    refute cache.write("a", "other", unless_exist: true)
    cache.delete_matched("[ab]*")
    assert_nil cache.read("a")
    threads = Array.new(8) { |i| Thread.new { 50.times { |j| cache.write("t#{i}", j); cache.read("t#{i}") == j or raise "wrong" } } }
    threads.each(&:join)
    server.kill
    assert_nil cache.read("b")
    refute_empty failures
    assert(failures.all? { |failure| failure <= Redis::BaseConnectionError })
    server.start
    assert cache.write("b", 2)
    assert_equal 2, cache.read("b")
  end

  # A whole Sidekiq in a process of its own: jobs, one that fails once, one for later.
  WORKER = <<~RUBY
    require "sidekiq"
    require "sidekiq/api"
    require "sidekiq/scheduled"
    require "oribi/redis/driver"
    place = { driver: :oribi, path: ENV.fetch("REDIS_PATH") }
    Sidekiq.configure_server do |config|
      config.redis = place
      # What is due is looked for all the time, not each five seconds, and what failed is due at once.
      due = Sidekiq::Scheduled::Enq.new(config)
      config.on(:startup) { Thread.new { loop { due.enqueue_jobs; Sidekiq::RetrySet.new.retry_all; sleep(0.05) } } }
    end
    Sidekiq.configure_client { |config| config.redis = place }
    class Count
      include Sidekiq::Job
      sidekiq_options retry: 1
      def perform(name)
        first = Sidekiq.redis { |redis| redis.call("HINCRBY", "tries", name, 1) } == 1
        raise "the first time" if first && name == "fails once"
        Sidekiq.redis { |redis| redis.call("HINCRBY", "done", name, 1) }
      end
    end
  RUBY

  def wait_for_jobs(log, &)
    Support.wait_until("Sidekiq", &)
  rescue RuntimeError => e
    flunk "#{e.message}: #{File.read(log)}"
  end

  def test_sidekiq_works_its_jobs_off
    need "sidekiq"
    file = File.join(server.dir, "worker.rb")
    File.write(file, WORKER)
    env = { "REDIS_PATH" => server.path, "RUBYLIB" => File.expand_path("../lib", __dir__) }
    push = "require #{file.inspect}; Sidekiq.strict_args!; Count.perform_bulk(Array.new(#{JOBS}) { |i| [i.to_s] }); " \
           'Count.perform_async("fails once"); Count.perform_in(1, "later")'
    output, status = Open3.capture2e(env, RbConfig.ruby, "-e", push)
    assert status.success?, output
    assert_equal JOBS + 1, redis.command("LLEN", "queue:default")
    log = File.join(server.dir, "sidekiq.log")
    pid = spawn(env, RbConfig.ruby, Gem.bin_path("sidekiq", "sidekiq"), "-r", file, "-c", "5", %i[out err] => log)
    wanted = [*Array.new(JOBS, &:to_s), "fails once", "later"].to_h { |name| [name, "1"] }
    wait_for_jobs(log) { redis.command("HLEN", "done") == wanted.size }
    assert_equal wanted, redis.command("HGETALL", "done")
    assert_equal "2", redis.command("HGET", "tries", "fails once")
    Process.kill(:TERM, pid)
    _, ended = Process.wait2(pid)
    pid = nil
    assert_predicate ended, :success?, File.read(log)
  ensure
    Process.kill(:KILL, pid) && Process.wait(pid) if pid
  end
end
