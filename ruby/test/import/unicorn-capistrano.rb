# Set the paths as the deployment lays them out
app_path = "/tmp"
shared   = "#{app_path}/shared"
rails_env = ENV['RAILS_ENV'] || 'production'

working_directory app_path
pid               "#{app_path}/unicorn.pid"
stderr_path       "#{app_path}/unicorn.err"
stdout_path       "#{app_path}/unicorn.out"

listen "#{app_path}/unicorn.sock", :backlog => 1024, :umask => 0o007
worker_processes Integer(ENV['UNICORN_WORKERS'] || 2)
timeout 120
preload_app true
rewindable_input false

# the Gemfile of the release that is current then
before_exec do |server|
  ENV['BUNDLE_GEMFILE'] = "#{app_path}/Gemfile"
end

before_fork do |server, worker|
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

after_fork do |server, worker|
  child_pid = server.config[:pid].sub('.pid', ".#{worker.nr}.pid")
  server.logger.debug "pid file #{child_pid}, environment #{rails_env}, #{shared}"
  ActiveRecord::Base.establish_connection if defined?(ActiveRecord::Base)
end

after_worker_exit do |server, worker, status|
  server.logger.info "worker #{worker.nr} ended, code #{status.exitstatus}"
end
