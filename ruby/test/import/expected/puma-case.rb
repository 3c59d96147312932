# Configuration of Oribi, made by `oribi import` from puma-case.rb (Puma).
# 7 settings taken over.
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

case ENV["RACK_ENV"]
when "production"
  workers 4
  # preload_app! in Puma
  preload
  bind "unix:///tmp/app.sock"
else
  workers 1
  # plugin in Puma; a touch of tmp/restart.txt is a reload, as by bin/rails restart
  restart_file "tmp/restart.txt"
  # port in Puma; an address more in Puma, and here only where there is no bind
  bind "127.0.0.1:3000"
end
# max_fast_inline in Puma
keepalive_requests_max 10

# What Puma does unless told otherwise:
threads 5 unless ENV["RAILS_MAX_THREADS"]
