# frozen_string_literal: true

require_relative "native_driver"

module E2E
  # The slow and idle clients of bench/load/crowd.c; they are there when new() returns.
  class Crowd < NativeDriver
    SOURCE = File.join(ROOT, "bench/load/crowd.c")
    BINARY = File.join(ROOT, "build/e2e/crowd")
    SECONDS = 120
    SPARE = 200 # descriptors that a server needs beside its connections

    # How many connections of those wanted this machine lets one process have.
    def self.possible(count) = [count, Process.getrlimit(:NOFILE)[1] - SPARE].min

    # What became of one kind: how many were opened, ended by the server before their time, and answered well and badly
    # in the end.
    Tally = Struct.new(:opened, :ended, :good, :bad)

    def initialize(address, heads: 0, bodies: 0, readers: 0, idle: 0, target: nil)
      super()
      words = ["-H", heads, "-B", bodies, "-R", readers, "-I", idle, *(target && ["-t", target]), address.is_a?(String) ? address : address.join(":")]
      begin_driver(*words, mode: "r+")
      line = read_line(SECONDS)
      raise "the crowd did not come: #{line.inspect}" unless line == "ready\n"
    end

    # Lets everybody end what has begun: { "heads" => Tally, ... }.
    def finish
      @io.write("finish\n")
      @io.flush
      tallies = {}
      while (line = read_line(SECONDS))
        one = JSON.parse(line)
        tallies[one["kind"]] = Tally.new(*one.values_at("opened", "ended", "good", "bad"))
      end
      @io.close
      tallies
    end
  end
end
