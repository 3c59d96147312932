# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"

module Bench
  # The files that servers of the workloads of files.rb send: s/13, s/1k …, and z/ with 50,000 small ones, made when
  # they are first wanted and gone with the run. All are old: what was changed a moment ago is treated with more care.
  module FileTree
    SIZES = { "13" => 13, "1k" => 1024, "10k" => 10_240, "100k" => 102_400, "1m" => 1_048_576 }.freeze
    CHANGED = Time.utc(2024, 2, 29, 12, 0, 0)
    CHANGED_TEXT = "Thu, 29 Feb 2024 12:00:00 GMT"
    MANY = 50_000
    PER_FOLDER = 500
    MANY_BYTES = 512..4096
    # Of the request that comes i-th most often: i ** -EXPONENT of the most frequent one's share; the usual guess for
    # the web (Breslau and others, INFOCOM 1999, found 0.64 to 0.83; nearer to 1 the fewer files matter).
    EXPONENT = 0.8
    DRAWN = 200_000
    JSON_BYTES = 30 * 1024
    PATTERN = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"

    module_function

    # The folder, with the few.
    def path
      @path ||= Dir.mktmpdir("oribi-bench-files").tap do |dir|
        File.chmod(0o755, dir)
        %w[s z].each { |name| Dir.mkdir(File.join(dir, name)) }
        SIZES.each { |name, size| put(File.join(dir, "s", "#{name}.txt"), content(size)) }
        owner = Process.pid
        at_exit { FileUtils.rm_rf(dir) if Process.pid == owner }
      end
    end

    # A file of JSON as an interface for programs gives it, of JSON_BYTES.
    def json_path
      File.join(path, "s", "30k.json").tap { |name| put(name, json) unless File.exist?(name) }
    end

    def json
      @json ||= begin
        random = Random.new(1)
        words = %w[lamp chair table shelf mirror carpet clock vase frame basket]
        rows = Array.new(400) do |i|
          { id: 10_000 + i, name: "#{words.sample(random: random)} #{words.sample(random: random)}", price: random.rand(100_000) / 100.0,
            stock: random.rand(500), tags: words.sample(2, random: random), updated: "2024-02-#{format("%02d", random.rand(1..28))}T12:00:00Z" }
        end
        text = JSON.generate(rows)
        raise "too short: #{text.bytesize} bytes of JSON" if text.bytesize < JSON_BYTES

        # Cut behind a row, and filled with white space, which may stand behind JSON.
        "#{text[0, text.rindex("},", JSON_BYTES - 2) + 1]}]".ljust(JSON_BYTES)
      end
    end

    # The same folder, with the many.
    def with_many
      return path if @many

      MANY.times do |i|
        folder = File.join(path, "z", (i / PER_FOLDER).to_s)
        FileUtils.mkdir_p(folder) if (i % PER_FOLDER).zero?
        put(File.join(path, one_of_many(i)), content(size_of(i)))
      end
      @many = true
      path
    end

    def one_of_many(index) = "z/#{index / PER_FOLDER}/#{index}.txt"
    def size_of(index) = MANY_BYTES.min + index * 7919 % (MANY_BYTES.max - MANY_BYTES.min + 1)
    def content(size) = (PATTERN * (size / PATTERN.bytesize + 1))[0, size]

    # Paths as they are asked for: the same sequence in every run.
    def drawn
      @drawn ||= begin
        sum = 0.0
        reached = Array.new(MANY) { |i| sum += (i + 1)**-EXPONENT }
        random = Random.new(1)
        # Which file is asked for most often says nothing about where it lies.
        order = (0...MANY).to_a.shuffle(random: random)
        Array.new(DRAWN) { "/#{one_of_many(order[reached.bsearch_index { |limit| limit >= random.rand * sum } || (MANY - 1)])}" }
      end
    end

    def put(name, text)
      File.binwrite(name, text)
      File.utime(CHANGED, CHANGED, name)
    end
  end
end
