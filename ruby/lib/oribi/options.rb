# frozen_string_literal: true

module Oribi
  # Every setting of a server, checked by the core as it is set. The stronger source wins, in whatever order they are
  # read: the command line over the config file over the environment over the defaults.
  class Options
    # The documents: of the gem, or of the source tree.
    PAGES = [File.expand_path("../../doc", __dir__), File.expand_path("../../../doc", __dir__)].find { |dir| File.directory?(dir) } || "doc"

    # @return [String] the text of --help
    def self.help = help_text(PAGES)

    # Sets an option from a Ruby value: text, a number, true or false, a Range for limits that are drawn, an Array for
    # lists. nil is no value.
    #
    # @param name [String, Symbol] in any spelling: "idle_timeout", "idle-timeout", "IdleTimeout", or another server's
    #   name for it
    # @param source [Symbol] :launcher (a default that rackup or Rails passes on), :environment, :file or :command
    # @raise [Oribi::Error]
    def set(name, value, source: :command)
      set_values(name, [value], source: source) unless value.nil?
      self
    end

    # The same from any number of values, as a line of the config file has them: none turn a switch on, several make a
    # list.
    def set_values(name, values, source:)
      given = values.compact
      refuse_hash(name, given, source)
      set_texts(name.to_s, given.flat_map { |value| texts(name, value) }, source) unless given.empty? && !values.empty?
      self
    end

    private

    # `timeout 20, cleanup: 2`. What is wrong apart from that comes first: the name, the number of values.
    def refuse_hash(name, values, source)
      hash = values.find { |value| value.is_a?(Hash) } or return
      rest = values.reject { |value| value.is_a?(Hash) }
      Options.new.set_values(name, rest.empty? ? [""] : rest, source: source)
      raise Error, "#{name} takes no options of its own, such as #{hash.keys.first}:"
    end

    def texts(name, value)
      case value
      when nil then []
      when Array then value.flat_map { |item| texts(name, item) }
      when true then ["on"]
      when false then ["off"]
      when Range then ["#{value.begin}..#{value.max}"]
      else [value.to_s]
      end
    end
  end
end
