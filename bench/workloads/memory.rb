# frozen_string_literal: true

require_relative "../lib/throughput"

module Bench
  # What workers of a preloaded Rails application take: each by itself (RSS), and with shared pages divided among those
  # who share (PSS).
  class Memory < Workload
    register "memory", about: "a preloaded Rails application with 2 workers, cold and after 10,000 requests", weight: 1.5

    WORKERS = 2
    REQUESTS = 10_000
    APP = { rack: File.join(ROOT, "bench/apps/rails.ru") }.freeze
    MAIN = (Throughput::MAIN - ["puma"] + ["puma-cluster"]).freeze

    def results(&block)
      @missing = Gem::Specification.any? { |spec| spec.name == "railties" } ? nil : "railties is not installed (script/setup test)"
      servers(:rack, only: MAIN + ["puma"]).each do |peer|
        # With --quick Puma is asked for without its cluster; the workers wanted here are a cluster.
        peer = Peers.find("puma-cluster") if peer.key == "puma"
        next if measured.include?(peer.key)

        measured << peer.key
        one(peer, &block)
      end
    end

    private

    def measured = @measured ||= []

    def one(peer)
      raise Running::Failed, @missing if @missing

      progress("starting #{peer.name}")
      running = Running.new(peer, context, app: APP, workers: WORKERS).start
      cold = running.settled_memory(WORKERS)
      # The expected body is the first one.
      checker = Checker.new(-> { running.connect }, Request.new)
      first = checker.answer(patience_s: 20)
      raise Running::Failed, "answers #{first.status}" unless first.status == 200

      count = drive(peer, running)
      report(peer, cold, snapshot(running), running, count) { |found| yield found }
    rescue Running::Failed, SystemCallError, Checker::Silent, RuntimeError, EOFError => e
      yield result(peer, "memory_mb", [], unit: "MB", better: "lower", errors: @missing ? 0 : 1, note: e.message.delete_prefix("#{peer.name} "))
    ensure
      running&.stop
    end

    def snapshot(running) = running.memory_by_pid

    def drive(peer, running)
      wrk = Wrk.new(context, Request.new, connections: 8)
      count = 0
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      wanted = context.quick? ? REQUESTS / 20 : REQUESTS
      while count < wanted
        progress("#{peer.name}, #{count} of #{wanted} requests")
        found = wrk.run(running.listen, 1)
        raise Running::Failed, "no answers under load" if found.requests.zero?

        count += found.requests
        # A server so slow that it would take all the time is left at what it has come to; the note tells.
        break if Process.clock_gettime(Process::CLOCK_MONOTONIC) - started > [share_s / 4, 5].max
      end
      count
    end

    # The workers are the processes that have worked: of those without children, the ones with the most processor time.
    def report(peer, cold, warm, running, count)
      workers = warm.values.select { |one| one.children.zero? }.max_by([WORKERS, warm.size].min) { |one| ProcessTree.cpu_of(one.pid) }
      note = "#{warm.size} processes in all; warm after #{count} requests"
      figures = { "cold" => cold, "warm" => warm }.flat_map do |state, processes|
        mine = workers.map { |one| processes[one.pid] }.compact
        mine = processes.values.select { |one| one.children.zero? } if mine.empty?
        [["worker RSS, #{state}", mine.map(&:rss_mb)], ["worker PSS, #{state}", mine.map(&:pss_mb)],
         ["all PSS, #{state}", [processes.values.sum(&:pss_mb)]]]
      end
      figures.each { |variant, values| yield result(peer, "memory_mb", values, unit: "MB", better: "lower", variant: variant, note: note) }
    end
  end
end
