# frozen_string_literal: true

require_relative "native_driver"

module E2E
  # The clients of bench/load/cut.c. All of them are there, and messages come, when new() returns.
  class Cut < NativeDriver
    SOURCE = File.join(ROOT, "bench/load/cut.c")
    BINARY = File.join(ROOT, "build/e2e/cut")
    BEGIN_S = 120
    END_S = 120 # beyond its time

    # tls_port: for wires that want it.
    def initialize(port, tls_port, *options)
      super()
      @seconds = options[options.index("-d") + 1]
      begin_driver("127.0.0.1:#{port}", "-T", "127.0.0.1:#{tls_port}", *options, flags: %w[-lssl -lcrypto -lnghttp2])
      raise "the clients did not come" unless read_line(BEGIN_S) == "begun\n"

      @end = E2E.clock + @seconds
    end

    # Waits so long, or until the time of the clients is over: true then.
    def wait(seconds)
      sleep([seconds, @end - E2E.clock].min.clamp(0, seconds))
      E2E.clock >= @end
    end

    # What became of them; cut.c tells of it.
    def finish
      line = read_line(@seconds + END_S) or raise "the clients have died"
      @io.close
      JSON.parse(line)
    end
  end
end
