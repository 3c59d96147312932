directory '/'
rackup "/dev/null"
environment 'production'

pidfile "/tmp/puma.pid"
state_path "/tmp/puma.state"
stdout_redirect '/tmp/puma_access.log', '/tmp/puma_error.log', true

threads 0, 16
workers 4
worker_timeout 60

bind 'unix:///tmp/puma.sock'
bind 'tcp://127.0.0.1:9293'

prune_bundler

on_restart do
  puts 'the gems of the new release count'
  ENV.delete("BUNDLE_GEMFILE")
end
