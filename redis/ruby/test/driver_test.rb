# frozen_string_literal: true

require "support"
require "oribi/redis/driver"

class DriverTest < RedisTest
  def client(**options) = RedisClient.config(driver: :oribi, path: server.path, **options).new_client

  def test_commands_errors_and_time_limits
    one = client
    assert_equal "OK", one.call("SET", "a", "1")
    assert_equal [2, "2"], one.pipelined { |pipeline| pipeline.call("INCR", "a"); pipeline.call("GET", "a") }
    assert_raises(RedisClient::WrongTypeError) { one.call("LPOP", "a") }
    first = assert_raises(RedisClient::WrongTypeError) { one.pipelined { |pipeline| pipeline.call("LPOP", "a"); pipeline.call("GET", "a") } }
    assert_equal %w[LPOP a], first.command
    assert_equal [3, "3"], one.multi { |transaction| transaction.call("INCR", "a"); transaction.call("GET", "a") }
    assert_raises(RedisClient::ReadTimeoutError) { client(read_timeout: 0.5).blocking_call(0.01, "BLPOP", "q", 0) }
    assert_nil one.blocking_call(5, "BLPOP", "q", 0.05)
    assert_equal "3", one.call("GET", "a")
    assert_raises(RedisClient::CannotConnectError) { RedisClient.config(driver: :oribi, path: "#{server.path}-none").new_client.call("PING") }
    assert_kind_of Float, one.measure_round_trip_delay
  end

  def test_a_push_does_not_shift_replies
    one = client
    one.call("CLIENT", "TRACKING", "ON")
    one.call("GET", "a")
    assert_equal %w[OK 9 z], one.pipelined { |pipeline| [%w[SET a 9], %w[GET a], %w[ECHO z]].each { |words| pipeline.call(*words) } }
    one.call("GET", "a")
    client.call("SET", "a", "10")
    assert_equal %w[10 y], [one.call("GET", "a"), one.call("ECHO", "y")]
  end

  def test_subscriptions
    subscription = client.pubsub
    subscription.call("SUBSCRIBE", "c")
    assert_equal ["subscribe", "c", 1], subscription.next_event(5)
    assert_nil subscription.next_event(0.02)
    client.call("PUBLISH", "c", "words")
    assert_equal %w[message c words], subscription.next_event(5)
    subscription.close
  end

  def test_a_caller_that_leaves_gets_no_answer_of_another
    one = client
    one.call("SET", "a", "mine")
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { one.blocking_call(0, "BLPOP", "q", 0) } }
    assert_equal "mine", one.call("GET", "a")
  end

  def test_a_server_that_comes_back
    one = client(reconnect_attempts: 2)
    one.call("SET", "a", "1")
    server.kill
    assert_raises(RedisClient::CannotConnectError) { one.call("GET", "a") }
    server.start
    assert_nil one.call("GET", "a")
  end
end
