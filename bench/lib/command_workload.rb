# frozen_string_literal: true

require "json"
require_relative "workload"

module Bench
  # A workload that is a program of its own. It is told by its environment how long it may take and whom to measure, and prints one JSON line a
  # result (bench/lib/workload.rb) on standard output; what it says on standard error is its progress.
  #
  #     Bench::CommandWorkload.define("isucon4-sqlite", ["bench/isucon4/run", "--store", "sqlite"], about: "the ISUCON4 qualifier, SQLite", weight: 6)
  #
  #     BENCH_SECONDS       seconds for everything      BENCH_QUICK      1 with --quick       BENCH_ROUNDS      rounds at least
  #     BENCH_SERVERS       keys, separated by commas, of installed peers of all kinds
  #     BENCH_SERVER_CORE   BENCH_CLIENT_CORE           cores for taskset; empty where the machine has too few
  #     BENCH_SCRATCH       an empty folder, removed afterwards
  #
  # Exit code 0, or another when something went wrong beyond what its results say. It is ended with TERM at three times its seconds and a minute.
  class CommandWorkload < Workload
    class << self
      attr_reader :argv

      def define(name, argv, about:, **options)
        Class.new(self) do
          @argv = argv
          register name, about: about, **options
        end
      end
    end

    def results
      reader, writer = IO.pipe
      pid = spawn(environment, *self.class.argv, chdir: ROOT, in: File::NULL, out: writer, err: context.log, pgroup: true)
      writer.close
      watchdog = Thread.new { sleep(share_s * 3 + 60) && Process.kill(:TERM, -pid) }
      reader.each_line do |line|
        found = JSON.parse(line, symbolize_names: true)
        progress("#{found[:server]} #{found[:metric]}")
        yield({ workload: self.class.name_of, median: Workload.median(found[:values] || []), errors: 0 }.merge(found))
      rescue JSON::ParserError
        context.log.puts line
      end
      watchdog.kill
      Process.wait(pid)
      raise "#{self.class.argv.join(" ")} ended with #{$?.exitstatus || "signal #{$?.termsig}"}" unless $?.success?
    end

    private

    def environment
      { "BENCH_SECONDS" => share_s.round.to_s, "BENCH_QUICK" => context.quick? ? "1" : nil, "BENCH_ROUNDS" => context.rounds_min.to_s,
        "BENCH_SERVERS" => context.peers.map(&:key).join(","), "BENCH_SERVER_CORE" => context.server_core.to_s,
        "BENCH_CLIENT_CORE" => context.client_core.to_s, "BENCH_SCRATCH" => context.scratch(self.class.name_of) }
    end
  end
end
