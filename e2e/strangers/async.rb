# frozen_string_literal: true

# A WebSocket by async-websocket, over HTTP/2 where TLS offers it (stranger.rb has the commands).
require "async"
require "async/http/endpoint"
require "async/websocket/client"
require "json"
require "openssl"
require "protocol/http2/error"

$stdout.sync = true

# One socket, and the task that reads it.
class Stranger
  def initialize(protocols_of_tls) = @protocols_of_tls = protocols_of_tls

  def obey
    Sync do |task|
      while (line = $stdin.gets)
        name, *words = JSON.parse(line)
        task.async { name == "open" ? open(*words) : send("do_#{name}", *words) } # a long message waits for the server
      end
      exit!(0)
    end
  end

  private

  def tell(*event) = puts(JSON.generate(event))

  def endpoint(url)
    return Async::HTTP::Endpoint.parse(url) unless url.start_with?("wss")

    context = OpenSSL::SSL::SSLContext.new
    context.set_params(ca_file: ENV.fetch("CA"), verify_mode: OpenSSL::SSL::VERIFY_PEER)
    context.alpn_protocols = @protocols_of_tls
    Async::HTTP::Endpoint.parse(url, ssl_context: context, alpn_protocols: @protocols_of_tls)
  end

  def open(url, protocols)
    Async::WebSocket::Client.connect(endpoint(url), protocols: protocols) do |socket|
      @socket = socket
      tell("open", socket.protocol)
      while (message = socket.read)
        message.is_a?(Protocol::WebSocket::BinaryMessage) ? tell("binary", [message.buffer].pack("m0")) : tell("text", message.buffer)
      end
      tell("closed", 1000, "")
    end
  rescue Protocol::WebSocket::ClosedError => e
    tell("closed", e.code, e.message)
  rescue EOFError, Protocol::HTTP2::Error => e
    tell("closed", 1006, e.message)
  rescue Async::WebSocket::ConnectionError => e
    tell("refused", e.response.status)
  end

  def do_text(text) = @socket.send_text(text).then { @socket.flush }
  def do_binary(text) = @socket.send_binary(text.unpack1("m")).then { @socket.flush }
  def do_close(code, reason) = @socket.send_close(code, reason).then { @socket.flush }
end

Stranger.new(ARGV).obey
