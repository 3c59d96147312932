# frozen_string_literal: true

module Oribi
  # Every setting of a server, checked by the core as it is set. The stronger source wins, in whatever order they are read: the command line
  # over the config file over the environment over the defaults.
  class Options
    # Sets an option from a Ruby value: text, a number, true or false, a Range for limits that are drawn, an Array for lists. nil is no value.
    #
    # @param name [String, Symbol] in any spelling: "idle_timeout", "idle-timeout", "IdleTimeout", or another server's name for it
    # @param source [Symbol] :launcher (a default that rackup or Rails passes on), :environment, :file or :command
    # @raise [Oribi::Error]
    def set(name, value, source: :command)
      texts(value).each { |text| set_text(name.to_s, text, source) }
      self
    end

    private

    def texts(value)
      case value
      when nil then []
      when Array then value.flat_map { |item| texts(item) }
      when true then ["on"]
      when false then ["off"]
      when Range then ["#{value.begin}..#{value.max}"]
      else [value.to_s]
      end
    end
  end
end
