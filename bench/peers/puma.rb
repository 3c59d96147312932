# Puma: threads and workers from the environment; cluster mode loads the application once before the fork, as its
# documentation advises.
workers Integer(ENV.fetch("BENCH_WORKERS"))
threads Integer(ENV.fetch("BENCH_THREADS")), Integer(ENV.fetch("BENCH_THREADS"))
bind ENV.fetch("BENCH_LISTEN")
preload_app! if ENV.fetch("BENCH_WORKERS") != "0"
environment "production"
quiet
