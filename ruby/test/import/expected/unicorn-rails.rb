# Configuration of Oribi, made by `oribi import` from unicorn-rails.rb (Unicorn).
# 5 settings taken over.
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# timeout in Unicorn
call_timeout 15
# preload_app in Unicorn
preload true
# worker_processes in Unicorn
workers Integer(ENV["WEB_CONCURRENCY"] || 3)

# before_fork in Unicorn, called with server, worker; look at its trap: TERM and QUIT are graceful stops here, and a
# handler runs beside them
before_fork objects: true do |server, worker|
  Signal.trap 'TERM' do
    puts 'the platform sends TERM, a slow stop is QUIT here'
    Process.kill 'QUIT', Process.pid
  end

  ActiveRecord::Base.connection.disconnect! if defined?(ActiveRecord::Base)
end

# after_fork in Unicorn, called with server, worker
after_fork objects: true do |server, worker|
  ActiveRecord::Base.establish_connection if defined?(ActiveRecord::Base)
end

# What Unicorn does unless told otherwise:
bind "0.0.0.0:8080"
