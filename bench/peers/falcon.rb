# Falcon as `falcon host` runs it: HTTP/1 on one socket, forked instances, the application loaded in each.
require "falcon/environment/rack"
require "io/endpoint/unix_endpoint"
require "io/endpoint/host_endpoint"

service "localhost" do
  include Falcon::Environment::Rack

  count { Integer(ENV.fetch("BENCH_WORKERS")) }
  rackup_path { ENV.fetch("BENCH_APP") }
  # Without its compression of answers, which is asked for by a browser's fields and which no other server here does.
  middleware { Protocol::Rack::Adapter.new(rack_app) }
  endpoint do
    listen = ENV.fetch("BENCH_LISTEN")
    socket = listen.start_with?("/") ? IO::Endpoint.unix(listen) : IO::Endpoint.tcp(*listen.split(":"), reuse_address: true)
    Async::HTTP::Endpoint.parse("http://localhost", socket, protocol: Async::HTTP::Protocol::HTTP11)
  end
end
