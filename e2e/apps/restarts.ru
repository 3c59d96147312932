# frozen_string_literal: true

# What the clients of load/load.c ask for while the server is restarted; restarts.psgi is its twin.
GROW_BYTES = ENV.fetch("E2E_GROW", "0").to_i
GROWN = []
HEADERS = { "content-type" => "text/plain" }.freeze
BIG = "x" * 200_000

run lambda { |env|
  GROWN << ("g" * GROW_BYTES) if GROW_BYTES.positive?
  body =
    case env["PATH_INFO"]
    when "/echo" then env["rack.input"].read
    when "/big" then BIG
    when "/slow" then sleep(0.02) && "slow"
    else "Hello, World!"
    end
  [200, HEADERS.merge("x-worker" => Process.pid.to_s), [body]]
}
