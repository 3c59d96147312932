# Configuration of Oribi, made by `oribi import` from puma-case.rb (Puma).
# 6 settings taken over, 1 left as a comment: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi --check

case ENV["RACK_ENV"]
when "production"
  workers 4
  # preload_app! in Puma
  preload
  bind "unix:///tmp/app.sock"
else
  workers 1
  # Not taken over (line 8): there is `oribi ctl reload`, or HUP
  #   plugin :tmp_restart
  # port in Puma; an address more in Puma, and here only where there is no bind
  bind "127.0.0.1:3000"
end
# max_fast_inline in Puma
keepalive_requests_max 10

# What Puma does unless told otherwise:
threads 5 unless ENV["RAILS_MAX_THREADS"]
