# frozen_string_literal: true

require "support"
require "oribi/cli"

# What Ruby adds to the findings of the core: mistakes of the file one by one, versions, exceptions of every kind.
class CheckTest < BindingTest
  def findings(options = Oribi::Options.new, &)
    check = Oribi::Check.new(options)
    check.instance_eval(&)
    check.instance_variable_get(:@findings)
  end

  def test_rack_at_its_least_version
    assert_empty(findings { rack_release("2.2") })
    assert_empty(findings { rack_release("3.2.8") })
    assert_equal [%w[wrong rack]], findings { rack_release("2.1.9") }.each_slice(5).map { |finding| finding.first(2) }
  end

  def test_a_line_that_begins_with_blanks_belongs_to_the_one_above
    told = findings { configuration { raise Oribi::Error, "one\n  more of it\ntwo" } }
    assert_equal ["one\n  more of it", "two"], told.each_slice(5).map { |finding| finding[2] }
  end

  def test_the_report_is_text_or_json_with_a_code
    one = ["risk", "x", "what", "why", "do"]
    text, code = Oribi::Options.check_report(one, %w[oribi 1], false, false)
    assert_equal ["risk   x: what\n       why: why\n       do:  do\n\noribi 1: 0 wrong, 1 risk\n", 0], [text, code]
    assert_equal 1, Oribi::Options.check_report(one, [], true, true).last
    assert_raises(ArgumentError) { Oribi::Options.check_report(["risk", "x\0", "a", "b", "c"], [], false, false) }
  end
end
