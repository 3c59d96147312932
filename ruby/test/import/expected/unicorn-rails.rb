# Oribi's configuration, made by `oribi import` from unicorn-rails.rb (Unicorn).
# Settings taken over: 5.
# Look through it, then: oribi --check --config FILE

# worker_processes in Unicorn
workers Integer(ENV["WEB_CONCURRENCY"] || 3)
# timeout in Unicorn
call_timeout 15
# preload_app in Unicorn
preload true

# before_fork in Unicorn, called with server, worker; look at its trap: TERM and QUIT are graceful stops here, and a
# handler runs beside them
before_fork objects: true do |server, worker|
  Signal.trap 'TERM' do
    puts 'Unicorn master intercepting TERM and sending myself QUIT instead'
    Process.kill 'QUIT', Process.pid
  end

  defined?(ActiveRecord::Base) and
    ActiveRecord::Base.connection.disconnect!
end

# after_fork in Unicorn, called with server, worker
after_fork objects: true do |server, worker|
  defined?(ActiveRecord::Base) and
    ActiveRecord::Base.establish_connection
end
