# frozen_string_literal: true

module E2E
  # Waiting ends with the condition; the deadline only turns a hang into a failure, and is long enough for a machine
  # that is busy with something else.
  DEADLINE = 30

  Timeout = Class.new(StandardError)

  def self.clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # Calls the block until it gives something true, which is returned.
  def self.wait_until(what, seconds: DEADLINE)
    deadline = clock + seconds
    loop do
      result = yield
      return result if result
      raise Timeout, "waited #{seconds} s for #{what}" if clock > deadline

      IO.select(nil, nil, nil, 0.005)
    end
  end
end
