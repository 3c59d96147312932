# frozen_string_literal: true

# WebSockets, event streams and publishing, for bench/workloads/sockets.rb and e2e/cut_test.rb.

# Sends back what it gets.
module Echo
  def self.on_message(ws, data) = ws.send(data)
end

# So slowly that a worker may be killed in the call.
module SlowEcho
  def self.on_message(ws, data)
    sleep(0.005)
    ws.send(data)
  end
end

# The whole query, or the value of a key; names and numbers alone, so that nothing is escaped.
value = ->(env, key) { env["QUERY_STRING"][/(?:\A|&)#{key}=([^&]*)/, 1] }

answers = {
  "/echo" => ->(env) { env["oribi.websocket"].accept(Echo) },
  "/subscribe" => ->(env) { env["oribi.websocket"].accept(Echo, channels: [value.call(env, "channel")]) },
  "/socket" => lambda do |env|
    since = value.call(env, "since")
    env["oribi.websocket"].accept(value.call(env, "slow") ? SlowEcho : Echo, channels: { value.call(env, "channel") => since.empty? ? nil : since }, ids: true)
  end,
  "/events" => ->(env) { env["oribi.events"].stream(channels: [value.call(env, "channel")]) },
  "/publish" => lambda do |env|
    Oribi.publish(value.call(env, "channel"), env["rack.input"].read.force_encoding(Encoding::UTF_8))
    [204, {}, []]
  end,
  "/pid" => ->(_) { [200, {}, [Process.pid.to_s]] }
}
hello = [200, { "content-type" => "text/plain" }.freeze, ["Hello, World!"].freeze].freeze

run(->(env) { (answer = answers[env["PATH_INFO"]]) ? answer.call(env) : hello })
