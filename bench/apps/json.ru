# frozen_string_literal: true

# The JSON of BENCH_JSON from memory: what is measured is how a server compresses it. json.psgi is its twin.
BODY = [File.binread(ENV.fetch("BENCH_JSON")).freeze].freeze
HEADERS = { "content-type" => "application/json" }.freeze

run ->(_env) { [200, HEADERS.dup, BODY] }
