# Configuration of Oribi, made by `oribi import` from puma-heroku.rb (Puma).
# 6 settings taken over, 1 left as a comment: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# On a platform that says how many.
# preload_app! in Puma
preload
workers Integer(ENV['WEB_CONCURRENCY'] || 2)
at_a_time = Integer(ENV['RAILS_MAX_THREADS'] || 5)
threads at_a_time, at_a_time
# environment in Puma
env ENV['RACK_ENV'] || 'development'
port ENV['PORT']     || 3000
# Not taken over (line 8): the application is the command's argument, as in: oribi config.ru, oribi-psgi app.psgi
#   rackup      DefaultRackup if defined?(DefaultRackup)

# on_worker_boot in Puma
after_fork do
  ActiveRecord::Base.establish_connection if defined?(ActiveRecord)
end
