# frozen_string_literal: true

# Channels for channels_test.rb: a message is a command.
module Room
  module_function

  def on_message(ws, data)
    word, channel, rest = data.split(" ", 3)
    case word
    when "subscribe" then ws.subscribe(channel, since: rest)
    when "unsubscribe" then ws.unsubscribe(channel)
    when "publish" then ws.publish(channel, rest.to_s)
    when "binary" then ws.publish(channel, [rest].pack("H*"))
    when "event" then ws.publish(channel, "data", event: rest)
    when "large" then ws.publish(channel, "x" * rest.to_i)
    when "repeat" then rest.to_i.times { |i| ws.publish(channel, format("%04d", i)) }
    when "many" then rest.to_i.times { |i| ws.subscribe("#{channel}#{i}") }
    when "kill" then Process.kill(:KILL, Process.pid)
    when "try" then attempt(ws, channel, rest)
    end
    ws.send("ok")
  end

  def attempt(ws, what, size)
    case what
    when "name" then ws.subscribe("n" * size.to_i)
    when "subscribe" then ws.subscribe(size)
    when "instead" then ws.unsubscribe("c7").then { ws.subscribe(size) }
    when "control" then ws.subscribe("a\nb")
    when "event" then ws.publish("a", "", event: "e" * size.to_i)
    when "data" then ws.publish("a", "d" * size.to_i)
    when "since" then ws.subscribe("a", since: "1-1")
    end
  rescue Oribi::Error => e
    ws.send("error #{e.message}")
  end

  def on_close(ws, code, reason) = ws.publish("closed", "closed #{code}")
end

run(lambda do |env|
  return [200, {}, [Process.pid.to_s]] if env["PATH_INFO"] == "/pid"

  ws = env["oribi.websocket"] or return [426, {}, []]
  query = Rack::Utils.parse_query(env["QUERY_STRING"])
  channels = query.fetch("channels", "").split(",")
  channels = channels.to_h { |channel| [channel, query["since"]] } if query["since"]
  ws.accept(Room, channels: query["count"] ? (1..query["count"].to_i).map { |i| "c#{i}" } : channels, ids: query.key?("ids"))
end)
