# frozen_string_literal: true

require_relative "../lib/proxied"

# The way in which most application servers are deployed.
module Bench
  missing = File.exist?(Peers::NGINX) ? nil : "nginx is missing (script/setup bench)"
  if missing
    warn missing
  else
    Proxied.behind("nginx-close", about: "13 bytes behind nginx on a unix socket, a connection to the server per request", keep_alive: false,
                                  family: "behind nginx", weight: 1.5) { Request.new }
    Proxied.behind("nginx-keep-alive", about: "13 bytes behind nginx on a unix socket, connections to the server kept", keep_alive: true,
                                       family: "behind nginx", weight: 1.5) { Request.new }
  end
end
