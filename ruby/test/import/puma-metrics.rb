# Prometheus beside the workers
plugin 'metrics'
metrics_url 'tcp://0.0.0.0:9395'
before_worker_boot do
  SemanticLogger.reopen if defined?(SemanticLogger)
end
before_worker_shutdown do
  puts "leaving"
end
out_of_band { GC.start }
silence_single_worker_warning
