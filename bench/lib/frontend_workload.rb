# frozen_string_literal: true

require_relative "certificate"
require_relative "frontend_peers"
require_relative "h2load"
require_relative "placement"
require_relative "throughput"
require_relative "tls_clients"

module Bench
  # As many requests as a server takes, of servers that stand in a list of the workload's own (frontend_peers.rb).
  class Frontend < Throughput
    class << self
      # servers: their keys, in the order of the tables. workers: of each. secure: over TLS, where there is a choice.
      # kind: of handshakes.
      def define(name, about:, servers:, workers: 1, secure: true, kind: nil, **options, &request)
        defined = super(name, about: about, base: self, family: "frontend", quick: false, **options, &request)
        defined.instance_variable_set(:@settings, defined.settings.merge(servers: servers, workers: workers, secure: secure, handshakes: kind).freeze)
        defined
      end
    end

    def site = super.merge(workers: settings[:workers])

    private

    def participants = settings[:servers].filter_map { |key| context.peers.find { |peer| peer.key == key } }
    def app_of(peer) = settings[:app].fetch(FrontendPeers::APPS.fetch(peer.kind, peer.kind))
  end

  # Over TLS, but for servers whose addresses have none.
  class SecureFrontend < Frontend
    private

    def plain?(peer) = peer.key.end_with?("-frontend") || peer.kind == :rack || peer.kind == :psgi

    def client(running)
      plain?(running.peer) ? super : Certificate.connect(super)
    rescue Certificate::Unequal, OpenSSL::SSL::SSLError => e
      raise Running::Failed, e.message
    end

    # wrk has one address for each scheme.
    def load(one, seconds, again: true)
      @scheme = plain?(one.peer) ? "http" : "https"
      super
    end

    def wrk = (@generators ||= {})[@scheme] ||= begin
      @wrk = nil
      super
    end

    def scheme = @scheme
  end

  # Handshakes in place of requests.
  class Handshakes < SecureFrontend
    private

    def wrk = @wrk ||= TlsClients.new(context, settings[:handshakes])
    def compare_bytes(_one, _found) = nil
  end

  # HTTP/2 by h2load; bytes are those of bodies.
  class FrontendH2 < Frontend
    private

    def secure? = settings[:secure]

    def begin_with(peer, &block)
      return super unless peer.lacks?(:h2)

      yield absent(peer, "has no HTTP/2")
      nil
    end

    def checker_of(running) = H2Checker.new(context, wrk.url(running.listen), request)
    def wrk = @wrk ||= H2load.new(context, request, connections: settings[:connections], streams: settings[:pipeline], secure: secure?)
  end
end
