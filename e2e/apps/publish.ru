# frozen_string_literal: true

require "uri"

# Publishes, for publish_test.rb and transports_test.rb; a WebSocket whose messages are commands, and an event stream.
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

# A job of the application's: so many messages, each its number, or until the file "enough" is there; the file "job" has
# how many went out.
job = lambda do |query|
  given = URI.decode_www_form(query).to_h
  dir = ENV.fetch("E2E_DIR")
  Process.detach(fork do
    sent = 0
    until given["until"] ? File.exist?("#{dir}/enough") : sent == given["count"].to_i
      Oribi.publish(given["channel"], sent.to_s)
      sent += 1
      sleep(given.fetch("pause", "0.0005").to_f)
    end
  ensure
    File.write("#{dir}/job.new", sent.to_s)
    File.rename("#{dir}/job.new", "#{dir}/job")
    exit!(0)
  end).pid.to_s
end

# Of a channel, and since a position that the client has sent.
subscribe = lambda do |env, handshake|
  channel, since = env["QUERY_STRING"].split("&")
  handshake ? handshake.accept(Listener, channels: { channel => since }, ids: true) : env["oribi.events"].stream(channels: [channel])
end

run(lambda do |env|
  handshake = env["oribi.websocket"]
  return subscribe.call(env, handshake) if env["PATH_INFO"] == "/listen"
  return handshake.accept(Listener) if handshake

  text = case env["PATH_INFO"]
         when "/publish" then publish.call(env["QUERY_STRING"])
         when "/thread" then Thread.new { publish.call(env["QUERY_STRING"]) }.value
         when "/job" then job.call(env["QUERY_STRING"])
         else "Hello, World!"
         end
  [200, {}, [text]]
end)
