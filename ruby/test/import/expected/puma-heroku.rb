# Oribi's configuration, made by `oribi import` from puma-heroku.rb (Puma).
# Settings taken over: 6; left as comments: 1. Look for "Not taken over".
# Look through it, then: oribi --check --config FILE

workers Integer(ENV['WEB_CONCURRENCY'] || 2)
threads_count = Integer(ENV['RAILS_MAX_THREADS'] || 5)
threads threads_count, threads_count

# preload_app! in Puma
preload

# Not taken over (line 7): the application is the command's argument, as in: oribi config.ru, oribi-psgi app.psgi
#   rackup      DefaultRackup if defined?(DefaultRackup)
port ENV['PORT']     || 3000
# environment in Puma
env ENV['RACK_ENV'] || 'development'

# on_worker_boot in Puma
after_fork do
  ActiveRecord::Base.establish_connection if defined?(ActiveRecord)
end
