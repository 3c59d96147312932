# frozen_string_literal: true

require "fiddle"

# Answers that are written while their call lasts; streams.psgi is its twin.
TEXT = { "content-type" => "text/plain" }.freeze
EVENTS = { "content-type" => "text/event-stream", "cache-control" => "no-store" }.freeze
HUNDRED = Array.new(100) { |i| format("%-1023d\n", i) }.freeze

# open(2) with the lock of the VM: nothing of Ruby runs until it returns.
OPEN = Fiddle::Function.new(Fiddle.dlopen(nil)["open"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_INT], Fiddle::TYPE_INT,
                            need_gvl: true)

# Stands still in C until the test opens the pipe of this name, too.
def wait_for(name) = IO.for_fd(OPEN.call(File.join(ENV.fetch("E2E_DIR"), name), File::RDONLY)).close

run lambda { |env|
  case env["PATH_INFO"]
  when "/ticks"
    # Server-sent events inside the call: until the test says so, or the client leaves.
    ticks = lambda do |stream|
      until File.exist?(File.join(ENV.fetch("E2E_DIR"), "ticks.end"))
        stream << "data: pid #{Process.pid}\n\n"
        IO.select(nil, nil, nil, 0.01)
      end
      stream.close
    end
    [200, EVENTS, ticks]
  when "/hundred" then [200, TEXT, HUNDRED.each]
  when "/hundred-events" then [200, EVENTS, HUNDRED.each]
  when "/confirmed"
    # Two pieces in a burst, then nothing until the client has both; twice.
    confirmed = Enumerator.new do |out|
      2.times do |i|
        out << "one #{i}\n" << "two #{i}\n"
        wait_for("pipe#{i}")
      end
    end
    [200, TEXT, confirmed]
  when "/big" then [200, TEXT, ["0123456789abcdef" * (256 * 1024)]]
  else [200, TEXT, [Process.pid.to_s]]
  end
}
