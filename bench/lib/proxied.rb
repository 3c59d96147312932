# frozen_string_literal: true

require_relative "peers"
require_relative "throughput"

module Bench
  # Behind nginx, the server on a unix socket. nginx shares the server's core: together they are the machine that
  # answers. Requests per second are of both, processor time is the server's alone.
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
      proxies[running] ||= Running.new(Peers.proxy(running.listen, keep_alive: self.class.upstream_keep_alive), context).start
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
