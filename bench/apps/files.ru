# frozen_string_literal: true

# Hello and files: those of BENCH_FILES under /s where the server does not send them itself.
require "rack"

folder = ENV.fetch("BENCH_FILES", nil)
use Rack::Static, urls: ["/s"], root: folder if folder

HEADERS = { "content-type" => "text/plain" }.freeze
BODY = ["Hello, World!"].freeze

run ->(_env) { [200, HEADERS.dup, BODY] }
