# frozen_string_literal: true

# A server whose clients never leave it a moment: requests are served in the order in which they were complete, of
# newcomers and of kept-alive clients, whichever worker holds the connection. ORIBI_SOAK=1: more of them.
require "support"
require "support/native"
require "support/saturation"

# What all suites here share.
module Saturated
  APP = "e2e/apps/placement#{E2E.differing(:app_extension)}"
  RATIO_MAX = 1.5 # the slowest newcomer, by the median of the others
  NEWCOMERS = 8

  def assert_fair(clients, path, *options, newcomers: Saturated::NEWCOMERS, **more)
    server = start(*options, "--access-log", "off", app: Saturated::APP, **more)
    waits = nil
    2.times do # a few newcomers are a small sample: who starves does so in each
      waits = E2E::Saturation.new(server.address, path, clients: clients, newcomers: newcomers).run
      break if waits.ratio <= Saturated::RATIO_MAX
    end
    assert_operator waits.ratio, :<=, Saturated::RATIO_MAX,
                    "#{clients} clients, #{path}: newcomers waited for #{waits.newcomers.sort.join(", ")} answers, the median of others is #{waits.median}"
  end
end

E2E.suite("saturation", transports: E2E::EITHER) do
  include Saturated

  def test_calls_that_sleep_at_four_workers
    assert_fair(16, "/sleep/20", "--workers", "4")
    assert_fair(200, "/sleep/10", "--workers", "4")
  end

  def test_calls_that_compute_at_four_workers
    assert_fair(64, "/compute/6", "--workers", "4")
  end

  def test_one_worker
    assert_fair(16, "/sleep/20", "--workers", "1")
    assert_fair(100, "/compute/6", "--workers", "1")
  end
end

E2E.suite("saturation_more", transports: %i[tcp]) do
  include Saturated

  def test_a_thousand_clients
    assert_fair(1000, "/sleep/6", "--workers", "4")
  end

  # Less than makes all workers wait in one queue.
  def test_calls_of_some_milliseconds
    assert_fair(64, "/sleep/2", "--workers", "4")
  end

  def test_a_crowd_of_newcomers
    assert_fair(100, "/sleep/10", "--workers", "4", newcomers: 100)
  end

  def test_threads
    skip "threads are Ruby's" unless E2E::RUBY
    assert_fair(64, "/sleep/20", "--workers", "2", "--threads", "2")
    assert_fair(64, "/sleep/20", "--workers", "1", "--threads", "4")
  end

  def test_limits_and_answers_that_need_no_call
    [%w[--queue-time-max 60s], %w[--queue-max 1000], %w[--health /up]].each do |options|
      assert_fair(64, "/sleep/10", "--workers", "4", *options)
    end
  end

  # Many more than in a run of all tests.
  if ENV["ORIBI_SOAK"]
    [16, 64, 200, 1000].product(%w[/sleep/20 /compute/20 /sleep/2 /sleep/500e-3], [1, 2, 4]).each do |clients, path, workers|
      define_method("test_#{clients}_clients_#{path.delete("/")}_#{workers}_workers") do
        assert_fair(clients, path, "--workers", workers.to_s)
      end
    end
  end
end

# A hand-off queue that has no room for all that wait: load/small_send_buffer.c stands for a small net.core.wmem_max.
E2E.suite("saturation_room", transports: %i[tcp]) do
  include Saturated

  const_set(:DEBIAN, 212_992) # bytes: some hundred messages
  const_set(:SMALL, 4608)     # a handful

  def room(bytes)
    library = File.join(E2E::ROOT, "build/e2e/small_send_buffer.so")
    E2E::Native.build(File.join(E2E::ROOT, "e2e/load/small_send_buffer.c"), library, "-shared", "-fPIC", "-ldl")
    { "LD_PRELOAD" => [ENV["LD_PRELOAD"], library].compact.join(":"), "SEND_BUFFER_MAX" => bytes.to_s }
  end

  def test_a_thousand_clients
    assert_fair(1000, "/sleep/6", "--workers", "4", env: room(self.class::DEBIAN))
  end

  def test_room_for_a_handful_of_messages
    assert_fair(64, "/sleep/6", "--workers", "4", env: room(self.class::SMALL))
    assert_fair(200, "/sleep/6", "--workers", "4", env: room(self.class::SMALL))
  end

  def test_calls_that_compute
    assert_fair(200, "/compute/6", "--workers", "4", env: room(self.class::SMALL))
  end

  def test_more_workers
    assert_fair(200, "/sleep/20", "--workers", "16", env: room(self.class::SMALL))
  end

  # What waits at the worker of a call that goes on and on finds its way into the queue all the same.
  def test_behind_one_long_call
    server = start("--workers", "4", "--access-log", "off", app: Saturated::APP, env: room(self.class::SMALL))
    connect(server).send_raw("GET /sleep/20000 HTTP/1.1\r\nHost: a\r\n\r\n")
    waits = E2E::Saturation.new(server.address, "/sleep/6", clients: 200, newcomers: Saturated::NEWCOMERS).run
    assert_operator waits.slowest_of_all, :<=, 2 * waits.median, waits.to_a.map(&:sort).inspect
  end
end

E2E.suite("saturation_frontend", transports: %i[frontend]) do
  include Saturated

  def test_through_a_frontend
    assert_fair(64, "/sleep/20", "--workers", "4")
  end
end

E2E.suite("saturation_beside_frontend", transports: %i[tcp]) do
  include Saturated

  # Clients of a frontend wait as long as those of other addresses, who keep every worker busy.
  def test_newcomers_at_a_frontend
    port = E2E.free_port
    server = start("--bind", "tcp://127.0.0.1:#{port}?frontend=on", "--workers", "4", "--access-log", "off", app: Saturated::APP)
    waits = E2E::Saturation.new(server.address, "/sleep/20", clients: 64, newcomers: 24, newcomers_at: ["127.0.0.1", port]).run
    sorted = waits.newcomers.sort
    assert_operator sorted[sorted.size / 2], :<=, Saturated::RATIO_MAX * waits.median,
                    "newcomers waited for #{sorted.join(", ")} answers, the median of others is #{waits.median}"
  end
end
