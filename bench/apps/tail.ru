# frozen_string_literal: true

# Another application (BENCH_TAIL_APP) with a line a call in a file of its worker's (BENCH_TAIL_DIR), for
# bench/lib/tail.rb: begin, wait before it, wall clock, processor, run queue, collector; microseconds, the run queue
# nanoseconds.
inner = Rack::Builder.parse_file(ENV.fetch("BENCH_TAIL_APP")).then { |found| found.is_a?(Array) ? found.first : found }
clocks = lambda do
  [Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond), Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :microsecond),
   File.read("/proc/thread-self/schedstat").split[1].to_i, GC.stat(:time) * 1000]
end
files = {}

run lambda { |env|
  # A worker's own: applications are loaded before the fork.
  file = files[Process.pid] ||= File.open(File.join(ENV.fetch("BENCH_TAIL_DIR"), Process.pid.to_s), "a").tap { |one| one.sync = true }
  before = clocks.call
  response = inner.call(env)
  spent = clocks.call.zip(before).map { |now, then_| now - then_ }
  file.write("#{[before[0], env["oribi.queue_us"], *spent].join(" ")}\n")
  response
}
