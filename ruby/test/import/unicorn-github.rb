rails_env = ENV['RAILS_ENV'] || 'production'
worker_processes (rails_env == 'production' ? 16 : 4)
preload_app true
timeout 30
listen '/tmp/sockets/unicorn.sock', :backlog => 2048
if rails_env == "production"
  pid "/tmp/unicorn.pid"
  debug true
end
class Counter
  def self.up = 1
end
