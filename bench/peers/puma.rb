# Puma: threads and workers from the environment; cluster mode loads the application once before the fork, as its
# documentation advises; a phased restart loads new code only where each worker loads the application itself.
workers Integer(ENV.fetch("BENCH_WORKERS"))
threads Integer(ENV.fetch("BENCH_THREADS")), Integer(ENV.fetch("BENCH_THREADS"))
bind ENV.fetch("BENCH_LISTEN")
preload_app! if ENV.fetch("BENCH_WORKERS") != "0" && ENV["BENCH_PRELOAD"] != "0"
environment "production"
quiet
