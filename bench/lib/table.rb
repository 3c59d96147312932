# frozen_string_literal: true

module Bench
  # Results as text: a table for each workload, a row for each server, a column for each metric; what was missing or
  # wrong below it.
  class Table
    def initialize(results, missing, peers)
      @results = results
      @missing = missing
      @names = peers.to_h { |peer| [peer.key, peer.name] }
    end

    def to_s
      parts = @results.group_by { |result| result[:workload] }.map { |name, rows| ["", "#{name}:", *table(rows), *notes(rows)] }
      [*parts, "", *@missing.map { |peer| "Missing: #{peer.name}: #{peer.missing}" }].join("\n")
    end

    # 12345.6 => "12,346", 1.234 => "1.23"
    def self.figure(value)
      return "" if value.nil?

      text = value.abs >= 100 ? value.round.to_s : format("%.#{value.abs >= 10 ? 1 : 2}f", value)
      text.gsub(/(?<=\d)(?=(\d{3})+(?!\d))(?<!\.\d)(?<!\.\d\d)/, ",")
    end

    # Half the distance between the quartiles, in per cent of the median: what the rounds differ by.
    def self.spread(values)
      return if values.size < 2

      sorted = values.sort
      low, high = [0.25, 0.75].map { |part| sorted[((sorted.size - 1) * part).round] }
      middle = Workload.median(sorted)
      middle.zero? ? 0 : ((high - low) / 2.0 / middle * 100).round
    end

    private

    def metric(row) = [row[:metric], row[:variant]].compact.join(" ")

    def table(rows)
      metrics = rows.reject { |row| row[:values].empty? }.map { |row| [metric(row), row[:unit]] }.uniq
      lines = rows.map { |row| row[:server] }.uniq.map do |server|
        cells = metrics.map { |name, _| rows.find { |row| row[:server] == server && metric(row) == name }.then { |row| row ? cell(row) : "" } }
        [@names.fetch(server, server), *cells]
      end
      align([["", *metrics.map { |name, unit| "#{name.tr("_", " ")} (#{unit})" }], *lines])
    end

    def cell(row)
      spread = Table.spread(row[:values])
      [Table.figure(row[:median]), spread && "±#{spread} %", row[:errors].to_i.positive? ? "!" : nil].compact.join(" ")
    end

    def align(lines)
      widths = lines.transpose.map { |column| column.map(&:size).max }
      lines.map { |first, *rest| "  #{[first.ljust(widths[0]), *rest.zip(widths.drop(1)).map { |text, width| text.rjust(width) }].join("  ")}".rstrip }
    end

    def notes(rows)
      rows.filter_map do |row|
        next unless row[:note]

        errors = row[:errors].to_i
        "  #{@names.fetch(row[:server], row[:server])}: #{row[:note]}#{errors.positive? ? " (#{errors} errors)" : ""}"
      end.uniq
    end
  end
end
