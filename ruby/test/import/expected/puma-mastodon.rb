# Configuration of Oribi, made by `oribi import` from puma-mastodon.rb (Puma).
# 10 settings taken over, 2 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi --check

# persistent_timeout in Puma
idle_timeout ENV.fetch('PERSISTENT_TIMEOUT') { 20 }.to_i

max_threads_count = ENV.fetch('MAX_THREADS', 5).to_i
min_threads_count = ENV.fetch('MIN_THREADS') { max_threads_count }.to_i
threads min_threads_count, max_threads_count

if ENV['SOCKET']
  bind "unix://#{ENV['SOCKET']}"
else
  bind "tcp://#{ENV.fetch('BIND', '127.0.0.1')}:#{ENV.fetch('PORT', 3000)}"
end

# environment in Puma
env ENV.fetch('RAILS_ENV') { 'development' }
workers ENV.fetch('WEB_CONCURRENCY') { 2 }.to_i

# preload_app! in Puma
preload

if ENV['TOOTS_METRICS_ENABLED'] == 'true'
  require 'socket'
  # runs once in Puma, and before each worker here
  before_fork do
    puts "metrics of #{Socket.gethostname} start"
  end
  # on_worker_boot in Puma, called with index
  after_fork do |index|
    puts "metrics of worker #{index}"
  end
end

# on_worker_boot in Puma
after_fork do
  ActiveSupport.on_load(:active_record) do
    ActiveRecord::Base.establish_connection
  end if defined?(ActiveSupport)
end

# Not taken over (line 34): there is `oribi ctl reload`, or HUP
#   plugin :tmp_restart

# Not taken over (line 36): trusted_proxies names the proxies whose X-Forwarded-For decides it
#   set_remote_address(proxy_protocol: :v1) if ENV['PROXY_PROTO_V1'] == 'true'
