# frozen_string_literal: true

require "support"
require "bundler"
require "tmpdir"
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

  # What `bundle exec` has left in the record of a command that it executed.
  def executed(gemfile)
    ["RUBYOPT=-r/x/bundler/setup", "BUNDLE_BIN_PATH=/x/bundle", "BUNDLE_GEMFILE=#{gemfile}"]
  end

  def test_a_command_that_bundler_executed_is_bundler_s_again
    skip "the tests' own Gemfile is named" if Bundler.original_env.key?("BUNDLE_GEMFILE")
    Dir.mktmpdir do |dir|
      Dir.chdir(dir) do
        File.write("Gemfile", "")
        one = Oribi::StartCommand.new(kept: ["ruby", __FILE__, "-w", "2"], script: __FILE__, given: executed("#{dir}/Gemfile"))
        assert_equal ["exec", "ruby", __FILE__, "-w", "2"], one.words.drop(2)
        assert_equal [RbConfig.ruby, "bundle"], [one.words[0], File.basename(one.words[1])]
        refute(one.environment.any? { |pair| pair.start_with?("BUNDLE_GEMFILE=") })
        assert_nil one.needed
      end
    end
  end

  def test_a_gemfile_elsewhere_stays
    one = Oribi::StartCommand.new(kept: ["ruby", __FILE__], script: __FILE__, given: executed("/elsewhere/Gemfile"))
    assert_equal [["ruby", __FILE__], nil, "/elsewhere/Gemfile"], [one.words, one.environment, one.needed]
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
