# frozen_string_literal: true

# What a command printed, as numbers: TAP (C and Perl), minitest, or only its exit code. A test counts once, whichever
# of them said it.
class Tally
  attr_reader :passed, :failed, :reasons

  # reasons: one for each skipped test.
  def initialize(passed: 0, failed: 0, reasons: [])
    @passed = passed
    @failed = failed
    @reasons = reasons
  end

  def skipped = reasons.size

  def +(other) = Tally.new(passed: passed + other.passed, failed: failed + other.failed, reasons: reasons + other.reasons)

  def to_s = "#{passed} passed, #{failed} failed#{", #{skipped} skipped" unless reasons.empty?}"

  # One line for each reason: a test that is not run without a word is a test that nobody misses.
  def skips = reasons.tally.map { |reason, count| "    skipped: #{reason}#{" (#{count} times)" if count > 1}" }

  def self.tap(output, success)
    lines = output.scan(/^(not ok|ok) \d+\b(.*)$/) # prove says "ok" once more for each file
    skipped, rest = lines.partition { |_, text| text.match?(/# skip/i) }
    reasons = skipped.map { |_, text| text[/# skip\S*\s*(.*)/i, 1] } + output.scan(/^1\.\.0 # skip\S*\s*(.*)/i).flatten
    failed = rest.count { |word, text| word == "not ok" && !text.match?(/# todo/i) }
    # A test that died, or that ran none of its plan, failed without saying so.
    failed += 1 if failed.zero? && (!success || rest.empty? && reasons.empty?)
    new(passed: rest.count { |word, _| word == "ok" }, failed: failed, reasons: reasons)
  end

  def self.minitest(output, success)
    runs, failures, errors, skips = output.scan(/^(\d+) runs, \d+ assertions, (\d+) failures, (\d+) errors, (\d+) skips/)
                                          .map { |line| line.map(&:to_i) }.reduce([0, 0, 0, 0]) { |a, b| a.zip(b).map(&:sum) }
    failed = failures + errors
    failed += 1 if failed.zero? && (!success || runs.zero?)
    reasons = output.scan(/^ +\d+\) Skipped:\n.*\n(.*)$/).flatten.first(skips)
    reasons += ["no reason was given"] * (skips - reasons.size)
    new(passed: [runs - failures - errors - skips, 0].max, failed: failed, reasons: reasons)
  end

  def self.exit_code(_output, success) = success ? new(passed: 1) : new(failed: 1)
end
