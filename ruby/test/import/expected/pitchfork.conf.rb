# Configuration of Oribi, made by `oribi import` from pitchfork.conf.rb (Pitchfork).
# 8 settings taken over, 2 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# worker_processes in Pitchfork
workers 4
# timeout in Pitchfork; Oribi::CallTimeout is raised in the call, and two seconds later its worker is replaced:
# without cleanup
call_timeout 20
# one number here: the first of [50, 100, 1000]
refork_after 50
# refork_max_unavailable in Pitchfork
roll_max_unavailable 1
# spawn_timeout in Pitchfork
boot_timeout 60
# listen in Pitchfork; not there and not needed, or the system's: tcp_nopush
bind "127.0.0.1:8080"

# before_fork in Pitchfork, called with server
before_fork objects: true do |server|
  server.logger.info("about to fork")
end
# Not taken over (line 11): there is none: the application loads once in the mold; before_refork runs before a worker
# becomes one
#   after_mold_fork do |server, mold|
#     Process.warmup
#   end
# Not taken over (line 14): worker.generation: not known in after_fork
#   after_worker_fork do |server, worker|
#     server.logger.info("worker=#{worker.nr} gen=#{worker.generation}")
#   end
# after_monitor_ready in Pitchfork, called with server
server_ready objects: true do |server|
  server.logger.info("monitor ready")
end
