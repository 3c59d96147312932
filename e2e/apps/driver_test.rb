# frozen_string_literal: true

# A test of an application, as its developer would write it; drivers_test.rb runs it.
require "minitest/autorun"
require "oribi/test"

class DriverTest < Minitest::Test
  APP = File.join(__dir__, "websocket.ru")

  Minitest.after_run { SERVER.stop }
  SERVER = Oribi::Test.serve(APP, env: { "E2E_DIR" => ENV.fetch("E2E_DIR") })

  def open(path = "/chat", **how) = SERVER.websocket(path, **how)

  def test_messages
    ws = open
    assert_nil ws.protocol
    ["", "hello", "\u{1F600}", "x" * 126, "x" * 65_535, "x" * 65_536, "x" * 900_000].each { |text| assert_equal text, ws.send(text).receive }
    assert_equal Encoding::UTF_8, ws.send("a").receive.encoding
    bytes = (0..255).to_a.pack("C*")
    assert_equal [bytes, Encoding::BINARY], ws.send(bytes).receive.then { |data| [data, data.encoding] }
    assert_equal [1000, ""], ws.close.then { [ws.close_code, ws.close_reason] }
    assert_predicate ws, :closed?
    assert_nil ws.receive
    assert_raises(Oribi::Test::Error) { ws.send("closed") }
  end

  def test_the_handshake
    ws = open("/greets?x=1", protocols: %w[chat other], headers: { "Cookie" => "a=b" })
    assert_equal %w[chat 7], [ws.protocol, ws.headers["x-room"]]
    assert_equal 'open "chat" 127.0.0.1', ws.receive
    assert_equal 403, assert_raises(Oribi::Test::Refused) { open("/refused") }.status
    assert_equal 403, assert_raises(Oribi::Test::Refused) { open(headers: { "Origin" => "https://other.test" }) }.status
    ws.close
  end

  def test_closes
    ws = open
    ws.send("close 4321")
    assert_nil ws.receive
    assert_equal [4321, "as you wish"], [ws.close_code, ws.close_reason]
    other = open
    other.send("die")
    assert_nil other.receive
    assert_equal 1011, other.close_code
    open.cut
    open.close(3000, "\u00fc")
  end

  def test_time
    ws = open
    assert_raises(Oribi::Test::Timeout) { ws.receive(timeout: 0.05) }
    assert_equal "still", ws.send("still").receive
    assert_equal "ws", Oribi::Test::WebSocket.new("ws://127.0.0.1:#{SERVER.port}/chat", timeout: 5).send("ws").receive
  end

  # Clients that do not read their Close frames hold no test; one that does read gets what was sent before.
  def test_a_stop_with_open_sockets
    Dir.mktmpdir do |dir|
      server = Oribi::Test.serve(APP, env: { "E2E_DIR" => dir })
      sockets = Array.new(3) { server.websocket("/chat") } << Oribi::Test::WebSocket.new("ws://127.0.0.1:#{server.port}/chat")
      sockets.each { |ws| assert_equal "1", ws.send("count").receive }
      sockets.first.send("last")
      IO.select([sockets.first.instance_variable_get(:@tcp)])
      began = Oribi::Test.now
      server.stop
      assert_operator Oribi::Test.now - began, :<, 3
      assert_equal ["last", nil], [sockets.first.receive, sockets.first.receive]
      assert_equal 1001, sockets.first.close_code
      assert_equal [" 1001 "] * 4, File.readlines("#{dir}/closed", chomp: true).map { |line| line[/ .*/] }
    end
  end

  # The rest of a frame may come when the wait for it is over.
  def test_half_a_frame
    fake do |port, go_on|
      ws = Oribi::Test::WebSocket.new("ws://127.0.0.1:#{port}/", timeout: 5)
      assert_raises(Oribi::Test::Timeout) { ws.receive(timeout: 0.05) }
      go_on.push(nil)
      assert_equal "x" * 200, ws.receive
      assert_nil ws.receive
      assert_equal 1006, ws.close_code
    end
  end

  # Sends the begin of a message, and the rest when it may go on.
  def fake
    TCPServer.open("127.0.0.1", 0) do |server|
      go_on = Queue.new
      thread = Thread.new do
        io = server.accept
        accept = Digest::SHA1.base64digest(io.gets("\r\n\r\n")[/^Sec-WebSocket-Key: (\S+)/, 1] + Oribi::Test::WebSocket::GUID)
        io.write("HTTP/1.1 101 x\r\nSec-WebSocket-Accept: #{accept}\r\n\r\n", "\x81\x7e\x00".b)
        go_on.pop
        io.write("\xc8".b, "x" * 200)
        io.close
      end
      yield server.addr[1], go_on
      thread.join
    end
  end

  def test_a_server_that_speaks_no_tls
    TCPServer.open("127.0.0.1", 0) do |server|
      assert_raises(Oribi::Test::Timeout) { Oribi::Test::WebSocket.new("wss://127.0.0.1:#{server.addr[1]}/", timeout: 0.05) }
    end
  end

  def test_tls
    TCPServer.open("127.0.0.1", 0) do |server|
      thread = Thread.new do
        io = OpenSSL::SSL::SSLSocket.new(server.accept, tls_context).tap { |tls| tls.sync_close = true }.accept
        head = io.gets("\r\n\r\n")
        accept = Digest::SHA1.base64digest(head[/^Sec-WebSocket-Key: (\S+)/, 1] + Oribi::Test::WebSocket::GUID)
        io.write("HTTP/1.1 101 x\r\nSec-WebSocket-Accept: #{accept}\r\n\r\n\x81\x02hi")
        io.close
        head
      end
      thread.report_on_exception = false
      assert_equal "hi", Oribi::Test::WebSocket.new("wss://127.0.0.1:#{server.addr[1]}/a?b=c").receive
      assert_match(%r{\AGET /a\?b=c HTTP/1.1\r\n}, thread.value)
    ensure
      server.close
      thread.join rescue nil
    end
  end

  def tls_context
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = OpenSSL::X509::Certificate.new
    certificate.public_key = key
    certificate.not_before = Time.now - 60
    certificate.not_after = Time.now + 3600
    certificate.sign(key, "SHA256")
    OpenSSL::SSL::SSLContext.new.tap { |context| context.add_certificate(certificate, key) }
  end

  def test_a_server_that_does_not_start
    Dir.mktmpdir do |dir|
      File.write("#{dir}/config.ru", "raise 'never'")
      assert_match(/never/, assert_raises(Oribi::Test::Error) { Oribi::Test.serve("#{dir}/config.ru") }.message)
    end
  end
end
