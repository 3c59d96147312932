# frozen_string_literal: true

require "json"
require_relative "flags"
require_relative "shell"

module Oribi
  module Import
    # Lines that start servers: of a Procfile, a unit of systemd, supervisord, a Dockerfile, or alone. The first one
    # that starts a known server is taken; what stands around it stays in the new line. A configuration file that the
    # line names is read, too: then what the line says stays on the line, which wins over the file in Oribi as well.
    class CommandLine
      OF_PERL = %w[starman starlet plackup start_server gazelle monoceros twiggy uwsgi].freeze
      # Words that have a server's name behind them without starting it.
      OTHERS = %w[echo kill pkill killall gem apt apt-get rm cp mv ln mkdir touch cat tail test printf chown chmod systemctl service].freeze
      SHELLS = %w[sh bash dash ash zsh].freeze
      # Servers that read this file without being told.
      UNTOLD = { "Puma" => "config/puma.rb", "Rails" => "config/puma.rb", "Passenger" => "Passengerfile.json" }.freeze

      # A line of the file: its name there (web, ExecStart, CMD or nil), the text, is it a list in JSON, and the name of
      # the line that had only flags for it.
      Line = Struct.new(:name, :text, :list, :flags) do
        def to_s = [name, text].compact.join(name&.match?(/\A(Exec|command\z)/) ? "=" : name&.match?(/\A[A-Z]/) ? " " : ": ")
      end

      # Does the text begin with a command of a server that is known here or in Perl?
      def self.command?(source)
        line = source.lines.map(&:strip).find { |text| !text.empty? && !text.start_with?("#") }.to_s
        return false if line.match?(/\A\w+\s*=[^=]/) && !line.match?(/\A[A-Z_]+=\S*\s/)

        words, = Shell.words(Shell.commands(line.sub(/\A[\w-]+:\s+/, "")).first.first)
        !place_of_program(words, SERVERS.keys + OF_PERL).nil?
      rescue Error
        false
      end

      # Which of the words is the server's program?
      def self.place_of_program(words, programs)
        return if OTHERS.include?(File.basename(words.first.to_s))

        words.each_with_index.find do |word, place|
          program = File.basename(Shell.plain(word))
          programs.include?(program) && starts?(program, words[place + 1..]) && !(place.positive? && words[place - 1].match?(/\A-[^-]/))
        end&.last
      end

      def self.starts?(program, rest)
        case program
        when "rails" then %w[s server].include?(rest.first)
        when "thin", "passenger" then rest.include?("start")
        else true
        end
      end

      # @param config [Array<String>] words that name the new configuration file
      def initialize(source, config)
        @source = source
        @config = config
        @path = source.path
        @others = []
      end

      # @return [Outcome]
      def outcome
        lines.each { |line| look_at(line) }
        refuse unless @server
        @flags = Flags.new(@path, @server, @rest, unit: @source.unit?, served: @source.served?)
        file = @flags.config || (UNTOLD[@server] unless @flags.config == "-")
        found = found_file(file)
        found ? with_file(found) : alone(file)
      end

      private

      # --- lines ---

      def lines
        texts = @source.text.gsub(/\\\n\s*/, " ").lines.map(&:strip).reject { |line| line.empty? || line.start_with?("#", ";") }
        return texts.filter_map { |line| line[/\AExecStart\s*=\s*[-@+!:]*(.+)/, 1]&.then { |text| Line.new("ExecStart", text) } } if @source.unit?
        return texts.filter_map { |line| line[/\Acommand\s*=\s*(.+)/, 1]&.then { |text| Line.new("command", text) } } if @source.supervisord?
        return of_docker(texts) if @source.dockerfile?

        texts.map { |line| Line.new(*(line.match(/\A([\w-]+):\s+(.*)\z/)&.captures || [nil, line])) }
      end

      # The last CMD and the last ENTRYPOINT count, and CMD may hold the flags of ENTRYPOINT's program.
      def of_docker(texts)
        found = texts.filter_map { |line| line.match(/\A(CMD|ENTRYPOINT)\s+(.+)\z/i)&.captures }.to_h { |name, text| [name.upcase, text] }
        both = found.transform_values { |text| (JSON.parse(text) if text.start_with?("[")) rescue nil } # rubocop:disable Style/RescueModifier
        texts_of = found.to_h { |name, text| [name, both[name]&.map { |word| Shell.quoted(word.to_s) }&.join(" ") || text] }
        entry, command = texts_of.values_at("ENTRYPOINT", "CMD")
        alone = entry && CommandLine.place_of_program(Shell.words(entry).first, SERVERS.keys + OF_PERL)
        return [Line.new("ENTRYPOINT", [entry, command].compact.join(" "), both["ENTRYPOINT"], command && "CMD")] if alone

        [*([Line.new("ENTRYPOINT", entry, both["ENTRYPOINT"])] if entry), *([Line.new("CMD", command, both["CMD"])] if command)]
      end

      def look_at(line)
        parts = Shell.commands(line.text)
        return @others << line if @server

        parts.each_with_index do |(text, _), place|
          words, redirections = Shell.words(inside_of_shell(text))
          at = CommandLine.place_of_program(words, SERVERS.keys + OF_PERL)
          return take(line, parts, place, words, redirections, at) if at
        end
        @first ||= parts.first.first.strip
        @others << line
      rescue Error => e
        raise Error, "#{@path}: #{e.message}"
      end

      # sh -c '...'
      def inside_of_shell(text)
        words, = Shell.words(text)
        words.shift if words.first == "exec"
        return text unless SHELLS.include?(File.basename(words.first.to_s)) && words[1].to_s.match?(/\A-\w*c\z/) && words[2]

        commands = Shell.commands(Shell.plain(words[2])).map(&:first)
        commands.find { |command| CommandLine.place_of_program(Shell.words(command).first, SERVERS.keys + OF_PERL) } || text
      end

      def take(line, parts, place, words, redirections, at)
        program = File.basename(Shell.plain(words[at]))
        raise Error, "#{program} serves Perl: oribi-psgi import #{@path} reads it" if OF_PERL.include?(program)

        @server = SERVERS.fetch(program)
        @line, @parts, @place = line, parts, place
        @before, @program, @rest, @behind = words.first(at), words[at], words.drop(at + 1), redirections
      end

      def refuse
        raise Error, "#{@path}: has no command" unless @first

        raise Error, "#{@path}: starts no server that import knows, which are #{KNOWN}; its first command is #{@first[0, 60].tr("\n", " ")}"
      end

      # --- the configuration file that it names ---

      def found_file(name)
        return if name.nil? || name.match?(/[\$%]/) || !name.end_with?(".rb", ".conf", ".ru", ".yml", ".yaml", ".json")

        folder = @source.text[/^WorkingDirectory\s*=\s*-?(\S+)/, 1]
        parts = name.split("/").reject(&:empty?)
        names = [name, *([File.join(folder, name)] if folder), *parts.size.times.map { |n| File.join(folder_of_path, *parts.drop(n)) }]
        names.find { |file| File.file?(file) }&.then { |file| file.delete_prefix("./") }
      end

      def folder_of_path = File.file?(@path) ? File.dirname(@path) : "."

      def with_file(file)
        source = Source.file(file)
        inner = of_file(source)
        text = inner.body.sub(/^__END__\n.*\z/m, "")
        left = @flags.left_lines
        text = "#{text}\n# --- from the command line ---\n#{left}" unless left.empty?
        Outcome.new("#{@path} and #{file}", inner.server, text, inner.taken + @flags.taken, inner.left + @flags.left, command(@flags.words_here), steps)
      end

      def of_file(source)
        return SettingsFile.new(source, @server, given: @flags.names).outcome if SettingsFile::SERVERS.key?(@server)

        RubyFile.new(source.path, source.text, source.note, @server == "Rails" ? "Puma" : @server).outcome
      end

      def alone(file)
        missing = file && file != "-" && (@flags.config || @server == "Rails")
        body = [*@flags.lines(defaults: !missing)]
        body.concat(Import.comment("# ", "Its configuration file is not here; import it by itself: oribi import #{file}")) if missing
        Outcome.new(@path, @server, body.join, @flags.taken, @flags.left, command([]), steps)
      end

      # --- the new line ---

      # @param flags [Array<String>] words that stay on the line
      def command(flags)
        words = [*@before, program, *@config, *flags, *@flags.app, *@behind]
        parts = @parts.dup
        inside = inside_of_shell(@parts[@place].first)
        fresh = words.join(" ")
        text = @parts[@place].first
        start, rest = text[/\A\s*/], text[/\s*\z/]
        fresh = inside.equal?(text) ? fresh : text.strip.sub(inside.strip) { fresh }
        parts[@place] = ["#{start}#{fresh}#{rest}", @parts[@place].last]
        as_there(parts.map { |part, operator| "#{part}#{operator}" }.join.strip)
      end

      def as_there(text)
        return Line.new(@line.name, text).to_s unless @line.list

        list = Shell.words(text).first.map { |word| Shell.plain(word) }
        "#{@line.name} #{JSON.generate(list).gsub('","', '", "')}"
      end

      def program
        return "oribi" if @server == "Rails" && @before.include?("exec")
        return "bundle exec oribi" if @server == "Rails"

        folder = File.dirname(Shell.plain(@program))
        folder == "." ? "oribi" : File.join(folder, "oribi")
      end

      def steps
        folder = File.dirname(Shell.plain(@program))
        [*("In the unit: Type=notify, ExecReload=/bin/kill -HUP $MAINPID, KillMode=mixed; without PIDFile and ExecStop." if @source.unit?),
         *("`bundle binstubs oribi` makes #{File.join(folder, "oribi")}." if @server != "Rails" && folder.match?(%r{\A(\./)?bin\z})),
         *("#{@line.flags} has only its flags, and may go." if @line.flags),
         *(@others.map { |line| "Left as it is: #{line.to_s[0, 90]}" } if @others.any?)]
      end
    end
  end
end
