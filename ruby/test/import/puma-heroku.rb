# On a platform that says how many.
preload_app!
workers Integer(ENV['WEB_CONCURRENCY'] || 2)
at_a_time = Integer(ENV['RAILS_MAX_THREADS'] || 5)
threads at_a_time, at_a_time
environment ENV['RACK_ENV'] || 'development'
port        ENV['PORT']     || 3000
rackup      DefaultRackup if defined?(DefaultRackup)

on_worker_boot do
  ActiveRecord::Base.establish_connection if defined?(ActiveRecord)
end
