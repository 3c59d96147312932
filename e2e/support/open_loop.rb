# frozen_string_literal: true

module E2E
  # Runs of bench/load, whose arrivals do not wait for answers. Built when it is first wanted.
  module OpenLoop
    SOURCE = File.join(ROOT, "bench/load/load.c")
    BINARY = File.join(ROOT, "build/e2e/open-loop")

    # Times in ms; `wait` is what a request took beyond its time in the application.
    Row = Struct.new(:count, :errors, :mean, :p50, :p90, :p99, :p999, :max)

    def self.build
      return if File.exist?(BINARY) && File.mtime(BINARY) > File.mtime(SOURCE)

      FileUtils.mkdir_p(File.dirname(BINARY))
      partial = "#{BINARY}.#{Process.pid}" # two runs may build at once
      system(ENV.fetch("CC", "cc"), "-std=gnu11", "-O2", "-o", partial, SOURCE, "-lm", exception: true)
      File.rename(partial, BINARY)
    end

    # Gives { ["/path", "time" or "wait"] => Row }; of a single path the row is "all".
    def self.run(address, paths:, rate:, seconds:, seed:, connections: 64)
      build
      target = address.is_a?(String) ? address : address.join(":")
      output = IO.popen([BINARY, "-r", rate.to_s, "-c", connections.to_s, "-d", seconds.to_s, "-w", "0.5", "-p", paths, "-s", seed.to_s, target], &:read)
      output.lines.drop(1).to_h do |line|
        name, what, *numbers = line.split
        [[name, what], Row.new(*numbers.first(2).map(&:to_i), *numbers.drop(2).map(&:to_f))]
      end
    end
  end
end
