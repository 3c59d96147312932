# frozen_string_literal: true

require_relative "../lib/idle_connections"
require_relative "../lib/throughput"

module Bench
  # Requests on 32 connections while many others are open and silent, as with browsers that keep theirs: what those
  # cost.
  class IdleBeside < Throughput
    COUNT = 10_000

    def results(&block)
      @base_mb = {}
      @held_mb = {}
      super
      @held_mb.each do |peer, (megabytes, held)|
        yield result(peer, "idle_kb_per_connection", [(megabytes - @base_mb[peer]) * 1024 / held], unit: "KB", better: "lower", variant: "of #{held}")
      end
    end

    private

    def start(peer)
      super.tap do |running|
        @base_mb[peer] = pss_mb(running)
        count = IdleConnections.possible(COUNT)
        idle = IdleConnections.new(running, request, count)
        (@idle ||= []) << idle
        raise Running::Failed, "holds #{idle.held} of #{count} idle connections" if idle.held < count

        @held_mb[peer] = [pss_mb(running), idle.held]
      end
    end

    def pss_mb(running) = running.memory.sum(&:pss_mb)
    def finish = [*@idle].each(&:close)
  end

  IdleBeside.define("idle-10000", about: "13 bytes, 32 connections beside 10,000 that are silent", base: IdleBeside, needs: :keep_alive, family: "connections",
                                  weight: 1.5) { Request.new }
end
