# frozen_string_literal: true

# A large application behind its own proxy; a file of its own watches over the workers.
require_relative 'lib/forge/boot' if File.exist?("#{__dir__}/lib/forge/boot.rb")
run_dir = ENV.fetch('FORGE_RUN_DIR', '/tmp')

rackup 'config.ru'
bind "unix:///tmp/forge.socket?umask=0177"
port 9999, '127.0.0.1'
pidfile "#{run_dir}/puma.pid"
state_path "#{run_dir}/puma.state"
stdout_redirect "/tmp/forge.out.log", "/tmp/puma.stderr.log", true

workers 3
threads 1, (ENV['FORGE_THREADS'] || 4).to_i
preload_app!
tag 'forge web'
worker_timeout 60
queue_requests false
wait_for_less_busy_worker ENV.fetch('FORGE_WAIT', 0.001).to_f
nakayoshi_fork unless ENV['FORGE_NO_COMPACT'] == '1'
worker_culling_strategy :oldest

longest_call = ENV.fetch('FORGE_LONGEST_CALL', 60).to_i
worker_shutdown_timeout longest_call + 3

on_restart         { Forge::Boot.again if defined?(Forge) }
before_fork        { Forge::Boot.let_go if defined?(Forge) }
before_worker_boot { Forge::Boot.worker if defined?(Forge) }

on_worker_shutdown do
  Forge::Boot.leave if defined?(Forge)
end

log_formatter do |line|
  "#{Time.now.utc} #{Process.pid} #{line}"
end

lowlevel_error_handler do |error, _env|
  warn error.message
  [500, {}, ["sorry\n"]]
end
