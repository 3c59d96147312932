# Configuration of Oribi, made by `oribi import` from unicorn-capistrano.rb (Unicorn).
# 10 settings taken over, 3 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# Releases lie in folders with their time; "current" points to the one that is served.
root  = "/tmp"
links = "#{root}/shared"
stage = ENV['RAILS_ENV'] || 'production'

# worker_processes in Unicorn
workers Integer(ENV['UNICORN_WORKERS'] || 2)
# listen in Unicorn
bind "#{"#{root}/unicorn.sock"}?backlog=1024&umask=007"
# working_directory in Unicorn
chdir root
# pid in Unicorn
pid_file "#{root}/unicorn.pid"
# stderr_path in Unicorn
error_log "#{root}/unicorn.err"
# Not taken over (line 11): access_log takes the requests; what the application prints goes to standard output
#   stdout_path       "#{root}/unicorn.out"
# timeout in Unicorn
call_timeout 120
# Not taken over (line 13): not there and not needed: a body is always read before the application is called
#   rewindable_input false
# preload_app in Unicorn
preload true

# an upgrade needs the gems of the new release
# Not taken over (line 17): not there: an upgrade (USR2) starts the command as it was started first
#   before_exec do |_server|
#     ENV['BUNDLE_GEMFILE'] = "#{root}/Gemfile"
#   end

# before_fork in Unicorn, called with server, worker; there is no .oldbin here: HUP and USR2 replace all workers by
# themselves, so what it does with the old server may go
before_fork objects: true do |server, worker|
  Shop::Database.hang_up if defined?(Shop)
  # one old worker goes for each new one, and the old master with the last
  forebear = "#{server.config[:pid]}.oldbin"
  if forebear != server.pid && File.exist?(forebear)
    last = worker.nr + 1 >= server.worker_processes
    begin
      Process.kill(last ? :QUIT : :TTOU, File.read(forebear).to_i)
    rescue SystemCallError => e
      server.logger.warn "the old one is gone already: #{e.message}"
    end
  end
end

# after_fork in Unicorn, called with server, worker
after_fork objects: true do |server, worker|
  server.logger.debug "worker #{worker.nr} of #{server.config[:pid]}, #{stage}, #{links}"
  Shop::Database.call_again if defined?(Shop)
end

# after_worker_exit in Unicorn, called with server, worker, status
on_worker_exit objects: true do |server, worker, status|
  server.logger.info "worker #{worker.nr} ended, code #{status.exitstatus}"
end
