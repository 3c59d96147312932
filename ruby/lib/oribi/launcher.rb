# frozen_string_literal: true

require_relative "start_command"

module Oribi
  # Tells what a launcher's user has asked for from what the launcher itself puts in: rackup and `rails server` pass
  # their own port, host and environment on as if their users had given them, and those must not win over the
  # configuration file.
  class Launcher
    FLAGS = { Port: %w[-p --port], Host: %w[-o --host -b --binding], environment: %w[-E --env -e --environment] }.freeze
    VARIABLES = { Port: %w[PORT], Host: %w[HOST BINDING], environment: %w[RAILS_ENV RACK_ENV] }.freeze
    DEFAULTS = { Port: [9292], Host: %w[localhost 0.0.0.0], environment: %w[development] }.freeze # of rackup

    # @param settings [Hash] as the launcher gives them
    # @param words [Array<String>] of the command that was started
    def initialize(settings, words: StartCommand.current.words, program: $PROGRAM_NAME, env: ENV)
      @settings = settings
      @words = words.drop((words.rindex { |word| File.basename(word) == File.basename(program) } || -1) + 1)
      @rackup = %w[rackup rackup.rb].include?(File.basename(program))
      @env = env
      @theirs = settings[:user_supplied_options]
    end

    # @return [Symbol] :command, :environment or :launcher
    def source(name)
      return :command unless FLAGS.key?(name)
      return rails_source(name) if @theirs
      return :command if !@rackup || flag?(name)

      DEFAULTS[name].include?(@settings[name]) ? :launcher : rackup_source(name)
    end

    # rackup sets RACK_ENV to development where neither option nor variable is set; the framework's own
    # variable knows better.
    #
    # @return [String, nil] the environment that an application under rackup is really in
    def framework_env
      return unless @rackup && @settings.key?(:environment) && source(:environment) == :launcher

      @env.values_at("RAILS_ENV", "APP_ENV").find { |value| !value.to_s.empty? }
    end

    private

    # Rails counts a variable as its user's word.
    def rails_source(name)
      return :command if flag?(name)
      return :environment if set?(name) || name == :environment

      @theirs.include?(name) ? :command : :launcher
    end

    # What is not rackup's default comes from RACK_ENV, or from the first line of a rackup file of Rack 2.
    def rackup_source(name) = name == :environment ? :environment : :command

    def set?(name) = VARIABLES[name].any? { |variable| !@env[variable].to_s.empty? }

    # "-p 3000", "-p3000", "--port 3000", "--port=3000"
    def flag?(name)
      @words.any? do |word|
        FLAGS[name].any? { |flag| word == flag || (flag.size > 2 ? word.start_with?("#{flag}=") : word.match?(/\A#{flag}[^-]/)) }
      end
    end
  end
end
