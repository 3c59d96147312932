# frozen_string_literal: true

require_relative "native"

module E2E
  # Runs of bench/load, whose arrivals do not wait for answers.
  module OpenLoop
    SOURCE = File.join(ROOT, "bench/load/load.c")
    BINARY = File.join(ROOT, "build/e2e/open-loop")

    # Times in ms; `wait` is what a request took beyond its time in the application. Of "overtaken" they are requests:
    # how many that were sent later were begun sooner.
    Row = Struct.new(:count, :errors, :mean, :p50, :p90, :p99, :p999, :max)

    # Gives { ["/path", "time", "wait" or "overtaken"] => Row }; of a single path the row is "all". servers: also
    # "ideal" and "least", time and wait that the same arrivals and calls would have in one queue before so many.
    def self.run(address, paths:, rate:, seconds:, seed:, connections: 64, servers: 0)
      Native.build(SOURCE, BINARY, "-lm")
      target = address.is_a?(String) ? address : address.join(":")
      argv = ["-r", rate, "-c", connections, "-d", seconds, "-w", 0.5, "-p", paths, "-s", seed, "-k", servers]
      output = IO.popen([BINARY, *argv.map(&:to_s), target], &:read)
      output.lines.drop(1).to_h do |line|
        name, what, *numbers = line.split
        [[name, what], Row.new(*numbers.first(2).map(&:to_i), *numbers.drop(2).map(&:to_f))]
      end
    end
  end
end
