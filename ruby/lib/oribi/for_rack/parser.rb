# frozen_string_literal: true

module Oribi
  module ForRack
    # Rack's parser of multipart bodies. All of its steps are Rack's, on Rack's own buffer; before three of them C looks
    # whether what lies there is ordinary, and does it at once:
    #
    #   handle_mime_head   text fields, one after the other, with their bodies
    #   handle_mime_body   a file's body, to the descriptor of its Tempfile
    #   read_data/on_read  the same, without a copy into the buffer
    class Parser < ::Rack::Multipart::Parser
      # What this class counts on in Rack's parser. A release that has less of it keeps its own.
      WANTED = %i[handle_mime_head handle_mime_body handle_consume_token tag_multipart_encoding].freeze
      RETAINED_MAX = const_defined?(:BUFFERED_UPLOAD_BYTESIZE_LIMIT) ? const_get(:BUFFERED_UPLOAD_BYTESIZE_LIMIT) : 1 << 60 # Rack 3.0 has none
      PARTS_MAX = 1 << 30
      PLAIN_BOUNDARY = /\A[!-~]{1,200}\z/
      LIST = ::Rack::Multipart.const_defined?(:ParamList) ? ::Rack::Multipart::ParamList : nil # since 3.1
      DEPTH = ::Rack.release.to_i < 3 # Rack 2.2 passes it
      DECODES = private_method_defined?(:handle_dummy_encoding)
      BufferPart = const_get(:Collector)::BufferPart
      LIMITED = const_defined?(:PARSER_BYTESIZE_LIMIT)
      private_constant :LIMITED, :WANTED, :RETAINED_MAX, :PARTS_MAX, :PLAIN_BOUNDARY, :LIST, :DEPTH, :DECODES, :BufferPart

      # Goes before Rack::Multipart::Parser.parse, for which Rack has no hook. A subclass of the application's is not
      # touched.
      module Entrance
        def parse(io, content_length, content_type, tempfile, bufsize, query_parser)
          return super unless content_type&.match?(/\Amultipart/i) && equal?(::Rack::Multipart::Parser)

          uploads = Uploads.new if tempfile.equal?(::Rack::Multipart::Parser::TEMPFILE_FACTORY)
          frame = Parser.frame_of(io, content_type, content_length, uploads)
          Parser.parse(frame || io, content_length, content_type, uploads || tempfile, bufsize, query_parser)
        rescue Exception
          uploads&.discard
          raise
        ensure
          frame&.close
        end
      end

      def self.install
        return false unless WANTED.all? { |name| private_method_defined?(name) } && ::Rack::Utils.respond_to?(:multipart_total_part_limit)

        ::Rack::Multipart::Parser.singleton_class.prepend(Entrance)
        true
      end

      # Rack counts what it reads where it has a limit of its own and the body no length.
      def self.frame_of(io, content_type, content_length, uploads)
        return unless uploads && Oribi::PartedInput === io && (content_length || !LIMITED)

        Frame.of(io, parse_boundary(content_type), uploads)
      end

      def initialize(boundary, tempfile, *)
        super
        tempfile.parser = self if tempfile.is_a?(Uploads)
        @retained_size ||= 0
        @delimiter = "\r\n--#{boundary}".b if boundary.match?(PLAIN_BOUNDARY)
        @parts = @collector.instance_variable_get(:@mime_parts)
      end

      def result
        params = ordinary_params
        params ? MultipartInfo.new(params, @collector.find_all(&:file?).map(&:body)) : super
      end

      # Rack 2.2 is given the body in pieces, later releases read it themselves.
      def on_read(content)
        rest = content && file && next_piece(@sbuf.rest, content)
        rest ? @sbuf.string = rest : super
      end

      # The Tempfile that the body goes to, when the next bytes are some of it; nil: they are not, or it is something
      # else, which wants each piece by `<<`.
      def file
        return unless @state == :MIME_BODY && @delimiter

        body = @parts[@mime_index].body
        body if body.instance_of?(Tempfile) && !body.closed?
      end

      private

      # What Rack's result gives with one of its lists or with our query parser. nil where something is wrong: Rack
      # looks for it in its own order, and raises.
      def ordinary_params
        return unless @query_parser.equal?(LIST) || @query_parser.instance_of?(QueryParser)

        pairs = ForRack.pairs_of(self, @parts, BufferPart)
        @query_parser.equal?(LIST) ? pairs : ForRack.expand(@query_parser, pairs) || nested(pairs)
      rescue StandardError
        nil
      end

      # Name and value of a part as Rack's result has them; nothing for a file field in which no file was chosen.
      def pairs_of_part(part)
        pairs = []
        part.get_data do |data|
          tag_multipart_encoding(part.filename, part.content_type, part.name, data)
          pairs << (DECODES ? handle_dummy_encoding(part.name, data) : [part.name, data])
        end
        pairs
      end

      def nested(pairs)
        params = @query_parser.make_params
        pairs.each { |name, value| @query_parser.normalize_params(params, name, value, *(@query_parser.param_depth_limit if DEPTH)) }
        params.to_params_hash
      end

      # Text fields that are whole in the buffer.
      def handle_mime_head
        bytes_max = RETAINED_MAX - @retained_size
        at, bytes, is_last = @delimiter && ForRack.plain_parts(@sbuf.string, @sbuf.pos, @delimiter, @parts, BufferPart, parts_max, bytes_max)
        return super unless at

        @sbuf.pos = at
        @mime_index = @parts.size
        @retained_size += bytes
        @state = is_last ? :DONE : :MIME_HEAD
      end

      # Rack refuses the part with which the limit is reached.
      def parts_max
        limit = ::Rack::Utils.multipart_total_part_limit
        limit&.positive? ? limit - 1 : PARTS_MAX
      end

      def handle_mime_body
        return super unless (file = self.file)

        file.flush
        written = ForRack.body_to_file(@sbuf.string, @sbuf.pos, @delimiter, @rx_max_size, file.fileno)
        return super if written == ODD
        return want_more(MORE - written) if written.negative?

        @sbuf.pos += written + 2
        @mime_index += 1
        @state = :CONSUME_TOKEN
      end

      def want_more(written)
        @sbuf.pos += written
        @sbuf.string = @sbuf.rest
        :want_read
      end

      # What Rack reads into instead of its buffer: the piece stays where it is.
      Piece = Struct.new(:bytes) do
        alias_method :concat, :bytes=
      end
      private_constant :Piece

      # Reads on until a delimiter may be in sight. Rack's own method reads, counts and refuses.
      def read_data(io, outbuf)
        return super unless file

        buffer = @sbuf
        rest = buffer.rest
        @sbuf = piece = Piece.new
        begin
          super
          following = next_piece(rest, piece.bytes)
          rest = following if following
        end while following
        buffer.string = rest << piece.bytes
      ensure
        @sbuf = buffer if buffer
      end

      # Writes what comes before the last bytes, which may begin a delimiter, and gives those; nil: there may be one.
      def next_piece(rest, bytes)
        file.flush
        ForRack.file_piece(rest, bytes, @delimiter, @rx_max_size, file.fileno)
      end
    end
  end
end
