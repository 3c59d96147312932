# frozen_string_literal: true

require_relative "document"
require_relative "findings"
require_relative "machine"
require_relative "table"
require_relative "targets"

module Bench
  # The results of bench/run as the tables of doc/benchmarks.md and doc/redis.md: what a reader decides by. Every
  # workload, server and target is on the page of bench/report.
  class Documents
    WIDTH = 120
    DOC = Document::PAGE
    ROUNDS_MIN = 5
    # Servers that readers know; the report has all of them.
    KNOWN = %w[oribi oribi-psgi bare nginx-file iodine rhebok unicorn puma falcon starlet uwsgi starman].freeze
    # Oribi's configurations with the servers that they are compared with.
    OWN = { "oribi" => "rack", "oribi-rack" => "rack", "oribi-psgi" => "psgi", "oribi-plack" => "psgi" }.freeze
    # Forms in plain words: a workload, then the languages.
    FORMS = { "form-1k" => "form, 1 KiB, 20 fields", "form-16k" => "form, 16 KiB, 300 fields", "upload" => "upload, 10 MiB and 20 fields",
              "cookie" => "20 cookies, 675 bytes" }.freeze
    LINES = [["Rack", "oribi", "oribi-rack"], ["PSGI", "oribi-psgi", "oribi-plack"]].freeze
    TROUBLES = { "reloading" => "a reload each second", "hanging" => "1 % of the calls hang", "slow-senders" => "1,000 slow senders" }.freeze
    TROUBLES_READ = "\"!\": some requests got no answer. Empty: not supported, or not measured. With calls that hang, the p99 is that of " \
                    "the other calls; servers with threads or fibers make more calls at a time."
    TROUBLED = [*KNOWN, "Oribi (Rack), 5 threads", "puma-cluster", "pitchfork"].freeze
    REDIS = File.join(ROOT, "doc/redis.md")
    # Clients of Redis that stand beside each other, and the heads of their columns.
    REDIS_PAIRS = { [Targets::PERL, "Redis::Fast"] => "Perl: Redis::Fast",
                    [Targets::RUBY, "redis-client, hiredis"] => "Ruby: redis-client, hiredis" }.freeze
    FRONTEND_READ = "All processes are counted, a frontend or proxy too. \"!\": answers were wrong or missing. Empty: not measured."
    # What of the frontend's workloads stands in the document, and in words.
    FRONTEND = { "frontend-tls" => "TLS", "frontend-tls-100k" => "TLS, 100 KiB", "frontend-h2" => "HTTP/2",
                 "frontend-h2-wide" => "HTTP/2, 1 stream", "frontend-h2-100k" => "HTTP/2, 100 KiB",
                 "frontend-handshakes-full" => "full handshake", "frontend-handshakes-resumed" => "resumed" }.freeze
    SOCKETS = [%w[sockets-echo cpu_us_per_message], %w[sockets-echo messages_per_second],
               %w[sockets-fanout cpu_us_per_delivery], ["sockets-fanout", "latency_ms", "p99 of deliveries beside HTTP"],
               ["sockets-fanout", "latency_ms", "p99 of HTTP"], ["sockets-fanout", "latency_ms", "p99 of HTTP beside deliveries"],
               %w[sockets-idle memory_kb_per_socket]].freeze
    SOCKET_HEADS = ["echo: CPU µs", "a second", "fan-out: CPU µs", "p99, ms", "HTTP's p99 alone, ms", "beside it",
                    "idle: KB"].freeze
    EVEN = 1.05 # below this many times the best other server's requests a workload is told as slow
    BUSY_MIN = 0.6 # a server that uses less of its core than this waits for something

    def initialize(findings) = @findings = findings

    # Figures of a quick run are for looking at, not for documents.
    def write
      raise "--write wants a run of at least #{ROUNDS_MIN} rounds" if @findings.run[:rounds_min] < ROUNDS_MIN

      put(DOC, "hello-keep-alive", hello("hello", only: KNOWN))
      put(DOC, "forms", forms)
      put(DOC, "trouble", troubles)
      put(DOC, "report", report_lines("../bench/results"))
      put(DOC, "slower", slower)
      put(DOC, "frontend", frontend)
      put(DOC, "sockets", sockets)
      put(REDIS, "redis", redis)
    end

    private

    # A document without the mark is left alone, and so is one when nothing was measured for it.
    def put(path, mark, lines) = lines.empty? || Document.put(path, mark, lines.flat_map { |line| wrapped(line) })

    # Prose in lines of the width that all documents have; tables and pictures stay.
    def wrapped(line) = line.length <= WIDTH || line.start_with?("|", "!") ? [line] : line.gsub(/(.{1,#{WIDTH}})(?:\s+|\z)/, "\\1\n").lines(chomp: true)

    def table(...) = Document.table(...)
    # Where and when this workload was measured last.
    def machine(workload)
      again = [*@findings.run[:again]].reverse.find { |one| one[:workloads].include?(workload.to_s) }
      Machine.line(again&.dig(:machine) || @findings.machine, (again || @findings.run)[:run][0, 10])
    end

    def figure(row) = row ? Table.figure(row[:median]) + (row[:errors].to_i.positive? ? " !" : "") : ""
    def ratio(...) = @findings.ratio(...)&.then { |value| format("%.2f", value) }.to_s

    # only: the servers to show; nil: all.
    def hello(workload, only: nil)
      servers = @findings.of(workload).reject { |row| row[:values].empty? }.map { |row| row[:server] }.uniq
      servers &= only if only
      return [] if servers.empty?

      rows = servers.map { |server| hello_row(workload, server) }
      one = @findings.find(workload, servers.first, "requests_per_second")
      rounds = "#{one[:rounds]} rounds of #{(one[:seconds] / one[:rounds]).round(1)} s in turn, medians"
      title = "#{@findings.workloads.dig(workload.to_sym, :about)}: #{rounds}. #{machine(workload)}."
      [title, "", *table([["server", "requests/s", "to nginx", "CPU µs/request", "remark"], *rows], right: 1..3)]
    end

    def hello_row(workload, server)
      rate, cpu = %w[requests_per_second cpu_us_per_request].map { |metric| @findings.find(workload, server, metric) }
      [@findings.name_of(server), figure(rate), ratio(workload, server, "nginx-file", "requests_per_second"), figure(cpu), remark(rate, cpu)]
    end

    # Why a figure looks odd, beside it: what the run noted, and a core that the server did not use.
    def remark(rate, cpu)
      busy = rate[:median] * cpu[:median] / 1e6 if cpu && !cpu[:values].empty?
      waits = "uses #{(busy * 100).round} % of its core, and waits otherwise" if busy && busy < BUSY_MIN
      [rate[:note], waits].compact.join("; ")
    end

    def report_lines(folder)
      ["How many requests per second every server answers for each one of Oribi's in the same language. " \
       "`bench/report` makes the page with every workload and every figure from [the data](#{folder}/run.jsonl).", "",
       "![Requests per second of every server for each one of Oribi's](#{folder}/plots/overview.svg)"]
    end

    # Processor time of a request with and without the line, beside the server that needs the least of it.
    def forms
      lines = FORMS.map do |workload, words|
        told = LINES.filter_map { |language, own, line| form_words(workload, language, own, line) }
        "- #{words}: #{told.join("; ")}" unless told.empty?
      end
      return [] unless lines.any?

      ["CPU µs of one request whose application reads one parameter: without the line, with it, of the best other server. #{machine(FORMS.keys.first)}.", "",
       *lines.compact]
    end

    def form_words(workload, language, own, line)
      mine, with = [own, line].map { |server| cpu_of(workload, server) }
      return unless mine && with

      best = others_of(workload, OWN.fetch(own), "cpu_us_per_request").min_by { |row| row[:median] }
      "#{language} #{figure(mine)}, #{figure(with)}#{", #{@findings.name_of(best[:server])} #{figure(best)}" if best}"
    end

    # What servers still do while something goes wrong: requests per second and p99. only: the servers to show.
    def troubles(only: TROUBLED)
      servers = TROUBLES.keys.flat_map { |workload| @findings.of(workload) }.map { |row| row[:server] }.uniq
      servers &= only if only
      return [] if servers.empty?

      heads = TROUBLES.values.flat_map { |words| ["#{words}: requests/s", "p99, ms"] }
      rows = servers.map { |server| [@findings.name_of(server), *TROUBLES.keys.flat_map { |workload| trouble_cells(workload, server) }] }
      ["What a server with four workers on one core still does while something goes wrong. #{machine(TROUBLES.keys.first)}. #{TROUBLES_READ}", "",
       *table([["server", *heads], *rows])]
    end

    # How many commands one client of Redis does for each one of another, by unix socket and over TCP.
    def redis
      subjects = @findings.workloads.keys.map(&:to_s).grep(/\Aredis-\w+\z/)
      rows = subjects.map { |workload| [redis_about(workload), *REDIS_PAIRS.keys.map { |own, other| redis_cell(workload, own, other) }] }
      rows = rows.reject { |_, *cells| cells.all?(&:empty?) }
      return [] if rows.empty?

      title = "Commands per second of our client for each of another, by unix socket and over TCP: medians of rounds in turn, with a redis-server " \
              "on a core of its own. #{machine(subjects.first)}."
      [title, "", *table([["", *REDIS_PAIRS.values], *rows])]
    end

    def redis_about(workload) = @findings.workloads.dig(workload.to_sym, :about)[/\ARedis: (.+), unix socket\z/, 1]

    def redis_cell(workload, own, other)
      times = [workload, "#{workload}-tcp"].map { |name| ratio(name, own, other, "requests_per_second") }
      times.reject(&:empty?).join(", ")
    end

    # What a request, or a handshake, costs that comes by way of a frontend or of a proxy: a row for each server.
    def frontend
      servers = FRONTEND.keys.flat_map { |workload| @findings.of(workload).map { |row| row[:server] } }.uniq
      rows = servers.map { |server| [@findings.name_of(server), *FRONTEND.keys.map { |workload| frontend_cell(workload, server) }] }
      rows.reject! { |_, *cells| cells.all?(&:empty?) }
      return [] if rows.empty?

      ["CPU µs of a request, or of a handshake. #{machine(FRONTEND.keys.first)}. #{FRONTEND_READ}", "",
       *table([["server", *FRONTEND.values], *rows]), "", "Without TLS: #{without_tls.join("; ")}."]
    end

    def without_tls
      servers = @findings.of("frontend-hop").map { |row| row[:server] }.uniq
      servers.map { |server| "#{@findings.name_of(server)}: #{figure(cpu_of("frontend-hop", server))}" }
    end

    def sockets
      servers = SOCKETS.flat_map { |workload, *| @findings.of(workload).map { |row| row[:server] } }.uniq
      return [] if servers.empty?

      rows = servers.map { |server| [@findings.name_of(server), *SOCKETS.map { |what| measured(*what, server) }] }
      ["#{machine("sockets-echo")}. Empty: not measured.", "", *table([["server", *SOCKET_HEADS], *rows])]
    end

    def measured(workload, metric, variant = nil, server)
      row = @findings.find(workload, server, metric, variant)
      row.nil? || row[:values].empty? ? "" : figure(row)
    end

    # The way without TLS stands beside those with TLS in their workloads, and once in the document.
    def frontend_cell(workload, server)
      row = server.end_with?("-frontend") ? nil : cpu_of(workload, server)
      row ? figure(row) : ""
    end

    def trouble_cells(workload, server)
      rows = [@findings.find(workload, server, "requests_per_second"), @findings.find(workload, server, "latency_ms", "p99")]
      rows.map { |row| row.nil? || row[:values].empty? ? "" : figure(row) }
    end

    def cpu_of(workload, server) = @findings.find(workload, server, "cpu_us_per_request")&.then { |row| row unless row[:values].empty? }

    # Results of servers of that kind, Oribi's left out.
    def others_of(workload, kind, metric)
      @findings.of(workload).select do |row|
        row[:metric] == metric && row[:variant].nil? && !row[:values].empty? && !row[:server].start_with?("oribi") &&
          @findings.servers.dig(row[:server].to_sym, :kind) == kind
      end
    end

    # The workloads in which another server answers as many requests as Oribi, or more.
    def slower
      rows = @findings.workloads.keys.map(&:to_s).flat_map { |workload| OWN.filter_map { |own, kind| against_best(workload, own, kind) } }
      rows = rows.select { |row| row.last < EVEN }.map { |*row, times| [*row, format("%.2f x", times)] }
      rows.empty? ? [] : table([["workload", "Oribi", "best other", "Oribi is"], *rows], right: 3..)
    end

    def against_best(workload, own, kind)
      mine = @findings.find(workload, own, "requests_per_second")
      best = others_of(workload, kind, "requests_per_second").max_by { |row| row[:median] }
      return if mine.nil? || mine[:values].empty? || best.nil?

      about = @findings.workloads.dig(workload.to_sym, :about)
      times = @findings.ratio(workload, own, best[:server], "requests_per_second") or return
      [about || workload, @findings.name_of(own), @findings.name_of(best[:server]), times]
    end
  end
end
