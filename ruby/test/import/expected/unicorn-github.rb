# Configuration of Oribi, made by `oribi import` from unicorn-github.rb (Unicorn).
# 6 settings taken over.
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

rails_env = ENV['RAILS_ENV'] || 'production'
# worker_processes in Unicorn
workers((rails_env == 'production' ? 16 : 4))
# preload_app in Unicorn
preload true
# timeout in Unicorn
call_timeout 30
# listen in Unicorn
bind "/tmp/sockets/unicorn.sock?backlog=2048"
if rails_env == "production"
  # pid in Unicorn
  pid_file "/tmp/unicorn.pid"
  # debug in Unicorn
  verbose true
end
class Counter
  def self.up = 1
end
