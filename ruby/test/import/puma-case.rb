case ENV["RACK_ENV"]
when "production"
  workers 4
  preload_app!
  bind "unix:///tmp/app.sock"
else
  workers 1
  plugin :tmp_restart
  port 3000, "127.0.0.1"
end
max_fast_inline 10
