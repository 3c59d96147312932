# frozen_string_literal: true

require_relative "peers"
require_relative "throughput"

module Bench
  # Behind nginx, the server on a unix socket. nginx shares the server's core: together they are the machine that answers. Requests per second
  # are of both, processor time is the server's alone.
  module ProxiedParts
    def self.included(workload)
      # Of nginx's connections to the server: a workload's own setting, its base's otherwise.
      workload.singleton_class.class_eval do
        attr_writer :upstream_keep_alive

        def upstream_keep_alive = @upstream_keep_alive.nil? ? superclass.upstream_keep_alive : @upstream_keep_alive
      end
    end

    private

    def start(peer) = super.tap { |running| proxy_of(running) }
    def client(running) = proxy_of(running).connect
    def address(running) = proxy_of(running).listen
    def finish = proxies.each_value(&:stop)
    def proxies = @proxies ||= {}

    def proxy_of(running)
      proxies[running] ||= begin
        # Whoever nginx runs as must reach the socket.
        File.chmod(0o777, running.listen)
        Running.new(Peer.new("nginx-proxy", "nginx, proxy", :proxy, command: ->(site) { nginx(site, running.listen) }, stop: :QUIT), context).start
      end
    end

    def nginx(site, upstream)
      keep_alive = self.class.upstream_keep_alive
      path = Peers.config(site.dir, "nginx-proxy.conf", listen: site.listen, upstream: upstream, http_version: keep_alive ? "1.1" : "1.0",
                                                        keep_alive: keep_alive ? "keepalive 64; keepalive_requests 1000000000;" : "")
      [{}, [Peers::NGINX, "-e", "#{site.dir}/error.log", "-c", path]]
    end
  end

  # As many requests as go through nginx.
  class Proxied < Throughput
    include ProxiedParts

    def self.behind(name, about:, keep_alive:, **options, &request)
      define(name, about: about, base: self, listen: :unix, **options, &request).upstream_keep_alive = keep_alive
    end
  end
end
