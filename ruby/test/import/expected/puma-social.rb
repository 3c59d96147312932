# Configuration of Oribi, made by `oribi import` from puma-social.rb (Puma).
# 11 settings taken over, 1 left as a comment: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# A social network of one town: many short calls, a socket in production.
web_threads = Integer(ENV.fetch('WEB_THREADS', '5'))
# environment in Puma
env ENV.fetch('RAILS_ENV', 'development')
workers ENV.fetch('WEB_PROCESSES') { 2 }.to_i
threads web_threads, web_threads
# preload_app! in Puma
preload
# persistent_timeout in Puma
idle_timeout ENV.fetch('KEEP_SECONDS') { 20 }.to_i

if (path = ENV['LISTEN_SOCKET'])
  bind "unix://#{path}"
else
  bind "tcp://#{ENV.fetch('LISTEN_HOST', '127.0.0.1')}:#{ENV.fetch('PORT', 3000)}"
end

if ENV['TOWN_METRICS'] == 'on'
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
after_fork { Town::Streams.reconnect if defined?(Town) }

# Not taken over (line 27): proxy_protocol on reads the PROXY line of those that trusted_proxies names
#   set_remote_address(proxy_protocol: :v1) if ENV['BEHIND_HAPROXY']
# plugin in Puma; a touch of tmp/restart.txt is a reload, as by bin/rails restart
restart_file "tmp/restart.txt"
