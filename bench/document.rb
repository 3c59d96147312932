# frozen_string_literal: true

require "etc"
require "time"

module Bench
  # What the scripts put into doc/benchmarks.md: lines between <!-- bench:NAME --> and <!-- /bench:NAME -->.
  module Document
    PAGE = File.expand_path("../doc/benchmarks.md", __dir__)

    def self.put(name, lines, page: PAGE)
      text = File.read(page)
      pattern = /(<!-- bench:#{name} -->\n).*?(<!-- \/bench:#{name} -->)/m
      abort "#{page} lacks <!-- bench:#{name} -->" unless text.match?(pattern)
      File.write(page, text.sub(pattern) { "#{$1}\n#{lines.join("\n")}\n\n#{$2}" })
    end

    # rows: the heading first; figures to the right.
    def self.table(rows)
      rows = rows.map { |row| row.map(&:to_s) }
      widths = rows.transpose.map { |column| column.map(&:size).max }
      lines = rows.map do |first, *figures|
        "| #{[first.ljust(widths[0]), *figures.zip(widths.drop(1)).map { |figure, width| figure.rjust(width) }].join(" | ")} |"
      end
      rule = widths.each_with_index.map { |width, index| index.zero? ? "-" * width : "#{"-" * (width - 1)}:" }
      lines.insert(1, "| #{rule.join(" | ")} |")
    end

    def self.machine
      model = File.read("/proc/cpuinfo")[/^model name\s*:\s*(.+)$/, 1] || RUBY_PLATFORM
      versions = ["Ruby #{RUBY_VERSION}", "Perl #{`perl -e 'print substr $^V, 1'`}", "Linux #{`uname -r`[/\A\d+\.\d+/]}"]
      "#{model}, #{Etc.nprocessors} cores, #{versions.join(", ")}, #{Time.now.utc.strftime("%Y-%m-%d")}"
    end
  end
end
