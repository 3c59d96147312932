# frozen_string_literal: true

require "json"
require_relative "peers"
require_relative "wrk"

module Bench
  # bench/load/tls_clients.c: handshakes for a round, as Wrk gives requests; and connections that stay.
  class TlsClients
    def self.program = Peers.compiled("tls_clients", "bench/load/tls_clients.c", "-lssl", "-lcrypto")

    # kind: "full" or "resumed".
    def initialize(context, kind)
      @context = context
      @kind = kind
    end

    def run(address, seconds)
      argv = [TlsClients.program, @kind, address, seconds.round(2).to_s]
      output = IO.popen(@context.on_client_core(argv), err: %i[child out], &:read)
      TlsClients.parse(output)
    end

    # What the program prints, as a Wrk::Load; raises when it is something else.
    def self.parse(output)
      counts = JSON.parse(output.lines.last.to_s)
      errors = counts.slice("errors", "silent").reject { |_, count| count.zero? }
      Wrk::Load.new(requests: counts.fetch("handshakes"), seconds: counts.fetch("us") / 1e6, bytes: 0, errors: errors)
    rescue JSON::ParserError
      raise "no handshakes: #{output.strip[0, 200]}"
    end

    # The block runs while so many connections stay; gives what it gives. protocol: "h1" or "h2".
    def self.holding(context, address, protocol, count)
      argv = context.on_client_core([program, protocol, address, count.to_s])
      IO.popen(argv, "r+", err: context.log) do |pipe|
        held = JSON.parse(pipe.gets.to_s).fetch("held")
        raise "holds #{held} of #{count} connections" if held < count

        yield
      end
    end
  end
end
