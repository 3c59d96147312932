# frozen_string_literal: true

require_relative "comparison"
require_relative "driven_workload"

module Bench
  # What Oribi sets out to reach, as ratios within one run, and what a run has come to.
  module Targets
    # workloads: the first that has figures counts. others: keys of servers, or a kind: all of them; nil: the bound is
    # of the figure itself, not of a ratio. One of least, most and below is set; or beside: the figure is not above the
    # 95 % interval of any other server's own.
    Target = Struct.new(:workloads, :own, :others, :metric, :variant, :least, :most, :below, :beside, keyword_init: true) do
      def higher? = !least.nil?
      def bound = least || most || below || 1
      def wanted = beside ? "within its interval" : "#{least ? "≥" : most ? "≤" : "<"} #{bound}"
      def met?(ratio) = least ? ratio >= least : most ? ratio <= most : ratio < bound
      # How far beyond the bound a ratio is, in per cent of it; negative when it falls short.
      def margin(ratio) = ((higher? ? ratio / bound - 1 : 1 - ratio / bound) * 100).round
    end

    # A target with the server that it was held against: comparison is a Comparison, state :reached, :open or :missed.
    Checked = Struct.new(:target, :workload, :other, :comparison, :state, keyword_init: true)

    # How much of the best peers' p99 Oribi's are to be in the middle of all such rows.
    LATENCY_MEAN = 0.95

    def self.faster(workload, own, others, least) = Target.new(workloads: [workload], own: own, others: others, metric: "requests_per_second", least: least)
    def self.cheaper(workload, own, others, most) = Target.new(workloads: [workload], own: own, others: others, metric: "cpu_us_per_request", most: most)

    # A figure with a bound of its own.
    def self.itself(workload, own, metric, variant: nil, **bound) = Target.new(workloads: [workload], own: own, metric: metric, variant: variant, **bound)

    # At a rate that all of them can carry.
    def self.quicker(workload, own, others)
      Target.new(workloads: [workload], own: own, others: others, metric: "latency_ms", variant: DrivenWorkload::OPEN_VARIANT, beside: true)
    end

    # The scaffold is not part of --quick; the small Rails application is.
    def self.smaller(what, own, others)
      Target.new(workloads: %w[rails-memory memory], own: own, others: others, metric: "memory_mb", variant: what, below: 1)
    end

    APPLICATIONS = [["rails", "oribi", :rack, 1.05],
                    *%w[isucon4-sqlite isucon4-contest isucon4-nginx].flat_map do |name|
                      [[name, "oribi", :rack, 1.0], [name, "oribi-psgi", :psgi, 1.0]]
                    end].freeze

    # The clients of Redis (bench/workloads/redis.rb), by both kinds of socket.
    PERL, RUBY = "Oribi::Redis (Perl)", "Oribi::Redis (Ruby)"
    REDIS = { "get" => [[PERL, "Redis::Fast", 1.2], [PERL, "hiredis in C, and an empty call of Perl", 0.95], [RUBY, "redis-client, hiredis", 1.15]],
              "pipeline" => [[PERL, "Redis::Fast", 2], [RUBY, "redis-client, hiredis", 1.5]],
              "noreply" => [[PERL, "Oribi::Redis (Perl), pipeline", 1.3]],
              "list" => [[PERL, "Redis::Fast", 1.2], [RUBY, "redis-client, hiredis", 1.2]],
              "hash" => [[PERL, "Redis::Fast", 1.2], [RUBY, "redis-client, hiredis", 1.2]] }.freeze

    # Clients of a frontend (bench/workloads/frontend.rb, frontend_rest.rb): a workload, what is held against what, and
    # how much of its processor time it may take.
    FRONTEND = [["frontend-hop", "frontend", "", 2.4], ["frontend-hop", "frontend", "nginx", 0.8], ["frontend-tls", "tls",
          "frontend", 1.4], ["frontend-tls", "tls", "nginx-tls", 1.0],
            ["frontend-tls-100k", "tls", "nginx-tls", 0.9], ["frontend-h2", "tls", "nginx-tls", 0.35]].freeze
    FRONTEND_TARGETS = [
      *%w[oribi oribi-psgi].flat_map do |own|
        key = ->(way) { { "" => own, "frontend" => "#{own}-frontend", "tls" => "#{own}-tls", "nginx" => "nginx-#{own}",
              "nginx-tls" => "nginx-#{own}-tls" }.fetch(way) }
        [*FRONTEND.map { |workload, mine, other, most| cheaper(workload, key.call(mine), [key.call(other)], most) },
         itself("frontend-h2-calls", "#{own}-tls", "requests_per_second", least: 190),
         itself("frontend-idle", "#{own}-tls", "idle_kb_per_connection", variant: "HTTP/1.1", most: 14.5),
         itself("frontend-idle", "#{own}-tls", "idle_kb_per_connection", variant: "HTTP/2", most: 16),
         itself("frontend-wait", "#{own}-frontend", "latency_ms", variant: "mean wait, beyond plain listeners", most: 0.1)]
      end,
      *%w[full resumed].map { |kind| cheaper("frontend-handshakes-#{kind}", "oribi-tls", %w[nginx-return-tls], 1.0) },
      cheaper("frontend-h2", "oribi-tls", %w[h2o-oribi-tls], 0.75),
    ].freeze

    LIST = [
      faster("hello", "oribi", %w[nginx-file], 1.0), cheaper("hello", "oribi", %w[bare], 1.2), faster("hello", "oribi", %w[iodine], 1.5),
      faster("hello", "oribi", %w[puma puma-1 puma-cluster puma-cluster-1], 5),
      cheaper("hello", "oribi-threads", %w[oribi], 1.15), faster("rails-threads", "oribi", %w[puma-cluster], 1.05),
      Target.new(workloads: ["placement"], own: "Oribi (Rack), 5 threads", others: ["Puma cluster, 5 threads"], metric: "latency_ms",
                 variant: "sleep, mean wait", most: 1.0),
      faster("hello", "oribi", %w[unicorn], 4), faster("hello", "oribi", %w[rhebok], 4),
      cheaper("hello-headers", "oribi", %w[bare], 1.35), cheaper("hello-headers", "oribi-psgi", %w[bare], 1.35),
      cheaper("hello", "oribi-psgi", %w[bare], 1.25), faster("hello", "oribi-psgi", %w[starlet], 3),
      *[%w[oribi unicorn], %w[oribi rhebok], %w[oribi-psgi starlet]].flat_map do |own, other|
        [faster("nginx-close", own, [other], 1.2), cheaper("nginx-close", own, [other], 0.6)]
      end,
      faster("nginx-keep-alive", "oribi", :rack, 1.3), faster("nginx-keep-alive", "oribi-psgi", :psgi, 1.3),
      *{ "parts-1k" => 2, "parts-64k" => 2, "parts-1m" => 1.5, "stream" => 1.0 }.flat_map do |name, least|
        [faster(name, "oribi", :rack, least), faster(name, "oribi-psgi", :psgi, least)]
      end,
      *%w[form-1k form-16k].flat_map { |name| [faster(name, "oribi-rack", :rack, 3), faster(name, "oribi-plack", :psgi, 1.5)] },
      faster("form-16k", "oribi-psgi", :psgi, 1.15), faster("mojolicious", "oribi-psgi", :psgi, 1.15),
      faster("upload", "oribi-rack", :rack, 1.2), faster("upload", "oribi-rack", %w[uwsgi], 1.0), faster("upload", "oribi-plack", :psgi, 1.0),
      faster("upload-10m", "oribi", :rack, 1.2), faster("upload-10m", "oribi", %w[uwsgi], 1.0), faster("upload-10m", "oribi-psgi", :psgi, 1.0),
      faster("static-13", "oribi-files", %w[nginx-files], 1.15),
      *%w[static-1k static-10k static-100k static-1m static-304 static-range static-50000].map { |name| faster(name, "oribi-files", %w[nginx-files], 1.0) },
      *%w[static-13 static-1k static-10k static-100k static-1m].map { |name| cheaper(name, "oribi-files", %w[nginx-files], 1.0) },
      *%w[gzip zstd br].flat_map do |name|
        %w[oribi oribi-psgi].map { |own| faster("json-#{name}", "#{own}-#{name}", %w[nginx-gzip], 1.0) }
      end,
      faster("static-and-calls", "oribi-files", %w[iodine-files], 1.2), faster("static-and-calls", "oribi-files", %w[puma-files], 4),
      *APPLICATIONS.map { |workload, own, kind, least| faster(workload, own, kind, least) },
      *APPLICATIONS.map { |workload, own, kind, _| quicker(workload, own, kind) },
      *REDIS.flat_map { |subject, rows| rows.product(["", "-tcp"]).map { |row, place| faster("redis-#{subject}#{place}", row[0], [row[1]], row[2]) } },
      *FRONTEND_TARGETS,
      *["RSS, cold", "RSS, warm", "PSS, cold", "PSS, warm"].map { |what| smaller("worker #{what}", "oribi", %w[unicorn]) },
    ].freeze

    # Rows of { workload:, own:, other:, what:, figures:, found:, interval:, wanted:, verdict:, state:, marked: }; only
    # for what was measured. Of several peers the one that is hardest to beat counts. figures: Oribi's and the other's.
    def self.check(findings)
      checked = LIST.filter_map { |target| examine(findings, target) }
      [*checked.map { |one| row(findings, one) }, *latency_mean(checked)]
    end

    # The target with the other server that makes it hardest; nil when it was not measured.
    def self.examine(findings, target)
      workload, found = target.workloads.lazy.map { |name| [name, comparisons(findings, target, name)] }.find { |_, some| some.any? }
      return unless workload

      ratio = ->((_, comparison)) { comparison.ratio }
      other, comparison = target.higher? ? found.min_by(&ratio) : found.max_by(&ratio)
      Checked.new(target: target, workload: workload, other: other, comparison: comparison, state: state(findings, target, workload, other, comparison))
    end

    def self.comparisons(findings, target, workload)
      return { nil => findings.compare_itself(workload, target.own, target.metric, target.variant) }.compact unless target.others

      others(findings, target, workload).to_h do |other|
        [other, findings.compare(workload, target.own, other, target.metric, target.variant)]
      end.compact
    end

    # Reached and missed are said only where the whole interval lies on that side of the bound.
    def self.state(findings, target, workload, other, comparison)
      if target.beside
        values = findings.find(workload, other, target.metric, target.variant)[:values]
        return comparison.own <= Comparison.spread_of(values).last ? :reached : :missed
      end
      ends = [comparison.low, comparison.high].map { |ratio| target.met?(ratio) }
      return :open if ends.uniq.size > 1

      ends.first ? :reached : :missed
    end

    def self.row(findings, one)
      target = one.target
      marked = [target.own, *one.other].any? { |server| findings.find(one.workload, server, target.metric, target.variant)[:errors].to_i.positive? }
      found = one.comparison
      { workload: one.workload, own: findings.name_of(target.own), other: one.other ? findings.name_of(one.other) : "", what: what(target),
        figures: [found.own, *(found.other if one.other)], found: found.ratio.round(2), interval: [found.low.round(2), found.high.round(2)],
        wanted: target.wanted, verdict: verdict(one), state: one.state, marked: marked }
    end

    # What all rows of latency come to; no row when none was measured.
    def self.latency_mean(checked)
      ratios = checked.select { |one| one.target.beside }.map { |one| one.comparison.own / one.comparison.other }
      return [] if ratios.empty?

      mean = ratios.sum / ratios.size
      state = mean <= LATENCY_MEAN ? :reached : :missed
      [{ workload: "all #{ratios.size} rows of p99", own: "Oribi", other: "the best of each", what: "mean of the ratios of p99", figures: [],
         found: mean.round(2), interval: [], wanted: "≤ #{LATENCY_MEAN}", verdict: state.to_s, state: state, marked: false }]
    end

    def self.verdict(one)
      return one.state.to_s if one.target.beside
      return "open" if one.state == :open

      margin = one.target.margin(one.comparison.ratio)
      return "reached (#{format("%+d", margin)} %)" if one.state == :reached

      margin.zero? ? "missed (less than 1 %)" : "missed (#{margin} %)"
    end

    def self.what(target)
      { "requests_per_second" => "requests per second", "cpu_us_per_request" => "CPU per request",
        "idle_kb_per_connection" => "KB of a silent connection, #{target.variant}" }.fetch(target.metric, target.variant)
    end

    def self.others(findings, target, workload)
      return target.others unless target.others.is_a?(Symbol)

      findings.of(workload).map { |row| row[:server] }.uniq.select do |server|
        findings.servers.dig(server.to_sym, :kind) == target.others.to_s && !server.start_with?("oribi")
      end
    end
  end
end
