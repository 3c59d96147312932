# frozen_string_literal: true

require "etc"

module E2E
  # Waiting ends with the condition; the deadline only turns a hang into a failure. It is for a machine that has nothing
  # else to do: where more processes want to run than there are processors, it is as many times as long.
  DEADLINE = 30
  PATIENCE_MAX = 12

  Timeout = Class.new(StandardError)

  def self.clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # How many times as long as on an idle machine something may take now, by the load of the last minute.
  def self.patience
    load = File.exist?("/proc/loadavg") ? File.read("/proc/loadavg").to_f : 0.0
    (load / Etc.nprocessors).clamp(1, PATIENCE_MAX)
  end

  # The moment of clock when so many seconds of an idle machine have passed for sure.
  def self.deadline(seconds) = clock + seconds * patience

  # Calls the block until it gives something true, which is returned: less often as time goes by, for a look takes time
  # from what is waited for.
  def self.wait_until(what, seconds: DEADLINE)
    started = clock
    late = deadline(seconds)
    loop do
      result = yield
      return result if result
      waited = clock - started
      raise Timeout, "waited #{waited.round} s for #{what}" if clock > late

      IO.select(nil, nil, nil, (waited / 10).clamp(0.005, 0.02))
    end
  end
end
