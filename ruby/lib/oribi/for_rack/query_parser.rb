# frozen_string_literal: true

module Oribi
  module ForRack
    # Rack's parser of query strings and forms, with the ordinary ones read in C. It takes the arguments and has the
    # limits of Rack::QueryParser; `new_depth_limit` gives one of this class again.
    class QueryParser < ::Rack::QueryParser
      include Queries
      include QueryPairs if method_defined?(:parse_query_pairs)
      include Names if ::Rack::QueryParser::Params <= Hash

      # Makes it Rack's default. A parser of another class, which the application has set, stays, and so does one of the
      # first releases of Rack 3.0, which reads `a[]` as a text.
      # @return [Boolean] is it?
      def self.install
        stock = ::Rack::Utils.default_query_parser
        ::Rack::Utils.default_query_parser = like(stock) if stock.instance_of?(::Rack::QueryParser) && stock.parse_nested_query("a[]") == { "a" => [nil] }
        ::Rack::Utils.default_query_parser.is_a?(self)
      end

      # One with all settings of another parser, whichever its release of Rack has.
      def self.like(parser)
        allocate.tap { |copy| parser.instance_variables.each { |name| copy.instance_variable_set(name, parser.instance_variable_get(name)) } }
      end
    end
  end
end
