# frozen_string_literal: true

require_relative "config"
require_relative "import/source"
require_relative "import/words"
require_relative "import/ruby_file"
require_relative "import/settings_file"
require_relative "import/command_line"

module Oribi
  # `oribi import FILE`: another server's configuration file or command line as a commented config/oribi.rb. Nothing of
  # the file is evaluated, and nothing is printed before all of it has been read.
  #
  #   FILE ──Ruby──────► RubyFile ────┐
  #        ──YAML,JSON─► SettingsFile ┼─► Words: what a name and its values are here ──► text
  #        ──lines─────► CommandLine ─┘
  module Import
    # Programs whose files and command lines are read: what is typed, and the name that people know.
    SERVERS = {
      "puma" => "Puma", "pumactl" => "Puma", "rails" => "Rails", "unicorn" => "Unicorn", "unicorn_rails" => "Unicorn", "rainbows" => "Rainbows",
      "pitchfork" => "Pitchfork", "rhebok" => "Rhebok", "rackup" => "rackup", "thin" => "Thin", "passenger" => "Passenger"
    }.freeze
    KNOWN = "Puma, Unicorn, Pitchfork, Rainbows, Rhebok, Thin, Passenger, rackup, rails server"

    HELP = <<~TEXT
      Usage: oribi import [-o FILE [--force]] FILE
             oribi import [-o FILE [--force]] -- COMMAND ...

      Prints a configuration file made from another server's: a configuration of Puma, Unicorn, Pitchfork, Rainbows or
      Rhebok, Thin's YAML, Passengerfile.json, a Procfile, a unit of systemd, a program of supervisord, a Dockerfile, or a
      command line of those servers, of rackup or rails server. "-" reads standard input. Nothing of it is evaluated;
      what Oribi does not take over stays as a comment with the reason.

        -o, --output FILE   write to FILE, which must not exist; stands before the command, which may have a -o of its own
            --force         overwrite it
    TEXT

    # What came of a file: the server's name, the configuration's text, how many settings it has and how many lines
    # are comments now, the new command line and what else is to be done (both may be nil).
    Outcome = Struct.new(:path, :server, :body, :taken, :left, :command, :steps) do
      def counts = "#{taken} #{taken == 1 ? "setting" : "settings"} taken over#{", #{left} left as #{left == 1 ? "a comment" : "comments"}" if left.positive?}"

      # @param file [String] what the configuration is to be
      def text(file = Config::DEFAULT)
        look = left.zero? ? "." : ": look for \"Not taken over\"."
        keep = file == Config::DEFAULT ? "Keep it as #{file}, which oribi reads by itself, and try it: oribi check" : "Try it: oribi check --config #{file}"
        "# Configuration of Oribi, made by `oribi import` from #{path} (#{server}).\n# #{counts}#{look}\n" \
          "#{Import.comment("# ", keep).join}#{"# Start: #{command.gsub("\n", "\n#   ")}\n" if command}" \
          "#{steps.to_a.flat_map { |step| Import.comment("# ", step) }.join}\n#{body.sub(/\A\n+/, "")}"
      end
    end

    # @param argv [Array<String>] what follows `oribi import`
    # @return [String] what to print
    # @raise [Error] one line
    def self.run(argv)
      words = argv.take_while { |word| word != "--" }
      command = argv.drop(words.size)
      files, output, force = [], nil, nil
      until words.empty?
        case word = words.shift
        when "-h", "--help" then return HELP
        when "--force" then force = true
        when "-o", "--output" then output = words.shift or raise Error, "import: #{word} needs a file"
        when /\A--output=(.+)/ then output = $1
        when /\A-./ then raise Error, "import: unknown option #{word}: there are -o FILE, --force and --help"
        else files << word
        end
      end
      outcome = read(files, command, output || Config::DEFAULT)
      output ? write(output, outcome, force) : outcome.text
    end

    # @return [String] the text of a configuration file
    # @raise [Error] one line
    def self.text(path) = outcome(Source.file(path)).text

    # @param file [String] what the configuration is to be
    # @return [Outcome]
    def self.outcome(source, file = Config::DEFAULT)
      return CommandLine.new(source, file == Config::DEFAULT ? [] : ["--config", file]).outcome if source.commands?
      raise Error, "#{source.path}: an ini file is uWSGI's: oribi-psgi import #{source.path} reads it" if source.ini?

      server = SettingsFile.server_of(source)
      server ? SettingsFile.new(source, server).outcome : RubyFile.new(source.path, source.text, source.note).outcome
    end

    # A setting of the configuration file, of its name and the source text of its values.
    def self.line(name, source)
      return name if source.empty?

      source.start_with?("(") ? "#{name}(#{source})" : "#{name} #{source}"
    end

    # Lines of a comment, each of which begins with `start`.
    def self.comment(start, text)
      text.gsub(/\s+/, " ").scan(/\S.{0,#{[116 - start.size, 40].max}}(?=\s|\z)|\S+/).map { |line| "#{start}#{line}\n" }
    end

    def self.read(files, command, file)
      return outcome(Source.command(command.drop(1)), file) if files.empty? && command.size > 1
      raise Error, "import takes one file, as in: oribi import config/puma.rb" unless files.one? && command.empty?

      outcome(Source.file(files.first), file)
    end

    def self.write(path, outcome, force)
      Dir.mkdir("config") if path == Config::DEFAULT && !File.exist?("config")
      mode = File::WRONLY | File::CREAT | (force ? File::TRUNC : File::EXCL)
      File.open(path, mode) { |file| file.write(outcome.text(path)) }
      "#{path}: #{outcome.counts}. Next: oribi check#{" --config #{path}" unless path == Config::DEFAULT}\n"
    rescue Errno::EEXIST
      raise Error, "#{path}: exists already; --force overwrites it"
    rescue SystemCallError => e
      raise Error, "#{path}: cannot be written: #{Failure.reason(e)}"
    end
    private_class_method :read, :write
  end
end
