# frozen_string_literal: true

require "uri"

# WebSockets and event streams for socket_clients_test.rb, as the documents have them; a message may be a command.
module Room
  module_function

  def on_message(ws, data)
    word, rest = data.encoding == Encoding::BINARY ? [] : data.split(" ", 2)
    case word
    when "close" then ws.close(rest.to_i, "as you wish")
    when "die" then raise "said to die"
    else ws.send(data)
    end
  end

  def on_close(ws, code, reason)
    File.open("#{ENV.fetch("E2E_DIR")}/closed", "a") { |file| file.syswrite("#{ws.id} #{code} #{reason}\n") }
  end
end

run(lambda do |env|
  query = URI.decode_www_form(env["QUERY_STRING"]).to_h
  case env["PATH_INFO"]
  when "/chat"
    ws = env["oribi.websocket"] or return [426, {}, []]
    next ws.accept(Room, protocol: "chat") unless query["channel"]

    ws.accept(Room, channels: { query["channel"] => query["since"] }, ids: true)
  when "/events"
    events = env["oribi.events"] or return [406, {}, []]
    events.stream(channels: [query["channel"]], retry: 50)
  when "/publish"
    Oribi.publish(query["channel"], query["data"], event: query["event"])
    [204, {}, []]
  else [403, {}, ["refused\n"]]
  end
end)
