# Configuration of Oribi, made by `oribi import` from pitchfork-oob.rb (Pitchfork).
# 5 settings taken over, 3 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# frozen_string_literal: true

# worker_processes in Pitchfork
workers 2
# timeout in Pitchfork
call_timeout 10
# after_worker_fork in Pitchfork, called with server, worker
after_fork objects: true do |server, worker|
  server.logger.info("worker #{worker.nr}")
end
# before_worker_exit in Pitchfork, called with server, worker
before_worker_exit(objects: true) { |server, worker| puts worker.nr }
# Not taken over (line 9): not there: rack.response_finished in the environment is called after each answer
#   after_request_complete do |server, worker, env|
#     GC.start if (worker.requests_count % 100).zero?
#   end
# Not taken over (line 12): not there: err_respawn_interval paces workers that fail
#   max_consecutive_spawn_errors 5
# Not taken over (line 13): not there and not needed: process groups are left as they are
#   setpgid true
early_hints true

# What Pitchfork does unless told otherwise:
bind "0.0.0.0:8080"
