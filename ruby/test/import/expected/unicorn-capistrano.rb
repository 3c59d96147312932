# Configuration of Oribi, made by `oribi import` from unicorn-capistrano.rb (Unicorn).
# 10 settings taken over, 3 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi --check

# Set the paths as the deployment lays them out
app_path = "/tmp"
shared   = "#{app_path}/shared"
rails_env = ENV['RAILS_ENV'] || 'production'

# working_directory in Unicorn
chdir app_path
# pid in Unicorn
pid_file "#{app_path}/unicorn.pid"
# stderr_path in Unicorn
error_log "#{app_path}/unicorn.err"
# Not taken over (line 9): access_log takes the requests; what the application prints goes to standard output
#   stdout_path       "#{app_path}/unicorn.out"

# listen in Unicorn
bind "#{"#{app_path}/unicorn.sock"}?backlog=1024&umask=007"
# worker_processes in Unicorn
workers Integer(ENV['UNICORN_WORKERS'] || 2)
# timeout in Unicorn
call_timeout 120
# preload_app in Unicorn
preload true
# Not taken over (line 15): not there and not needed: a body is always read before the application is called
#   rewindable_input false

# the Gemfile of the release that is current then
# Not taken over (line 18): not there: an upgrade (USR2) starts the command as it was started first
#   before_exec do |server|
#     ENV['BUNDLE_GEMFILE'] = "#{app_path}/Gemfile"
#   end

# before_fork in Unicorn, called with server, worker; there is no .oldbin here: HUP and USR2 replace all workers by
# themselves, so what it does with the old server may go
before_fork objects: true do |server, worker|
  ActiveRecord::Base.connection.disconnect! if defined?(ActiveRecord::Base)
  Redis.current.quit if defined?(Redis)

  old_pid = "#{server.config[:pid]}.oldbin"
  if old_pid != server.pid
    begin
      sig = worker.nr + 1 >= server.worker_processes ? :QUIT : :TTOU
      Process.kill(sig, File.read(old_pid).to_i)
    rescue Errno::ENOENT, Errno::ESRCH
    end
  end
  sleep 0.1
end

# after_fork in Unicorn, called with server, worker
after_fork objects: true do |server, worker|
  child_pid = server.config[:pid].sub('.pid', ".#{worker.nr}.pid")
  server.logger.debug "pid file #{child_pid}, environment #{rails_env}, #{shared}"
  ActiveRecord::Base.establish_connection if defined?(ActiveRecord::Base)
end

# after_worker_exit in Unicorn, called with server, worker, status
on_worker_exit objects: true do |server, worker, status|
  server.logger.info "worker #{worker.nr} ended, code #{status.exitstatus}"
end
