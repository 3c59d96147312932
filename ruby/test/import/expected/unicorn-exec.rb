# Configuration of Oribi, made by `oribi import` from unicorn-exec.rb (Unicorn).
# 3 settings taken over, 2 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# worker_processes in Unicorn
workers 2
# Not taken over (line 2): not there: an upgrade (USR2) starts the command as it was started first
#   before_exec do |server|
#     ENV["BUNDLE_GEMFILE"] = "/srv/app/current/Gemfile"
#   end
# after_worker_ready in Unicorn, called with server, worker
after_worker_ready objects: true do |server, worker|
  server.logger.info("worker #{worker.nr} ready")
end
# after_worker_exit in Unicorn, called with server, worker, status
on_worker_exit objects: true do |server, worker, status|
  server.logger.warn("worker #{worker.pid} ended: #{status.success?}")
end
# Not taken over (line 11): not there and not needed: workers are forked from the loaded application
#   worker_exec true

# What Unicorn does unless told otherwise:
bind "0.0.0.0:8080"
