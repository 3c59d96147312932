# frozen_string_literal: true

require_relative "gemfile"

module Oribi
  # How this program was started, for later generations and successors of a server. The system's record of the command
  # line is right until a process title is written over it, which `bundle exec` does before it loads a command that is
  # written in Ruby; then the command is put together from what Ruby and Bundler remember. Switches of Ruby itself are
  # lost then (RUBYOPT keeps them).
  #
  # `bundle exec` executes other commands, and leaves its own variables in the record: with BUNDLE_GEMFILE among them a
  # later release would run under the Gemfile of the first. Bundler is asked anew then, in the environment that it was
  # given itself.
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

    # @return [String, nil] file without which the command cannot start: the Gemfile that its environment names
    attr_reader :needed

    # @param kept [Array<String>] the system's record
    # @param script [String] the main program, whatever $0 says
    # @param bundled [Bundler::CLI::Exec, nil] which runs this program
    # @param given [Array<String>] the system's record of the environment
    def initialize(kept: Core.command_line, script: Process.argv0, argv: ARGV, bundled: StartCommand.bundled, given: Core.start_environment)
      @words = kept
      @environment = nil
      variables = given.filter_map { |pair| pair.b.split("=", 2) if pair.b.include?("=") }.to_h # a title may have met it
      unless names?(kept, script) || !File.file?(script)
        @words = [RbConfig.ruby, script, *(bundled ? words_of(bundled) : argv)]
        self.variables = variables = bundled ? Bundler.original_env : ENV.to_h
      end
      self.variables = variables = ask_bundler_anew if executed_by_bundler?(variables)
      gemfile = variables["BUNDLE_GEMFILE"]
      @needed = gemfile if defined?(Bundler) && !gemfile.to_s.empty?
    end

    # The words are those of the system's record.
    def intact? = @environment.nil?

    private

    def variables=(variables)
      @environment = variables.map { |name, value| "#{name}=#{value}" }
    end

    # A title is the first word, and the others of its record are empty. `ruby -S rackup` knows its script by the path
    # that it was found at.
    def names?(kept, script) = kept.drop(1).any? { |word| File.basename(word.b) == File.basename(script.b) }

    # A Gemfile that the operator has named stays, and one that Bundler would not find by itself from here.
    def executed_by_bundler?(variables)
      return false unless defined?(Bundler.original_env) && variables["RUBYOPT"].to_s.include?("bundler/setup") && variables["BUNDLE_BIN_PATH"]

      !Bundler.original_env.key?("BUNDLE_GEMFILE") && Gemfile.found?(variables["BUNDLE_GEMFILE"])
    end

    # @return [Hash] the variables that Bundler was given
    def ask_bundler_anew
      @words = [RbConfig.ruby, bundle, "exec", *by_name(@words)]
      Bundler.original_env
    end

    # That of this Ruby, which chooses the version of Bundler that a release has locked.
    def bundle
      beside = File.join(RbConfig::CONFIG["bindir"], "bundle")
      File.file?(beside) ? beside : ENV.fetch("BUNDLE_BIN_PATH")
    end

    # A command of the bundle by its name alone: the next release may have its gems elsewhere.
    def by_name(words)
      name = File.basename(words[1].to_s)
      Bundler.which(name) == words[1] ? words.drop(2).unshift(name) : words
    end

    # Bundler adds a Hash of options for exec.
    def words_of(bundled)
      gemfile = bundled.options["gemfile"]
      ["exec", *("--gemfile=#{gemfile}" if gemfile), bundled.cmd, *bundled.args.grep(String)]
    end
  end
end
