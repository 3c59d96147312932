# frozen_string_literal: true

module Oribi
  module Import
    # What is to be imported, as text in UTF-8 with line feeds: a file, standard input, or words of a command.
    class Source
      # A longer file is no configuration.
      BYTES_MAX = 1024 * 1024

      # @return [String]
      attr_reader :path, :text

      # @return [String, nil] what was changed on the way
      attr_reader :note

      def self.file(path)
        return new("standard input", $stdin.binmode.read(BYTES_MAX + 1)) if path == "-"
        raise Error, "#{path}: is a directory" if File.directory?(path)

        new(path, File.binread(path, BYTES_MAX + 1))
      rescue SystemCallError => e
        raise Error, "#{path}: cannot be read: #{Failure.reason(e)}"
      end

      COMMAND = "the command line"
      private_constant :COMMAND

      # @param words [Array<String>] as the shell has split them
      def self.command(words) = new(COMMAND, words.map { |word| word.match?(/\A[\w@%+=:,.\/-]+\z/) ? word : "'#{word.gsub("'", "'\\\\''")}'" }.join(" "))

      def initialize(path, bytes)
        @path = path
        bytes = bytes.to_s
        raise Error, "#{path}: is longer than #{BYTES_MAX} bytes, which no configuration file is" if bytes.bytesize > BYTES_MAX
        raise Error, "#{path}: is a binary file" if bytes.match?(/[\x00-\x08\x0e-\x1a\x1c-\x1f]/n)
        raise Error, "#{path}: is empty" if bytes.delete_prefix("\xEF\xBB\xBF".b).strip.empty?

        @text = decode(bytes).gsub(/\r\n?/, "\n")
      end

      # A Procfile, a unit of systemd, a Dockerfile, or the line itself.
      def commands?
        return true if served? || command?
        return false if name.end_with?(".rb", ".ini", ".yml", ".yaml", ".json")

        CommandLine.command?(@text)
      end

      # A command itself, not a file with one.
      def command? = @path == COMMAND

      # Does something else keep the server in the foreground?
      def served? = procfile? || unit? || dockerfile? || supervisord?

      def supervisord? = @text.match?(/^\[program:/)
      def procfile? = name.match?(/\AProcfile|\.procfile\z/i)
      def unit? = name.end_with?(".service") || (!name.end_with?(".rb") && @text.match?(/^ExecStart\s*=/))

      def dockerfile?
        @text.match?(/^FROM \S/) && @text.match?(/^(CMD|ENTRYPOINT) /) || name.match?(/\A(Dockerfile|Containerfile)|\.(dockerfile|containerfile)\z/i)
      end

      def ini? = name.end_with?(".ini") || @text.match?(/^\[uwsgi\]/)

      private

      def name = File.basename(@path)

      # Bytes that are no UTF-8 are Latin-1 in the files that people have.
      def decode(bytes)
        text = bytes.dup.force_encoding(Encoding::UTF_8).delete_prefix("\uFEFF")
        return text if text.valid_encoding?

        @note = "The file was Latin-1; this one is UTF-8."
        bytes.encode(Encoding::UTF_8, Encoding::ISO_8859_1).sub(/\A((?:#.*\n)?#.*?)\b(en)?coding[:=]\s*[\w-]+/, "\\1encoding: utf-8")
      end
    end
  end
end
