# frozen_string_literal: true

module Oribi
  # How this program was started, for later generations and successors of a server. The system's record of the command
  # line is right until a process title is written over it, which `bundle exec` does before it loads a command that is
  # written in Ruby; then the command is put together from what Ruby and Bundler remember. Switches of Ruby itself are
  # lost then (RUBYOPT keeps them).
  class StartCommand
    class << self
      # @return [StartCommand] of this process, as it was when it was asked for first
      def current = @current ||= new

      # The words of a command, which the application shall not find in ARGV.
      #
      # @param argv [Array<String>] is empty afterwards
      # @return [Array<String>]
      def take(argv)
        current
        argv.dup.tap { argv.clear }
      end

      # @return [Bundler::CLI::Exec, nil]
      def bundled = defined?(Bundler::CLI::Exec) ? ObjectSpace.each_object(Bundler::CLI::Exec).first : nil
    end

    # @return [Array<String>] empty where nobody knows
    attr_reader :words

    # @return [Array<String>, nil] "NAME=value"; nil: as the system has kept it
    attr_reader :environment

    # @param kept [Array<String>] the system's record
    # @param script [String] the main program, whatever $0 says
    # @param bundled [Bundler::CLI::Exec, nil] which runs this program
    def initialize(kept: Core.command_line, script: Process.argv0, argv: ARGV, bundled: StartCommand.bundled)
      @words = kept
      return if names?(kept, script) || !File.file?(script)

      @words = [RbConfig.ruby, script, *(bundled ? words_of(bundled) : argv)]
      @environment = (bundled ? Bundler.original_env : ENV).map { |name, value| "#{name}=#{value}" }
    end

    # The words are those of the system's record.
    def intact? = @environment.nil?

    private

    # A title is the first word, and the others of its record are empty. `ruby -S rackup` knows its script by the path
    # that it was found at.
    def names?(kept, script) = kept.drop(1).any? { |word| File.basename(word.b) == File.basename(script.b) }

    # Bundler adds a Hash of options for exec.
    def words_of(bundled)
      gemfile = bundled.options["gemfile"]
      ["exec", *("--gemfile=#{gemfile}" if gemfile), bundled.cmd, *bundled.args.grep(String)]
    end
  end
end
