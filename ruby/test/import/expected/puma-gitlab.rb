# Configuration of Oribi, made by `oribi import` from puma-gitlab.rb (Puma).
# 13 settings taken over, 9 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# frozen_string_literal: true

# A large application behind its own proxy; a file of its own watches over the workers.
require_relative 'lib/forge/boot' if File.exist?("#{__dir__}/lib/forge/boot.rb")
run_dir = ENV.fetch('FORGE_RUN_DIR', '/tmp')

# Not taken over (line 7): the application is the command's argument, as in: oribi config.ru, oribi-psgi app.psgi
#   rackup 'config.ru'
bind "unix:///tmp/forge.socket?umask=0177"
# port in Puma; an address more in Puma, and here only where there is no bind
bind "127.0.0.1:9999"
# pidfile in Puma
pid_file "#{run_dir}/puma.pid"
# Not taken over (line 11): there is no state file: `ctl` finds the server of its folder by itself
#   state_path "#{run_dir}/puma.state"
# stdout_redirect in Puma; what the application prints goes to standard output; access_log takes the requests; both
# append
error_log "/tmp/puma.stderr.log"

workers 3
threads 1, (ENV['FORGE_THREADS'] || 4).to_i
# preload_app! in Puma
preload
# Not taken over (line 17): not there: process titles name the program, its generation and the worker
#   tag 'forge web'
# worker_timeout in Puma
call_timeout 60
# Not taken over (line 19): not there and not needed: a body is always read before the application is called
#   queue_requests false
# Not taken over (line 20): not there and not needed: a request is passed on to a worker that is idle
#   wait_for_less_busy_worker ENV.fetch('FORGE_WAIT', 0.001).to_f
# Not taken over (line 21): not there and not needed: the heap is settled before the first fork
#   nakayoshi_fork unless ENV['FORGE_NO_COMPACT'] == '1'
# Not taken over (line 22): not there: the workers with the highest places go first
#   worker_culling_strategy :oldest

longest_call = ENV.fetch('FORGE_LONGEST_CALL', 60).to_i
# worker_shutdown_timeout in Puma
shutdown_timeout longest_call + 3

# on_restart in Puma
before_reload         { Forge::Boot.again if defined?(Forge) }
# runs once in Puma, and before each worker here
before_fork        { Forge::Boot.let_go if defined?(Forge) }
# before_worker_boot in Puma
after_fork { Forge::Boot.worker if defined?(Forge) }

# on_worker_shutdown in Puma
before_worker_exit do
  Forge::Boot.leave if defined?(Forge)
end

# Not taken over (line 35): access_log_format is that of the access log, error_log_format of other lines: text or
# json
#   log_formatter do |line|
#     "#{Time.now.utc} #{Process.pid} #{line}"
#   end

# Not taken over (line 39): not there: what the application raises is a 500 and a line with its backtrace in
# error_log
#   lowlevel_error_handler do |error, _env|
#     warn error.message
#     [500, {}, ["sorry\n"]]
#   end
