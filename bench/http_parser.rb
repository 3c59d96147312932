# frozen_string_literal: true

# What the head of a request costs in Ruby, beside the pico_http_parser gem where that is installed:
# ruby -Iruby/lib bench/http_parser.rb. The contestants take turns in short rounds, and medians are printed;
# environments are compared before anything is timed. bench/http_parser.pl is the same for Perl, core/bench for C.
require "oribi"
begin
  require "pico_http_parser"
rescue LoadError
  warn "pico_http_parser is not installed: there is nothing to compare with"
end

ROUNDS = 31
TIMES = 3000 # calls of one round

LINE = "GET /pictures/2026/lighthouse.html?size=large HTTP/1.1\r\n"
BROWSER = <<~FIELDS.gsub("\n", "\r\n")
  Host: pictures.example.org
  User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:121.0) Gecko/20100101 Firefox/121.0 Feedreader/1.9 Extra/0.1
  Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8
  Accept-Language: de-ch,en-us;q=0.7,en;q=0.3
  Accept-Encoding: gzip, deflate, br
  Cache-Control: max-age=0
  Connection: keep-alive
  Referer: https://pictures.example.org/2026
  Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; visits=42; last=0123456789
FIELDS
PROXIED = "X-Request-Start: t=1700000000\r\nX-Forwarded-For: 203.0.113.7\r\nX-Trace: 4bf92f3577b34da6a3ce929d0e0e4736\r\nX-Tenant: seven\r\n"

HEADS = {
  "no field" => "GET /pictures HTTP/1.0\r\n\r\n",
  "4 fields" => "#{LINE}#{BROWSER.lines.first(4).join}\r\n",
  "9 fields of a browser" => "#{LINE}#{BROWSER}\r\n",
  "13 behind a proxy" => "#{LINE}#{BROWSER}#{PROXIED}\r\n"
}.freeze

OURS = ->(head, env) { Oribi::HTTPParser.parse_request(head, env) }
THEIRS = defined?(PicoHTTPParser) && ->(head, env) { PicoHTTPParser.parse_http_request(head, env) }

def clock = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

# Nanoseconds of one call, with a new environment.
def round(function, head)
  start = clock
  TIMES.times { function.call(head, {}) }
  (clock - start) / TIMES * 1e9
end

def median(values) = values.sort[values.size / 2]

HEADS.each do |name, head|
  OURS.call(head, env = {}) == head.bytesize or abort "#{name}: it is refused"
  THEIRS&.call(head, other = {})
  abort "#{name}: the results differ" unless THEIRS.nil? || env == other
  times = Array.new(ROUNDS) { [OURS, THEIRS].compact.map { |function| round(function, head) } }
  us, them = times.transpose.map { |values| median(values) }
  line = format("ruby  %-22s %5d bytes  Oribi %6d ns", name, head.bytesize, us)
  line << format("  pico_http_parser %6d ns  %5.2f times", them, median(times.map { |a, b| b / a })) if them
  puts line
end
