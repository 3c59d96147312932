# frozen_string_literal: true

require "json"
require "open3"
require_relative "findings"

module Bench
  # Descriptions of the plots, drawn by Vega-Lite (bench/page/plot.mjs): bars with their spread for every metric, curves
  # of percentiles, and one overview. Colours are words of the page's palette (see there).
  class Plots
    INK, ORIBI, PSGI, PEER, REFERENCE, PSGI_PEER = %w[#010101 #040404 #050505 #060606 #070707 #090909]
    SERIES = (1..8).map { |i| "#11110#{i}" }.freeze
    STYLE = File.join(ROOT, "bench/page/palette.css")
    WIDTH = 305
    CURVE_HEIGHT = 300
    NAME_APART = 0.62 # two names on one line need dots whose logarithms differ by this much
    LABEL_STEP = 13 # pixels between two names at the ends of lines
    METRICS = { "requests_per_second" => "requests per second", "cpu_us_per_request" => "server CPU per request, µs", "latency_ms" => "latency, ms",
                "memory_mb" => "memory, MB", "time_ms" => "time, ms", "idle_kb_per_connection" => "memory per silent connection, KB" }.freeze

    def self.draw(descriptions)
      modules = File.join(ROOT, "build/bench")
      raise "plots want node with vega and vega-lite (script/setup bench)" unless File.exist?(File.join(modules, "node_modules/vega-lite"))

      output, status = Open3.capture2("node", File.join(ROOT, "bench/page/plot.mjs"), modules, stdin_data: JSON.generate(descriptions))
      raise "bench/page/plot.mjs failed" unless status.success?

      JSON.parse(output)
    end

    # A plot as a file brings the palette with it; within the page it is the page's.
    def self.alone(svg)
      style = File.read(STYLE).gsub(":root", "svg").gsub(/\s+/, " ")
      svg.sub(/(<svg[^>]*>)/) { "#{$1}<style>#{style} svg{background:var(--paper);font-family:system-ui,sans-serif}</style>" }
    end

    def initialize(findings) = @findings = findings

    # name => description
    def all
      panels = @findings.workloads.keys.flat_map { |workload| of_workload(workload.to_s) }
      [["overview", overview], *panels].select { |_, description| description }.to_h
    end

    # The panels of one workload, in the order of their metrics.
    def of_workload(workload)
      rows = @findings.of(workload).reject { |row| row[:values].empty? }
      bars = rows.group_by { |row| [row[:metric], row[:variant]] }.map do |(metric, variant), some|
        [name(workload, metric, variant), bars(metric, variant, some)]
      end
      curves = rows.select { |row| row[:curve] }.group_by { |row| row[:variant].to_s.sub(/\bp\d+\S*/, "").strip }
      drawn = curves.map { |variant, some| [name(workload, "curve", variant), curve(some, variant)] }
      drawn + bars
    end

    private

    def name(*words) = words.compact.join("-").downcase.gsub(/[^a-z0-9]+/, "-").delete_suffix("-")

    def color(server)
      kind = @findings.servers.dig(server.to_sym, :kind)
      return ORIBI if server == "oribi"
      return PSGI if server.start_with?("oribi")

      return REFERENCE if kind == "reference" || server == "driver"

      kind == "psgi" || server.match?(/\A(Starlet|Starman)/) ? PSGI_PEER : PEER
    end

    def quartiles(values)
      sorted = values.sort
      [0.25, 0.75].map { |part| sorted[((sorted.size - 1) * part).round] }
    end

    def datum(row)
      low, high = quartiles(row[:values])
      text = Table.figure(row[:median]) + (row[:errors].to_i.positive? ? "  ⚠" : "")
      { server: @findings.name_of(row[:server]), value: row[:median], low: low, high: high, color: color(row[:server]), text: text }
    end

    def bars(metric, variant, rows)
      rows = rows.sort_by { |row| row[:better] == "higher" ? -row[:median] : row[:median] }
      data = rows.map { |row| datum(row) }
      # A server far beyond the others would flatten them all.
      log = data.map { |one| one[:value] }.then { |values| values.min.positive? && values.max / values.sort[values.size / 2] > 12 }
      title = [METRICS.fetch(metric, metric.tr("_", " ")), variant].compact.join(": ")
      layered(title, data, scale(data, log), log)
    end

    # Bars on a logarithmic scale begin a little below the least.
    def scale(data, log)
      most = data.map { |one| [one[:value], one[:high]].max }.max
      return { domain: [0, most.zero? ? 1 : most * 1.16], nice: false } unless log

      { type: "log", domain: [data.map { |one| one[:low] }.min / 2.0, most * 2.5], nice: false }
    end

    def layered(title, data, scale, log)
      y = { field: "server", type: "nominal", sort: nil, title: nil, axis: { labelLimit: 400, minExtent: 165, maxExtent: 165 } }
      x = { field: "value", type: "quantitative", title: log ? "#{title} (logarithmic)" : title, scale: scale,
            axis: { tickCount: 4, format: format_for(data), grid: !log } }
      base = log ? { x2: { datum: scale[:domain].first } } : {}
      fill = { field: "color", type: "nominal", scale: nil }
      { "$schema": "https://vega.github.io/schema/vega-lite/v6.json", width: WIDTH, height: { step: 21 }, title: title, data: { values: data },
        encoding: { y: y },
        layer: [
          { mark: { type: "bar", height: 13 }, encoding: { x: x, color: fill, **base } },
          { mark: { type: "rule", strokeWidth: 1.5, color: INK, opacity: 0.65 },
            encoding: { x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
          { mark: { type: "text", align: "left", dx: 6, fontSize: 11, color: INK },
            encoding: { x: { field: "high", type: "quantitative" }, text: { field: "text" } } },
        ] }
    end

    # "20k", but "0.2" and not "200m".
    def format_for(data) = data.map { |one| one[:high] }.max >= 1000 ? "~s" : ".4~r"

    # Percentiles towards 100 are spread out: each step to the right is ten times fewer requests.
    def curve(rows, variant)
      order = rows.sort_by { |row| row[:server].start_with?("oribi") ? 0 : row[:median] }.first(SERIES.size)
      names = order.map { |row| @findings.name_of(row[:server]) }
      colors = order.each_with_index.map { |row, i| { "oribi" => ORIBI, "oribi-psgi" => PSGI }.fetch(row[:server], SERIES[i]) }
      data = order.flat_map do |row|
        points = row[:curve].reject { |percentile, _| percentile >= 100 }
        points.map { |percentile, ms| { server: @findings.name_of(row[:server]), rank: 1 / (1 - percentile / 100.0), ms: ms } }
      end
      y = { field: "ms", type: "quantitative", title: "latency, ms (logarithmic)",
            scale: { type: "log", domain: data.map { |one| one[:ms] }.then { |all| [all.min * 0.9, all.max * 1.1] }, nice: false },
            axis: { grid: true, tickCount: 5, labelFontSize: 11, format: "~g" } }
      color = { field: "server", type: "nominal", scale: { domain: names, range: colors }, legend: nil }
      { width: 780, height: CURVE_HEIGHT, title: ["latency by percentile", variant].reject { |word| word.to_s.empty? }.join(": "), data: { values: data },
        layer: [{ mark: { type: "line", strokeWidth: 2 },
                  encoding: { x: rank_axis, y: y, color: color,
                              strokeWidth: { condition: { test: "substring(datum.server, 0, 5) == 'Oribi'", value: 3.2 }, value: 1.6 } } },
                end_labels(data, y[:scale][:domain], color)],
        resolve: { scale: { y: "independent" } } }
    end

    def rank_axis
      marks = { 2 => "50 %", 10 => "90 %", 100 => "99 %", 1000 => "99.9 %", 10_000 => "99.99 %" }
      labels = marks.map { |rank, text| "datum.value == #{rank} ? '#{text}'" }.join(" : ")
      { field: "rank", type: "quantitative", scale: { type: "log", nice: false }, title: "so many answers came within",
        axis: { values: marks.keys, labelExpr: "#{labels} : ''", grid: true } }
    end

    # Each line is named where it ends; names that would lie on one another move apart.
    def end_labels(data, domain, color)
      ends = data.group_by { |one| one[:server] }.values.map { |points| points.max_by { |point| point[:rank] } }
      low, high = domain.map { |ms| Math.log(ms) }
      placed = ends.map { |one| one.merge(y: CURVE_HEIGHT * (high - Math.log(one[:ms])) / (high - low)) }.sort_by { |one| one[:y] }
      placed.each_cons(2) { |above, below| below[:y] = [below[:y], above[:y] + LABEL_STEP].max }
      over = placed.last[:y] - CURVE_HEIGHT
      placed.last[:y] -= over if over.positive?
      placed.reverse.each_cons(2) { |below, above| above[:y] = [above[:y], below[:y] - LABEL_STEP].min }
      { data: { values: placed }, mark: { type: "text", align: "left", dx: 6, fontSize: 11 },
        encoding: { x: { field: "rank", type: "quantitative" }, text: { field: "server" }, color: color,
                    y: { field: "y", type: "quantitative", scale: nil, axis: nil } } }
    end

    # Every peer as a dot, at how many requests a second it answers for each one of Oribi's; Oribi is the line at 1. The
    # best of each kind is named.
    def overview
      data = @findings.workloads.keys.map(&:to_s).flat_map do |workload|
        rows = @findings.of(workload).select { |row| row[:metric] == "requests_per_second" && !row[:values].empty? && row[:variant].nil? }
        rows.filter_map do |row|
          info = @findings.servers[row[:server].to_sym] or next
          own = info[:kind] == "psgi" ? "oribi-psgi" : "oribi"
          ratio = @findings.ratio(workload, row[:server], own, "requests_per_second")
          next if row[:server].start_with?("oribi") || info[:variant_of] || ratio.nil? || ratio <= 0

          kind = { "rack" => "Rack servers", "psgi" => "PSGI servers" }.fetch(info[:kind], "references")
          { workload: workload, ratio: ratio, kind: kind, server: info[:name], wrong: row[:errors].to_i.positive? }
        end
      end
      data.empty? ? nil : overview_of(data)
    end

    # Of each workload the best of each kind, peers before references; a name that would lie on another one is left out.
    def best_of(data)
      data.group_by { |one| one[:workload] }.values.flat_map do |dots|
        best = dots.group_by { |one| one[:kind] }.values.map { |some| some.max_by { |one| one[:ratio] } }
        order = best.sort_by { |one| [one[:kind] == "references" ? 1 : 0, -one[:ratio]] }
        named = order.each_with_object([]) do |one, kept|
          kept << one if kept.all? { |other| Math.log(other[:ratio] / one[:ratio]).abs > NAME_APART }
        end
        named.map { |one| one.merge(server: one[:server][/\A[^,]+/]) }
      end
    end

    def overview_of(data)
      order = data.map { |one| one[:workload] }.uniq
      kinds = ["Rack servers", "PSGI servers", "references"]
      ratios = data.map { |one| one[:ratio] }
      domain = [[ratios.min * 0.8, 0.05].min, [ratios.max * 1.2, 2].max]
      color = { field: "kind", type: "nominal", scale: { domain: kinds, range: [SERIES[0], SERIES[3], REFERENCE] }, legend: { title: nil, orient: "top" } }
      { width: 860, height: { step: 30 }, data: { values: data },
        layer: [
          { mark: { type: "point", filled: true, size: 70, opacity: 0.75 },
            encoding: {
              x: { field: "ratio", type: "quantitative", title: "requests per second for each of Oribi's (logarithmic)",
                   scale: { type: "log", domain: domain, nice: false },
                   axis: { values: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5], format: "~g" } },
              y: { field: "workload", type: "nominal", sort: order, title: "workload", axis: { grid: true, labelLimit: 400, minExtent: 165 } },
              color: color,
              shape: { field: "kind", type: "nominal", scale: { domain: kinds, range: %w[circle square diamond] }, legend: { title: nil, orient: "top" } },
              tooltip: { field: "server" },
            } },
          { data: { values: best_of(data) }, mark: { type: "text", dy: -9, fontSize: 10, color: INK },
            encoding: { x: { field: "ratio", type: "quantitative" }, y: { field: "workload", type: "nominal", sort: order }, text: { field: "server" } } },
          { data: { values: [{}] }, mark: { type: "rule", color: ORIBI, strokeWidth: 2 }, encoding: { x: { datum: 1 } } },
        ] }
    end
  end
end
