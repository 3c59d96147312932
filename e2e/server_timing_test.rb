# frozen_string_literal: true

require_relative "support"

# server_timing: what browsers show of an answer's time in the queue and in its call.
E2E.suite("server_timing", options: %w[--server-timing], transports: %i[tcp]) do
  def timing(target, head: false)
    client = connect
    response = head ? client.head(target) : client.get(target)
    response["server-timing"].scan(/(\w+);dur=(\d+\.\d{3})(?=,|\z)/).to_h.transform_values(&:to_f)
  end

  def test_queue_and_call
    assert_equal %w[queue call], timing("/").keys
    assert_equal %w[queue call], timing("/", head: true).keys
    assert_equal %w[queue call], timing("/file").keys
    assert_equal %w[queue ttfb], timing("/stream").keys
  end

  # Answers without a call, and what the proxy says about the time before.
  def test_queue_of_the_proxy_and_none_without_a_call
    start = ((Process.clock_gettime(Process::CLOCK_REALTIME) - 5) * 1000).to_i
    late = connect.get("/", { "X-Request-Start" => start.to_s })
    assert_operator late["server-timing"][/queue;dur=(\d+)/, 1].to_i, :>=, 4000
    refused = connect.send_raw("BAD\r\n\r\n").read_response
    assert_equal [400, nil], [refused.status, refused["server-timing"]]
  end
end
