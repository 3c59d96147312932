worker_processes 4
timeout 20, cleanup: 3
refork_after [50, 100, 1000]
refork_max_unavailable 1
spawn_timeout 60
listen "127.0.0.1:8080", tcp_nopush: true

before_fork do |server|
  server.logger.info("about to fork")
end
after_mold_fork do |server, mold|
  Process.warmup
end
after_worker_fork do |server, worker|
  server.logger.info("worker=#{worker.nr} gen=#{worker.generation}")
end
after_monitor_ready do |server|
  server.logger.info("monitor ready")
end
