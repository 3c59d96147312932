# frozen_string_literal: true

require_relative "peer"

module Bench
  # Tables in documents, between <!-- bench:NAME --> and <!-- /bench:NAME -->: no figure there is
  # by hand.
  module Document
    PAGE = File.join(ROOT, "doc/benchmarks.md")

    module_function

    # Puts the lines between the marks of that name; false when the document lacks them.
    def put(path, name, lines)
      text = File.read(path)
      pattern = /(<!-- bench:#{name} -->\n).*?(<!-- \/bench:#{name} -->)/m
      return false unless text.match?(pattern)

      File.write(path, text.sub(pattern) { "#{$1}\n#{lines.join("\n")}\n\n#{$2}" })
      true
    end

    # rows: the heading first. right: the columns of figures, which stand to the right; all but the first unless it is
    # given.
    def table(rows, right: 1..)
      rows = rows.map { |row| row.map(&:to_s) }
      widths = rows.transpose.map { |column| column.map(&:size).max }
      lines = rows.map do |row|
        cells = row.zip(widths).each_with_index.map { |(cell, width), index| right.include?(index) ? cell.rjust(width) : cell.ljust(width) }
        "| #{cells.join(" | ")} |"
      end
      rule = widths.each_with_index.map { |width, index| right.include?(index) ? "#{"-" * (width + 1)}:" : "-" * [width + 2, 3].max }
      lines.insert(1, "|#{rule.join("|")}|")
    end
  end
end
