# frozen_string_literal: true

# What forms, cookies and uploads cost in Ruby, beside the installed Rack: ruby -Iruby/lib bench/forms.rb. The
# contestants take turns in short rounds, and medians are printed; inputs are fixed, and results are compared before
# anything is timed. bench/forms.pl is the same for Perl.
require "rack"
require "rack/multipart"
require "rack/utils"
require "stringio"
require "oribi"
require "oribi/multipart"

ROUNDS = 31
SECONDS = 0.02 # of one round

# 1 KiB with 20 fields, some of them with escapes, as a browser sends an address form.
FIELDS = (1..20).map do |i|
  value = case i % 5
          when 0 then "J%C3%B6rg+M%C3%BCller+%26+Co.+KG+in+Z%C3%BCrich"
          when 1 then "42"
          when 2 then "Main+Street+#{i}%2C+Springfield%2C+#{"x" * 20}"
          else "plain-value-without-any-escape-#{"y" * 14}#{i}"
          end
  "field_name_#{i}=#{value}"
end
FORM = FIELDS.join("&").freeze
NESTED = (1..20).map { |i| FIELDS[i - 1].sub(/\A\w+/, i % 4 == 0 ? "order%5Bitems%5D%5B%5D%5Bname%5D" : "order%5Baddress%5D%5Bline_#{i}%5D") }.join("&").freeze
COOKIES = (1..20).map { |i| "cookie_#{i}=#{i % 6 == 0 ? "a%20value%3D#{"z" * 10}" : "v" * 21}" }.join("; ").freeze

# Bodies of multipart/form-data, with a file of so many bytes unless it is 0.
BOUNDARY = "----WebKitFormBoundaryABCDEFGHIJKLMNOP"
TYPE = "multipart/form-data; boundary=#{BOUNDARY}".freeze
FILE_BYTES = 10 * 1024 * 1024

def body(fields, file_bytes)
  head = "--#{BOUNDARY}\r\nContent-Disposition: form-data; name="
  file = "#{head}\"file\"; filename=\"a.bin\"\r\nContent-Type: image/png\r\n\r\n".b << Random.new(1).bytes(file_bytes) << "\r\n"
  parts = (1..fields).map { |i| "#{head}\"field_#{i}\"\r\n\r\nvalue #{i}\r\n" }.join
  "#{parts.b}#{file if file_bytes.positive?}--#{BOUNDARY}--\r\n".freeze
end

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
  "form to pairs" => [FORM, Oribi::Form.method(:parse), Rack::Utils.default_query_parser.method(:parse_query_pairs)],
  "nested parameters" => [NESTED, Oribi::Form.method(:nested), Rack::Utils.method(:parse_nested_query)],
  "cookies" => [COOKIES, Oribi::Cookie.method(:parse), Rack::Utils.method(:parse_cookies_header)],
  "1,000 small parts" => [body(1000, 0), method(:parts_by_oribi), method(:parts_by_rack)],
  "20 parts, a file" => [body(20, FILE_BYTES), method(:parts_by_oribi), method(:parts_by_rack)]
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
  times = Array.new(ROUNDS) { [round(ours, input), round(theirs, input)] }
  us, them = times.transpose.map { |values| median(values) }
  ratio = median(times.map { |a, b| b / a })
  puts format("ruby  %-18s %8d bytes  Oribi %8.2f us  Rack %s %9.2f us  %5.1f times", name, input.bytesize, us, Rack.release, them, ratio)
end
