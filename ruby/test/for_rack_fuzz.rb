# frozen_string_literal: true

require "oribi/rack"
require "stringio"

# Rack's own parsers and what oribi/rack puts before them, side by side on random input: the same values in the same
# classes and encodings, or the same exception.
#
#   ruby -Iruby/lib ruby/test/for_rack_fuzz.rb [SECONDS [SEED]]
class ForRackFuzz
  RACK = Rack.release.split(".").first(2).join(".").to_f
  KINDS = %i[query pairs nested cookies names multipart].freeze

  # A subclass is Rack's own code: only Rack::Multipart::Parser itself is replaced.
  class RackParser < Rack::Multipart::Parser
  end

  RACK_UTILS = Object.new.extend(Rack::Utils)

  TOKENS = ["a", "b", "c", "[", "]", "[]", "[a]", "[b]", "[][", "=", "=", "&", "&", "&", ";", " ", "+", "%", "%4", "%zz", "%41", "%C3%A4", "%ff",
            "%5B", "%5D", "%00", "\n", "\0", "ä", "\xff", "1", "x" * 20, ",", "%26", "name"].map(&:b).freeze
  PAIRS = ["a[b]=1", "a[]=1", "a[][b]=1", "a[][c]=2", "a[b][c][]=3", "a=1", "a", "b[][]=1", "b[]=x", "a[][b][c]=1", "a[][b][]=1", "=1", "a[", "a[=1",
           "a[b=1", "[a]=1", "a]=1", "a[b]c=1", "c[d][e][f][g]=5", "a%5Bb%5D=1", "k=v%20w", "%E4%B8%AD[]=1"].map(&:b).freeze
  BOUNDARIES = ["b", "AaB03x", "--b", "a.b+c", "WebKitFormBoundary0123456789", "x y", "b" * 70, "b" * 71].freeze
  DISPOSITIONS = ["form-data", "Form-Data", "attachment", "", "form-data ; x=1", "form-data;"].freeze
  NAMES = ["name=\"a\"", "name=\"a[b]\"", "name=\"a[]\"", "name=a", "name=\"\"", "name=\"a\\\"b\"", "name=\"ä\"", "name=\"\xff\"", "name=\"a; filename=b\"",
           "name=\"a:b\"", "name=\"Content-Type: x\"", "name=\"a\nb\"", "NAME=\"a\"", "name=\"a", "name='a'", "name=\"a%22\"", "name=\"\0\"",
           "name=\"#{"n" * 1020}\"", "name=\"#{"n" * 1600}\"", "name=\"a\" ", "name=\"x=y\"", " name=\"a\"", "x=1"].map(&:b).freeze
  FILES = ["filename=\"f.txt\"", "filename=\"\"", "filename=f", "filename=\"C:\\\\dir\\\\f.txt\"", "filename=\"a%20b\"", "filename=\"%zz\"",
           "filename*=UTF-8''n%C3%A4", "filename*=nope''x", "filename=\"ä\"", "filename=\"a\0b.c\"",
           "filename=\"f.#{"e" * 140}\"", "filename=\"a\\\"b\""].map(&:b).freeze
  FIELDS = ["Content-Type: text/plain", "Content-Type: text/plain; charset=ISO-8859-1", "Content-Type: text/plain; charset=\"utf-8\"", "content-type:image/png",
            "Content-Type: text/plain; charset=nope", "Content-Type: text/plain; charset=ISO-2022-JP", "Content-ID: x", "X: y", "Content-Type: a\r\n b",
            "Content-Transfer-Encoding: binary", "", "noise"].map(&:b).freeze

  def initialize(seed)
    @random = Random.new(seed)
  end

  # @return [Integer] inputs tried. @raise [RuntimeError] with the first on which the two differ
  def run(seconds: nil, rounds: nil)
    count = 0
    stop = seconds && (Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds)
    until rounds ? count == rounds : Process.clock_gettime(Process::CLOCK_MONOTONIC) > stop
      send(KINDS[count % KINDS.size])
      count += 1
    end
    count
  end

  # What a value is, to the byte.
  def self.show(value)
    case value
    when String then [value.class, value.encoding.name, value.b, value.frozen?]
    when Symbol, nil, true, false, Numeric then value
    when Hash then [value.class, value.map { |key, of_it| [show(key), show(of_it)] }]
    when Array then value.map { |element| show(element) }
    when Struct then show(value.to_a)
    when Tempfile then [:tempfile, value.pos, File.extname(value.path), File.binread(value.path), value.external_encoding.to_s]
    when StringIO then [:string_io, value.pos, value.string]
    when SystemCallError then [value.class, value.errno] # the message has the name of a Tempfile
    when Exception then [value.class, value.message, show(value.cause)]
    else value.class
    end
  end

  private

  def any(list) = list[@random.rand(list.size)]
  def chance(one_in) = @random.rand(one_in).zero?

  def outcome
    self.class.show(yield)
  rescue StandardError, SystemStackError => e
    self.class.show(e)
  end

  def compare(what, theirs, ours)
    return if theirs == ours

    texts = [theirs, ours].map(&:inspect)
    from = [texts[0].each_char.zip(texts[1].each_char).index { |a, b| a != b } - 100, 0].max
    raise "#{Rack.release} #{what.inspect[0, 3000]}:\nRack:  #{texts[0][from, 300]}\nOribi: #{texts[1][from, 300]}"
  end

  # Rack's parser, and ours with the same limits.
  def parsers
    depth = chance(4) ? @random.rand(5) : 32
    limits = {}
    limits[:bytesize_limit] = @random.rand(200) if chance(10)
    limits[:params_limit] = @random.rand(8) if chance(10)
    spaces = RACK < 3 ? [chance(10) ? @random.rand(12) : 65_536] : []
    limits.clear if Rack::QueryParser.method(:make_default).parameters.none? { |kind,| kind == :keyrest } # earlier releases
    theirs = Rack::QueryParser.make_default(*spaces, depth, **limits)
    [theirs, Oribi::ForRack::QueryParser.like(theirs)]
  end

  def text
    chance(2) ? Array.new(@random.rand(14)) { any(TOKENS) }.join : Array.new(@random.rand(7)) { any(PAIRS) }.join(any(["&", "&", "&", ";", "& ", "&&"]))
  end

  def encoded(bytes)
    bytes.force_encoding(chance(3) ? any([Encoding::UTF_8, Encoding::US_ASCII, Encoding::ISO_8859_1, Encoding::UTF_16LE]) : Encoding::BINARY)
  end

  def compare_parsers(method, *arguments)
    theirs, ours = parsers
    compare([method, arguments, theirs], outcome { theirs.public_send(method, *arguments) }, outcome { ours.public_send(method, *arguments) })
  end

  def separators = chance(2) ? [] : [any([nil, "&", "&;", ";", ";,", "|", "a"])]

  def query = compare_parsers(:parse_query, encoded(text), *separators)
  def nested = compare_parsers(:parse_nested_query, encoded(text), *separators)
  def pairs = Rack::QueryParser.method_defined?(:parse_query_pairs) ? compare_parsers(:parse_query_pairs, encoded(text), *separators) : nested

  def names
    theirs, ours = parsers
    list = Array.new(@random.rand(6)) do
      [any(PAIRS).dup.force_encoding(any([Encoding::UTF_8, Encoding::BINARY])), any(["v", nil, { tempfile: 1, filename: "f" }])]
    end
    both = [theirs, ours].map { |parser| outcome { normalized(parser, list) } }
    compare([:names, list, theirs], *both)
    return unless RACK <= 3.0

    utf8 = list.map { |name, value| [name.dup.force_encoding(Encoding::UTF_8), value] }
    ours = Oribi::ForRack.expand(ours, utf8)
    compare([:expand, utf8, theirs], outcome { normalized(theirs, utf8) }, outcome { ours }) if ours
  end

  def normalized(parser, list)
    params = parser.make_params
    list.each { |name, value| parser.normalize_params(params, name, value, *(RACK < 3 ? [parser.param_depth_limit] : [])) }
    params.to_params_hash
  end

  def cookies
    header = encoded(chance(2) ? text : Array.new(@random.rand(6)) { any(PAIRS) + any(["", "=", "=%", "=%20"]) }.join(any(["; ", ";", ";  ", ","])))
    compare([:cookies, header], outcome { RACK_UTILS.send(:parse_cookies_header, header) }, outcome { Rack::Utils.parse_cookies_header(header) })
  end

  def head
    return "Content-Disposition: form-data; #{any(NAMES.first(2))}#{"; #{any(FILES)}\r\nContent-Type: image/png" if chance(4)}\r\n\r\n".b unless chance(3)

    lines = ["#{any(%w[Content-Disposition content-disposition])}: #{any(DISPOSITIONS)}; #{any(NAMES)}#{"; #{any(FILES)}" if chance(2)}".b]
    lines << any(FIELDS) while chance(2)
    lines.shuffle!(random: @random) if chance(3)
    "#{lines.join(any(["\r\n", "\r\n", "\r\n", "\n"]))}\r\n\r\n"
  end

  def content(boundary)
    pieces = ["x", "\r\n", "\r", "\n", "--", "--#{boundary}", "\r\n--#{boundary}", "\r\n--#{boundary}x", "-", "\xff", "ä", "y" * @random.rand(300), ""].map(&:b)
    Array.new(@random.rand(chance(10) ? 60 : 5)) { any(pieces) }.join
  end

  def body(boundary)
    parts = Array.new(@random.rand(6)) { "--#{boundary}\r\n".b << head << content(boundary) << "\r\n" }
    before = any(["", "", "", "preamble\r\n", "\r\n", "--#{boundary}--\r\n"])
    behind = any(["\r\n", "\r\n", "", "\r", " \r\n", "epilogue"])
    text = "#{before}#{parts.join}--#{boundary}--#{behind}".b
    chance(3) ? mutated(text) : text
  end

  def mutated(text)
    at = @random.rand(text.bytesize + 1)
    case @random.rand(4)
    when 0 then text.byteslice(0, at)
    when 1 then text.byteslice(0, at) + any(TOKENS) + text.byteslice(at..)
    when 2 then text.byteslice(0, at) + text.byteslice(at + 1 + @random.rand(4)..).to_s
    else text.byteslice(0, at) + text.byteslice(@random.rand(text.bytesize + 1)..)
    end
  end

  def multipart
    boundary = any(BOUNDARIES)
    body = body(boundary)
    length = any([body.bytesize, body.bytesize, body.bytesize, nil, body.bytesize + 1, @random.rand(body.bytesize + 1)])
    type = any(["multipart/form-data; boundary=#{boundary}", "multipart/form-data; boundary=\"#{boundary}\"", "multipart/mixed;boundary=#{boundary}",
                "multipart/form-data"])
    size = any([1 << 20, 1 << 20, 1 + @random.rand(40), 80 + @random.rand(400), 500 + @random.rand(1000)])
    factory = chance(8) ? ->(_, _) { StringIO.new("".b) } : Rack::Multipart::Parser::TEMPFILE_FACTORY
    compare([:multipart, type, length, size, body], *both_bodies(body, [length, type, factory, size]))
  end

  def both_bodies(body, arguments)
    theirs, ours = parsers
    list = Rack::Multipart.const_defined?(:ParamList) && chance(2) && Rack::Multipart::ParamList
    limits = chance(8) && Rack::Utils.respond_to?(:multipart_total_part_limit) ? [@random.rand(4), @random.rand(5)] : nil
    [[RackParser, theirs], [Rack::Multipart::Parser, ours]].map do |parser, nesting|
      io = StringIO.new(body)
      result = with_limits(limits) { outcome { parser.parse(io, *arguments, list || nesting) } }
      [result, io.pos]
    end
  end

  def with_limits(limits)
    return yield unless limits

    old = [Rack::Utils.multipart_part_limit, Rack::Utils.multipart_total_part_limit]
    Rack::Utils.multipart_part_limit, Rack::Utils.multipart_total_part_limit = limits
    yield
  ensure
    Rack::Utils.multipart_part_limit, Rack::Utils.multipart_total_part_limit = old if limits
  end
end

if $PROGRAM_NAME == __FILE__
  seconds = Integer(ARGV[0] || 600)
  seed = Integer(ARGV[1] || Random.new_seed % 1_000_000)
  puts "Rack #{Rack.release}, seed #{seed}: #{ForRackFuzz.new(seed).run(seconds:)} inputs, no difference"
end
