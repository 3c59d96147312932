# frozen_string_literal: true

# What hostile forms, cookies and uploads cost for each byte, in sizes of n, 2n and 4n:
#     ruby -Iruby/lib bench/hostile.rb [BYTES]    n, 512 KiB, so that 4n are 10^6 pairs
# The cost of a byte must not grow with the size: more than GROWTH_MAX times from n to 4n is said,
# and the exit code is 1. bench/hostile.pl is the same for Perl. Work is counted in core/test/form; this is what is left
# to the languages, their hashes, strings and objects.
require "oribi"
require "oribi/multipart"
require "stringio"

N = Integer(ARGV.fetch(0, 512 * 1024))
ROUNDS = 7
GROWTH_MAX = 2.0
# A field of cookies has 1 MiB and 65,536 pairs at most; beyond it is refused before a byte is looked at.
COOKIE_SHARE = 8
HIGH = { pairs_max: 1 << 30, key_bytes_max: 1 << 30, bytes_max: 1 << 30 }.freeze
DEEP = { **HIGH, depth_max: 1 << 20 }.freeze
PARTS = { parts_max: 1 << 20, files_max: 1 << 20 }.freeze
BOUNDARY = ("b" * 70).freeze
TYPE = "multipart/form-data; boundary=#{BOUNDARY}".freeze
PART = "Content-Disposition: form-data; name="

# So many bytes of what the block makes of 0, 1, 2, ...
def many(bytes)
  text = +""
  (0..).each { |i| text.bytesize < bytes ? text << yield(i) : break }
  text
end

def repeat(unit, bytes) = unit * (bytes / unit.bytesize)
def field(body) = "--#{BOUNDARY}\r\n#{PART}\"a\"\r\n\r\n#{body}\r\n--#{BOUNDARY}--\r\n"
def pairs(text) = Oribi::Form.parse(text, **HIGH)
def nested(text) = Oribi::Form.nested(text, **DEEP)
def cookies(text) = Oribi::Cookie.parse(text)
def parts(text) = Oribi::Multipart.parse(StringIO.new(text), TYPE, **PARTS).each { |_, value| value.close unless value.is_a?(String) }

# [what, the parser, text of so many bytes]; refused ones are timed, too.
ROWS = [
  ["pairs: sequential names", :pairs, ->(n) { many(n) { |i| "k#{i}=v&" } }],
  ["pairs: one name", :pairs, ->(n) { repeat("a=1&", n) }],
  ["pairs: no names", :pairs, ->(n) { repeat("a&", n) }],
  ["pairs: &", :pairs, ->(n) { repeat("&", n) }],
  ["pairs: ;", :pairs, ->(n) { repeat(";", n) }],
  ["pairs: = in one value", :pairs, ->(n) { repeat("=", n) }],
  ["pairs: + in one name", :pairs, ->(n) { repeat("+", n) }],
  ["pairs: escapes in one name", :pairs, ->(n) { repeat("%41", n) }],
  ["pairs: % behind good ones", :pairs, ->(n) { "#{repeat("a=1&", n)}%" }],
  ["nested: sequential names", :nested, ->(n) { many(n) { |i| "k#{i}=v&" } }],
  ["nested: sequential keys of one hash", :nested, ->(n) { many(n) { |i| "a[#{i}]=v&" } }],
  ["nested: keys that differ at the end", :nested, ->(n) { many(n) { |i| "a[#{"x" * 40}#{i}]=v&" } }],
  ["nested: one name", :nested, ->(n) { repeat("a=1&", n) }],
  ["nested: one array", :nested, ->(n) { repeat("a[]=1&", n) }],
  ["nested: an array of hashes", :nested, ->(n) { repeat("a[][b]=1&a[][c]=2&", n) }],
  ["nested: an array's hash that grows", :nested, ->(n) { many(n) { |i| "a[][k#{i}]=1&" } }],
  ["nested: a deep name", :nested, ->(n) { "a#{repeat("[a]", n)}=1" }],
  ["nested: deep arrays", :nested, ->(n) { "a#{repeat("[]", n)}=1" }],
  ["nested: names of 31 levels", :nested, ->(n) { repeat("a#{"[b]" * 31}=1&", n) }],
  ["nested: names that begin with many brackets", :nested, ->(n) { repeat("[", n) }],
  ["nested: ][", :nested, ->(n) { repeat("a][", n) }],
  ["cookies: ;", :cookies, ->(n) { repeat(";", n) }],
  ["cookies: blanks", :cookies, ->(n) { repeat("; ", n) }],
  ["cookies: sequential names", :cookies, ->(n) { many(n) { |i| "k#{i}=v; " } }],
  ["cookies: one name", :cookies, ->(n) { repeat("a=1; ", n) }],
  ["cookies: % that are none", :cookies, ->(n) { "a=#{repeat("%", n)}" }],
  ["cookies: escapes", :cookies, ->(n) { "a=#{repeat("%41", n)}" }],
  ["parts: the boundary's byte", :parts, ->(n) { field(repeat("b", n)) }],
  ["parts: almost delimiters", :parts, ->(n) { field(repeat("\r\n--#{BOUNDARY[0..-2]}", n)) }],
  ["parts: delimiters within a line", :parts, ->(n) { field(repeat("--#{BOUNDARY}", n)) }],
  ["parts: CR", :parts, ->(n) { field(repeat("\r", n)) }],
  ["parts: empty lines and dashes", :parts, ->(n) { field(repeat("\r\n--", n)) }],
  ["parts: small ones, sequential names", :parts, ->(n) { "#{many(n) { |i| "--#{BOUNDARY}\r\n#{PART}\"#{i}\"\r\n\r\nv\r\n" }}--#{BOUNDARY}--\r\n" }],
  ["parts: a preamble of almost delimiters", :parts, ->(n) { repeat("\r\n--#{BOUNDARY[0..-2]}", n) + field("x") }],
  ["parts: a head that never ends", :parts, ->(n) { "--#{BOUNDARY}\r\n#{repeat("a: b\r\n", n)}" }]
].freeze

def clock = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

def outcome(parser, text)
  send(parser, text)
  "taken"
rescue Oribi::Form::Error => e
  e.status.to_s
end

# Nanoseconds for each byte, the least of the rounds: what else the machine does only adds to it.
def cost(parser, text)
  Array.new(ROUNDS) do
    GC.start
    GC.disable
    start = clock
    outcome(parser, text)
    spent = clock - start
    GC.enable
    spent
  end.min / text.bytesize * 1e9
end

puts format("%-46s %7s %23s %7s", "ns for a byte of n, 2n and 4n", "", "", "growth")
grown = ROWS.count do |what, parser, make|
  base = parser == :cookies ? N / COOKIE_SHARE : N
  texts = [1, 2, 4].map { |times| make.call(base * times) }
  said = outcome(parser, texts.last)
  costs = texts.map { |text| cost(parser, text) }
  # What is refused at once costs less for each byte of a longer one, and too little to be told from nothing.
  growth = costs.last / costs.first
  grows = growth > GROWTH_MAX && costs.last > 0.5
  puts format("%-46s %7s %7.2f %7.2f %7.2f %7.2f%s", what, said, *costs, growth, grows ? "  grows" : "")
  grows
end
abort "bench/hostile.rb: #{grown} of #{ROWS.size} cost more for each byte the longer they are" if grown.positive?
