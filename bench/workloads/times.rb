# frozen_string_literal: true

require_relative "../lib/throughput"

module Bench
  # How long it takes to start until the first answer, to have the application loaded anew, and to stop, with one worker
  # of a small application.
  class Times < Workload
    register "times", about: "to the first answer after a start, to the first answer of new code after a reload, to the end after a stop", weight: 1

    APP = { rack: File.join(ROOT, "bench/apps/generation.ru"), psgi: File.join(ROOT, "bench/apps/generation.psgi") }.freeze
    RELOAD_SECONDS = 15
    PAUSE_S = 0.005

    def results
      found = Hash.new { |hash, key| hash[key] = Hash.new { |inner, metric| inner[metric] = [] } }
      failed = {}
      peers = servers(:rack, :psgi, only: Throughput::MAIN)
      context.rounds_min.times do |round|
        peers.rotate(round % [peers.size, 1].max).each do |peer|
          next if failed[peer]

          progress("round #{round + 1} of #{context.rounds_min}, #{peer.name}")
          cycle(peer, found[peer])
        rescue Running::Failed, SystemCallError, Checker::Silent, EOFError => e
          failed[peer] = e.message.delete_prefix("#{peer.name} ")
        end
      end
      peers.each { |peer| report(peer, found[peer], failed[peer]) { |one| yield one } }
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def cycle(peer, times)
      started = now
      running = Running.new(peer, context, app: APP, env: { "BENCH_PRELOAD" => "0" }).start
      first = generation(running)
      times["boot"] << now - started
      times["reload"] << reload(running, first) if peer.reload
      times["stop"] << running.stop
    ensure
      running&.stop
    end

    # The path of the application is the whole answer's body; nil while nobody answers.
    def generation(running)
      Checker.new(-> { running.connect }, Request.new(fields: { "Connection" => "close" })).answer(patience_s: 2).body
    end

    # Until three answers in a row are of the new code: old workers may still answer some.
    def reload(running, old)
      started = now
      running.signal(running.peer.reload)
      fresh = 0
      while fresh < 3
        raise Running::Failed, "no new code within #{RELOAD_SECONDS} s of #{running.peer.reload}" if now - started > RELOAD_SECONDS

        sleep PAUSE_S
        answer = attempt(running)
        at = now if fresh.zero?
        fresh = answer && answer != old ? fresh + 1 : 0
      end
      at - started
    end

    def attempt(running)
      generation(running)
    rescue Checker::Silent, SystemCallError, EOFError
      nil
    end

    def report(peer, times, failure)
      %w[boot reload stop].each do |what|
        values = times[what].map { |seconds| seconds * 1000 }
        note = failure || (values.empty? ? "#{what}: no signal that loads new code into this configuration" : nil)
        yield result(peer, "time_ms", values, unit: "ms", better: "lower", variant: what, errors: failure ? 1 : 0, note: note)
      end
    end
  end
end
