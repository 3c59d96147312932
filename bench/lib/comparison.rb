# frozen_string_literal: true

require_relative "workload"

module Bench
  # Two servers in one figure: the median of each, the ratio, and the interval in which the ratio lies with 95 %
  # confidence.
  #
  # Rounds come in pairs, both servers within seconds of each other, so the ratio is the median of the rounds' ratios:
  # what the machine did in a round it did to both. It is therefore not the quotient of the two medians, which may come
  # from different rounds. The interval is the percentile bootstrap (B. Efron, 1979): the pairs are drawn again, with
  # replacement, DRAWS times, and the 2.5th and 97.5th percentile of the medians are its ends. With five rounds that is
  # nearly the whole range of the rounds.
  Comparison = Struct.new(:own, :other, :ratio, :low, :high, keyword_init: true) do
    # one, base: a figure a round. nil where there is nothing to divide. Rounds of different numbers are no pairs:
    # medians are divided then, and both sides are drawn for themselves.
    def self.of(one, base)
      return if [one, base].any? { |values| values.nil? || values.empty? } || base.any?(&:zero?)

      medians = [one, base].map { |values| Bench::Workload.median(values) }
      if one.size == base.size
        ratios = one.zip(base).map { |a, b| a.to_f / b }
        low, high = interval(ratios.size) { |draw| Bench::Workload.median(draw.map { |index| ratios[index] }) }
        new(own: medians[0], other: medians[1], ratio: Bench::Workload.median(ratios), low: low, high: high)
      else
        low, high = interval(one.size, base.size) do |mine, theirs|
          Bench::Workload.median(one.values_at(*mine)).to_f / Bench::Workload.median(base.values_at(*theirs))
        end
        new(own: medians[0], other: medians[1], ratio: medians[0].to_f / medians[1], low: low, high: high)
      end
    end

    # The interval of one server's own median.
    def self.spread_of(values) = interval(values.size) { |draw| Bench::Workload.median(values.values_at(*draw)) }

    # The block gets indices, a list for each size, and returns the figure. The same data give the same interval.
    def self.interval(*sizes)
      random = Random.new(1)
      found = Array.new(self::DRAWS) { yield(*sizes.map { |size| Array.new(size) { random.rand(size) } }) }.sort
      [found[(self::DRAWS * 0.025).floor], found[(self::DRAWS * 0.975).ceil - 1]]
    end
    private_class_method :interval
  end
  Comparison::DRAWS = 2000
end
