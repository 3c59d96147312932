# frozen_string_literal: true

module Oribi
  module Import
    # A line of a shell, as far as starting a server needs it: commands, words, and where variables stand in them.
    module Shell
      PIECE = /'[^']*'|"(?:\\.|\$\([^)]*\)|[^"\\])*"|\\.|\$\([^)]*\)|`[^`]*`|\$\{[^}]*\}/m
      OPERATOR = /&&|\|\||;|\||(?<![>&])&(?!\d)/
      REDIRECTION = /\A\d*(>>?|<)(&\d|\s*\S+)?/
      WORD = /(?:#{PIECE}|[^\s'"`\\])+/m
      # $NAME, ${NAME}, ${NAME:-other}
      VARIABLE = /\$(?:(\w+)|\{(\w+)(?::?-([^}$]*))?\})/
      BARE = %r{\A[\w@%+=:,./~\[\]?*!{}\$"-]+\z}

      module_function

      # @return [Array<Array(String, String)>] commands, each with the operator behind it ("" for the last)
      def commands(line)
        parts = [[+"", ""]]
        rest = line
        until rest.empty?
          if (found = rest[/\A#{PIECE}/] || rest[/\A\d*>>?&\d/]) then parts.last[0] << found
          elsif (found = rest[/\A(?:#{OPERATOR})/])
            parts.last[1] = found
            parts << [+"", ""]
          else parts.last[0] << (found = rest[0])
          end
          rest = rest[found.size..]
        end
        parts
      end

      # @return [Array(Array<String>, Array<String>)] words as they stand, redirections
      # @raise [Error] a quote that is not closed
      def words(command)
        words, redirections = [], []
        rest = command.lstrip
        until rest.empty?
          found = rest[REDIRECTION]
          (found ? redirections : words) << (found ||= rest[/\A#{WORD}/] || raise(Error, "a quote that is not closed: #{rest[0, 60]}"))
          rest = rest[found.size..].lstrip
        end
        [words, redirections]
      end

      # A word without its quotes; variables stay.
      def plain(word)
        word.gsub(/'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/m) { $1 || $2&.gsub(/\\(["\\$`])/, "\\1") || $3 }
      end

      # Does the shell run something to know this word?
      def runs?(word) = word.match?(/`|\$\(/)

      # For a command line: as it was where it needs no quotes.
      def quoted(text) = text.match?(BARE) || text.match?(/\A"[^"]*"\z/) ? text : "'#{text.gsub("'", "'\\\\''")}'"
    end
  end
end
