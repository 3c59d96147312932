# frozen_string_literal: true

require_relative "hooks"

module Oribi
  # The config file: Ruby, with a method for every option and every hook.
  #
  #   workers 4
  #   bind "127.0.0.1:9292", "unix:///run/app.sock?umask=007"
  #   idle_timeout "30s"
  #   requests_max 5_000..6_000
  #   after_fork { |index| Database.reconnect }
  #
  # Names of other servers' options work too. The command line wins over the file.
  class Config
    DEFAULT = "config/oribi.rb"

    # Kernel has its own meaning for these; a config file is Ruby and wants that one.
    RUBY_WORDS = %w[require include eval].freeze

    # Reads the file that the options name, or config/oribi.rb when there is one.
    #
    # @return [Hooks]
    # @raise [Error] one line with the place in the file
    def self.load(options, hooks = Hooks.new)
      named = options["config"]
      path = named.empty? ? DEFAULT : named
      new(options, hooks).read(path) if !named.empty? || File.exist?(path)
      hooks
    end

    def initialize(options, hooks)
      @options = options
      @hooks = hooks
    end

    # @private
    def read(path)
      source = File.read(path)
      instance_eval(source, File.expand_path(path), 1)
    rescue SystemCallError => e
      raise Error, "config file #{path}: #{Failure.reason(e)}"
    rescue Error
      raise
    rescue StandardError, ScriptError => e
      raise Error, "config file: #{Failure.text(e)}"
    end

    Hooks::NAMES.each do |name|
      define_method(name) { |callable = nil, &block| at_place { @hooks.add(name, block || callable) } }
    end

    Options.table.each do |option|
      name = option[:name]
      next if option[:command] || RUBY_WORDS.include?(name)

      define_method(name) { |*values| at_place { set(name, values) } }
    end

    # At once, so that the lines below it find their files there.
    def chdir(*values)
      at_place do
        set("chdir", values)
        @options.enter_dir
      end
    end

    # Two numbers as in Puma's config: the second one counts.
    def threads(*values)
      at_place { set("threads", values.size == 2 ? [values.join(":")] : values) }
    end

    private

    def set(name, values)
      values = [true] if values.empty?
      @options.set(name, values, source: :file)
    end

    def method_missing(name, *values)
      at_place { set(name.to_s, values) }
    end

    def respond_to_missing?(name, include_private = false) = !Options.find(name.to_s).nil? || super

    # Names file and line of the mistake.
    def at_place
      yield
    rescue Error => e
      place = caller_locations.find { |location| location.absolute_path != __FILE__ }
      raise Error, "#{place.path}:#{place.lineno}: #{e.message}"
    end
  end
end
