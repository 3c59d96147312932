# frozen_string_literal: true

require "support"
require "oribi/memory"

# What is asked of the collector, by the abilities that a Ruby version's GC has; stubs stand for the versions.
class MemoryTest < Minitest::Test
  # Answers like the GC of a version that has the given methods, and remembers what was asked.
  class Collector
    attr_reader :asked

    def initialize(*methods)
      @asked = []
      methods.each { |name| define_singleton_method(name) { |*list, **named| @asked << [name, *list, *named] } }
    end
  end

  def asked(collector, oob_gc)
    options = Oribi::Options.new.set("oob_gc", oob_gc).finish
    Oribi::Memory.collect_between_requests(options, collector: collector)
    collector.asked
  end

  def test_long_collections_are_left_to_the_time_between_requests
    assert_equal [[:config, [:rgengc_allow_full_mark, false]]], asked(Collector.new(:config), "on")
  end

  def test_an_older_ruby_collects_as_ever = assert_empty(asked(Collector.new(:start), "on"))
  def test_without_collections_between_requests_nothing_is_asked = assert_empty(asked(Collector.new(:config), "off"))

  # Of the collector that is there; a child, since the setting cannot be taken back everywhere.
  def test_this_ruby_takes_it
    script = 'require "oribi"; require "oribi/memory"; Oribi::Memory.collect_between_requests({ "oob_gc" => "on" }); ' \
             'print(GC.respond_to?(:config) ? GC.config[:rgengc_allow_full_mark] : false)'
    assert_equal "false", IO.popen([RbConfig.ruby, "-I#{BindingTest::ROOT}/ruby/lib", "-e", script], &:read)
  end
end
