# Configuration of Oribi, made by `oribi import` from unicorn-rails.rb (Rails).
# 3 settings taken over, 2 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi --check

# worker_processes in Rails
workers Integer(ENV["WEB_CONCURRENCY"] || 3)
timeout 15
# preload_app in Rails
preload true

# Not taken over (line 5): before_fork is called with index
#   before_fork do |server, worker|
#     Signal.trap 'TERM' do
#       puts 'Unicorn master intercepting TERM and sending myself QUIT instead'
#       Process.kill 'QUIT', Process.pid
#     end
#
#     defined?(ActiveRecord::Base) and
#       ActiveRecord::Base.connection.disconnect!
#   end

# Not taken over (line 15): after_fork is called with index
#   after_fork do |server, worker|
#     defined?(ActiveRecord::Base) and
#       ActiveRecord::Base.establish_connection
#   end

# What Rails does unless told otherwise:
port ENV.fetch("PORT", 3000)
