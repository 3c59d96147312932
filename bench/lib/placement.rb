# frozen_string_literal: true

require_relative "checker"
require_relative "open_loop"
require_relative "peers"
require_relative "request"
require_relative "running"

module Bench
  # What requests wait while calls take a while: four workers, kept-alive connections, open-loop arrivals
  # (bench/load/load.c). Every server gets the same arrivals and the same calls, drawn by the driver. For
  # bench/placement and, as one workload of many, bench/run.
  class Placement
    WORKERS = 4
    CONNECTIONS = 64
    WARM_S = 1
    SEED = 7
    APP = { rack: File.join(ROOT, "bench/apps/placement.ru"), psgi: File.join(ROOT, "bench/apps/placement.psgi") }.freeze

    # name: in the results. of: the path whose figures count.
    Load = Struct.new(:name, :text, :paths, :rate, :of, keyword_init: true)
    LOADS = [
      Load.new(name: "sleep", text: "calls of 20 ms", paths: "/sleep/~20", rate: 100, of: "all"),
      Load.new(name: "mix", text: "calls of 1 ms, one of 100 takes 500 ms", paths: "/sleep/1:0.99,/sleep/500:0.01", rate: 150, of: "/sleep/1"),
    ].freeze

    RACK = Peers.find("oribi")
    PSGI = Peers.find("oribi-psgi")
    PEERS = [
      RACK, RACK.with("oribi-alone", "#{RACK.name}, helper off", "--no-helper"),
      *%w[oribi-threads puma-cluster-1 puma-cluster unicorn].map { |key| Peers.find(key) },
      PSGI, PSGI.with("oribi-psgi-alone", "#{PSGI.name}, helper off", "--no-helper"), *%w[starlet starman].map { |key| Peers.find(key) }
    ].freeze

    # A server that keeps no connection stands behind nginx.
    def self.proxied?(peer) = peer.lacks?(:keep_alive)
    def self.name_of(peer) = proxied?(peer) ? "#{peer.name} behind nginx" : peer.name
    def self.missing(peer) = peer.missing || (proxied?(peer) ? Peers.proxy.missing : nil)

    def initialize(context) = @context = context

    # Runs the loads on one server after another; yields the peer and a hash for each.
    def measure(peers, seconds:)
      peers.each do |peer|
        known = { bench: "placement", server: Placement.name_of(peer) }
        LOADS.zip(play(peer, seconds)).each { |load, found| yield peer, { **known, load: load.name, rate: load.rate, seconds: seconds, **found } }
      end
    end

    # One load on one server, with its arrivals and calls in a file; what OpenLoop#series gives.
    def record(peer, load, seconds:, trace:)
      with(peer) { |address| drive(address.listen, load, seconds, trace: trace) }
    end

    private

    # What was found, for each load; a server that cannot start or dies has its reason for errors.
    def play(peer, seconds)
      with(peer) do |address|
        LOADS.map do |load|
          @context.progress("placement: #{Placement.name_of(peer)}, #{load.text}")
          summary(load, drive(address.listen, load, seconds))
        end
      end
    rescue Running::Failed, SystemCallError => e
      LOADS.map { { errors: e.message } }
    end

    def drive(listen, load, seconds, trace: nil)
      OpenLoop.new(@context, pinned: false).series(listen, rate: load.rate, seconds: seconds, connections: CONNECTIONS, warm_s: WARM_S,
                                                           paths: load.paths, seed: SEED, servers: WORKERS, trace: trace)
    end

    # The server with its workers, on all cores, and what stands before it.
    def with(peer)
      running = Running.new(peer, @context, app: APP, workers: WORKERS, listen: Placement.proxied?(peer) ? :unix : :tcp, pinned: false).start
      front = Running.new(Peers.proxy(running.listen), @context, pinned: false).start if Placement.proxied?(peer)
      await_workers(front || running)
      yield front || running
    ensure
      front&.stop
      running&.stop
    end

    # Several requests, so that every worker has answered once; those behind a proxy come up after it.
    def await_workers(address)
      checker = Checker.new(-> { address.connect }, Request.new(path: "/sleep/1", fields: { "Connection" => "close" }, expected: "done"))
      deadline = now + Running::START_SECONDS
      until Array.new(2 * WORKERS) { answers?(checker) }.all?
        raise Running::Failed, "#{address.peer.name} does not answer as it should: #{checker.complaints.last}" if now > deadline

        IO.select(nil, nil, nil, 0.05)
      end
    end

    def answers?(checker)
      before = checker.complaints.size
      !checker.check.nil? && checker.complaints.size == before
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def summary(load, series)
      time, wait, ideal, least = %w[time wait ideal least].map { |what| series[[load.of, what]] }
      return { errors: "too far behind" } unless [time, wait, ideal, least].all? { |one| one&.any? }

      { count: time.count, errors: series.fetch(%w[all time]).errors, mean_ms: time.mean, p99_ms: time.at(99), mean_wait_ms: wait.mean,
        p99_wait_ms: wait.at(99), ideal_p99_ms: ideal.at(99), ideal_mean_wait_ms: least.mean, ideal_p99_wait_ms: least.at(99) }
    end
  end
end
