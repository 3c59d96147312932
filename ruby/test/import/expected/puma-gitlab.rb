# Configuration of Oribi, made by `oribi import` from puma-gitlab.rb (Puma).
# 13 settings taken over, 9 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi --check

# frozen_string_literal: true

# A large application behind its own proxy, several workers with memory watched from outside.
require_relative 'lib/cluster/lifecycle' if File.exist?("#{__dir__}/lib/cluster/lifecycle.rb")

# Not taken over (line 6): the application is the command's argument, as in: oribi config.ru, oribi-psgi app.psgi
#   rackup 'config.ru'
# pidfile in Puma
pid_file "#{ENV.fetch('APP_RUN_DIR', '/tmp')}/puma.pid"
# Not taken over (line 8): there is no state file: `ctl` finds the server of its folder by itself
#   state_path "#{ENV.fetch('APP_RUN_DIR', '/tmp')}/puma.state"

# stdout_redirect in Puma; what the application prints goes to standard output; access_log takes the requests; both
# append
error_log "/tmp/puma.stderr.log"

threads 1, (ENV['PUMA_MAX_THREADS'] || 4).to_i
# Not taken over (line 13): not there and not needed: a body is always read before the application is called
#   queue_requests false

bind 'unix:///tmp/app.socket?umask=0177'
# port in Puma; an address more in Puma, and here only where there is no bind
bind "127.0.0.1:9999"

workers 3

# on_restart in Puma
before_reload do
  Cluster::Lifecycle.restart if defined?(Cluster)
end

# runs once in Puma, and before each worker here
before_fork do
  Cluster::Lifecycle.before_fork if defined?(Cluster)
end

# before_worker_boot in Puma
after_fork { Cluster::Lifecycle.start if defined?(Cluster) }

# on_worker_shutdown in Puma
before_worker_exit do
  Cluster::Lifecycle.stop if defined?(Cluster)
end

# preload_app! in Puma
preload

# Not taken over (line 36): not there: process titles name the program, its generation and the worker
#   tag 'app-puma-worker'
# worker_timeout in Puma
call_timeout 60
# Not taken over (line 38): not there and not needed: a request is passed on to a worker that is idle
#   wait_for_less_busy_worker ENV.fetch('PUMA_WAIT', 0.001).to_f
# Not taken over (line 39): not there and not needed: the heap is settled before the first fork
#   nakayoshi_fork unless ENV['DISABLE_NAKAYOSHI'] == 'true'

# Not taken over (line 41): access_log_format is that of the access log, error_log_format of other lines: text or
# json
#   log_formatter do |str|
#     { at: Time.now.utc.to_s, pid: Process.pid, message: str }.inspect
#   end

# Not taken over (line 45): not there: what the application raises is a 500 and a line with its backtrace in
# error_log
#   lowlevel_error_handler do |ex, env|
#     warn ex.message
#     [500, {}, ["unavailable\n"]]
#   end

rack_timeout = ENV.fetch('RACK_TIMEOUT', 60).to_i
# worker_shutdown_timeout in Puma
shutdown_timeout rack_timeout + 3
# Not taken over (line 52): not there: the workers with the highest places go first
#   worker_culling_strategy :oldest
