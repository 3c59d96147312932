# frozen_string_literal: true

require "minitest/autorun"
require_relative "../lib/tail"

# What bench/profile --tail works out of the lines of bench/apps/tail.ru.
class TailTest < Minitest::Test
  Call = Bench::Tail::Call

  def call(worker, at, began, ended, cpu: ended - began, run_queue: 0, gc: 0)
    Call.new(worker: worker, at: at, began: began, ended: ended, cpu: cpu, run_queue: run_queue, gc: gc)
  end

  def test_a_line_is_a_call
    one = Bench::Tail.read("1", "5000 200 1000 700 100000 300\n").first
    assert_equal [4800, 5000, 6000, 200, 1000, 1200], [one.at, one.began, one.ended, one.wait, one.wall, one.total]
    assert_equal [700, 100, 300, 200], [one.cpu, one.run_queue, one.gc, one.asleep]
  end

  def test_for_how_long_one_worker_was_in_no_call
    calls = [call("1", 0, 0, 100), call("2", 0, 20, 50), call("2", 0, 80, 200)]
    assert_equal 50, Bench::Tail.idle_within(calls, 0, 100, 2) # before 20, and from 50 to 80
    assert_equal 0, Bench::Tail.idle_within(calls, 20, 50, 2)
    assert_equal 30, Bench::Tail.idle_within(calls, 40, 100, 2)
    assert_equal 10, Bench::Tail.idle_within([], 0, 10, 2)
    assert_equal 60, Bench::Tail.idle_within([call("1", 0, 0, 100), call("1", 0, 10, 60), call("2", 0, 20, 60)], 0, 100, 2)
    assert_equal 0, Bench::Tail.idle_within(calls, 60, 60, 2)
  end

  def test_one_worker_alone_takes_the_oldest_first
    calls = [call("2", 10, 10, 100, cpu: 30), call("1", 0, 0, 90, cpu: 50), call("1", 500, 500, 501, cpu: 1)]
    assert_equal [50, 70, 1], Bench::Tail.ideal(calls)
  end

  def test_the_parts_of_a_slow_call
    calls = [call("1", 0, 0, 100), call("1", 40, 100, 200, cpu: 60, run_queue: 30, gc: 20)]
    assert_equal({ "wait for a worker;one in no call" => 60, "call;processor;application" => 40, "call;processor;garbage collector" => 20,
                   "call;run queue of the processor" => 30, "call;asleep" => 10 }, Bench::Tail.stacks([calls[1]], calls, 2))
    assert_equal 60, Bench::Tail.stacks([calls[1]], calls, 1)["wait for a worker;all workers in calls"]
  end
end
