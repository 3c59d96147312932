# frozen_string_literal: true

require "oribi"
require_relative "upload"

module Oribi
  # Bodies of multipart/form-data (RFC 7578).
  #
  #   Oribi::Multipart.parse(env["rack.input"], env["CONTENT_TYPE"])
  #   # => [["title", "Holidays"], ["photo", #<Oribi::Upload "beach.jpg" 10485760 bytes>]]
  #
  # Memory: the bodies of the fields, the files' buffers are 64 KiB together. A file goes to the disk piece by piece, to
  # one that has no name, so that it is gone with the process, however that ends.
  module Multipart
    CHUNK_BYTES = 64 * 1024

    module_function

    # @param io [String, #read] the body. What responds to +read(length, buffer)+ is read to its end from where it
    #   stands, and not rewound
    # @param content_type [String] with the boundary
    # @param parts_max [Integer] parts in the body
    # @param files_max [Integer] parts among them with a file name
    # @param part_head_max [Integer] bytes of a part's head
    # @param memory_max [Integer] bytes of all fields that are not files
    # @param tempdir [String] where the files lie; TMPDIR unless given
    # @return [Array<Array(String, (String, Upload))>] names and values in their order. Text is tagged as UTF-8, or with
    #   the charset of its part, and not checked. A file field in which no file was chosen is left out
    # @raise [Form::Error] with +status+ 400: not the grammar, or cut; 413: more than a maximum. Files made until then
    #   are closed
    def parse(io, content_type, parts_max: PARTS_MAX, files_max: FILES_MAX, part_head_max: PART_HEAD_MAX,
              memory_max: MEMORY_MAX, tempdir: nil)
      boundary = boundary(content_type.to_s) or raise Form::Error.new("no boundary in the type of the body", 400)
      pairs = Pairs.new(tempdir)
      reader = Reader.new(pairs, boundary, parts_max, files_max, part_head_max, memory_max)
      reader.feed_body(io) or each_piece(io) { |piece| reader.feed(piece) }
      reader.finish
      pairs.list
    rescue Exception
      pairs&.close
      raise
    end

    # A piece is locked while it is read: what is the program's is duplicated, which shares the bytes. An input need not
    # use the buffer.
    def each_piece(io)
      return yield(io.dup) if io.is_a?(String)
      return yield(rest_of(io).dup) if defined?(StringIO) && io.instance_of?(StringIO)

      buffer = String.new(capacity: CHUNK_BYTES)
      until (piece = io.read(CHUNK_BYTES, buffer)).nil? || piece == ""
        yield piece
      end
    end
    private_class_method :each_piece

    # Where it lies, without a copy.
    def rest_of(io)
      text = io.pos.zero? ? io.string : io.string.byteslice(io.pos..).to_s
      io.seek(0, IO::SEEK_END)
      text
    end
    private_class_method :rest_of

    # @private what a Reader asks for
    class Pairs
      attr_reader :list

      def initialize(tempdir)
        @tempdir = tempdir
        @list = []
      end

      def part(head)
        name, filename, extended, type, fields = head
        if filename || extended
          return if filename&.empty? && extended.nil?

          @upload = Upload.create(Upload.extended(extended) || filename || extended, type, fields, @tempdir)
          @list << [name, @upload]
          @upload.file.fileno
        else
          @upload = nil
          @type = type
          @list << [name, +""]
          @list.last[1]
        end
      end

      def part_file(head, file)
        name, filename, extended, type, fields = head
        return file.close if filename&.empty? && extended.nil?

        @list << [name, @upload = Upload.new(Upload.extended(extended) || filename, type, fields, file)]
        nil
      end

      def part_end(target, _size)
        return @upload.file.rewind if @upload
        return unless target

        target.force_encoding(charset || Encoding::UTF_8)
      end

      def close = @list.each { |_, value| value.close if value.is_a?(Upload) }

      private

      def charset
        name = @type && @type[/;\s*charset\s*=\s*"?([^\s";]+)/i, 1]
        name && Encoding.find(name)
      rescue ArgumentError # a charset that nobody knows
        Encoding::BINARY
      end
    end
    private_constant :Pairs
  end
end
