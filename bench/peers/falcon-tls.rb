# Falcon as `falcon host` runs it, over TLS: HTTP/2 and HTTP/1 by ALPN on one socket, forked instances.
require "falcon/environment/rack"
require "io/endpoint/host_endpoint"
require "openssl"

service "localhost" do
  include Falcon::Environment::Rack

  count { Integer(ENV.fetch("BENCH_WORKERS")) }
  rackup_path { ENV.fetch("BENCH_APP") }
  # Without its compression of answers, which no other server here does.
  middleware { Protocol::Rack::Adapter.new(rack_app) }
  endpoint do
    context = OpenSSL::SSL::SSLContext.new
    context.add_certificate(OpenSSL::X509::Certificate.new(File.read(ENV.fetch("BENCH_PEM"))), OpenSSL::PKey.read(File.read(ENV.fetch("BENCH_KEY"))))
    context.alpn_select_cb = ->(offered) { offered.include?("h2") ? "h2" : "http/1.1" }
    context.session_id_context = "bench"
    Async::HTTP::Endpoint.parse("https://#{ENV.fetch("BENCH_LISTEN")}", ssl_context: context, reuse_address: true)
  end
end
