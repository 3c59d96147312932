# Unicorn: the application loaded once, no log. It has no keep-alive by design and wants a proxy in front.
worker_processes Integer(ENV.fetch("BENCH_WORKERS"))
listen ENV.fetch("BENCH_LISTEN"), backlog: 4096
preload_app true
timeout 60
logger Logger.new(File::NULL)
