# Configuration of Oribi, made by `oribi import` from puma-errors.rb (Puma).
# 2 settings taken over, 6 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# Not taken over (line 1): puma/null_io is a library of another server
#   require "puma/null_io"
workers :auto
# Not taken over (line 3): not there: what the application raises is a 500 and a line with its backtrace in error_log
#   lowlevel_error_handler do |e, env|
#     Sentry.capture_exception(e)
#     [500, {}, ["Something went wrong\n"]]
#   end
# Not taken over (line 7): the application is the command's argument, as in: oribi config.ru, oribi-psgi app.psgi
#   app do |env|
#     [200, {}, ["hello"]]
#   end
# Not taken over (line 10): `ctl` finds the server of its folder by itself; control names another socket
#   activate_control_app 'unix:///tmp/pumactl.sock', { auth_token: '12345' }
# Not taken over (line 11): not there and not needed: a body is always read before the application is called
#   queue_requests false
# log_requests in Puma
access_log "-"
# Not taken over (line 13): Puma ends itself when it has nothing to do; here idle_timeout is how long a connection
# may rest
#   idle_timeout 600

# What Puma does unless told otherwise:
threads 5 unless ENV["RAILS_MAX_THREADS"]
