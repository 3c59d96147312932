# frozen_string_literal: true

# A WebSocket by faye-websocket (stranger.rb has the commands).
require "eventmachine"
require "faye/websocket"
require "json"

$stdout.sync = true
tell = ->(*event) { puts JSON.generate(event) }
socket = nil
commands = {
  "open" => lambda do |url, protocols|
    socket = Faye::WebSocket::Client.new(url, protocols, tls: { root_cert_file: ENV.fetch("CA") })
    opened = false
    socket.on(:open) { opened = true and tell.("open", socket.protocol.to_s.then { |name| name unless name.empty? }) }
    socket.on(:message) do |event|
      data = event.data.is_a?(Array) ? event.data.pack("C*") : event.data
      data.encoding == Encoding::BINARY ? tell.("binary", [data].pack("m0")) : tell.("text", data)
    end
    socket.on(:close) { |event| opened ? tell.("closed", event.code, event.reason.to_s) : tell.("refused", socket.status) }
  end,
  "text" => ->(text) { socket.send(text) },
  "binary" => ->(text) { socket.send(text.unpack1("m").bytes) },
  "ping" => ->(text) { socket.ping(text) { tell.("pong", text) } },
  "close" => ->(code, reason) { socket.close(code, reason) },
}
EM.run do
  Thread.new do
    $stdin.each_line { |line| EM.schedule { JSON.parse(line).then { |name, *words| commands.fetch(name).(*words) } } }
    EM.schedule { EM.stop }
  end
end
