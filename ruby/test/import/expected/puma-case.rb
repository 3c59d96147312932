# Oribi's configuration, made by `oribi import` from puma-case.rb (Puma).
# Settings taken over: 6; left as comments: 1. Look for "Not taken over".
# Look through it, then: oribi --check --config FILE

case ENV["RACK_ENV"]
when "production"
  workers 4
  # preload_app! in Puma
  preload
  bind "unix:///tmp/app.sock"
else
  workers 1
  # Not taken over (line 8): there are none: for tmp_restart there is `ctl reload`, for systemd and solid_queue their
  # own services
  #   plugin :tmp_restart
  port 3000
  host "127.0.0.1"
end
# max_fast_inline in Puma
keepalive_requests_max 10
