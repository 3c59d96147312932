# frozen_string_literal: true

module E2E
  # A document of doc/ as a script reads it: its blocks of code, the files among them, and the commands with the output
  # that the page shows. What a page promises by its form:
  #
  #   a block whose first line is a comment with nothing but a file's name    that file
  #   a block of `sh`                                                         commands, one a line
  #   a block of `console`                                                    commands behind "$ ", and what they print;
  #                                                                           ^C is the key, for the server that runs
  #
  # A line that ends in a backslash goes on. In output, "…" stands for anything.
  class Page
    Block = Struct.new(:language, :text, :heading, :line, keyword_init: true) do
      # @return [String, nil] the path of the file that the block is
      def file = text[%r{\A(?:#|//|--|;|<!--)[ ]*((?:/|[\w.-]+/)*[\w-]*\.\w[\w.-]*|(?:[\w.-]+/)*(?:Gemfile|Procfile|Dockerfile|cpanfile))[ ]*(?:-->)?\n}, 1]

      # @return [Array<Command>] none for other blocks
      def commands
        case language
        when "sh" then joined(text.lines).map { |line| Command.new(text: line.chomp, output: nil) }.reject { |one| one.text.match?(/\A\s*(#|\z)/) }
        when "console" then shown(joined(text.lines))
        else []
        end
      end

      private

      def shown(lines)
        lines.slice_before(/\A(?:\$ |\^C)/).map { |line, *rest| Command.new(text: line.delete_prefix("$ ").chomp, output: rest.join) }
      end

      def joined(lines) = lines.slice_when { |line, _| !line.end_with?("\\\n") }.map { |parts| parts.join.gsub(/\\\n\s*/, "") }
    end

    # output: what the page shows below the command; nil in a block that shows none.
    Command = Struct.new(:text, :output, keyword_init: true)

    attr_reader :name, :text

    # @param name [String] from the top of the repository: "doc/moving.md"
    def initialize(name, text: File.read(File.join(ROOT, name)))
      @name = name
      @text = text
    end

    # @param under [String, nil] only those below this heading, up to the next one of its level or above
    def blocks(*languages, under: nil)
      all_blocks.select do |block|
        (languages.empty? || languages.include?(block.language)) && (under.nil? || block.heading.include?(under))
      end
    end

    # @return [Hash] path => text, the later block of a name wins
    def files(under: nil) = blocks(under: under).select(&:file).to_h { |block| [block.file, block.text] }

    private

    # heading: the texts of all headings that a block stands below, the outermost first.
    def all_blocks
      @all_blocks ||= [].tap do |found|
        headings = []
        open = nil
        @text.each_line.with_index(1) do |line, number|
          if open && line.match?(/\A#{open[:fence]}\s*\z/)
            found << open[:block]
            open = nil
          elsif open then open[:block].text << line.delete_prefix(open[:indent])
          elsif (opening = line.match(/\A(\s*)(```+)(\w*)/))
            open = { fence: opening[0].delete_suffix(opening[3]), indent: opening[1],
                     block: Block.new(language: opening[3], text: +"", heading: headings.compact, line: number) }
          elsif (title = line.match(/\A(#+) (.*)$/))
            headings[title[1].size - 1..] = [title[2]]
          end
        end
      end
    end
  end
end
