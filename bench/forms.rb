# frozen_string_literal: true

# What forms, cookies and uploads cost in Ruby, beside the installed Rack: ruby -Iruby/lib bench/forms.rb. The
# contestants take turns in short rounds, and medians are printed; inputs are fixed, and results are compared before
# anything is timed. The rows of Rack::Request have `require "oribi/rack"` in this process, and nothing of it in another
# one. bench/forms.pl is the same for Perl; bench/forms runs both and makes the table of doc/forms.md. --json: a line of
# JSON each, with all rounds.
require "digest"
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

COOKIES = INPUTS.cookies.freeze

# A request as a server gives it.
def request(input, type)
  Rack::Request.new({ "REQUEST_METHOD" => "POST", "CONTENT_TYPE" => type, "CONTENT_LENGTH" => input.bytesize.to_s, "QUERY_STRING" => "",
                      "HTTP_COOKIE" => COOKIES, "rack.input" => StringIO.new(input) })
end

# Its parameters, with the sizes of files, which are removed.
def uploads(input)
  request = request(input, TYPE)
  request.POST.transform_values { |value| value.is_a?(Hash) ? value[:tempfile].size : value }
ensure
  request.env["rack.tempfiles"]&.each(&:close!)
end

FIELDS = INPUTS.multipart(1000, 0)
FILE = INPUTS.multipart(20, INPUTS::FILE_BYTES)

# name => input, what Rack::Request does with it
REQUESTS = {
  "Request#POST, 20 fields" => [INPUTS.urlencoded(20), ->(input) { request(input, "application/x-www-form-urlencoded").POST }],
  "Request#POST, nested" => [INPUTS.nested, ->(input) { request(input, "application/x-www-form-urlencoded").POST }],
  "Request#cookies" => [COOKIES, ->(_) { request("", nil).cookies }],
  "Request#POST, 1,000 parts" => [FIELDS, method(:uploads)],
  "Request#POST, a file" => [FILE, method(:uploads)]
}.freeze

# name => input, ours, theirs
ROWS = {
  "form to pairs" => [INPUTS.urlencoded(20), Oribi::Form.method(:parse), Rack::Utils.default_query_parser.method(:parse_query_pairs)],
  "nested parameters" => [INPUTS.nested, Oribi::Form.method(:nested), Rack::Utils.method(:parse_nested_query)],
  "cookies" => [COOKIES, Oribi::Cookie.method(:parse), Rack::Utils.method(:parse_cookies_header)],
  "1,000 small parts" => [FIELDS, method(:parts_by_oribi), method(:parts_by_rack)],
  "20 parts, a file" => [FILE, method(:parts_by_oribi), method(:parts_by_rack)]
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

def print_row(name, input, times)
  us, them = times.transpose
  return puts(JSON.generate(language: "Ruby", what: name, bytes: input.bytesize, us: us, beside: "Rack #{Rack.release}", beside_us: them)) if ARGV == ["--json"]

  ratio = median(times.map { |a, b| b / a })
  puts format("ruby  %-25s %8d bytes  Oribi %8.2f us  Rack %s %9.2f us  %5.1f times", name, input.bytesize, median(us), Rack.release, median(them), ratio)
end

# Rack without oribi/rack: a process that is asked for a round of a row, or for the row's result.
class RackAlone
  def initialize
    asked, @ask = IO.pipe
    @answer, answers = IO.pipe
    fork do
      @ask.close
      asked.each_line(chomp: true) { |line| answers.puts(answer(*line.split(": ", 2))) }
      exit!
    end
    [asked, answers].each(&:close)
  end

  def round(name) = ask("round", name).to_f
  def result(name) = ask("result", name)

  private

  def answer(what, name)
    input, function = REQUESTS.fetch(name)
    what == "round" ? Object.send(:round, function, input) : digest(function.call(input))
  end

  def ask(what, name)
    @ask.puts("#{what}: #{name}")
    @answer.gets.chomp
  end
end

def digest(result) = Digest::SHA256.hexdigest(result.inspect)

ROWS.each do |name, (input, ours, theirs)|
  abort "#{name}: the results differ" unless ours.call(input) == theirs.call(input)
  print_row(name, input, Array.new(ROUNDS) { [round(ours, input), round(theirs, input)] })
end

alone = RackAlone.new
require "oribi/rack"

REQUESTS.each do |name, (input, function)|
  abort "#{name}: the results differ" unless digest(function.call(input)) == alone.result(name)
  print_row(name, input, Array.new(ROUNDS) { [round(function, input), alone.round(name)] })
end
