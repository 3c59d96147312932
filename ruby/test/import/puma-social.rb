# A social network of one town: many short calls, a socket in production.
web_threads = Integer(ENV.fetch('WEB_THREADS', '5'))
environment ENV.fetch('RAILS_ENV', 'development')
workers     ENV.fetch('WEB_PROCESSES') { 2 }.to_i
threads     web_threads, web_threads
preload_app!
persistent_timeout ENV.fetch('KEEP_SECONDS') { 20 }.to_i

if (path = ENV['LISTEN_SOCKET'])
  bind "unix://#{path}"
else
  bind "tcp://#{ENV.fetch('LISTEN_HOST', '127.0.0.1')}:#{ENV.fetch('PORT', 3000)}"
end

if ENV['TOWN_METRICS'] == 'on'
  require 'socket'
  before_fork do
    puts "metrics of #{Socket.gethostname} start"
  end
  on_worker_boot do |index|
    puts "metrics of worker #{index}"
  end
end

on_worker_boot { Town::Streams.reconnect if defined?(Town) }

set_remote_address(proxy_protocol: :v1) if ENV['BEHIND_HAPROXY']
plugin :tmp_restart
