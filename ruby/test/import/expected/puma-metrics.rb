# Configuration of Oribi, made by `oribi import` from puma-metrics.rb (Puma).
# 3 settings taken over, 3 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# Prometheus beside the workers
# Not taken over (line 2): there are none: tmp_restart is restart_file "tmp/restart.txt", for systemd and solid_queue
# their own services
#   plugin 'metrics'
# Not taken over (line 3): not an option that import knows
#   metrics_url 'tcp://0.0.0.0:9395'
# before_worker_boot in Puma
after_fork do
  SemanticLogger.reopen if defined?(SemanticLogger)
end
# before_worker_shutdown in Puma
before_worker_exit do
  puts "leaving"
end
# out_of_band in Puma; garbage is collected while no request waits; a block for other work has no counterpart
oob_gc
# Not taken over (line 11): not there and not needed: nothing is warned of
#   silence_single_worker_warning

# What Puma does unless told otherwise:
workers 1 unless ENV["WEB_CONCURRENCY"]
threads 5 unless ENV["RAILS_MAX_THREADS"]
