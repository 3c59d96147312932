# frozen_string_literal: true

require "json"
require_relative "comparison"
require_relative "workload"

module Bench
  # The results of a run, read back: by workload, server, metric and variant.
  class Findings
    Invalid = Class.new(StandardError)

    attr_reader :run, :machine, :servers, :missing, :workloads, :results

    def initialize(path)
      lines = File.readlines(path).each.with_index(1).map do |line, number|
        JSON.parse(line, symbolize_names: true)
      rescue JSON::ParserError
        raise Invalid, "#{path}:#{number}: not JSON"
      end
      header, peers, workloads, *@results = lines
      whole = header&.key?(:machine) && peers&.key?(:servers) && workloads&.key?(:workloads)
      raise Invalid, "#{path} does not begin with a run, its servers and its workloads" unless whole

      @run = header.except(:machine)
      @machine = header[:machine]
      @servers = peers[:servers].select { |key, _| @results.any? { |one| one[:server] == key.to_s } }
      @missing = peers[:missing]
      @workloads = workloads[:workloads].select { |name, _| @results.any? { |one| one[:workload] == name.to_s } }
    end

    def name_of(server) = @servers.dig(server.to_sym, :name) || server

    def of(workload) = @results.select { |one| one[:workload] == workload.to_s }

    def find(workload, server, metric, variant = nil)
      @results.find { |one| one[:workload] == workload && one[:server] == server && one[:metric] == metric && (variant.nil? || one[:variant] == variant) }
    end

    # How often one is the other: the median of each round's ratio, since what the machine did in a round it did to
    # both. nil where one of them was not measured.
    def ratio(...) = compare(...)&.ratio

    # The same with both figures and the 95 % interval of the ratio.
    def compare(workload, server, other, metric, variant = nil)
      one, base = [server, other].map { |key| find(workload, key, metric, variant)&.fetch(:values) }
      Comparison.of(one, base)
    end

    # A figure with its own interval, as a ratio to 1.
    def compare_itself(workload, server, metric, variant = nil)
      values = find(workload, server, metric, variant)&.fetch(:values)
      Comparison.of(values, values&.map { 1 })
    end
  end
end
