# Releases lie in folders with their time; "current" points to the one that is served.
root  = "/tmp"
links = "#{root}/shared"
stage = ENV['RAILS_ENV'] || 'production'

worker_processes Integer(ENV['UNICORN_WORKERS'] || 2)
listen "#{root}/unicorn.sock", :backlog => 1024, :umask => 0o007
working_directory root
pid               "#{root}/unicorn.pid"
stderr_path       "#{root}/unicorn.err"
stdout_path       "#{root}/unicorn.out"
timeout 120
rewindable_input false
preload_app true

# an upgrade needs the gems of the new release
before_exec do |_server|
  ENV['BUNDLE_GEMFILE'] = "#{root}/Gemfile"
end

before_fork do |server, worker|
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

after_fork do |server, worker|
  server.logger.debug "worker #{worker.nr} of #{server.config[:pid]}, #{stage}, #{links}"
  Shop::Database.call_again if defined?(Shop)
end

after_worker_exit do |server, worker, status|
  server.logger.info "worker #{worker.nr} ended, code #{status.exitstatus}"
end
