# frozen_string_literal: true

require_relative "../lib/file_tree"
require_relative "../lib/throughput"

# Files that servers send without an application, and files beside one.
module Bench
  # The same rounds with servers of another kind.
  class FileThroughput < Throughput
    SERVERS = %w[oribi-files oribi-psgi-files nginx-files h2o-files lighttpd-files].freeze
    MIXED = %w[oribi-files oribi-psgi-files iodine-files puma-files].freeze
    private_constant :SERVERS, :MIXED

    private

    def own_servers = SERVERS
    def participants = servers(:files, only: own_servers)
  end

  # Paths by turns: what all answers together are long is known, when every path was asked for as often as it should be.
  class PathsByTurns < FileThroughput
    private

    def compare_bytes(one, found)
      body = @body ||= paths.sum { |path| length_of(path) } / paths.size.to_f
      head = one.wire_bytes - request.expected.bytesize
      expected = found.requests * (head + body)
      # Between the first and the last turn, one more or less; heads differ in what tells of lengths.
      return if (found.bytes - expected).abs <= found.requests * 100 + 40 * LONGEST

      one.complaints["#{found.bytes} bytes for #{found.requests} answers of #{(head + body).round} on average"] += 1
    end

    LONGEST = 10_240 + 1024
    private_constant :LONGEST
  end

  # Many files, see FileTree.drawn.
  class ManyFiles < PathsByTurns
    private

    def length_of(path) = FileTree.size_of(Integer(path[/(\d+)\.txt\z/, 1]))

    def participants = super.tap { FileTree.with_many }
    def paths = FileTree.drawn
  end

  # Half the requests for a file, half for the application.
  class FilesAndCalls < PathsByTurns
    private

    def length_of(path) = path == "/" ? 13 : FileTree::SIZES["10k"]

    def own_servers = MIXED
    def paths = ["/s/10k.txt", "/"]
  end

  # 30 KiB of JSON that is compressed for each answer. What comes must be the JSON again; how long it is differs.
  class Compressed < FileThroughput
    private

    def participants = servers(:compressing).select { |peer| [*settings[:app]].include?(peer.key) }
    def site = super.except(:app)
    def app_of(_peer) = nil
  end

  # A file on one connection while the only worker is in a call of five seconds on another, one request after the other.
  class BehindACall < Workload
    register "static-behind-a-call", about: "files of 10 KiB while the only worker is in a call of 5 s, one connection", family: "files",
                                     weight: 0.5, quick: false
    CALL_MS = 5000
    MARGIN_S = 1
    APPS = { "oribi-files" => "placement.ru", "oribi-psgi-files" => "placement.psgi" }.freeze
    REQUEST = Request.new(path: "/s/10k.txt", expected: FileTree.content(FileTree::SIZES["10k"]))
    private_constant :CALL_MS, :MARGIN_S, :APPS, :REQUEST

    def results
      servers(:files, only: APPS.keys).each do |peer|
        progress(peer.name)
        running = Running.new(peer, context, app: File.join(ROOT, "bench/apps", APPS.fetch(peer.key))).start
        rounds = Array.new(context.rounds_min) { round(running) }
        wrong = rounds.sum { |_, complaints| complaints.size }
        yield result(peer, "latency_ms", rounds.map { |waits, _| Workload.median(waits) * 1000 }, unit: "ms", better: "lower", variant: "p50",
                                                                                              errors: wrong, note: rounds.flat_map(&:last).first)
      ensure
        running&.stop
      end
    end

    private

    # [seconds that each request took, complaints]. The call is under way before the first and after the last one.
    def round(running)
      caller = running.connect
      caller.write(Request.new(path: "/sleep/#{CALL_MS}").to_s)
      # A request that comes while the worker still begins the call could be the worker's own.
      IO.select(nil, nil, nil, 0.1)
      checker = Checker.new(-> { running.connect }, REQUEST)
      ends = now + CALL_MS / 1000.0 - MARGIN_S
      waits = []
      while now < ends
        started = now
        checker.check
        waits << now - started
      end
      early = caller.read_nonblock(1, exception: false) != :wait_readable
      [waits, checker.complaints + (early ? ["the call ended before the files"] : [])]
    ensure
      caller&.close
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  files = { kinds: [:files], family: "files" }
  file = lambda do |name, **more|
    Request.new(path: "/s/#{name}.txt", **{ expected: FileTree.content(FileTree::SIZES.fetch(name)) }.merge(more))
  end
  words = { "13" => "13 bytes", "1k" => "1 KiB", "10k" => "10 KiB", "100k" => "100 KiB", "1m" => "1 MiB" }

  words.each do |name, size|
    Throughput.define("static-#{name}", about: "a file of #{size}, 32 connections", base: FileThroughput, quick: name == "10k", **files) { file.call(name) }
  end
  Throughput.define("static-304", about: "a file that has not changed since the client's copy, 32 connections", base: FileThroughput, quick: false, **files) do
    file.call("10k", fields: { "If-Modified-Since" => FileTree::CHANGED_TEXT }, status: 304, expected: "")
  end
  Throughput.define("static-range", about: "1 KiB out of a file of 1 MiB, 32 connections", base: FileThroughput, quick: false, **files) do
    file.call("1m", fields: { "Range" => "bytes=524288-525311" }, status: 206, expected: FileTree.content(FileTree::SIZES["1m"])[524_288, 1024])
  end
  Throughput.define("static-50000", about: "50,000 files of 512 to 4,096 bytes, asked for by Zipf's law, 32 connections", base: ManyFiles, quick: false,
                                   **files) do
    Request.new(path: "/#{FileTree.one_of_many(0)}", expected: FileTree.content(FileTree.size_of(0)))
  end
  Throughput.define("static-and-calls", about: "half a file of 10 KiB, half hello, 32 connections", base: FilesAndCalls, quick: false, **files) do
    file.call("10k")
  end

  # nginx has gzip alone.
  inflate = { "gzip" => %w[gzip -dc], "zstd" => %w[zstd -dc], "br" => %w[brotli -dc] }
  inflate.each do |coding, command|
    wrong = lambda do |body|
      own = body.start_with?("\x1f\x8b".b) ? inflate.fetch("gzip") : command
      plain = IO.popen(own, "r+b", err: File::NULL) { |pipe| pipe.write(body) && pipe.close_write.nil? && pipe.read }
      "a body of #{body.bytesize} bytes that is not the JSON compressed" unless plain == FileTree.json.b
    end
    accepted = coding == "gzip" ? coding : "#{coding}, gzip;q=0.5"
    Throughput.define("json-#{coding}", about: "30 KiB of JSON, #{coding} for each answer, 32 connections", base: Compressed, quick: false,
                                        app: ["oribi-#{coding}", "oribi-psgi-#{coding}", "nginx-gzip"], kinds: [:compressing], family: "files") do
      Request.new(path: "/s/30k.json", fields: { "Accept-Encoding" => accepted }, expected: wrong)
    end
  end
end
