# frozen_string_literal: true

require_relative "support"
require "open3"
require "rbconfig"

# The application's own metrics, without a server: what can be declared, what is raised. The store is tested in C, a
# running server in e2e.
class MetricsTest < Minitest::Test
  def test_a_metric_knows_what_was_declared
    orders = Oribi.counter(:ruby_orders_total, "Orders placed", labels: %i[shop kind])
    assert_instance_of Oribi::Metrics::Counter, orders
    assert_equal [:ruby_orders_total, "Orders placed", :counter, %i[shop kind]], [orders.name, orders.help, orders.type, orders.labels]
    assert_equal :gauge, Oribi.gauge("ruby_users", "Users").type
    assert_equal :histogram, Oribi.histogram("ruby_times", "Times", buckets: [0.5, 1, 2]).type
  end

  def test_the_same_declaration_gives_the_same_object
    orders = Oribi.counter(:ruby_same, "Orders", labels: [:shop])
    assert_same orders, Oribi.counter("ruby_same_total", "Other words", labels: ["shop"])
    [-> { Oribi.gauge(:ruby_same, "Orders") }, -> { Oribi.counter(:ruby_same, "Orders") }].each do |other|
      assert_match(/there is a counter ruby_same with shop already/, assert_raises(ArgumentError, &other).message)
    end
  end

  def test_what_prometheus_does_not_take
    [-> { Oribi.counter("9", "Help") }, -> { Oribi.counter("oribi_x", "Help") }, -> { Oribi.counter("ruby_a", "") },
     -> { Oribi.gauge("ruby_a", "Help", labels: [:__x]) }, -> { Oribi.gauge("ruby_a", "Help", aggregate: :mean) },
     -> { Oribi.histogram("ruby_a", "Help", buckets: [2, 1]) }, -> { Oribi.histogram("ruby_a", "Help", buckets: ["x"]) },
     -> { Oribi.histogram("ruby_a", "Help", labels: [:le]) }].each { |wrong| assert_raises(ArgumentError, &wrong) }
  end

  def test_labels_are_those_that_were_declared
    orders = Oribi.counter(:ruby_labelled, "Orders", labels: [:shop])
    north = orders.with(shop: "north")
    assert_nil north.increment
    assert_nil orders.increment(by: 2, labels: {"shop" => :south})
    assert_nil orders.increment(labels: {shop: 7})
    assert_same north, north.with
    assert_nil orders.with_labels({ shop: "north" }).increment
    orders.init_label_set(shop: "east")
    [-> { orders.increment }, -> { orders.increment(labels: {}) }, -> { orders.increment(labels: {place: 1}) },
     -> { orders.increment(labels: {shop: 1, place: 1}) }, -> { orders.with }, -> { orders.with({ shop: 1 }, 2) }, -> { north.with(shop: 1) },
     -> { north.increment(labels: {shop: 1}) }, -> { orders.increment(of: 1) }].each { |wrong| assert_raises(ArgumentError, &wrong) }
    assert_raises(TypeError) { orders.increment(labels: "shop") }
  end

  def test_values_that_cannot_be
    counter = Oribi.counter(:ruby_up, "Up")
    histogram = Oribi.histogram(:ruby_seen, "Seen")
    [-> { counter.increment(by: -1) }, -> { counter.increment(by: Float::NAN) }, -> { histogram.observe(Float::INFINITY) }].each do |wrong|
      assert_raises(ArgumentError, &wrong)
    end
    assert_raises(TypeError) { counter.increment(by: "x") }
    refute_respond_to counter, :decrement
    refute_respond_to histogram, :increment
    assert_raises(TypeError) { Oribi::Metrics::Counter.new }
  end

  def test_buckets_can_be_made
    assert_equal [1.0, 3.0, 5.0], Oribi::Metrics.linear_buckets(start: 1, width: 2, count: 3)
    assert_equal [1.0, 10.0, 100.0], Oribi::Metrics.exponential_buckets(start: 1, factor: 10, count: 3)
    histogram = Oribi.histogram(:ruby_made, "Made", buckets: Oribi::Metrics.linear_buckets(start: 1, width: 1, count: 2))
    assert_equal %w[1.0 2.0 +Inf sum], histogram.get.keys
    assert_raises(ArgumentError) { Oribi.histogram(:ruby_many, "Many", buckets: (1..33).to_a) }
  end

  # In a program that is no server of ours, once and not before the first change.
  def test_elsewhere_nothing_is_kept_and_that_is_said_once
    program = <<~RUBY
      require "oribi/metrics"
      counter = Oribi.counter(:orders, "Orders")
      $stderr.puts "declared"
      3.times { counter.increment }
      Oribi.gauge(:users, "Users").set(3)
      puts counter.get
      exit! 1 if fork { counter.increment }.then { |pid| Process.wait2(pid)[1].exitstatus } != 0
    RUBY
    out, err, status = Open3.capture3(RbConfig.ruby, "-w", "-I#{File.expand_path("../lib", __dir__)}", "-e", program)
    assert_predicate status, :success?, err
    assert_equal "0.0\n", out
    assert_match(/\Adeclared\n[^\n]* warn: no Oribi server runs in this process yet: [^\n]*\n\z/, err)
  end
end
