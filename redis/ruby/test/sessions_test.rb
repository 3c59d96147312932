# frozen_string_literal: true

require "open3"
require "support"

# The example in the checkout; the gem does not have it.
class SessionsTest < RedisTest
  EXAMPLE = File.expand_path("../../../examples/sessions", __dir__)

  def setup
    super
    skip "the example is in the repository alone" unless File.directory?(EXAMPLE)
    skip "rack-session is not installed (script/setup redis)" if Gem::Specification.find_all_by_name("rack-session").empty?
    # As a server does: what else the example needs is its own to load.
    require "rack"
    require "rack/mock"
    ENV["REDIS_URL"] = "unix://#{server.path}"
    @app, = Rack::Builder.parse_file(File.join(EXAMPLE, "config.ru"))
  end

  def teardown
    ENV.delete("REDIS_URL")
    super
  end

  def ask(cookie = nil) = Rack::MockRequest.new(@app).get("/", { "HTTP_COOKIE" => cookie }.compact)

  # Nothing else has loaded rack-session there, and rack 2 may be installed too, which has files of the same names.
  def test_it_loads_in_a_process_of_its_own
    env = { "RUBYLIB" => File.expand_path("../lib", __dir__) }
    output, status = Open3.capture2e(env, RbConfig.ruby, "-rrack", "-e", "Rack::Builder.parse_file(ARGV[0])", File.join(EXAMPLE, "config.ru"))
    assert status.success?, output
  end

  def test_visits_are_counted_and_names_are_not_the_browsers_to_choose
    first = ask
    cookie = first["set-cookie"][/\A[^;]+/]
    assert_equal ["visit 1\n", "visit 2\n", "visit 1\n"], [first.body, ask(cookie).body, ask.body]
    keys = redis.command("KEYS", "*")
    assert_equal 2, keys.size
    assert(keys.none? { |key| key.include?(cookie[/=(\h+)/, 1]) })
    assert(keys.all? { |key| redis.command("TTL", key).between?(1, 3600) })
    chosen = ask("rack.session=0123456789abcdef")
    assert_equal "visit 1\n", chosen.body
    refute_includes chosen["set-cookie"], "0123456789abcdef"
    server.kill
    assert_raises(Oribi::Redis::ConnectionError) { ask(cookie) }
    server.start
    assert_equal "visit 1\n", ask(cookie).body
  end
end
