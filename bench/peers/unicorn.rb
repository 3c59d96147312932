# Unicorn: the application loaded once, no log. It has no keep-alive by design and wants a proxy in front.
worker_processes Integer(ENV.fetch("BENCH_WORKERS"))
listen ENV.fetch("BENCH_LISTEN"), backlog: 4096
# HUP loads new code only where each worker loads the application itself.
preload_app ENV["BENCH_PRELOAD"] != "0"
timeout 60
logger Logger.new(File::NULL)
