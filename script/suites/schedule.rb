# frozen_string_literal: true

require "etc"
require_relative "progress"
require_relative "suite"

# Runs the commands of several suites at once. A slot takes the next command of the first suite that may run one more.
# Slots differ in what they begin with: suites that compute, suites whose commands run one after the other, or whole
# servers, which wait most of their time.
class Schedule
  SLOTS_PER_PROCESSOR = 4
  ORDERS = [%i[compute serial servers], %i[servers serial compute], %i[servers compute serial],
            %i[serial compute servers], %i[servers serial compute], %i[servers compute serial]].freeze

  def self.slots = SLOTS_PER_PROCESSOR * Etc.nprocessors

  # suites: in the order of their turns.
  def initialize(suites, slots:)
    @suites = suites
    @slots = slots
    @progress = Progress.new(suites)
    @lock = Mutex.new
    @freed = ConditionVariable.new
  end

  def run
    @progress.while_shown do
      Array.new(@slots) { |i| Thread.new { work(own_order(i)) } }.each(&:join)
    end
  end

  private

  def own_order(slot) = ORDERS[slot % ORDERS.size].flat_map { |kind| @suites.select { |suite| suite.kind == kind } }

  def work(suites)
    while (suite, step = take(suites))
      step.call
      @lock.synchronize { @freed.broadcast }
      finish(suite) if suite.release
    end
  end

  # [suite, what to do]; nil when nothing is left to begin.
  def take(suites)
    @lock.synchronize do
      loop do
        suites.each { |suite| (step = suite.take) and return [suite, step] }
        return if suites.none?(&:more?)

        @freed.wait(@lock, 1)
      end
    end
  end

  def finish(suite)
    @progress.print([suite.summary, *suite.failures])
  end
end
