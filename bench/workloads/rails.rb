# frozen_string_literal: true

require_relative "../lib/driven_workload"
require_relative "../rails/app"

module Bench
  # A fresh Rails application (bench/rails/app.rb): of ten scenarios four look at the index, five at one post, one
  # writes (form, post, page).
  class RailsWorkload < DrivenWorkload
    register "rails", about: "a fresh Rails scaffold over SQLite: index, show, create", weight: 5.0

    private

    def kinds = [:rack]
    def apps = { rack: @app.config_ru }
    def scenario = "posts"
    def workers = 2
    def warm_s = context.quick? ? 1.0 : 3.0
    def chdir = @app.dir
    def environment = @app.environment(@folder)
    def before_run(_target) = @app.reset(@folder)

    def prepare
      spent_s
      reason = RailsApp.missing and raise reason
      progress("generating the application")
      @app = RailsApp.new.prepare
      @folder = context.scratch("posts")
      @app.start(@folder)
    end
  end

  # The same with the threads that Rails itself advises, where a server has any.
  class RailsThreads < RailsWorkload
    register "rails-threads", about: "the Rails scaffold, three threads in each of two workers", weight: 2.0, quick: false

    THREADED = %w[oribi puma-cluster iodine].freeze

    private

    def threads = 3
    def peers = servers(*kinds, only: THREADED)
  end

  # What a worker of it takes: by itself (RSS), and with shared pages divided among those who share them (PSS). Cold is
  # loaded and not yet asked.
  class RailsMemory < RailsWorkload
    register "rails-memory", about: "memory of the Rails scaffold's workers, cold and after 10,000 requests", weight: 3.0, quick: false

    REQUESTS = 10_000
    SLICE_S = 1.0
    IDLE_MAX = 10 # slices; the first requests of a cold application take long
    SEEN = %w[oribi unicorn pitchfork puma-cluster puma-cluster-1].freeze

    def results(&block)
      prepare
      servers(:rack, only: SEEN).each { |peer| one(peer, &block) }
    end

    private

    def one(peer)
      target = start_target(peer)
      cold = target.running.settled_memory(workers)
      count, errors = ask(target)
      warm = snapshot(target)
      workers = busiest(warm.keys)
      note = "#{warm.size} processes in all; warm after #{count} requests"
      { "cold" => cold, "warm" => warm }.each do |state, processes|
        mine = processes.values_at(*workers).compact
        [["worker RSS, #{state}", mine.map(&:rss_mb)], ["worker PSS, #{state}", mine.map(&:pss_mb)],
         ["all PSS, #{state}", [processes.values.sum(&:pss_mb)]]].each do |variant, values|
          yield result(peer, "memory_mb", values, unit: "MB", better: "lower", variant: variant, note: note, errors: errors)
        end
      end
    rescue StandardError => e
      yield result(peer, "memory_mb", [], unit: "MB", better: "lower", errors: 1, note: e.message.lines.first.to_s.strip)
    ensure
      stop_target(target) if target
    end

    # Alike for all: as many requests, however long they take.
    def ask(target)
      count = errors = idle = 0
      while count < REQUESTS
        progress("#{target.peer.name}, #{count} of #{REQUESTS} requests")
        found = drive(target, seconds: SLICE_S, seed: count + 1)
        idle = found[:pages].zero? ? idle + 1 : 0
        raise "no answers under load: #{found[:notes].first}" if idle == IDLE_MAX

        count += found[:pages]
        errors += found[:error_count]
      end
      [count, errors]
    end

    def snapshot(target) = target.running.memory_by_pid

    # The workers are those that have worked (clock_getcpuclockid(3): ~pid << 3 | CPUCLOCK_SCHED).
    def busiest(pids) = pids.max_by(workers) { |pid| Process.clock_gettime((~pid << 3) | 2) }
  end
end
