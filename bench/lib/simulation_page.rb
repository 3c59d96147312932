# frozen_string_literal: true

require "json"
require_relative "document"
require_relative "plots"
require_relative "simulation"

module Bench
  # What bench/simulate found, as tables of doc/internals/placement.md and as plots.
  class SimulationPage
    PAGE = File.join(ROOT, "doc/internals/placement.md")
    NAMES = { "ideal" => "one ideal queue", "random" => "random", "round-robin" => "round robin", "least" => "least connections",
              "two-choices" => "two choices", "idle" => "idle worker first", "weights" => "weights", "agent" => "agents' weights",
              "agent-least" => "least connections, agents' weights", "ours" => "Oribi, kept connections",
              "ours-new" => "Oribi, new connections" }.freeze
    SERVICE_NAMES = { "constant" => "constant", "exponential" => "exponential", "pareto" => "heavy tail", "mix" => "2 ms and 500 ms" }.freeze
    # Of our rules a request costs so much. The hand-off was measured; the others are assumptions, of the order of what
    # a futex, a look and a cache line take.
    HANDOFF_US, WAKEUP_US, LOOK_US, SLOT_US = 15, 5, 2, 0.005
    COLORS = { "ours" => Plots::ORIBI, "ours-new" => Plots::PSGI, "ideal" => Plots::REFERENCE, "random" => Plots::SERIES[0],
               "round-robin" => Plots::SERIES[1], "least" => Plots::SERIES[2], "two-choices" => Plots::SERIES[3], "idle" => Plots::SERIES[4],
               "weights" => Plots::SERIES[5] }.freeze
    COST_COLORS = { "hand-offs" => Plots::SERIES[0], "wake-ups" => Plots::SERIES[1], "looks of helpers" => Plots::SERIES[2],
                    "slots read" => Plots::ORIBI }.freeze
    LEAST_MS = 0.01 # on a logarithmic scale: less, and what is better than one queue, is drawn here

    # Rows of a table for the terminal, the heading first.
    def self.plain_rows(lines)
      machines = lines.any? { |line| line["machines"] > 1 }
      head = [*("balancer" if machines), "rule", "mean wait, ms", "± 95 %", "p50", "p99", "p99.9", "ideal mean", "ideal p99", "ideal p99.9",
              "hand-offs", "wake-ups", "looks", "slots read"]
      keys = [*("balancer" if machines), "rule", *%w[mean_ms ci_ms p50_ms p99_ms p999_ms ideal_mean_ms ideal_p99_ms ideal_p999_ms handoffs wakeups
                                                     looks slots]]
      [head, *lines.map { |line| line.values_at(*keys).map { |value| value.is_a?(Float) ? format("%.3f", value) : value } }]
    end

    # Of SimulationCheck.
    def self.check_lines(lines)
      rows = lines.map do |line|
        figures = [line[:p50_ms], *["", "model_"].product(%w[mean_ms p99_ms]).map { |of, key| line[:"#{of}#{key}"] - line[:"#{of}ideal_#{key}"] }]
        ["#{line[:server]}, load #{line[:load]}", *figures.map { |value| format("%.2f", value) }]
      end
      busy = lines.map { |line| line[:load_average] }.minmax.map { |load| format("%.1f", load) }.join(" to ")
      heads = ["ms beyond one ideal queue", "p50 of the wait", "mean, measured", "p99, measured", "mean, model", "p99, model"]
      ["#{lines.first[:machine]}.", "#{lines.first[:seconds]} s a load; load average of the machine before it #{busy}.", "", *Document.table([heads, *rows])]
    end

    def self.put(name, lines)
      Document.put(PAGE, "simulate-#{name}", lines) or raise "doc/internals/placement.md lacks the mark of simulate-#{name}"
    end

    def initialize(path)
      lines = File.readlines(path).map { |line| JSON.parse(line) }
      @setup = lines.shift.fetch("simulate")
      @one, @fleets = lines.partition { |line| line["machines"] == 1 && line["arrivals"] && line["rule"] != "ideal" && !line["balancer"] }
      @one_machine, @fleets = @fleets.partition { |line| line["machines"] == 1 }
    end

    # document: also the tables into the document.
    def write(folder, document:)
      plots = File.join(folder, "simulate")
      FileUtils.mkdir_p(plots)
      Plots.draw(all_plots).each { |name, svg| File.write(File.join(plots, "#{name}.svg"), "#{Plots.alone(svg)}\n") }
      return unless document

      tables.each { |name, lines| SimulationPage.put(name, lines) }
    end

    def tables
      { "summary" => summary, "cost" => costs }
    end

    private

    def of(**wanted) = @one.select { |line| wanted.all? { |key, value| line[key.to_s] == value } }
    def beyond(line, key) = line[key] - line["ideal_#{key}"]

    # Hundredths as far as they matter.
    def ms(value)
      value = value.round(2)
      value.abs >= 100 ? value.round.to_s : format(value.abs >= 10 ? "%.1f" : "%.2f", value.zero? ? 0 : value)
    end

    def workers = @one.map { |line| line["workers"] }.uniq.sort

    def cost_us(line)
      line["handoffs"] * HANDOFF_US + line["wakeups"] * WAKEUP_US + line["looks"] * LOOK_US + line["slots"] * SLOT_US
    end

    # The dearest numbers of workers and the cheapest.
    def costs
      kept, fresh = %w[ours ours-new].map do |rule|
        workers.map { |count| [cost_us(of(arrivals: "poisson", service: "exponential", load: 0.8, workers: count, rule: rule).first).round, count] }.minmax
      end
      told = [kept, fresh].map { |ends| ends.map { |us, count| "#{us} µs (#{count} workers)" }.join(" to ") }
      wrap("A request on a kept connection costs #{told[0]}, one on a connection of its own #{told[1]}.")
    end

    # Of each trace: who waits least, and by how much more than one queue.
    def summary
      traces = @one.group_by { |line| line.values_at("arrivals", "service", "load", "workers") }.values
      ours = traces.map { |lines| own(lines) }
      extra = ours.sort_by { |line| beyond(line, "mean_ms") }
      tail = ours.select { |line| line["ideal_p99_ms"] > 1 }.sort_by { |line| times(line) }
      best = traces.count { |lines| lines.reject { |line| line["rule"].start_with?("ours") }.all? { |line| line["mean_ms"] >= own(lines)["mean_ms"] } }
      random = traces.map { |lines| lines.find { |line| line["rule"] == "random" }["mean_ms"] / own(lines)["mean_ms"] }.sort
      ["Over all #{traces.size} traces (seed #{@setup["seed"]}, #{@setup["requests"]} requests each):", "",
       "- On kept connections requests wait #{ms(beyond(extra[extra.size / 2], "mean_ms"))} ms longer than in one ideal queue by the median of the " \
       "traces, #{ms(beyond(extra.last, "mean_ms"))} ms at most (#{trace_of(extra.last)}, where one queue waits #{ms(extra.last["ideal_mean_ms"])} ms).",
       "- Where one queue's p99 is above a millisecond, ours is #{ms(times(tail[tail.size / 2]))} times that by the median, " \
       "#{ms(times(tail.last))} times at most (#{trace_of(tail.last)}).",
       "- The mean is the best of all rules, but for one queue, in #{best} of #{traces.size} traces; random placement waits " \
       "#{ms(random[random.size / 2])} times as long by the median."].flat_map { |line| wrap(line) }
    end

    def times(line) = line["p99_ms"] / line["ideal_p99_ms"]

    def trace_of(line)
      arrivals = { "poisson" => "Poisson", "bursty" => "bursty" }.fetch(line["arrivals"])
      "#{SERVICE_NAMES[line["service"]]}, #{arrivals}, load #{line["load"]}, #{line["workers"]} workers"
    end

    def own(lines) = lines.find { |line| line["rule"] == "ours" }

    def wrap(line)
      indent = line.start_with?("- ") ? "  " : ""
      return [""] if line.empty?

      line.scan(/(.{1,#{118 - indent.size}})(?: |\z)/).flatten.each_with_index.map { |one, i| i.zero? ? one : indent + one }
    end

    # --- plots ---

    def all_plots
      { "mean" => lines_of("mean wait beyond one ideal queue, ms; load 0.8, Poisson, exponential calls", by_rule("mean_ms", "exponential", "poisson")),
        "p99-mix" => lines_of("p99 of the wait beyond one ideal queue, ms; load 0.8, Poisson, 99 of 100 calls 2 ms, one 500 ms",
                              by_rule("p99_ms", "mix", "poisson")),
        "cost" => lines_of("for each request with Oribi's rules; load 0.8, Poisson, exponential calls", cost_points, colors: COST_COLORS, name: "count"),
        "fleet" => lines_of("mean wait beyond one ideal queue, ms; machines of #{Simulation::MACHINE_WORKERS} workers, load 0.8", fleet_points,
                            colors: fleet_colors, x: "machines") }
    end

    def by_rule(key, service, arrivals)
      of(arrivals: arrivals, service: service, load: 0.8).map do |line|
        { x: line["workers"], y: [beyond(line, key), LEAST_MS].max, name: NAMES[line["rule"]] }
      end
    end

    def cost_points
      of(arrivals: "poisson", service: "exponential", load: 0.8, rule: "ours").flat_map do |line|
        COST_COLORS.keys.zip(%w[handoffs wakeups looks slots]).map { |name, key| { x: line["workers"], y: [line[key], LEAST_MS].max, name: name } }
      end
    end

    def fleet_name(line)
      return NAMES[line["balancer"]] if Simulation::AGENTS.include?(line["balancer"])

      told = line["inform_ms"].to_f.positive? ? ", told each second" : ""
      "#{NAMES[line["balancer"]].sub("worker", "machine")}#{told}"
    end

    def fleet_lines = @fleets.select { |line| line["rule"] == "ours" && line["load"] == 0.8 }
    def fleet_colors = fleet_lines.map { |line| fleet_name(line) }.uniq.zip([*Plots::SERIES, Plots::ORIBI, Plots::PSGI]).to_h

    def fleet_points
      fleet_lines.map { |line| { x: line["machines"], y: [beyond(line, "mean_ms"), LEAST_MS].max, name: fleet_name(line) } }
    end

    def lines_of(title, data, colors: COLORS.transform_keys { |rule| NAMES[rule] }, x: "workers", name: nil)
      names = colors.keys & data.map { |one| one[:name] }
      axis = { field: "x", type: "quantitative", title: "#{x} (logarithmic)", scale: { type: "log", nice: false },
               axis: { values: data.map { |one| one[:x] }.uniq } }
      y = { field: "y", type: "quantitative", title: "#{name || "ms"} (logarithmic)", scale: { type: "log" }, axis: { format: "~g", grid: true, tickCount: 5 } }
      color = { field: "name", type: "nominal", scale: { domain: names, range: names.map { |one| colors[one] } }, legend: { title: nil, labelLimit: 500 } }
      { width: 560, height: 300, title: title, data: { values: data },
        layer: [{ mark: { type: "line", strokeWidth: 2 }, encoding: { x: axis, y: y, color: color } },
                { mark: { type: "point", filled: true, size: 30 }, encoding: { x: axis, y: y, color: color } }] }
    end
  end
end
