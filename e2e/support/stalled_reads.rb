# frozen_string_literal: true

require_relative "native"

module E2E
  # A disk whose reads stand still, for files with the sticky bit, in processes that are started with env
  # (load/stalled_reads.c).
  class StalledReads
    SOURCE = File.join(ROOT, "e2e/load/stalled_reads.c")
    LIBRARY = File.join(ROOT, "build/e2e/stalled_reads.so")

    def initialize(path)
      @path = path
      File.binwrite(path, "\0" * 16)
      Native.build(SOURCE, LIBRARY, "-shared", "-fPIC", "-ldl")
    end

    def env = { "LD_PRELOAD" => [ENV["LD_PRELOAD"], LIBRARY].compact.join(":"), "STALLED_READS" => @path }

    def hold = write(1)
    def release = write(0)
    def begun = File.binread(@path, 8, 8).unpack1("Q")

    private

    def write(value) = File.open(@path, "r+b") { |file| file.pwrite([value].pack("Q"), 0) }
  end
end
