# frozen_string_literal: true

require "shellwords"

module Oribi
  module Import
    # Lines that start servers: of a Procfile, of a unit of systemd, or alone in a file. Variables of the shell become
    # ENV.fetch; everything else of the shell is refused.
    class CommandLine
      # Letters that mean something else than in Oribi.
      LETTERS = {
        "Puma" => { "b" => "bind", "p" => "port", "C" => "config", "e" => "environment", "t" => "threads", "w" => "workers", "I" => "include",
                    "q" => "quiet", "v" => "verbose", "S" => "state" },
        "Unicorn" => { "c" => "config", "E" => "environment", "D" => "daemonize", "l" => "listen", "p" => "port", "o" => "host", "I" => "include",
                       "r" => "require", "N" => "default_middleware", "d" => "debug", "w" => "verbose" },
        "rackup" => { "p" => "port", "o" => "host", "E" => "environment", "D" => "daemonize", "P" => "pid", "I" => "include", "r" => "require",
                      "q" => "quiet", "d" => "debug", "w" => "verbose", "s" => "server" }
      }.tap { |letters| letters["Pitchfork"] = letters["Rhebok"] = letters["Unicorn"] }.freeze
      # Flags without a value that the option table does not know as such.
      SWITCHES = %w[debug default_middleware prune_bundler preload_app! silent].freeze
      OF_PERL = %w[starman starlet plackup start_server gazelle monoceros twiggy uwsgi].freeze
      PREFIXES = %w[exec bundle env sudo rbenv nice].freeze

      # Does the text begin with a command of a server that is known here or in Perl?
      def self.command?(source)
        line = source.lines.map(&:strip).find { |text| !text.empty? && !text.start_with?("#") }.to_s.sub(/\A[\w-]+:\s+/, "")
        words = line.split
        words.shift while words.any? && (PREFIXES.include?(words.first) || words.first.match?(/\A\w+=/))
        (SERVERS.keys + OF_PERL).include?(File.basename(words.first.to_s)) && !line.match?(/\A\w+\s*=[^=]/)
      end

      def initialize(path, source)
        @path = path
        @source = source
        @out = []
        @left = @taken = 0
        @settings = nil
      end

      def text
        commands.each { |name, line| command(name, line) }
        raise Error, "#{@path}: has no command of #{SERVERS.values.join(", ")}" unless @settings

        Import.head(@path, @server, @taken, @left, start) + @out.join
      end

      private

      def start = ["oribi --config FILE", @app].compact.join(" ")

      # [name or nil, command] of each line; a unit's other lines say nothing to a server.
      def commands
        lines = @source.gsub(/\\\n\s*/, " ").lines.map(&:strip).reject { |line| line.empty? || line.start_with?("#", ";") }
        return lines.filter_map { |line| line[/\AExecStart\s*=\s*[-@+!:]*(.*)/, 1]&.then { |command| [nil, command] } } if unit?

        lines.map { |line| line.match(/\A([\w-]+):\s+(.*)\z/)&.captures || [nil, line] }
      end

      def unit? = @path.end_with?(".service") || @source.match?(/^ExecStart\s*=/)

      def command(name, line)
        words = split(line)
        words.shift while words.any? && prefix?(words)
        program = File.basename(words.first.to_s)
        raise Error, "#{@path}: #{program} serves Perl: oribi-psgi import #{@path} reads it" if OF_PERL.include?(program)

        server = SERVERS[program]
        return @out << "# Left where it is: #{[name, line].compact.join(": ")}\n" if server.nil? || @settings

        @server = server
        @words = Words.new(server)
        @settings = flags(words.drop(1))
      end

      def prefix?(words)
        first = words.first
        return false unless PREFIXES.include?(File.basename(first)) || first.match?(/\A[A-Za-z_]\w*=/)

        words.delete_at(1) if words[1] == "exec" && %w[bundle rbenv].include?(File.basename(first))
        @out << "# Set in the environment: #{first}\n" if first.include?("=")
        true
      end

      def split(line)
        raise Error, "#{@path}: what the shell would run (`...`, $(...)) cannot be read: #{line[0, 60]}" if line.match?(/`|\$\(/)

        words = Shellwords.split(line)
        stop = words.index { |word| word.match?(/\A(\||\|\||&|&&|;|\d?>>?.*|<.*)\z/) }
        raise Error, "#{@path}: import reads one command a line, and this has \"#{words[stop]}\"" if stop

        words
      rescue ArgumentError
        raise Error, "#{@path}: a quote that is not closed: #{line[0, 60]}"
      end

      def flags(words)
        until words.empty?
          word = words.shift
          next positional(word) unless word.start_with?("-") && word != "-"

          name, value = name_and_value(word)
          value ||= words.shift if takes_value?(name) && !words.first.to_s.match?(/\A-[^\d]/)
          flag(word, name, value)
        end
        true
      end

      # "--name=value", "-p3000", "-p".
      def name_and_value(word)
        return word.delete_prefix("--").split("=", 2).then { |name, value| [name.tr("-", "_"), value] } if word.start_with?("--")

        [LETTERS.fetch(@server).fetch(word[1], word[1]), word.size > 2 ? word[2..] : nil]
      end

      def takes_value?(name)
        here = Options.find(name)
        here ||= Options.find_foreign(name)&.fetch(:here)
        entry = Options.table.find { |option| option[:name] == here }
        !(SWITCHES.include?(name) || entry && entry[:type] == :bool || name.start_with?("no_"))
      end

      # The application, or another one's configuration.
      def positional(word)
        @app = word
      end

      def flag(word, name, value)
        return config(value) if name == "config" && value

        values = value ? [value_of(name, value)] : []
        result = @words.map(name, values)
        return left([word, value].compact.uniq.join(" "), result.reason) if result.reason

        @taken += 1
        @out.concat(Import.comment("# ", "#{word.split("=").first} of the command#{"; #{result.note}" if result.note}"))
        result.taken.each { |line| @out << "#{line}\n" }
      end

      def config(file)
        @out << "# Its configuration file is another matter: oribi import #{file}\n"
      end

      def left(words, reason)
        @left += 1
        @out.concat(Import.comment("# ", "Not taken over: #{reason}")) << "#   #{words}\n"
      end

      # $NAME, ${NAME} and ${NAME:-other} are asked of the environment when the file is read.
      def value_of(_name, text)
        return Words::Value.new(text.match?(/\A\d+\z/) ? text : text.inspect, true, text) unless text.include?("$")

        whole = text.match?(/\A(\$\w+|\$\{\w+(:?-[^}]*)?\})\z/)
        ruby = text.gsub(/\$(?:(\w+)|\{(\w+)(?::?-([^}]*))?\})/) do
          fetch = "ENV.fetch(#{[$1 || $2, $3].compact.map(&:inspect).join(", ")})"
          whole ? fetch : "\#{#{fetch}}"
        end
        raise Error, "#{@path}: cannot tell what the shell makes of #{text}" if ruby.include?("$")

        Words::Value.new(whole ? ruby : "\"#{ruby}\"", false, nil)
      end
    end
  end
end
