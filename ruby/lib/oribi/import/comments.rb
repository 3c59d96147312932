# frozen_string_literal: true

module Oribi
  module Import
    # Comments between the statements of another server's file. A paragraph that names the server explains that server,
    # so it would be false in the new file: it is left out. All others stay.
    class Comments
      BARE = /\A\s*#\s*\z/
      # Ruby and its linter read these.
      MAGIC = /\A\s*#\s*(-\*-|(frozen[_-]string[_-]literal|warn[_-]indent|shareable[_-]constant[_-]value|(en)?coding|rubocop)\b)/i

      def initialize(server)
        @server = server
        @name = %r{(?<![\w./-])#{server}(?![\w-]|[./]\w)}i # the word, and no part of a path, an address or a gem's name
        @left_out = []
      end

      # @param lines [Array<String>] comments without another line between them
      # @param number [Integer] of the first one
      # @return [Array<String>] those that stay
      def own(lines, number)
        kept = paragraphs(lines).flat_map do |paragraph|
          place = number
          number += paragraph.size
          next paragraph unless paragraph.join.match?(@name)

          @left_out += [place] # copies made before keep theirs
          []
        end
        kept.pop if kept.last&.match?(BARE) && !lines.last.match?(BARE) # it parted them from the next paragraph
        kept
      end

      # @return [Array<String>] the last lines of the new file
      def remark
        return [] if @left_out.empty?

        count = @left_out.size
        ["\n", *Import.comment("# ", "Left out: #{count} #{count == 1 ? "comment" : "comments"} about #{@server} " \
                                     "(#{count == 1 ? "line" : "lines"} #{@left_out.join(", ")}).")]
      end

      private

      # A line without words belongs to the paragraph that it ends.
      def paragraphs(lines)
        lines.slice_when { |line, following| line.match?(BARE) && !following.match?(BARE) || line.match?(MAGIC) || following.match?(MAGIC) }
      end
    end
  end
end
