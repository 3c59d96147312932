# frozen_string_literal: true

module Oribi
  # Heads of HTTP requests and responses that a program has as strings, parsed by the server's own parser.
  #
  #   env = {}
  #   length = Oribi::HTTPParser.parse_request(buffer, env)
  #   # length > 0:    bytes of the head; env has what Rack wants to know of it
  #   # -1 (BROKEN):   this is no request, whatever comes behind it
  #   # -2 (INCOMPLETE): there is more to read
  #
  # The interface is that of the pico_http_parser gem (+parse_http_request+ is another name of +parse_request+), the
  # grammar as strict as the server's: doc/http-parser.md lists what is refused here. A head may have 128 fields and one
  # mebibyte, a field's name 1,024 bytes.
  #
  # Values are binary strings. Keys and the names of a response's headers are frozen and UTF-8, as literals of a program
  # are. The methods in common use and the protocol are frozen.
  module HTTPParser
    FORMS = { none: 0, hash: 1, pairs: 2 }.freeze
    private_constant :FORMS

    class << self
      # @!method parse_request(string, env)
      #   @param string [String] the request, or its beginning; a body may follow the head
      #   @param env [Hash] gets REQUEST_METHOD, REQUEST_URI (the target as it came), SCRIPT_NAME (empty), PATH_INFO
      #     (decoded), QUERY_STRING, SERVER_PROTOCOL, CONTENT_TYPE, CONTENT_LENGTH and HTTP_*; other entries stay. It is
      #     not touched unless the head is good
      #   @return [Integer] the head's length, BROKEN or INCOMPLETE

      # @param string [String] the response, or its beginning
      # @param headers [Symbol] :hash (a name that comes again has an array of its values), :pairs (an array of names
      #   and values), :none. Names are in lower case
      # @param special [Hash{String => Object}, nil] headers whose names, in lower case, it has as keys are stored
      #   there too, the last of several; its other keys keep their values
      # @return [Array(Integer, Integer, Integer, String, (Hash, Array, nil)), Integer] the head's length, minor
      #   version, status, reason and headers; or BROKEN or INCOMPLETE alone, which a multiple assignment takes as the
      #   length
      def parse_response(string, headers = :hash, special = nil)
        read_response(string, FORMS.fetch(headers) { raise ArgumentError, "headers are :hash, :pairs or :none, not #{headers.inspect}" }, special)
      end
    end
  end
end
