timeout 15
preload_app true
worker_processes Integer(ENV["WEB_CONCURRENCY"] || 3)

before_fork do |server, worker|
  Signal.trap 'TERM' do
    puts 'the platform sends TERM, a slow stop is QUIT here'
    Process.kill 'QUIT', Process.pid
  end

  ActiveRecord::Base.connection.disconnect! if defined?(ActiveRecord::Base)
end

after_fork do |server, worker|
  ActiveRecord::Base.establish_connection if defined?(ActiveRecord::Base)
end
