# frozen_string_literal: true

require_relative "parser"

module Oribi
  module Import
    # What can be seen in what Ruby's parser makes of a piece of Ruby: in the form of Ripper, whichever parser it was.
    module Sexp
      # A call without a receiver: name, where that stands, the nodes of its values, its block.
      Call = Struct.new(:name, :line, :column, :values, :block) do
        # Values that import can look at one by one: no splat, no block that is passed on.
        def plain? = !values.nil?
      end

      UNKNOWN = Object.new.freeze

      module_function

      # @return [Array(Integer, String), nil] the line and the message of what is wrong with a source
      def mistake(source) = Parser.current.mistake(source)

      # @return [Array, nil] statements; nil: this is no complete piece of Ruby
      def statements(source) = Parser.current.tree(source)&.at(1)

      # @return [Array<Array(Array(Integer, Integer), Symbol, String, Object)>] line and column, kind, text, state
      def tokens(source) = Ripper.lex(source)

      # @return [Call, nil]
      def call(node)
        case node
        in [:method_add_block, inner, block] then call(inner)&.tap { |call| call.block = block }
        in [:command, [:@ident, name, [line, column]], arguments] then Call.new(name, line, column, arguments_of(arguments))
        in [:method_add_arg, [:fcall, [:@ident, name, [line, column]]], arguments] then Call.new(name, line, column, arguments_of(arguments))
        in [:vcall | :fcall, [:@ident, name, [line, column]]] then Call.new(name, line, column, [])
        else nil
        end
      end

      def arguments_of(node)
        case node
        in [] then []
        in [:arg_paren, inner] then inner ? arguments_of(inner) : []
        in [:args_add_block, [Symbol, *], _] then nil
        in [:args_add_block, values, false] then values
        else nil
        end
      end

      # Names of a block's parameters that count by their place.
      def parameters(block)
        case block
        in [:do_block | :brace_block, [:block_var, [:params, required, *], *], *]
          (required || []).map { |node| node.first == :@ident ? node[1] : "" }
        else []
        end
      end

      # Methods called on a local variable.
      def called_on(node, variable, found = [])
        return found unless node.is_a?(Array)

        found << node[3][1] if (node in [:call, [:var_ref | :vcall, [:@ident, ^variable, _]], _, [_, String, _]])
        found << node[3][1] if (node in [:command_call, [:var_ref | :vcall, [:@ident, ^variable, _]], _, [_, String, _], *])
        node.each { |child| called_on(child, variable, found) }
        found.uniq
      end

      # Every node of these kinds.
      def each(node, *kinds, &block)
        return unless node.is_a?(Array)

        yield node if kinds.include?(node.first)
        node.each { |child| each(child, *kinds, &block) }
      end

      # What a node is, or UNKNOWN when only evaluating it would tell.
      def value(node)
        case node
        in [:string_literal, [:string_content]] then ""
        in [:string_literal, [:string_content, [:@tstring_content, text, _]]] then text.include?("\\") ? UNKNOWN : text
        in [:symbol_literal, [:symbol, [_, text, _]]] then text.to_sym
        in [:@int, text, _] then Integer(text)
        in [:@float, text, _] then Float(text)
        in [:unary, :-@, inner] then negative(value(inner))
        in [:var_ref, [:@kw, "true" | "false" | "nil" => word, _]] then { "true" => true, "false" => false }[word]
        in [:array, items] then list((items || []).map { |item| value(item) })
        in [:paren, [[Symbol, *] => inner]] then value(inner) # one statement: of Ruby before 3.4
        in [:paren, [Symbol, *] => inner] then value(inner)
        in [:dot2, from, to] then range(value(from), value(to))
        in [:bare_assoc_hash, pairs] then hash(pairs)
        in [:hash, nil] then {}
        in [:hash, [:assoclist_from_args, pairs]] then hash(pairs)
        else UNKNOWN
        end
      end

      def known?(value) = !value.equal?(UNKNOWN)
      def negative(value) = value.is_a?(Numeric) ? -value : UNKNOWN
      def list(items) = items.all? { |item| known?(item) } ? items : UNKNOWN
      def range(from, to) = from.is_a?(Integer) && to.is_a?(Integer) ? from..to : UNKNOWN

      # Keys are texts.
      def hash(pairs)
        found = pairs.to_h do |pair|
          case pair
          in [:assoc_new, [:@label, label, _], value] then [label.delete_suffix(":"), value(value)]
          in [:assoc_new, key, value] then [value(key), value(value)]
          else [UNKNOWN, UNKNOWN]
          end
        end
        found.all? { |pair| pair.all? { |one| known?(one) } } ? found.transform_keys(&:to_s) : UNKNOWN
      end
    end
  end
end
