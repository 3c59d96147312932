# frozen_string_literal: true

require "json"

module Bench
  # Medians and ratios: as a table and as JSON lines.
  class Report
    HEADER = ["server", "requests/s", "to nginx", "CPU µs/request", "to bare loop"].freeze

    def initialize(running, absent, options)
      @running = running
      @absent = absent
      @options = options
      @rows = running.map { |server| row(server) }
    end

    def print
      puts title, "", table, ""
      @rows.each { |row| puts JSON.generate(row) }
    end

    private

    def median(values)
      sorted = values.sort
      middle = sorted.size / 2
      sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
    end

    # Ratios are medians of the ratios of each round: what the machine did in a round, it did to both.
    def ratio(server, key, figure)
      base = @running.find { |one| one.server.key == key } or return nil
      median(server.rounds.zip(base.rounds).map { |one, other| one.public_send(figure) / other.public_send(figure) }).round(2)
    end

    def row(server)
      { bench: "hello", mode: @options.mode, server: server.server.name, rounds: server.rounds.size, seconds: @options.seconds,
        requests_per_second: median(server.rounds.map(&:per_second)).round,
        requests_to_nginx: ratio(server, "nginx", :per_second),
        cpu_us_per_request: median(server.rounds.map(&:cpu_us)).round(2),
        cpu_to_bare: ratio(server, "bare", :cpu_us),
        errors: server.rounds.filter_map(&:errors).uniq }
    end

    def title = "hello, #{mode_text}: #{@options.rounds} rounds of #{@options.seconds} s in turn, medians"

    def mode_text
      words = [@options.close ? "a connection per request" : "#{CONNECTIONS} kept-alive connections"]
      words << "a browser's 14 fields" if @options.headers
      words.join(", ")
    end

    def table
      lines = @rows.map do |row|
        [row[:server], row[:requests_per_second].to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ","), row[:requests_to_nginx], row[:cpu_us_per_request],
         row[:cpu_to_bare]].map { |value| value.nil? ? "" : value.to_s }
      end
      widths = [HEADER, *lines].transpose.map { |column| column.map(&:size).max }
      rule = widths.each_with_index.map { |width, index| index.zero? ? "-" * width : "#{"-" * (width - 1)}:" }
      text = [HEADER, rule, *lines].map do |name, *figures|
        cells = [name.ljust(widths[0]), *figures.zip(widths.drop(1)).map { |figure, width| figure.rjust(width) }]
        "| #{cells.join(" | ")} |"
      end
      text + notes
    end

    def notes
      errors = @rows.reject { |row| row[:errors].empty? }.map { |row| "#{row[:server]}: #{row[:errors].first}" }
      absent = @absent.map { |name, reason| "Not measured: #{name}, #{reason}" }
      (errors + absent).flat_map { |note| ["", note] }
    end
  end
end
