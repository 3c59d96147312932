# frozen_string_literal: true

# Answers to be compressed, also behind the middleware that does the same or compares tags; compress.psgi is its twin.
require "rack"

# Middleware of the same names in both languages, each around the same answers.
module CompressApp
  JSON_TEXT = "[#{(1..600).map { |i| %({"id":#{i},"name":"item #{i}","open":#{i.even?}}) }.join(",")}]".freeze
  TEXT = { "content-type" => "text/plain" }.freeze
  JSON_TYPE = { "content-type" => "application/json" }.freeze
  PLAIN = {
    "/json" => -> { [200, JSON_TYPE.dup, [JSON_TEXT]] },
    "/large" => -> { [200, TEXT.dup, [JSON_TEXT * 20]] },
    "/image" => -> { [200, { "content-type" => "image/png" }, [JSON_TEXT]] },
    "/cookie" => -> { [200, TEXT.merge("set-cookie" => "a=b"), [JSON_TEXT]] },
    "/file" => -> { [200, TEXT.dup, File.open(ENV.fetch("E2E_FILE"))] },
    "/small-file" => -> { [200, TEXT.dup, File.open(File.join(ENV.fetch("E2E_DIR"), "small.txt"))] },
    "/strong" => -> { [200, JSON_TYPE.merge("etag" => '"one"'), [JSON_TEXT]] },
    "/weak" => -> { [200, JSON_TYPE.merge("etag" => 'W/"one"'), [JSON_TEXT]] },
    "/steps" => -> { [200, TEXT.dup, Steps.new] },
    "/events" => -> { [200, { "content-type" => "text/event-stream" }, Steps.new] }
  }.freeze

  # Each step waits until the test has seen the one before.
  class Steps
    def each
      3.times do |i|
        yield "step #{i}\n"
        sleep 0.01 until File.exist?(File.join(ENV.fetch("E2E_DIR"), "step#{i}"))
      end
    end
  end

  def self.call(env)
    return [200, TEXT.dup, [env["HTTP_IF_NONE_MATCH"].to_s]] if env["PATH_INFO"] == "/seen"

    PLAIN.fetch(env["PATH_INFO"], -> { [200, TEXT.dup, ["Hello, World!"]] }).call
  end
end

use Rack::Lint if ENV["E2E_LINT"]
map("/deflater") { use(Rack::Deflater).then { run CompressApp } }
map("/conditional") { use(Rack::ConditionalGet).then { run CompressApp } }
map("/") { run CompressApp }
