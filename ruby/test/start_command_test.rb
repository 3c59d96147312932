# frozen_string_literal: true

require "support"
require "bundler"
require "oribi/start_command"

class StartCommandTest < BindingTest
  # As Bundler::CLI::Exec has it.
  Bundled = Struct.new(:cmd, :args, :options)

  def command(kept, bundled: nil, script: __FILE__, argv: %w[-w 2])
    Oribi::StartCommand.new(kept: kept, script: script, argv: argv, bundled: bundled)
  end

  def test_a_record_that_names_the_script_is_right
    kept = ["ruby", "-w", "-S", File.basename(__FILE__), "-w", "2"]
    one = command(kept)
    assert_equal [kept, nil], [one.words, one.environment]
    assert_predicate one, :intact?
  end

  def test_a_title_over_the_record
    one = command(["shop", "", "", ""])
    assert_equal [RbConfig.ruby, __FILE__, "-w", "2"], one.words
    assert_includes one.environment, "PATH=#{ENV.fetch("PATH")}"
  end

  # The file of the command that Bundler has loaded may be the first word of the title, and the last.
  def test_bundler_s_title
    bundled = Bundled.new("oribi", ["-w", "a b", { close_others: false }], {})
    one = command(["/bin/#{File.basename(__FILE__)}", ""], bundled: bundled)
    assert_equal [RbConfig.ruby, __FILE__, "exec", "oribi", "-w", "a b"], one.words
    assert_equal [RbConfig.ruby, __FILE__, "exec", "--gemfile=G", "oribi"], command(["x"], bundled: Bundled.new("oribi", [], { "gemfile" => "G" })).words
  end

  def test_a_program_of_the_command_line_stays_as_it_was
    assert_equal ["ruby", "-eputs"], command(["ruby", "-eputs"], script: "-e").words
  end

  def test_the_words_are_taken_from_the_list
    argv = %w[-w 2]
    assert_equal %w[-w 2], Oribi::StartCommand.take(argv)
    assert_empty argv
  end
end
