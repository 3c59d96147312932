# frozen_string_literal: true

module Bench
  # What Oribi sets out to reach, as ratios within one run, and what a run has come to.
  module Targets
    Target = Struct.new(:workload, :own, :others, :metric, :least, :most, keyword_init: true)

    def self.faster(workload, own, others, least) = Target.new(workload: workload, own: own, others: others, metric: "requests_per_second", least: least)
    def self.cheaper(workload, own, others, most) = Target.new(workload: workload, own: own, others: others, metric: "cpu_us_per_request", most: most)

    LIST = [
      faster("hello", "oribi", %w[nginx-file], 1.0), cheaper("hello", "oribi", %w[bare], 1.35), faster("hello", "oribi", %w[iodine], 1.5),
      faster("hello", "oribi", %w[puma puma-1], 5), faster("hello", "oribi", %w[unicorn rhebok], 4), cheaper("hello-headers", "oribi", %w[bare], 1.7),
      cheaper("hello", "oribi-psgi", %w[bare], 1.8), faster("hello", "oribi-psgi", %w[starlet], 3),
      faster("nginx-close", "oribi", %w[unicorn rhebok], 1.2), cheaper("nginx-close", "oribi", %w[unicorn rhebok], 0.6),
      faster("nginx-close", "oribi-psgi", %w[starlet], 1.2), cheaper("nginx-close", "oribi-psgi", %w[starlet], 0.6),
      faster("nginx-keep-alive", "oribi", :rack, 1.3), faster("nginx-keep-alive", "oribi-psgi", :psgi, 1.3),
      faster("parts-64k", "oribi", :rack, 2), faster("parts-64k", "oribi-psgi", :psgi, 2),
      faster("rails", "oribi", :rack, 1.0), faster("isucon4-sqlite", "oribi", :rack, 1.0), faster("isucon4-sqlite", "oribi-psgi", :psgi, 1.0),
      faster("isucon4-contest", "oribi", :rack, 1.0), faster("isucon4-contest", "oribi-psgi", :psgi, 1.0)
    ].freeze

    # Rows of { text:, found:, wanted:, met: }; only for what was measured. Of several peers the one that is hardest to beat counts.
    def self.check(findings)
      LIST.filter_map do |target|
        ratios = others(findings, target).to_h { |other| [other, findings.ratio(target.workload, target.own, other, target.metric)] }.compact
        next if ratios.empty?

        other, found = target.least ? ratios.min_by(&:last) : ratios.max_by(&:last)
        met = target.least ? found >= target.least : found <= target.most
        what = target.metric == "requests_per_second" ? "requests per second" : "CPU per request"
        { workload: target.workload, own: findings.name_of(target.own), other: findings.name_of(other), what: what, found: found.round(2),
          wanted: target.least ? "≥ #{target.least}" : "≤ #{target.most}", met: met }
      end
    end

    def self.others(findings, target)
      return target.others unless target.others.is_a?(Symbol)

      findings.of(target.workload).map { |row| row[:server] }.uniq.select do |server|
        findings.servers.dig(server.to_sym, :kind) == target.others.to_s && !server.start_with?("oribi")
      end
    end
  end
end
