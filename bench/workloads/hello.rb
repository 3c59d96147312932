# frozen_string_literal: true

require_relative "../lib/throughput"

# Hello world in its forms: every peer in every configuration, with the references.
module Bench
  hello = { kinds: %i[rack psgi reference], family: "hello" }

  Throughput.define("hello", about: "13 bytes, 32 kept-alive connections", variants: true, weight: 2, **hello) { Request.new }

  Throughput.define("hello-headers", about: "13 bytes, 32 kept-alive connections, a browser's fields", weight: 1.5, **hello) do
    Request.new(fields: Request::BROWSER_FIELDS)
  end

  Throughput.define("hello-close", about: "13 bytes, a connection per request", weight: 1.5, close: true, quick: false, **hello) do
    Request.new(fields: { "Connection" => "close" })
  end

  Throughput.define("pipelined", about: "13 bytes, 16 requests sent at once on each of 32 connections", pipeline: 16,
                               needs: :keep_alive, **hello) { Request.new }
  Throughput.define("connections-1", about: "13 bytes, one connection", connections: 1, quick: false, **hello.merge(family: "connections")) { Request.new }
  Throughput.define("connections-1000", about: "13 bytes, 1,000 connections", connections: 1000, round_min: 1.0, quick: false,
                                      **hello.merge(family: "connections")) { Request.new }
end
