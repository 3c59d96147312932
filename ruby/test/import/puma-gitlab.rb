# frozen_string_literal: true

# A large application behind its own proxy, several workers with memory watched from outside.
require_relative 'lib/cluster/lifecycle' if File.exist?("#{__dir__}/lib/cluster/lifecycle.rb")

rackup 'config.ru'
pidfile "#{ENV.fetch('APP_RUN_DIR', '/tmp')}/puma.pid"
state_path "#{ENV.fetch('APP_RUN_DIR', '/tmp')}/puma.state"

stdout_redirect "/tmp/puma.stdout.log", "/tmp/puma.stderr.log", true

threads 1, (ENV['PUMA_MAX_THREADS'] || 4).to_i
queue_requests false

bind 'unix:///tmp/app.socket?umask=0177'
port 9999, '127.0.0.1'

workers 3

on_restart do
  Cluster::Lifecycle.restart if defined?(Cluster)
end

before_fork do
  Cluster::Lifecycle.before_fork if defined?(Cluster)
end

before_worker_boot { Cluster::Lifecycle.start if defined?(Cluster) }

on_worker_shutdown do
  Cluster::Lifecycle.stop if defined?(Cluster)
end

preload_app!

tag 'app-puma-worker'
worker_timeout 60
wait_for_less_busy_worker ENV.fetch('PUMA_WAIT', 0.001).to_f
nakayoshi_fork unless ENV['DISABLE_NAKAYOSHI'] == 'true'

log_formatter do |str|
  { at: Time.now.utc.to_s, pid: Process.pid, message: str }.inspect
end

lowlevel_error_handler do |ex, env|
  warn ex.message
  [500, {}, ["unavailable\n"]]
end

rack_timeout = ENV.fetch('RACK_TIMEOUT', 60).to_i
worker_shutdown_timeout rack_timeout + 3
worker_culling_strategy :oldest
