# frozen_string_literal: true

require_relative "hook_objects"
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
    # @raise [Error] all mistakes of the file, a line each with its place
    def self.load(options, hooks = Hooks.new)
      named = options["config"]
      path = named.empty? ? DEFAULT : named
      new(options, hooks).read(path) if !named.empty? || File.exist?(path)
      hooks
    end

    def initialize(options, hooks)
      @options = options
      @hooks = hooks
      @mistakes = []
    end

    # @private
    def read(path)
      evaluate(File.read(path, mode: "r:bom|utf-8"), File.expand_path(path))
      @read = true
      return if @mistakes.empty?

      @mistakes << "#{path}: looks like another server's: `oribi import #{path}` prints one for Oribi" if foreign?(path)
      raise Error, @mistakes.join("\n")
    rescue SystemCallError => e
      raise Error, "config file #{path}: #{Failure.reason(e)}"
    end

    Hooks::NAMES.each do |name|
      define_method(name) do |callable = nil, objects: false, &block|
        at_place do
          hook = block || callable
          hook = HookObjects.around(name, hook, @options) if objects
          Hooks.check(name, hook)
          @hooks.add(name, hook)
        end
      end
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

    FOREIGN_NAME = /puma|unicorn|pitchfork|rainbows|rhebok|\A(Procfile|Dockerfile)|\.(service|ini)\z/
    FOREIGN_WORD = /: unknown option \S+ \((?!rackup\))/
    private_constant :FOREIGN_NAME, :FOREIGN_WORD

    def foreign?(path) = File.basename(path).match?(FOREIGN_NAME) || @mistakes.any? { |line| line.match?(FOREIGN_WORD) }

    # What ends the reading is the last mistake of the file.
    def evaluate(source, path)
      instance_eval(source, path, 1)
    rescue StandardError, ScriptError => e
      @mistakes << "config file: #{Failure.text(e)}"
    end

    def set(name, values)
      refuse_address_options(name, *values) if %w[bind listen path socket].include?(name) && values.size == 2 && values.last.is_a?(Hash)
      @options.set_values(name, values, source: :file)
    end

    ADDRESS_WORDS = %i[certificate key ocsp frontend proxy].freeze
    private_constant :ADDRESS_WORDS

    # Unicorn's `listen "/run/app.sock", backlog: 64`.
    def refuse_address_options(name, address, options)
      return if options.keys.intersect?(ADDRESS_WORDS)

      query = options.slice(:backlog, :umask).map { |key, value| "#{key}=#{key == :umask && value.is_a?(Integer) ? format("%03o", value) : value}" }
      unknown = options.keys - %i[backlog umask]
      raise Error, "#{name} cannot set #{unknown.join(", ")}" if query.empty?

      more = unknown.empty? ? "" : "; #{unknown.join(", ")} cannot be set"
      raise Error, "#{name} takes its options behind a question mark, as in #{name} #{"#{address}?#{query.join("&")}".dump}#{more}"
    end

    # Molds and commands such as `oribi ctl` read the file, too, and would run Kernel's blocks at their end. Inside a
    # hook at_exit is Kernel's: it belongs to the hook's process.
    def at_exit(&block)
      return super if @read

      at_place { @hooks.add(:at_exit, block) }
      block
    end

    def method_missing(name, *values)
      at_place { set(name.to_s, values) }
    end

    def respond_to_missing?(name, include_private = false) = !Options.find(name.to_s).nil? || super

    # A mistake is noted with its file and line, and the next line is read.
    def at_place
      yield
    rescue Error => e
      place = caller_locations.find { |location| location.absolute_path != __FILE__ }
      @mistakes << "#{place.path}:#{place.lineno}: #{e.message}"
    end
  end
end
