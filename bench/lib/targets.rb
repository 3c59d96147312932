# frozen_string_literal: true

require_relative "driven_workload"

module Bench
  # What Oribi sets out to reach, as ratios within one run, and what a run has come to.
  module Targets
    # workloads: the first that has figures counts. others: keys of servers, or a kind: all of them. One of least, most
    # and below is set.
    Target = Struct.new(:workloads, :own, :others, :metric, :variant, :least, :most, :below, keyword_init: true) do
      def higher? = !least.nil?
      def bound = least || most || below
      def wanted = "#{least ? "≥" : most ? "≤" : "<"} #{bound}"
      def met?(ratio) = least ? ratio >= least : most ? ratio <= most : ratio < below
      # How far beyond the bound a ratio is, in per cent of it; negative when it falls short.
      def margin(ratio) = ((higher? ? ratio / bound - 1 : 1 - ratio / bound) * 100).round
    end

    def self.faster(workload, own, others, least) = Target.new(workloads: [workload], own: own, others: others, metric: "requests_per_second", least: least)
    def self.cheaper(workload, own, others, most) = Target.new(workloads: [workload], own: own, others: others, metric: "cpu_us_per_request", most: most)

    # At a rate that all of them can carry.
    def self.quicker(workload, own, others)
      Target.new(workloads: [workload], own: own, others: others, metric: "latency_ms", variant: DrivenWorkload::OPEN_VARIANT, below: 1)
    end

    # The scaffold is not part of --quick; the small Rails application is.
    def self.smaller(what, own, others)
      Target.new(workloads: %w[rails-memory memory], own: own, others: others, metric: "memory_mb", variant: what, below: 1)
    end

    APPLICATIONS = [["rails", "oribi", :rack],
                    *%w[isucon4-sqlite isucon4-contest isucon4-nginx].flat_map { |name| [[name, "oribi", :rack], [name, "oribi-psgi", :psgi]] }].freeze

    LIST = [
      faster("hello", "oribi", %w[nginx-file], 1.0), cheaper("hello", "oribi", %w[bare], 1.35), faster("hello", "oribi", %w[iodine], 1.5),
      faster("hello", "oribi", %w[puma puma-1 puma-cluster puma-cluster-1], 5),
      faster("hello", "oribi", %w[unicorn], 4), faster("hello", "oribi", %w[rhebok], 4),
      cheaper("hello-headers", "oribi", %w[bare], 1.7),
      cheaper("hello", "oribi-psgi", %w[bare], 1.8), faster("hello", "oribi-psgi", %w[starlet], 3),
      *[%w[oribi unicorn], %w[oribi rhebok], %w[oribi-psgi starlet]].flat_map do |own, other|
        [faster("nginx-close", own, [other], 1.2), cheaper("nginx-close", own, [other], 0.6)]
      end,
      faster("nginx-keep-alive", "oribi", :rack, 1.3), faster("nginx-keep-alive", "oribi-psgi", :psgi, 1.3),
      *%w[parts-1k parts-64k parts-1m].flat_map { |name| [faster(name, "oribi", :rack, 2), faster(name, "oribi-psgi", :psgi, 2)] },
      *%w[form-1k form-16k].flat_map { |name| [faster(name, "oribi-rack", :rack, 3), faster(name, "oribi-plack", :psgi, 1.5)] },
      faster("upload", "oribi-rack", :rack, 2),
      faster("static-13", "oribi-files", %w[nginx-files], 1.15),
      *%w[static-1k static-10k static-100k static-1m static-304 static-range static-50000].map { |name| faster(name, "oribi-files", %w[nginx-files], 1.0) },
      *%w[static-13 static-1k static-10k static-100k static-1m].map { |name| cheaper(name, "oribi-files", %w[nginx-files], 1.0) },
      *%w[gzip zstd br].flat_map do |name|
        %w[oribi oribi-psgi].map { |own| faster("json-#{name}", "#{own}-#{name}", %w[nginx-gzip], 1.0) }
      end,
      faster("static-and-calls", "oribi-files", %w[iodine-files], 1.2), faster("static-and-calls", "oribi-files", %w[puma-files], 4),
      *APPLICATIONS.map { |workload, own, kind| faster(workload, own, kind, 1.0) },
      *APPLICATIONS.map { |workload, own, kind| quicker(workload, own, kind) },
      *["RSS, cold", "RSS, warm", "PSS, cold", "PSS, warm"].map { |what| smaller("worker #{what}", "oribi", %w[unicorn]) },
    ].freeze

    # Rows of { workload:, own:, other:, what:, found:, wanted:, verdict:, met:, marked: }; only for what was measured.
    # Of several peers the one that is hardest to beat counts.
    def self.check(findings)
      LIST.filter_map do |target|
        workload, ratios = target.workloads.lazy.map { |name| [name, ratios(findings, target, name)] }.find { |_, found| found.any? }
        next unless workload

        other, found = target.higher? ? ratios.min_by(&:last) : ratios.max_by(&:last)
        marked = [target.own, other].any? { |server| findings.find(workload, server, target.metric, target.variant)[:errors].to_i.positive? }
        { workload: workload, own: findings.name_of(target.own), other: findings.name_of(other), what: what(target), found: found.round(2),
          wanted: target.wanted, verdict: verdict(target, found), met: target.met?(found), marked: marked }
      end
    end

    def self.ratios(findings, target, workload)
      others(findings, target, workload).to_h do |other|
        [other, findings.ratio(workload, target.own, other, target.metric, target.variant)]
      end.compact
    end

    def self.verdict(target, ratio)
      margin = target.margin(ratio)
      return "reached (#{format("%+d", margin)} %)" if target.met?(ratio)

      margin.zero? ? "missed (less than 1 %)" : "missed (#{margin} %)"
    end

    def self.what(target)
      { "requests_per_second" => "requests per second", "cpu_us_per_request" => "CPU per request" }.fetch(target.metric, target.variant)
    end

    def self.others(findings, target, workload)
      return target.others unless target.others.is_a?(Symbol)

      findings.of(workload).map { |row| row[:server] }.uniq.select do |server|
        findings.servers.dig(server.to_sym, :kind) == target.others.to_s && !server.start_with?("oribi")
      end
    end
  end
end
