# frozen_string_literal: true

# Loops that want a processor each and nothing else, so that tests run as on a machine with other work.
module Busy
  # Each looks now and then whether we are still there, so that none outlives a run that was killed.
  LOOP = 'while kill -0 "$1" 2>/dev/null; do i=0; while [ "$i" -lt 100000 ]; do i=$((i + 1)); done; done'

  # Runs the block beside `count` loops.
  def self.with(count)
    pids = Array.new(count) { spawn("sh", "-c", LOOP, "busy", Process.pid.to_s, in: File::NULL) }
    yield
  ensure
    [*pids].each { |pid| Process.kill(:KILL, pid) }
    [*pids].each { |pid| Process.wait(pid) }
  end
end
