# frozen_string_literal: true

# Answers of every size and shape, forms and uploads: /string/N, /parts/N (a thousand parts), /file/N, /stream (100
# chunks), /form, /upload.
require "rack"
require "tmpdir"

SIZES = [1024, 65_536, 102_400, 1_048_576].freeze
PATTERN = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"

def pattern(size) = (PATTERN * (size / PATTERN.bytesize + 1))[0, size]

# A thousand parts as equal as they can be; together the same bytes as the string.
def parts(text) = Array.new(1000) { |i| text[(i * text.bytesize / 1000)...((i + 1) * text.bytesize / 1000)].freeze }.freeze

# Rack's own way to serve a file: it answers to_path, and the server may send it from there.
class FileBody
  attr_reader :to_path

  def initialize(path) = @to_path = path

  def each
    File.open(@to_path, "rb") do |file|
      while (part = file.read(16_384))
        yield part
      end
    end
  end
end

FOLDER = Dir.mktmpdir("bodies")
# The copies of workers have no folder of their own to remove.
OWNER = Process.pid
at_exit { FileUtils.rm_rf(FOLDER) if Process.pid == OWNER }
TYPE = "text/plain"
HUNDRED = Array.new(100) { |i| format("%-1023d\n", i).freeze }.freeze

def headers(size) = { "content-type" => TYPE, "content-length" => size.to_s }

answers = {}
SIZES.each do |size|
  text = pattern(size).freeze
  one = [text].freeze
  many = parts(text)
  path = File.join(FOLDER, size.to_s).tap { |name| File.binwrite(name, text) }.freeze
  answers["/string/#{size}"] = ->(_) { [200, headers(size), one] }
  answers["/parts/#{size}"] = ->(_) { [200, headers(size), many] }
  answers["/file/#{size}"] = ->(_) { [200, headers(size), FileBody.new(path)] }
end

# No length: the server delimits it, and has each chunk before the next is there.
answers["/stream"] = lambda do |_|
  body = Enumerator.new { |out| HUNDRED.each { |part| out << part } }
  [200, { "content-type" => TYPE }, body]
end

answers["/form"] = lambda do |env|
  fields = Rack::Request.new(env).POST
  text = "#{fields.size} #{fields.sum { |name, value| name.bytesize + value.bytesize }}"
  [200, headers(text.bytesize), [text]]
end

answers["/upload"] = lambda do |env|
  input = env["rack.input"]
  buffer = String.new
  size = 0
  last = "".b
  while input.read(65_536, buffer)
    size += buffer.bytesize
    last = buffer.byteslice(-1)
  end
  text = "#{size} #{last}"
  [200, headers(text.bytesize), [text]]
end

run ->(env) { answers.fetch(env["PATH_INFO"]).call(env) }
