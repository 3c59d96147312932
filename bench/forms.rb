# frozen_string_literal: true

# What forms, cookies and uploads cost in Ruby, beside the installed Rack: ruby -Iruby/lib bench/forms.rb. The
# contestants take turns in short rounds, and medians are printed; inputs are fixed, and results are compared before
# anything is timed. bench/forms.pl is the same for Perl; bench/forms runs both and makes the table of doc/forms.md.
# --json: a line of JSON each, with all rounds.
require "json"
require "rack"
require "rack/multipart"
require "rack/utils"
require "stringio"
require "oribi"
require "oribi/multipart"
require_relative "lib/form_bodies"

ROUNDS = 31
SECONDS = 0.02 # of one round

INPUTS = Bench::FormBodies
TYPE = INPUTS::MULTIPART

# Names with values, or with the sizes of files, which are closed.
def parts_by_oribi(body)
  Oribi::Multipart.parse(StringIO.new(body), TYPE).to_h do |name, value|
    next [name, value] if value.is_a?(String)

    [name, value.size].tap { value.close }
  end
end

def parts_by_rack(body)
  env = { "CONTENT_TYPE" => TYPE, "CONTENT_LENGTH" => body.bytesize.to_s, "rack.input" => StringIO.new(body) }
  Rack::Multipart.parse_multipart(env).transform_values do |value|
    next value if value.is_a?(String)

    value[:tempfile].size.tap { value[:tempfile].close! }
  end
end

# name => input, ours, theirs
ROWS = {
  "form to pairs" => [INPUTS.urlencoded(20), Oribi::Form.method(:parse), Rack::Utils.default_query_parser.method(:parse_query_pairs)],
  "nested parameters" => [INPUTS.nested, Oribi::Form.method(:nested), Rack::Utils.method(:parse_nested_query)],
  "cookies" => [INPUTS.cookies, Oribi::Cookie.method(:parse), Rack::Utils.method(:parse_cookies_header)],
  "1,000 small parts" => [INPUTS.multipart(1000, 0), method(:parts_by_oribi), method(:parts_by_rack)],
  "20 parts, a file" => [INPUTS.multipart(20, INPUTS::FILE_BYTES), method(:parts_by_oribi), method(:parts_by_rack)]
}.freeze

def clock = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

# Microseconds of one call.
def round(function, input)
  count = 0
  start = clock
  until (spent = clock - start) > SECONDS
    times = input.bytesize < 10_000 ? 20 : 1
    times.times { function.call(input) }
    count += times
  end
  spent / count * 1e6
end

def median(values) = values.sort[values.size / 2]

ROWS.each do |name, (input, ours, theirs)|
  abort "#{name}: the results differ" unless ours.call(input) == theirs.call(input)
  us, them = Array.new(ROUNDS) { [round(ours, input), round(theirs, input)] }.transpose
  if ARGV == ["--json"]
    puts JSON.generate(language: "Ruby", what: name, bytes: input.bytesize, us: us, beside: "Rack #{Rack.release}", beside_us: them)
    next
  end
  ratio = median(us.zip(them).map { |a, b| b / a })
  puts format("ruby  %-18s %8d bytes  Oribi %8.2f us  Rack %s %9.2f us  %5.1f times", name, input.bytesize, median(us), Rack.release, median(them), ratio)
end
