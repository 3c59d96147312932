worker_processes 2
before_exec do |server|
  ENV["BUNDLE_GEMFILE"] = "/srv/app/current/Gemfile"
end
after_worker_ready do |server, worker|
  server.logger.info("worker #{worker.nr} ready")
end
after_worker_exit do |server, worker, status|
  server.logger.warn("worker #{worker.pid} ended: #{status.success?}")
end
worker_exec true
