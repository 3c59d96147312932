# frozen_string_literal: true

require_relative "shell"

module Oribi
  module Import
    # The words behind a server's program: flags with their values, and the application. Variables of the shell become
    # ENV.fetch in the configuration file, and stay as they are on a line.
    class Flags
      # Letters that mean something else than in Oribi.
      UNICORN = { "c" => "config", "E" => "environment", "D" => "daemonize", "l" => "listen", "p" => "port", "o" => "host", "I" => "include",
                  "r" => "require", "N" => "default_middleware", "d" => "debug", "w" => "verbose" }.freeze
      LETTERS = {
        "Puma" => { "b" => "bind", "p" => "port", "C" => "config", "F" => "config", "e" => "environment", "t" => "threads", "w" => "workers",
                    "I" => "include", "q" => "quiet", "v" => "verbose", "S" => "state" },
        "Unicorn" => UNICORN, "Pitchfork" => UNICORN, "Rainbows" => UNICORN, "Rhebok" => UNICORN,
        "Rails" => { "p" => "port", "b" => "host", "binding" => "host", "e" => "environment", "d" => "daemonize", "P" => "pid", "u" => "server",
                     "using" => "server", "c" => "rackup", "config" => "rackup", "C" => "dev_caching" },
        "rackup" => { "p" => "port", "o" => "host", "E" => "environment", "D" => "daemonize", "P" => "pid", "I" => "include", "r" => "require",
                      "q" => "quiet", "d" => "debug", "w" => "verbose", "s" => "server", "O" => "option" },
        "Thin" => { "a" => "host", "address" => "host", "p" => "port", "S" => "socket", "A" => "adapter", "R" => "rackup", "c" => "chdir", "s" => "servers",
                    "e" => "environment", "d" => "daemonize", "l" => "log", "P" => "pid", "u" => "user", "g" => "group", "C" => "config", "O" => "onebyone",
                    "t" => "timeout", "r" => "require", "D" => "debug", "V" => "trace", "q" => "quiet" },
        "Passenger" => { "a" => "host", "address" => "host", "p" => "port", "S" => "socket", "e" => "environment", "R" => "rackup", "d" => "daemonize" }
      }.freeze
      # Flags without a value that the option table does not know as such.
      SWITCHES = %w[debug default_middleware prune_bundler preload_app! silent redirect_append onebyone trace no_epoll threaded ssl dev_caching
                    warn shutdown_debug log_requests prune_bundler no_config].freeze

      # @return [Integer]
      attr_reader :taken, :left

      # @return [String, nil] the configuration file that the flags name
      attr_reader :config

      # @param words [Array<String>] as they stand on the line
      # @param unit [Boolean] of a unit of systemd
      # @param served [Boolean] by something that keeps the server in the foreground
      def initialize(path, server, words, unit:, served:)
        @path, @server, @unit, @served = path, server, unit, served
        @out = []
        @app = []
        @taken = @left = 0
        read(words)
      end

      # @return [Array<String>] the application, if it is named
      def app = @app.last(1)

      # @param defaults [Boolean] with what the server does where nothing is said
      # @return [Array<String>] lines of the configuration file
      def lines(defaults:)
        [*@out.flat_map { |entry| entry_lines(entry) }, *(@words.defaults(names) if defaults)]
      end

      # @return [Array<String>] options that they set
      def names = @out.flat_map { |entry| entry.result&.taken.to_a.map(&:first) }

      # @return [Array<String>] flags of Oribi's for a command line
      def words_here
        @out.flat_map do |entry|
          entry.result ? entry.result.taken.map { |name, source| word_here(name, source, entry) } : []
        end
      end

      # @return [String] the comments alone
      def left_lines = @out.reject(&:result).flat_map { |entry| entry_lines(entry) }.join

      Entry = Struct.new(:was, :result, :reason)
      private_constant :Entry

      private

      def read(words)
        words = words.dup
        words.shift if %w[Rails Passenger].include?(@server)
        words.delete("start") if %w[Puma Thin].include?(@server)
        @words = Words.new(@server, binds: binds?(words))
        @socket = %w[Thin Passenger].include?(@server) && binds?(words)
        until words.empty?
          word = words.shift
          next if word == "--"
          next @app << word unless word.start_with?("-") && word != "-"

          name, value = name_and_value(word)
          value ||= words.shift if takes_value?(name) && !words.first.to_s.match?(/\A-[^\d]/)
          flag(word, name, value)
        end
        leave_variables
      end

      # Words that only the shell can take apart; one alone is the application.
      def leave_variables
        @app[0...-1].grep(/\$/).each do |word|
          @left += 1
          @out << Entry.new(word, nil, "the shell makes more words of it: write them in Oribi's names on the new line")
        end
      end

      def binds?(words)
        words.any? { |word| word.start_with?("-") && %w[bind listen socket].include?(name_and_value(word).first) }
      end

      # "--name=value", "-p3000", "-p".
      def name_and_value(word)
        letters = LETTERS.fetch(@server)
        if word.start_with?("--")
          name, value = word.delete_prefix("--").split("=", 2)
          return [letters.fetch(name.to_s, name.to_s).tr("-", "_"), value]
        end
        [letters.fetch(word[1], word[1]), word.size > 2 ? word[2..] : nil]
      end

      def takes_value?(name)
        here = Options.find(name)
        here ||= Options.find_foreign(name)&.fetch(:here)
        entry = Options.table.find { |option| option[:name] == here }
        !(SWITCHES.include?(name) || entry && entry[:type] == :bool || name.start_with?("no_"))
      end

      def flag(word, name, value)
        return option(value) if name == "option" && value
        return server(value) if name == "server" && value
        return @config = Shell.plain(value) if name == "config" && value

        was = [word, *(value unless word.end_with?(value.to_s))].join(" ")
        reason = reason_against(name, value)
        result = @words.map(name, value ? [value_of(value)] : []) unless reason
        reason ||= result.reason
        reason ? @left += 1 : @taken += 1
        @out << (reason ? Entry.new(was, nil, reason) : Entry.new(was, result))
      end

      # rackup -O Name=value
      def option(text)
        name, value = text.split("=", 2)
        flag("-O #{text}", name.gsub(/([a-z])([A-Z])/, "\\1_\\2").downcase, value)
      end

      # rackup -s puma; rails server -u puma
      def server(name)
        found = SERVERS[Shell.plain(name).downcase]
        raise Error, "#{@path}: #{name} is no server that import knows, which are #{KNOWN}" unless found || %w[webrick oribi].include?(name.downcase)

        @words = Words.new(found, binds: false) if found
      end

      def reason_against(name, value)
        return "only the shell can tell what that is" if value && Shell.runs?(value)
        return "a specifier of systemd, which only systemd fills in" if @unit && value&.match?(/%[a-zA-Z]/)
        return "what starts it keeps it in the foreground" if name == "daemonize" && @served
        return "a socket takes the place of the #{name}" if %w[host port].include?(name) && @socket

        "a value that import cannot tell" if value && value_of(value).nil?
      end

      # nil: variables in another form.
      def value_of(word)
        text = Shell.plain(word)
        return Words::Value.new(text.match?(/\A(0|[1-9]\d{0,14})\z/) ? text : text.inspect, true, text) unless text.include?("$")

        whole = text.match?(/\A#{Shell::VARIABLE}\z/)
        rest = text.gsub(Shell::VARIABLE, "")
        return if rest.include?("$")

        ruby = text.inspect.gsub("\\$", "$").gsub(Shell::VARIABLE) do
          fetch = "ENV.fetch(#{[$1 || $2, $3].compact.map(&:inspect).join(", ")})"
          whole ? fetch : "\#{#{fetch}}"
        end
        Words::Value.new(whole ? ruby.delete_prefix('"').delete_suffix('"') : ruby, false, nil)
      end

      def entry_lines(entry)
        return [*Import.comment("# ", "Not taken over: #{entry.reason}"), *entry.was.lines.map { |line| "#   #{line.chomp}\n" }] unless entry.result

        note = [entry.was, entry.result.note].compact.join("; ")
        [*Import.comment("# ", note), *entry.result.taken.map { |name, source| "#{Import.line(name, source)}\n" }]
      end

      # A value as it stood on the line, where it is the same one.
      def word_here(name, source, entry)
        flag = "--#{name.tr("_", "-")}"
        return flag if source.empty?

        return "#{flag} #{entry.was[/(?<=[ =])\S*\$.*\z/] || entry.was.sub(/\A-\w/, "")}" if source.include?("ENV.fetch")

        "#{flag} #{Shell.quoted(source.start_with?("\"") ? source[1..-2].gsub(/\\(.)/, "\\1") : source)}"
      end
    end
  end
end
