# frozen_string_literal: true

require_relative "../lib/throughput"

# Answers of three sizes in three shapes, streams, and a body that the application reads itself.
module Bench
  PATTERN = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
  pattern = ->(size) { (PATTERN * (size / PATTERN.bytesize + 1))[0, size] }

  { "1k" => [1024, "1 KiB"], "64k" => [65_536, "64 KiB"], "1m" => [1_048_576, "1 MiB"] }.each do |short, (size, words)|
    { "string" => "as one string", "parts" => "as 1,000 parts", "file" => "as a file" }.each do |shape, how|
      # The rest is there for a full run.
      quick = %w[parts-64k file-1m].include?("#{shape}-#{short}")
      Throughput.define("#{shape}-#{short}", about: "#{words} #{how}, 32 connections", family: "responses", app: BODIES_APPS, quick: quick) do
        Request.new(path: "/#{shape}/#{size}", expected: pattern.call(size))
      end
    end
  end

  Throughput.define("stream", about: "100 chunks of 1 KiB without a length, 32 connections", family: "responses", app: BODIES_APPS) do
    Request.new(path: "/stream", expected: Array.new(100) { |i| format("%-1023d\n", i) }.join)
  end

  Throughput.define("upload-10m", about: "POST of 10 MiB, read by the application, 4 connections", family: "requests", app: BODIES_APPS,
                                  connections: 4, round_min: 1.0, quick: false) do
    Request.new(path: "/upload", verb: "POST", fields: { "Content-Type" => "application/octet-stream" }, body: pattern.call(10 * 1024 * 1024),
                expected: "10485760 #{pattern.call(10 * 1024 * 1024)[-1]}")
  end
end
