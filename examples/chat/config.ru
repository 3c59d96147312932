# frozen_string_literal: true

# A chat and an echo: WebSockets and server-sent events on a server whose workers make one call at a time. Each of the
# long-lived connections leaves the server within its call, and the worker goes on with the next request at once.
require "uri"
require_relative "lib/journal"
require_relative "lib/peer"
require_relative "lib/room"

journal = Chat::Journal.new(ENV.fetch("CHAT_JOURNAL", File.join(__dir__, "tmp/journal")))
room = Chat::Room.new(journal)
at_exit { room.leave }

PLAIN = { "content-type" => "text/plain" }.freeze
PAGE = { "/" => ["index.html", "text/html; charset=utf-8"], "/chat.css" => ["chat.css", "text/css"], "/chat.js" => ["chat.js", "text/javascript"] }
       .transform_values do |name, type|
         headers = { "content-type" => type, "content-security-policy" => "default-src 'self'", "cache-control" => "no-cache" }
         [headers, File.read(File.join(__dir__, "public", name))]
       end.freeze

text = ->(status, words, headers = {}) { [status, PLAIN.merge(headers), ["#{words}\n"]] }

# Browsers let any site open a WebSocket to any other, and tell where it came from.
own_origin = lambda do |env|
  origin = env["HTTP_ORIGIN"] or return true
  origin.split("://", 2).last == env["HTTP_HOST"]
end

# Answers as `accepted` does when the request is a WebSocket's, or says what is wrong with it. HTTP/1.0 knows no upgrade
# (RFC 9110 7.8).
socket = lambda do |env, &accepted|
  wanted = WebSocket::Driver.websocket?(env) && env["SERVER_PROTOCOL"] == "HTTP/1.1" &&
           env["HTTP_SEC_WEBSOCKET_KEY"] && env["HTTP_SEC_WEBSOCKET_VERSION"] == "13"
  next text.(426, "a WebSocket, please", "upgrade" => "websocket", "connection" => "upgrade", "sec-websocket-version" => "13") unless wanted
  next text.(403, "from another site") unless own_origin.(env)

  accepted.call
end

# The whole connection by rack.hijack: also on Rack 2. The library writes the 101 itself.
hijacked = lambda do |env, place: nil, &on_message|
  room.enter(Chat::Socket.new(env["rack.hijack"].call, env, place: place, &on_message))
  [-1, {}, []]
end

# As Rack 3 has it: the server changes the protocol and calls the body with the stream.
upgraded = lambda do |env, place: nil, &on_message|
  headers = { "rack.protocol" => "websocket", "sec-websocket-accept" => Chat::Socket.accept(env) }
  [101, headers, ->(stream) { room.enter(Chat::Socket.new(stream, env, accepted: true, place: place, &on_message)) }]
end

place_of = lambda do |env|
  journal.place_for(env["HTTP_LAST_EVENT_ID"] || URI.decode_www_form(env["QUERY_STRING"]).to_h["after"])
rescue ArgumentError
  journal.place_for(nil)
end

run(lambda do |env|
  case env["PATH_INFO"]
  when "/echo" then socket.(env) { hijacked.(env) { |peer, data| peer.say(data) } }
  when "/echo-protocol" then socket.(env) { upgraded.(env) { |peer, data| peer.say(data) } }
  when "/chat" then socket.(env) { (env["rack.protocol"] ? upgraded : hijacked).(env, place: place_of.(env)) { |_, data| journal.add(data) } }
  when "/events"
    # The head is the server's, the rest of the connection ours.
    stream = ->(io) { room.enter(Chat::EventStream.new(io, place: place_of.(env))) }
    [200, { "content-type" => "text/event-stream", "cache-control" => "no-store", "rack.hijack" => stream }, []]
  when "/messages"
    next text.(405, "POST only", "allow" => "POST") unless env["REQUEST_METHOD"] == "POST"
    next text.(403, "from another site") unless own_origin.(env)

    journal.add(env["rack.input"].read.force_encoding(Encoding::UTF_8)) ? [204, {}, []] : text.(422, "not a message")
  else
    headers, body = PAGE[env["PATH_INFO"]]
    headers ? [200, headers.dup, [body]] : text.(404, "nothing here")
  end
end)
