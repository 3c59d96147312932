# frozen_string_literal: true

require "json"
require "yaml"

module Oribi
  module Import
    # A configuration that is one mapping of names to values: Thin's YAML (config/thin.yml) and Passengerfile.json. No
    # objects are made of it, aliases are refused. What Thin has between <%= and %> is Ruby, and stays so.
    class SettingsFile
      SERVERS = { "Thin" => /\.ya?ml\z|\A---\s/, "Passenger" => /\.json\z|\A\s*\{/ }.freeze
      # Names there that Flags knows by their letters.
      # Thin's two maxima of connections are one here.
      ONCE = %w[connections_max].freeze
      NAMES = { "address" => "host", "socket_file" => "socket" }.freeze
      # More nested than this is no configuration.
      DEPTH_MAX = 20
      WORD = /\A[\w.-]+\z/
      KINDS = { Hash => "a mapping", Array => "a list", NilClass => "nothing" }.freeze

      TooDeep = Class.new(StandardError)
      # What is not known before the whole file is read, which takes long when it is nested as deep as it is long.
      class Shape < Psych::Handler
        attr_reader :documents

        def initialize
          super
          @documents = @depth = 0
        end

        def start_document(*) = @documents += 1
        def start_mapping(*) = (@depth += 1) > DEPTH_MAX && raise(TooDeep)
        def end_mapping = @depth -= 1
        alias start_sequence start_mapping
        alias end_sequence end_mapping
      end
      private_constant :TooDeep, :Shape

      # @return [String, nil] the server whose file that is, by its name or, without one, by how it begins
      def self.server_of(source)
        name = source.path == "standard input" ? source.text : File.basename(source.path)
        SERVERS.find { |_, pattern| name.match?(pattern) }&.first
      end

      # @param source [Source]
      # @param server [String] Thin or Passenger
      # @param given [Array<String>] options that the command line has
      def initialize(source, server, given: [])
        @path, @source, @server, @given = source.path, source, server, given
        @taken = @left = 0
        @names = []
      end

      # @return [Outcome]
      def outcome
        settings = read
        raise Error, "#{@path}: is #{kind(settings)}, not a mapping of settings" unless settings.is_a?(Hash)
        raise Error, "#{@path}: has no setting of #{@server}" unless settings.keys.any? { |name| known?(name.to_s) }

        @words = Words.new(@server)
        @socket = settings.keys.intersect?(%w[socket socket_file])
        body = settings.flat_map { |name, value| lines(name.to_s, value) }
        text = [*body, *@words.defaults(@names + @given)].join
        raise Error, "#{@path}: cannot be taken apart: what it makes would be no Ruby" if Sexp.mistake(text)

        Outcome.new(@path, @server, text, @taken, @left, nil, [*@source.note])
      end

      private

      def read
        @server == "Thin" ? read_yaml : JSON.parse(@source.text, max_nesting: DEPTH_MAX, create_additions: false)
      rescue JSON::NestingError, TooDeep
        raise Error, "#{@path}: is nested more than #{DEPTH_MAX} deep, which no configuration is"
      rescue JSON::ParserError => e
        raise Error, "#{@path}: syntax error: #{one_line(e.message)}"
      end

      def read_yaml
        shape = Shape.new
        Psych::Parser.new(shape).parse(@source.text)
        raise Error, "#{@path}: has several documents, of which Thin reads one" if shape.documents > 1

        YAML.safe_load(@source.text, aliases: false) || {}
      rescue Psych::SyntaxError => e
        raise Error, "#{@path}:#{e.line}: syntax error: #{one_line([e.problem, e.context].compact.join(" "))}"
      rescue Psych::BadAlias
        raise Error, "#{@path}: has aliases (*name), which import does not follow: write out what they stand for"
      rescue Psych::DisallowedClass => e
        raise Error, "#{@path}: has a value of Ruby's class #{e.message[/\S+\z/]}, which import does not make: write it as text"
      end

      def one_line(text) = text.gsub(/\s+/, " ").strip[0, 120]
      def kind(value) = KINDS.fetch(value.class, "one value")

      def known?(name)
        name = name.tr("-", "_")
        NAMES.key?(name) || Flags::LETTERS.fetch(@server).value?(name) || Options.find_foreign(name)&.fetch(:server)&.include?(@server)
      end

      def lines(name, value)
        was = "#{name.match?(WORD) ? name : name.inspect}: #{@server == "Thin" ? one_line(value.inspect) : JSON.generate(value)}"
        here = name.tr("-", "_")
        here = NAMES.fetch(here, here)
        reason = reason_against(here, value)
        result = mapped(here, value) unless reason
        reason ||= result.reason
        reason ? @left += 1 : @taken += 1
        return [*Import.comment("# ", "Not taken over: #{reason}"), "#   #{was}\n"] if reason

        @names.concat(result.taken.map(&:first))
        [*Import.comment("# ", [was, result.note].compact.join("; ")), *result.taken.map { |line| "#{Import.line(*line)}\n" }]
      end

      def reason_against(name, value)
        return "not an option that import knows" unless name.match?(WORD)
        return "#{here(name)} is set above" if @names.include?(here(name)) && ONCE.include?(here(name))
        return "it has no value" if value.nil? || value == []
        return "#{kind(value)}, where one value is meant" if value.is_a?(Hash) && name != "envvars"
        return "a list of lists or mappings" if value.is_a?(Array) && value.any? { |one| one.is_a?(Enumerable) }
        return "a socket takes the place of the #{here(name)}" if @socket && %w[host port].include?(here(name))
        return "what stands between <% and %> is not the whole value: write it as Ruby" if [*value].any? { |one| one.to_s.include?("<%") && !expression(one) }

        "the flag is off, which is so by itself" if value == false && !Options.find(name)
      end

      def here(name) = Options.find(name) || Options.find_foreign(name)&.fetch(:here) || name

      # Ruby that makes the whole value.
      def expression(value)
        ruby = value[/\A<%=\s*(.+?)\s*-?%>\z/m, 1] if value.is_a?(String) && @server == "Thin"
        ruby if ruby && !ruby.match?(/[%#\n]|\beval\b/) && Sexp.statements(ruby) && Sexp.statements("x(#{ruby})")
      end

      # A list is a line for each of its values.
      def mapped(name, value)
        return @words.map(name, []) if value.is_a?(Hash)

        results = [*value].map { |one| @words.map(name, [value_of(one)]) }
        results.find(&:reason) || Words::Result.new(results.flat_map(&:taken), nil, results.first.note)
      end

      def value_of(value)
        ruby = expression(value)
        return Words::Value.new(ruby, false, nil) if ruby

        text = value.to_s
        Words::Value.new(value.is_a?(String) && !text.match?(/\A(0|[1-9]\d{0,14})\z/) ? text.inspect : text, true, text)
      end
    end
  end
end
