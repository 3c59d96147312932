require "puma/null_io"
workers :auto
lowlevel_error_handler do |e, env|
  Sentry.capture_exception(e)
  [500, {}, ["Something went wrong\n"]]
end
app do |env|
  [200, {}, ["hello"]]
end
activate_control_app 'unix:///tmp/pumactl.sock', { auth_token: '12345' }
queue_requests false
log_requests
idle_timeout 600
