# frozen_string_literal: true

worker_processes 2
timeout 10
after_worker_fork do |server, worker|
  server.logger.info("worker #{worker.nr}")
end
before_worker_exit { |server, worker| puts worker.nr }
after_request_complete do |server, worker, env|
  GC.start if (worker.requests_count % 100).zero?
end
max_consecutive_spawn_errors 5
setpgid true
early_hints true
