# frozen_string_literal: true

require "cgi"
require "erb"
require "fileutils"
require_relative "plots"
require_relative "targets"

module Bench
  # The page: everything inline, so that it can be sent as one file; and each plot as a file of its own.
  class Page
    TEMPLATE = File.join(ROOT, "bench/page/page.html.erb")
    FAMILIES = { "hello" => "Hello world", "behind nginx" => "Behind nginx", "connections" => "Connections", "latency" => "Latency",
                 "requests" => "Forms and uploads", "responses" => "Responses", "files" => "Files",
                 "memory" => "Memory", "times" => "Start, reload, stop", "placement" => "Waiting behind long calls",
                 "frontend" => "The frontend: TLS and HTTP/2",
                 "trouble" => "While something goes wrong",
                 "isucon4" => "A real application: the ISUCON4 qualifier", "rails" => "A Rails scaffold", "frameworks" => "Frameworks",
                 "redis" => "The Redis client" }.freeze

    def initialize(findings, plots, drawn)
      @findings = findings
      @plots = plots
      @drawn = drawn
    end

    def write(folder)
      plots = File.join(folder, "plots")
      FileUtils.rm_rf(plots)
      FileUtils.mkdir_p(plots)
      @drawn.each { |name, svg| File.write(File.join(plots, "#{name}.svg"), "#{Plots.alone(svg)}\n") }
      File.join(folder, "report.html").tap { |path| File.write(path, ERB.new(File.read(TEMPLATE), trim_mode: "-").result(binding)) }
    end

    private

    def h(text) = CGI.escapeHTML(text.to_s)
    def palette = File.read(Plots::STYLE)

    # [heading, [workload, ...]] in the order of reading.
    def sections
      groups = @findings.workloads.keys.map(&:to_s).group_by { |name| @findings.workloads[name.to_sym][:family] }
      known = FAMILIES.keys.select { |family| groups.key?(family) }
      (known + (groups.keys - known)).map { |family| [FAMILIES.fetch(family, family), groups[family]] }
    end

    def plots_of(workload) = @plots.of_workload(workload).map { |name, _| [name, @drawn[name]] }

    # [servers, note, errors, whether there are no figures]: what is the same of several is said once.
    def notes_of(workload)
      rows = @findings.of(workload).select { |row| row[:note] || row[:errors].to_i.positive? }
      rows.group_by { |row| [row[:note] || "errors", row[:errors].to_i, row[:values].empty?] }.map do |(note, errors, absent), same|
        [same.map { |row| @findings.name_of(row[:server]) }.uniq.join(", "), note, errors, absent]
      end
    end

    # Rows of the table: server, then a figure with its spread for each metric.
    def table_of(workload)
      rows = @findings.of(workload).reject { |row| row[:values].empty? }
      columns = rows.map { |row| [row[:metric], row[:variant], row[:unit]] }.uniq
      heads = columns.map do |metric, variant, unit|
        "#{[Plots::METRICS.fetch(metric, metric.tr("_", " ")).sub(/, \S+\z/, ""), variant].compact.join(": ")} (#{unit})"
      end
      [["", *heads], *rows.map { |row| row[:server] }.uniq.map { |server| [@findings.name_of(server), *columns.map { |column| cell(rows, server, column) }] }]
    end

    def cell(rows, server, (metric, variant, _))
      row = rows.find { |one| one[:server] == server && one[:metric] == metric && one[:variant] == variant } or return ""
      spread = Table.spread(row[:values])
      "#{Table.figure(row[:median])}#{spread && " ±#{spread} %"}#{" ⚠" if row[:errors].to_i.positive?}"
    end

    def machine(one = @findings.machine)
      ["#{one[:processor]}#{" (virtual machine)" if one[:hypervisor]}", "#{one[:cores]} cores, #{one[:memory_mb] / 1024} GB",
       "Linux #{one[:kernel]}, #{one[:system]}",
       "Ruby #{one[:ruby]}, Perl #{one[:perl]}, wrk #{one[:wrk]}", "commit #{one[:commit]}"]
    end

    def method_line
      run = @findings.run
      pinned = run[:pinned] ? "servers pinned to core #{run[:server_core]}, load generators to core #{run[:client_core]}" : "nothing pinned: too few cores"
      rounds = run[:quick] ? "quick run, #{run[:rounds_min]} rounds: look at the shape, not at the figures" : "at least #{run[:rounds_min]} rounds"
      again = [*run[:again]].map do |one|
        where = " on #{machine(one[:machine]).first}" if one[:machine]
        "measured again at #{one[:run]}#{where}, every server: #{one[:workloads].join(", ")}"
      end
      [run[:run], rounds, pinned, *again].join(" · ")
    end
  end
end
