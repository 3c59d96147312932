# frozen_string_literal: true

require_relative "document"
require_relative "findings"
require_relative "machine"
require_relative "targets"

module Bench
  # The results of bench/run as the tables of README.md and doc/benchmarks.md.
  class Documents
    README = Document::README
    DOC = Document::PAGE
    ROUNDS_MIN = 5

    def initialize(findings) = @findings = findings

    # Figures of a quick run are for looking at, not for documents.
    def write
      raise "--write wants a run of at least #{ROUNDS_MIN} rounds" if @findings.run[:rounds_min] < ROUNDS_MIN

      { "hello-keep-alive" => "hello", "hello-headers" => "hello-headers", "hello-close" => "hello-close" }.each do |mark, workload|
        lines = hello(workload)
        [README, DOC].each { |path| put(path, mark, lines) }
      end
      put(README, "report", report_lines("bench/results"))
      put(DOC, "report", report_lines("../bench/results"))
      put(DOC, "targets", targets)
      put(DOC, "workloads", workloads)
    end

    private

    # A document without the mark is left alone, and so is one when nothing was measured for it.
    def put(path, mark, lines) = lines.empty? || Document.put(path, mark, lines)
    def table(...) = Document.table(...)
    def machine = Machine.line(@findings.machine, @findings.run[:run][0, 10])

    def figure(row) = row ? Table.figure(row[:median]) + (row[:errors].to_i.positive? ? " !" : "") : ""
    def ratio(...) = @findings.ratio(...)&.then { |value| format("%.2f", value) }.to_s

    def hello(workload)
      servers = @findings.of(workload).reject { |row| row[:values].empty? }.map { |row| row[:server] }.uniq
      return [] if servers.empty?

      rows = servers.map do |server|
        [@findings.name_of(server), figure(@findings.find(workload, server, "requests_per_second")),
         ratio(workload, server, "nginx-file", "requests_per_second"), figure(@findings.find(workload, server, "cpu_us_per_request")),
         ratio(workload, server, "bare", "cpu_us_per_request")]
      end
      one = @findings.find(workload, servers.first, "requests_per_second")
      rounds = "#{one[:rounds]} rounds of #{(one[:seconds] / one[:rounds]).round(1)} s in turn, medians"
      title = "#{@findings.workloads.dig(workload.to_sym, :about)}: #{rounds}. #{machine}."
      [title, "", *table([["server", "requests/s", "to nginx", "CPU µs/request", "to bare loop"], *rows]), *notes(workload)]
    end

    def notes(workload)
      texts = @findings.of(workload).filter_map { |row| row[:note] && "#{@findings.name_of(row[:server])}: #{row[:note]}." }.uniq
      texts.flat_map { |text| ["", text] }
    end

    def report_lines(folder)
      ["[The whole report](#{folder}/report.html): every server, every workload, with pictures. One of them, requests per second of every server for",
       "each one of Oribi's in the same language:", "", "![Requests per second of every server for each one of Oribi's](#{folder}/plots/overview.svg)"]
    end

    def targets
      rows = Targets.check(@findings).map do |one|
        [*one.values_at(:workload, :own, :other, :what), "#{format("%.2f", one[:found])}#{" !" if one[:marked]}", one[:wanted], one[:verdict]]
      end
      rows.empty? ? [] : table([["workload", "Oribi", "to", "figure", "ratio", "wanted", ""], *rows], text: 4)
    end

    # For every workload: Oribi, and the best of the others in each language.
    def workloads
      rows = @findings.workloads.keys.map(&:to_s).flat_map { |workload| %w[rack psgi].filter_map { |kind| against_best(workload, kind) } }
      rows.empty? ? [] : table([["workload", "Oribi", "best other", "its requests/s", "Oribi's", "Oribi is", "its CPU"], *rows], text: 3)
    end

    def against_best(workload, kind)
      own = kind == "rack" ? "oribi" : "oribi-psgi"
      mine = @findings.find(workload, own, "requests_per_second")
      others = @findings.of(workload).select do |row|
        row[:metric] == "requests_per_second" && row[:variant].nil? && !row[:values].empty? && row[:server] != own &&
          @findings.servers.dig(row[:server].to_sym, :kind) == kind
      end
      best = others.max_by { |row| row[:median] }
      return if mine.nil? || mine[:values].empty? || best.nil?

      times = ratio(workload, own, best[:server], "requests_per_second")
      cpu = ratio(workload, own, best[:server], "cpu_us_per_request")
      [workload, @findings.name_of(own), @findings.name_of(best[:server]), figure(best), figure(mine), "#{times} x", cpu.empty? ? "" : "#{cpu} x"]
    end
  end
end
