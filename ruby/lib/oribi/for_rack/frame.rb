# frozen_string_literal: true

module Oribi
  module ForRack
    # The body of a form that the server has taken apart (multipart_stream), for Rack's parser to read: all of it but
    # the data of large files. Where that would come, the Tempfile that the parser has just made becomes the server's
    # file. No data holds the delimiter, so that the parser meets the same heads and delimiters without it.
    class Frame
      # @param input [Object] rack.input
      # @param boundary [String] as Rack reads it
      # @param uploads [Uploads] what makes the parser's files
      # @return [Frame, nil] nil: the server has not taken this body apart, or has at another boundary
      def self.of(input, boundary, uploads)
        pieces = boundary && ForRack.pieces_of(input, boundary)
        new(input, pieces, uploads) if pieces
      end

      def initialize(input, pieces, uploads)
        @input = input
        @pieces = pieces
        @files = pieces.flatten.grep(File)
        @uploads = uploads
      end

      # What Rack's parser calls.
      # @return [String, nil] at most +length+ bytes; nil at the end
      def read(length, buffer = +"")
        until @pieces.empty?
          bytes = bytes_of(@pieces.first, length)
          return buffer.replace(bytes) if bytes && !bytes.empty?

          @pieces.shift
        end
        buffer.clear
        nil
      end

      # Rack 2.2 does so when it has read everything.
      def rewind = @input.rewind

      def close = @files.each(&:close)

      private

      def bytes_of(piece, length)
        case piece
        when String then piece.slice!(0, length)
        when Array then bytes_of_stretch(piece, length)
        # Whatever Rack does not take for a file has its data read.
        else piece.pos.zero? && @uploads.adopt(piece) ? nil : piece.read(length)
        end
      end

      def bytes_of_stretch(piece, length)
        file, offset, rest = piece
        return if rest.zero?

        bytes = file.pread([length, rest].min, offset)
        piece[1] += bytes.bytesize
        piece[2] -= bytes.bytesize
        bytes
      end
    end
  end
end
