# frozen_string_literal: true

require_relative "../lib/frontend_workload"
require_relative "../lib/h2load"
require_relative "../lib/tls_clients"

# Clients that a frontend holds: what its hop, TLS, handshakes and HTTP/2 cost beside proxies in front of the same Oribi
# and beside servers that speak TLS by themselves. Processor time is that of all processes, proxy and frontend included.
module Bench
  missing = H2load.missing
  own = %w[oribi-frontend oribi-psgi-frontend]
  secure = %w[oribi-tls oribi-psgi-tls]
  proxies = %w[nginx-oribi-tls nginx-oribi-psgi-tls h2o-oribi-tls haproxy-oribi-tls]
  others = %w[puma-tls falcon-tls]
  hundred = { app: BODIES_APPS, round_min: 1.0 }

  Frontend.define("frontend-hop", about: "HTTP/1.1, 13 bytes, 32 connections, without TLS", weight: 1.5,
                          servers: %w[oribi oribi-psgi nginx-oribi nginx-oribi-psgi] + own) { Request.new }
  SecureFrontend.define("frontend-tls", about: "TLS 1.3, 13 bytes, 32 kept-alive connections", round_min: 1.0, weight: 2.5,
                                servers: own + secure + proxies + %w[nginx-return-tls] + others) { Request.new }
  long = [["100k", 102_400, "string"], ["1m", 1_048_576, "string"], ["file-100k", 102_400, "file"], ["file-1m", 1_048_576, "file"]]
  body_of = ->(kind, size) { Request.new(path: "/#{kind}/#{size}", expected: (PATTERN * (size / 64 + 1))[0, size]) }
  long.each do |name, size, kind|
    about = "TLS 1.3, #{size == 102_400 ? "100 KiB" : "1 MiB"}#{" as a file" if kind == "file"}, 32 kept-alive connections"
    SecureFrontend.define("frontend-tls-#{name}", about: about, **hundred, weight: 1.5, servers: own + secure + proxies + others) { body_of.(kind, size) }
  end
  %w[full resumed].each do |kind|
    Handshakes.define("frontend-handshakes-#{kind}", about: "TLS 1.3, #{kind} handshakes, nothing else", kind: kind, round_min: 1.0,
                                                 servers: %w[oribi-tls nginx-return-tls h2o-oribi-tls haproxy-oribi-tls] + others) { Request.new }
  end
  if missing
    warn missing
  else
    h2 = secure + proxies + %w[falcon-tls]
    { "frontend-h2" => [8, 32], "frontend-h2-wide" => [32, 1] }.each do |name, (connections, streams)|
      FrontendH2.define(name, about: "HTTP/2 over TLS, 13 bytes, #{connections} connections with #{streams} #{streams > 1 ? "streams" : "stream"} each",
                          connections: connections, pipeline: streams, round_min: 1.0, weight: 1.5, servers: h2) { Request.new }
    end
    long.each do |name, size, kind|
      about = "HTTP/2 over TLS, #{size == 102_400 ? "100 KiB" : "1 MiB"}#{" as a file" if kind == "file"}, 8 connections with 4 streams each"
      FrontendH2.define("frontend-h2-#{name}", about: about, connections: 8, pipeline: 4, **hundred, weight: 1.5, servers: h2) { body_of.(kind, size) }
    end
    FrontendH2.define("frontend-h2c", about: "HTTP/2 without TLS, 13 bytes, 8 connections with 32 streams each", connections: 8, pipeline: 32, secure: false,
                              servers: own) { Request.new }
    FrontendH2.define("frontend-h2-calls", about: "one connection of HTTP/2, 8 streams, 4 workers, calls of 20 ms: at best 200 a second",
          connections: 1, pipeline: 8,
                                   workers: 4, app: Placement::APP, round_min: 1.5, servers: secure + proxies) do
      Request.new(path: "/sleep/20", expected: "done")
    end
  end
end
