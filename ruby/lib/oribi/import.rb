# frozen_string_literal: true

require_relative "hook_objects"
require_relative "hooks"
require_relative "import/words"
require_relative "import/ruby_file"
require_relative "import/command_line"

module Oribi
  # `oribi import FILE`: another server's configuration file or command line as a commented config/oribi.rb. Nothing of
  # the file is evaluated, and nothing is printed before all of it has been understood.
  #
  #   FILE ──Ruby──► RubyFile ──┐
  #        ──lines─► CommandLine┴─► Words: what a name and its values are here ──► text
  module Import
    # A longer file is no configuration.
    BYTES_MAX = 64 * 1024
    SERVERS = { "puma" => "Puma", "unicorn" => "Unicorn", "pitchfork" => "Pitchfork", "rhebok" => "Rhebok", "rackup" => "rackup" }.freeze

    # @return [String] the text of a configuration file
    # @raise [Error] one line
    def self.text(path)
      source = read(path)
      return CommandLine.new(path, source).text if commands?(path, source)
      raise Error, "#{path}: an ini file is uWSGI's: oribi-psgi import #{path} reads it" if path.end_with?(".ini") || source.match?(/^\[uwsgi\]/)

      RubyFile.new(path, source).text
    end

    # The first lines of what is printed.
    def self.head(path, server, taken, left, start)
      rest = left.zero? ? "." : "; left as comments: #{left}. Look for \"Not taken over\"."
      "# Oribi's configuration, made by `oribi import` from #{path} (#{server}).\n" \
        "# Settings taken over: #{taken}#{rest}\n# Look through it, then: #{start}\n\n"
    end

    # Lines of a comment, each of which begins with `start`.
    def self.comment(start, text)
      text.gsub(/\s+/, " ").scan(/\S.{0,#{[116 - start.size, 40].max}}(?=\s|\z)|\S+/).map { |line| "#{start}#{line}\n" }
    end

    def self.read(path)
      raise Error, "#{path}: is a directory" if File.directory?(path)

      source = File.binread(path, BYTES_MAX + 1) || ""
      raise Error, "#{path}: is longer than #{BYTES_MAX} bytes, which no configuration file is" if source.bytesize > BYTES_MAX

      source.force_encoding(Encoding::UTF_8)
      raise Error, "#{path}: is a binary file" if source.include?("\0") || !source.valid_encoding?
      raise Error, "#{path}: is empty" if source.strip.empty?

      source.gsub("\r\n", "\n")
    rescue SystemCallError => e
      raise Error, "#{path}: cannot be read: #{Failure.reason(e)}"
    end

    # A Procfile, a unit of systemd, or the line itself.
    def self.commands?(path, source)
      name = File.basename(path)
      return true if name.start_with?("Procfile") || name.end_with?(".service")
      return false if name.end_with?(".rb", ".ini")

      source.match?(/^ExecStart\s*=/) || CommandLine.command?(source)
    end
    private_class_method :read, :commands?
  end
end
