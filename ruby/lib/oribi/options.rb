# frozen_string_literal: true

module Oribi
  # Every setting of a server, checked by the core as it is set. The stronger source wins, in whatever order they are
  # read: the command line over the config file over the environment over the defaults.
  class Options
    # The documents: of the Debian package, of the gem, or of the source tree.
    PAGES = %w[doc ../../doc ../../../doc].map { |dir| File.expand_path(dir, __dir__) }.find { |dir| File.directory?(dir) }
                                          &.then { |dir| File.realpath(dir) } || "doc"

    # The manual page that the gem has, which man does not find by its name.
    MANUAL = [File.expand_path("../../man/oribi.1", __dir__)].find { |page| File.file?(page) }

    # @param all [Boolean] with every option
    # @return [String] the text of --help
    def self.help(all: false)
      text = help_text(PAGES, all)
      MANUAL ? "#{text}The manual page of this gem, with two others beside it:\n  man -l #{MANUAL}\n" : text
    end

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
    # list, or are the arguments of a word such as `static "/assets", "public/assets", cache: "no-cache"`.
    def set_values(name, values, source:)
      return set_word(name.to_s, values, source) if Options.composed?(name.to_s) && (values.empty? || values.any?)

      given = values.compact
      refuse_hash(name, given, source)
      set_texts(name.to_s, given.flat_map { |value| texts(name, value) }, source) unless given.empty? && !values.empty?
      self
    end

    private

    # A list of lists is a word for each of them.
    def set_word(name, values, source)
      words = values.one? && values.first.is_a?(Array) && values.first.any?(Array) ? values.first : [values]
      words.each { |word| set_arguments(name, arguments(word.is_a?(Array) ? word : [word]), source) }
      self
    end

    # Keyword, key, text and place of each argument, as the core takes them.
    def arguments(values)
      *places, settings = values.last.is_a?(Hash) ? values : [*values, {}]
      by_place = places.each_with_index.flat_map { |value, place| list(value).map { |one| [nil, nil, argument_text(one), place] } }
      by_place + settings.flat_map { |keyword, value| keyed(value).map { |key, one| [keyword.to_s, key&.to_s, argument_text(one), 0] } }
    end

    # An empty list is no text, as nil is.
    def list(value) = value.is_a?(Array) && value.any? ? value : [value]

    # A keyword's values, with their keys where it is a Hash; nil is none.
    def keyed(value)
      return value.to_a if value.is_a?(Hash)

      value.nil? ? [] : list(value).map { |one| [nil, one] }
    end

    # nil is what no word takes.
    def argument_text(value)
      case value
      when true then "on"
      when false then "off"
      when String, Symbol, Numeric then value.to_s
      else value.respond_to?(:to_path) ? value.to_path : nil
      end
    end

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
