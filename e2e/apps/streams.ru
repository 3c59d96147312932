# frozen_string_literal: true

# Answers that are written while their call lasts; streams.psgi is its twin.
TEXT = { "content-type" => "text/plain" }.freeze

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
    [200, { "content-type" => "text/event-stream", "cache-control" => "no-store" }, ticks]
  when "/big" then [200, TEXT, ["0123456789abcdef" * (256 * 1024)]]
  else [200, TEXT, [Process.pid.to_s]]
  end
}
