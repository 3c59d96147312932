# frozen_string_literal: true

require "uri"

# Publishes, for publish_test.rb; and a WebSocket whose messages are commands.
module Listener
  module_function

  def on_message(ws, data)
    word, channel, rest = data.split(" ", 3)
    case word
    when "subscribe" then ws.subscribe(channel, since: rest).then { |found| ws.send("subscribed #{found}") }
    when "publish" then ws.publish(channel, rest)
    end
  end
end

publish = lambda do |query|
  given = URI.decode_www_form(query).to_h
  Oribi.publish(given["channel"], given["data"] || ("x" * given["size"].to_i), event: given["event"])
  "published"
rescue Oribi::Error => e
  "#{e.class}: #{e.message}"
end

# A job of the application's: so many messages, each its number; the file has how many went out.
job = lambda do |query|
  given = URI.decode_www_form(query).to_h
  Process.detach(fork do
    sent = 0
    given["count"].to_i.times do |i|
      Oribi.publish(given["channel"], i.to_s)
      sent += 1
      sleep(0.0005)
    end
    File.write("#{ENV.fetch("E2E_DIR")}/job", sent.to_s)
    exit!(0)
  end).pid.to_s
end

run(lambda do |env|
  handshake = env["oribi.websocket"]
  return handshake.accept(Listener) if handshake

  text = case env["PATH_INFO"]
         when "/publish" then publish.call(env["QUERY_STRING"])
         when "/thread" then Thread.new { publish.call(env["QUERY_STRING"]) }.value
         when "/job" then job.call(env["QUERY_STRING"])
         else "Hello, World!"
         end
  [200, {}, [text]]
end)
