# Configuration of Oribi, made by `oribi import` from puma-capistrano.rb (Puma).
# 10 settings taken over, 3 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# directory in Puma
chdir '/'
# Not taken over (line 2): the application is the command's argument, as in: oribi config.ru, oribi-psgi app.psgi
#   rackup "/dev/null"
# environment in Puma
env 'production'

# pidfile in Puma
pid_file "/tmp/puma.pid"
# Not taken over (line 6): there is no state file: `ctl` finds the server of its folder by itself
#   state_path "/tmp/puma.state"
# stdout_redirect in Puma; what the application prints goes to standard output; access_log takes the requests; both
# append
error_log '/tmp/puma_error.log'

threads 0, 16
workers 4
# worker_timeout in Puma
call_timeout 60

bind 'unix:///tmp/puma.sock'
bind 'tcp://127.0.0.1:9293'

# Not taken over (line 16): not there and not needed: a reload (HUP, ctl reload) starts the command anew, with the
# libraries of that moment
#   prune_bundler

# on_restart in Puma
before_reload do
  puts 'the gems of the new release count'
  ENV.delete("BUNDLE_GEMFILE")
end
