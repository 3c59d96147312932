# Pitchfork: like Unicorn, and it forks again from a warm worker after this many requests of one.
worker_processes Integer(ENV.fetch("BENCH_WORKERS"))
listen ENV.fetch("BENCH_LISTEN"), backlog: 4096
timeout 60
refork_after [1000, 5000] if ENV["BENCH_REFORK"]
logger Logger.new(File::NULL)
