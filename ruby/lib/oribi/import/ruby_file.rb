# frozen_string_literal: true

require_relative "comments"
require_relative "sexp"

module Oribi
  module Import
    # A configuration file in Ruby: statement by statement, conditions taken apart, other Ruby kept.
    class RubyFile
      # Servers whose configuration is Ruby, as their files are called.
      CONFIGURED = %w[puma unicorn pitchfork rainbows rhebok].freeze
      FOREIGN_CONSTANTS = %w[Puma Unicorn Pitchfork Rainbows Rhebok PumaWorkerKiller].freeze
      # What other servers have loaded when they read their configuration.
      LIBRARIES = { "Etc" => "etc", "FileUtils" => "fileutils", "JSON" => "json", "Socket" => "socket", "Tempfile" => "tempfile", "URI" => "uri" }.freeze
      EVALS = %w[eval instance_eval class_eval module_eval].freeze
      # Lines that are parsed, again and again, to find where statements end.
      LINES_READ_MAX = 50_000
      BRANCH = /\A\s*(else|elsif|when|in)\b/

      # @param server [String, nil] a value of SERVERS, where it is known
      def initialize(path, source, note = nil, server = nil)
        @path = path
        @source = source.sub(/\A#!.*\n/, "\n")
        @note = note
        @left = @taken = 0
        @lines_read = 0
        @lost = []
        @bound = []
        refuse_what_is_no_ruby
        @server = server || self.server
        @comments = Comments.new(@server)
        @words = Words.new(@server, binds: names.intersect?(%w[bind listen]))
      end

      # @return [Outcome]
      def outcome
        body = section(lines_of_code, 1).join
        body = [libraries(body), body, *@words.defaults(names.map { |name| here(name) }), *@comments.remark].join
        mistake = Sexp.mistake(body)
        raise Error, "#{@path}: cannot be taken apart: line #{mistake.first} of what it makes would be no Ruby" if mistake

        Outcome.new(@path, @server, body + data, @taken, @left, nil, @note && [@note])
      end

      private

      # require for libraries that the other server had loaded.
      def libraries(body)
        missing = LIBRARIES.reject { |name, library| !body.match?(/^[^#]*\b#{name}\./) || body.match?(/^\s*require\s*\(?["']#{library}["']/) }
        missing.map { |_, library| "require \"#{library}\" # #{@server} has it loaded\n" }.join
      end

      def refuse_what_is_no_ruby
        mistake = Sexp.mistake(@source)
        raise Error, "#{@path}:#{mistake.first}: #{mistake.last.lines.first.chomp}" if mistake

        @tree = Sexp.statements(@source)
      end

      # Told by the file's name, else by the words that it has.
      def server
        named = CONFIGURED.find { |name| File.basename(@path).include?(name) }
        return SERVERS.fetch(named) if named

        owners = names.filter_map { |name| Options.find_foreign(name)&.fetch(:server) }.flat_map { |text| text.split(", ") } & SERVERS.values
        return owners.first if owners.any?
        return "Puma" if names.include?("threads") # the others have none
        return "Unicorn" if names.intersect?(%w[preload_app listen pid])
        return "Rhebok" if names.any? { |name| Words.known?(name) }

        raise Error, "#{@path}: has no word of Puma, Unicorn, Pitchfork, Rainbows or Rhebok"
      end

      # The option that a name is here.
      def here(name) = Options.find(name) || Options.find_foreign(name)&.fetch(:here) || name

      def names
        @names ||= [].tap do |found|
          Sexp.each(@tree, :command, :vcall, :fcall) { |node| found << node[1][1] if node[1][0] == :@ident }
          often = found.tally
          found.uniq!
          found.sort_by!.with_index { |name, place| [-often[name], place] }
        end
      end

      # Local variables and methods of the file are no words of a server.
      def own_names
        @own_names ||= [].tap do |found|
          found.push("__dir__", "__method__")
          Sexp.each(@tree, :var_field) { |node| found << node[1][1] if node[1] }
          Sexp.each(@tree, :def) { |node| found << node[1][1] }
        end
      end

      def lines_of_code = @source.lines.take_while { |line| line.chomp != "__END__" }.map { |line| "#{line.chomp}\n" }
      def data = @source.lines.drop_while { |line| line.chomp != "__END__" }.join

      # @param lines [Array<String>]
      # @param number [Integer] of the first line
      # @return [Array<String>, nil] nil: these lines are no statements
      def section(lines, number)
        out = []
        until lines.empty?
          chunk = comments_of(lines) || chunk_of(lines) or return nil
          out.concat(comment?(chunk.first) ? @comments.own(chunk, number) : statement(chunk, number))
          number += chunk.size
          lines = lines.drop(chunk.size)
        end
        out
      end

      def comment?(line) = line.match?(/\A\s*#/)

      # The comments that the lines begin with, up to another line.
      def comments_of(lines) = lines.take_while { |line| comment?(line) }.then { |found| found unless found.empty? }

      # The first lines that are complete, with those that go on with a leading dot.
      def chunk_of(lines)
        return lines.first(1) if lines.first.match?(BRANCH) || lines.first.match?(/\A\s*\z/)

        counts(lines).each do |count|
          raise Error, "#{@path}: is too long to be taken apart" if (@lines_read += count) > LINES_READ_MAX

          following = lines.drop(count).find { |line| !line.match?(/\A\s*(#|\z)/) }
          next if following&.match?(/\A\s*(&\.|\.(?!\.))/)
          return lines.first(count) if Sexp.statements(lines.first(count).join)
        end
        nil
      end

      EVAL = "import evaluates nothing; write out what it makes, then import that"
      private_constant :EVAL

      # Of how many lines a statement may be: those before a line that is not indented more than the first, then any.
      def counts(lines)
        indent = lines.first[/\A\s*/].size
        likely = (1..lines.size).lazy.select { |count| count == lines.size || lines[count].match?(/\A(\s*\z|\s{0,#{indent}}\S)/) }
        Enumerator.new { |out| [likely, 1..lines.size].each { |all| all.each { |count| out << count } } }
      end

      def statement(chunk, number)
        source = chunk.join
        return chunk if chunk.first.match?(BRANCH) || source.match?(/\A\s*(#.*)?\n?\z/)

        nodes = Sexp.statements(source).reject { |node| node == [:void_stmt] }
        return chunk if nodes.empty?

        node = nodes.one? ? nodes.first : [:several, nodes]
        done = branches(chunk, node, number) and return done
        lost = lost_names(node)
        return leave(chunk, "it needs #{lost.join(", ")}, which #{lost.one? ? "is" : "are"} not taken over", number, node) if lost.any?

        word(chunk, node, number) || ruby(chunk, node, number)
      end

      # Variables and methods of statements that are comments now.
      def lost_names(node)
        found = []
        Sexp.each(node, :@ident) { |ident| found << ident[1] if @lost.include?(ident[1]) } unless @lost.empty?
        found.uniq
      end

      def evals(node)
        found = nil
        Sexp.each(node, :@ident) { |ident| found ||= ident[1] if EVALS.include?(ident[1]) }
        found && "#{found}: #{EVAL}"
      end

      # if, unless and case over lines: the conditions stay, what stands in them is taken apart.
      def branches(chunk, node, number)
        return unless %i[if unless case].include?(node.first) && chunk.size > 2 && chunk.last.match?(/\A\s*end\s*\z/)
        return unless Sexp.statements("#{chunk.first}#{"when 1\n" if node.first == :case}end\n")
        return if chunk.any? { |line| line.match?(BRANCH) && line.match?(/\bthen\b/) } || foreign_words(node[1], false).any?
        return if evals(node[1]) || foreign_constant(node[1]) || lost_names(node[1]).any?

        taken, left, comments = @taken, @left, @comments.dup
        inner = section(chunk[1..-2], number + 1)
        return [chunk.first, *inner, chunk.last] if inner

        @taken, @left, @comments = taken, left, comments
        nil
      end

      def word(chunk, node, number)
        inner = %i[if_mod unless_mod].include?(node.first) ? node[2] : node
        call = Sexp.call(inner)
        return if call.nil? || own_names.include?(call.name)
        return unless Words.known?(call.name) || !Object.private_method_defined?(call.name)

        hook = Words.hook(call.name)
        return hook(chunk, call, hook, number) if hook && call.block
        return leave(chunk, "#{hook || call.name} takes a block here", number) if hook
        return leave(chunk, "its values can only be told by evaluating them", number) unless call.plain?
        return leave(chunk, evals(node), number) if evals(node)

        result = @words.map(call.name, values(chunk, call))
        return leave(chunk, result.reason, number) if result.reason
        return leave(chunk, "#{call.name} takes no block here", number) if call.block && call.name == "single" # Puma's

        take(chunk, call, result, inner.equal?(node) ? "" : parts(chunk, call).last, number)
      end

      def take(chunk, call, result, condition, number)
        indent = chunk.first[/\A\s*/]
        again = bound_again(result, indent, condition)
        return leave(chunk, again, number) if again

        lines = result.taken.map { |name, source| "#{indent}#{Import.line(name, source)}#{condition}\n" }
        return leave(chunk, "it is written in a way that import does not take apart", number) unless Sexp.statements(lines.join)

        @taken += 1
        remarks = Sexp.tokens(chunk.join).filter_map { |_, kind, token, _| "#{indent}#{token.chomp}\n" if kind == :on_comment }
        renamed = lines.first[/\w+!?/] == call.name ? nil : "#{call.name} in #{@server}"
        note = [renamed, result.note].compact.join("; ")
        lines = ["#{lines.first.chomp} #{remarks.shift.lstrip}"] if chunk.one? && remarks.one? && lines.one? # it stays on its line
        [*remarks, *(Import.comment("#{indent}# ", note) unless note.empty?), *lines]
      end

      # Two servers' worth of addresses in one file: an address can be bound once.
      def bound_again(result, indent, condition)
        return unless result.taken.map(&:first) == ["bind"] && indent.empty? && condition.empty?

        address = result.taken.first.last.delete("'\" ").delete_prefix("tcp://").gsub(".to_i", "")
        return "the same address is bound above" if @bound.include?(address)

        @bound << address
        nil
      end

      # The values' texts: what stands between the commas.
      def values(chunk, call)
        texts, = parts(chunk, call)
        call.values.each_with_index.map do |node, place|
          value = Sexp.value(node)
          Words::Value.new(texts[place].to_s, Sexp.known?(value), Sexp.known?(value) ? value : nil)
        end
      end

      # The values' texts, and " if ..." behind them as it stands.
      def parts(chunk, call)
        tokens = Sexp.tokens(chunk.join).drop_while { |place, *| (place <=> [call.line, call.column]) <= 0 }.map { |_, kind, token, _| [kind, token] }
        tokens.shift if (wrapped = tokens.first&.first == :on_lparen)
        texts, rest = split(tokens, call.values.size)
        rest.shift if wrapped
        [texts.map(&:strip), rest.reject { |kind, _| kind == :on_comment }.map(&:last).join.strip.then { |text| text.empty? ? "" : " #{text}" }]
      end

      def split(tokens, count)
        texts, depth = [+""], 0
        while (kind, token = tokens.first)
          depth += opens?(kind) ? 1 : closes?(kind) ? -1 : 0
          break if depth.negative? || depth.zero? && (kind == :on_nl || kind == :on_kw && %w[if unless].include?(token))

          tokens.shift
          next if kind == :on_comment

          kind == :on_comma && depth.zero? && texts.size < count ? texts << +"" : texts.last << token
        end
        [texts, tokens]
      end

      def opens?(kind)
        %i[on_lparen on_lbracket on_lbrace on_tlambeg on_embexpr_beg on_tstring_beg on_backtick on_qwords_beg on_words_beg on_symbols_beg
           on_qsymbols_beg on_regexp_beg].include?(kind)
      end

      def closes?(kind) = %i[on_rparen on_rbracket on_rbrace on_embexpr_end on_tstring_end on_regexp_end].include?(kind)

      # What methods of a hook's objects are here, in the usual names of these.
      ADVICE = {
        "worker.user" => "user and group say whose the workers are", "server.listen" => "bind takes every address; there is none for one worker",
        "server.listener_opts" => "the addresses are those of bind", "server.after_fork" => "a hook may be given several times"
      }.freeze
      private_constant :ADVICE

      # The block stays as it is; its head gets Oribi's name.
      def hook(chunk, call, hook, number)
        given = Hooks::ARGUMENTS.fetch(hook.to_sym)
        parameters = Sexp.parameters(call.block)
        objects = parameters.any? && %w[Unicorn Pitchfork Rainbows].include?(@server)
        missing = objects ? missing_methods(call.block, parameters, given) : []
        return leave(chunk, "#{missing.join(", ")}: #{ADVICE[missing.first] || "not known in #{hook}"}", number) if missing.any?
        return leave(chunk, foreign_constant(call.block), number) if foreign_constant(call.block)
        return leave(chunk, "#{hook} is called with #{given.empty? ? "no arguments" : given.join(", ")}", number) if !objects && parameters.size > given.size

        @taken += 1
        line = chunk.first.sub(call.name, objects ? head_with_objects(hook, call.block) : hook)
        note = [(called(call, parameters) if call.name != hook || objects), traps(call.block), *warnings(call, chunk)].compact.join("; ")
        [*(Import.comment("#{line[/\A\s*/]}# ", note) unless note.empty?), line, *chunk.drop(1)]
      end

      def called(call, parameters) = "#{call.name} in #{@server}#{", called with #{parameters.join(", ")}" if parameters.any?}"

      OLDBIN = "there is no .oldbin here: HUP and USR2 replace all workers by themselves, so what it does with the old server may go"
      ONCE = "runs once in Puma, and before each worker here"
      private_constant :OLDBIN, :ONCE

      def warnings(call, chunk)
        [*(ONCE if call.name == "before_fork" && @server == "Puma"), *(OLDBIN if chunk.join.include?(".oldbin"))]
      end

      def traps(block)
        found = false
        Sexp.each(block, :@ident) { |node| found ||= node[1] == "trap" }
        "look at its trap: TERM and QUIT are graceful stops here, and a handler runs beside them" if found
      end

      def head_with_objects(hook, block) = block.first == :do_block ? "#{hook} objects: true" : "#{hook}(objects: true)"

      # A worker's place is known where the hook is called with it.
      def missing_methods(block, parameters, given)
        there = [HookObjects::Server::METHODS, given.include?("index") ? %i[nr index pid] : [], HookObjects::Status.instance_methods(false)]
        parameters.each_with_index.flat_map do |name, place|
          Sexp.called_on(block, name).reject { |method| there[place]&.include?(method.to_sym) || Object.method_defined?(method) }
              .map { |method| "#{name}.#{method}" }
        end
      end

      def foreign_constant(node)
        Sexp.each(node, :@const) do |const|
          return "PumaWorkerKiller is about Puma's workers: memory_max replaces those that grow" if const[1] == "PumaWorkerKiller"
          return "#{const[1]} is not loaded under Oribi" if FOREIGN_CONSTANTS.include?(const[1])
        end
        nil
      end

      # Ruby that is no word: kept, unless it has words in it that mean something else here.
      def ruby(chunk, node, number)
        reason = evals(node) || foreign_constant(node) || foreign_library(node)
        words = foreign_words(node, true)
        reason ||= "#{words.join(", ")}: within Ruby that import does not take apart" if words.any?
        reason ? leave(chunk, reason, number, node) : chunk
      end

      def foreign_library(node)
        case Sexp.call(node)
        in Sexp::Call[name: "require", values: [value]]
          library = Sexp.value(value)
          "#{library} is a library of another server" if library.is_a?(String) && library.match?(%r{\A(puma|unicorn|pitchfork|rainbows|rhebok)([/_-]|\z)})
        else nil
        end
      end

      # Names that are another server's, or options of ours that mean another thing there.
      def foreign_words(node, with_own)
        return [] if %i[def class module].include?(node&.first)

        found = []
        Sexp.each(node, :command, :vcall, :fcall) do |call|
          name = call[1][1]
          next if call[1][0] != :@ident || own_names.include?(name)

          found << name if (!Options.find(name) && Options.find_foreign(name)) || Words.hook(name) || (with_own && Words::OWN.key?(name))
        end
        found.uniq
      end

      def leave(chunk, reason, number, node = nil)
        @left += 1
        Sexp.each(node, :var_field) { |field| @lost << field[1][1] if field[1] }
        Sexp.each(node, :def) { |method| @lost << method[1][1] }
        indent = chunk.first[/\A\s*/]
        kept = chunk.map { |line| "#{"#{indent}#   #{line.delete_prefix(indent)}".rstrip}\n" }
        [*Import.comment("#{indent}# ", "Not taken over (line #{number}): #{reason}"), *kept]
      end
    end
  end
end
