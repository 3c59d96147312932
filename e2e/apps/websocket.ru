# frozen_string_literal: true

# WebSockets for websocket_test.rb: a message is a command.
module Chat
  DIR = ENV.fetch("E2E_DIR")

  module_function

  def on_open(ws)
    ws.send("open #{ws.protocol.inspect} #{ws.env["REMOTE_ADDR"]}") if ws.state["greets"]
  end

  def on_message(ws, data)
    return ws.send(data) if data.encoding == Encoding::BINARY

    word, rest = data.split(" ", 2)
    case word
    when "count" then ws.send((ws.state["n"] = ws.state.fetch("n", 0) + 1).to_s)
    when "pid" then ws.send(Process.pid.to_s)
    when "id" then ws.send(ws.id)
    when "objects" then ws.send(GC.stat(:total_allocated_objects).to_s)
    when "die" then raise "said to die"
    when "exit" then exit(3)
    when "kill" then Process.kill(:KILL, Process.pid)
    when "sleep" then sleep(rest.to_f)
    when "wait" then wait(ws, rest)
    when "close" then ws.close(rest.to_i, "as you wish")
    when "state" then ws.state["filler"] = "x" * rest.to_i
    when "send" then rest.split("x").map(&:to_i).then { |count, size| count.times { ws.send("y" * size) } }
    when "both" then ws.send("one").then { ws.send("\xff".b) }
    when "badtext" then ws.send("\xff".dup.force_encoding("UTF-8"))
    when "badcode" then ws.close(rest.to_i)
    else ws.send(data)
    end
  end

  def on_close(ws, code, reason)
    File.open("#{DIR}/closed", "a") { |file| file.syswrite("#{ws.id} #{code} #{reason}\n") }
  end

  # Says that the call runs, and ends it once the test has written the file.
  def wait(ws, name)
    File.write("#{DIR}/#{name}.in", Process.pid.to_s)
    sleep(0.005) until File.exist?("#{DIR}/#{name}")
    ws.send(name)
  end
end

# A handler that a reload takes away.
unless File.exist?("#{ENV.fetch("E2E_DIR")}/without")
  module Leaves
    def self.on_message(ws, data) = ws.send(data)
  end
end

# As rack.upgrade has it.
class Upgraded
  def self.on_open(client) = client.write("upgraded")
  def self.on_message(client, data) = client.write(data)
  def self.on_close(client) = File.write("#{ENV.fetch("E2E_DIR")}/upgraded", "closed")
end

answers = {
  "/greets" => lambda do |ws|
    ws.accept(Chat, protocol: ws.protocols.first, state: { "greets" => true }, headers: { "x-room" => "7" }, keep: %w[REMOTE_ADDR HTTP_COOKIE])
  end,
  "/leaves" => ->(ws) { ws.accept(Leaves) },
  "/object" => ->(ws) { ws.accept(Object.new) },
  "/anonymous" => ->(ws) { ws.accept(Class.new { def self.on_message(*) = nil }) },
  "/none" => ->(ws) { ws.accept(Comparable) },
  "/protocol" => ->(ws) { ws.accept(Chat, protocol: "not offered") },
  "/symbol" => ->(ws) { ws.accept(Chat, protocol: :chat) },
  "/state" => ->(ws) { ws.accept(Chat, state: { "s" => "x" * 4096 }) },
  "/refused" => ->(_) { [403, {}, ["refused\n"]] },
}

use Rack::Lint if ENV["E2E_LINT"]

run(lambda do |env|
  path = env["PATH_INFO"]
  return [200, {}, [Process.pid.to_s]] if path == "/pid"
  return [200, {}, ["Hello, World!"]] if path == "/"

  if path == "/upgrade"
    env["rack.upgrade"] = Upgraded if env["rack.upgrade?"] == :websocket
    return [200, {}, [env["rack.upgrade?"].inspect]]
  end
  ws = env["oribi.websocket"] or return [426, {}, ["no WebSocket is asked for\n"]]
  answers.fetch(path, ->(handshake) { handshake.accept(Chat) }).call(ws)
end)
