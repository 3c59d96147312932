# frozen_string_literal: true

require_relative "peers"
require_relative "throughput"

module Bench
  # Behind nginx, the server on a unix socket. nginx shares the server's core: together they are the machine that answers. Requests per second
  # are of both, processor time is the server's alone.
  class Proxied < Throughput
    class << self
      attr_accessor :upstream_keep_alive
    end

    def self.behind(name, about:, keep_alive:, **options, &request)
      define(name, about: about, base: self, listen: :unix, **options, &request).upstream_keep_alive = keep_alive
    end

    private

    # nginx has closed its idle connection when a round begins; the checker and wrk both come through it.
    def start(peer)
      super.tap { |running| proxy_of(running) }
    end

    def client(running) = TCPSocket.new(*proxy_of(running).listen.split(":"))
    def address(running) = proxy_of(running).listen
    def finish = proxies.each_value(&:stop)
    def proxies = @proxies ||= {}

    def proxy_of(running)
      proxies[running] ||= begin
        # Whoever nginx runs as must reach the socket.
        File.chmod(0o777, running.listen)
        keep_alive = self.class.upstream_keep_alive
        command = lambda do |site|
          path = Peers.config(site.dir, "nginx-proxy.conf", listen: site.listen, upstream: running.listen, http_version: keep_alive ? "1.1" : "1.0",
                                                            keep_alive: keep_alive ? "keepalive 64; keepalive_requests 1000000000;" : "")
          [{}, [Peers::NGINX, "-e", "#{site.dir}/error.log", "-c", path]]
        end
        Running.new(Peer.new("nginx-proxy", "nginx, proxy", :proxy, command: command, stop: :QUIT), context).start
      end
    end
  end
end
