# frozen_string_literal: true

require_relative "../support"
require_relative "../support/frontends"
require_relative "webdriver"

# Chromium and WebSockets over HTTP/2 (RFC 8441): they share the page's connection, and a reload of the server is not
# noticed.
class WebSocketBrowserTest < Minitest::Test
  include FrontendServers

  TALK = <<~JS
    const open = (path, protocols) => new Promise((done, fail) => {
      const socket = new WebSocket('wss://' + location.host + path, protocols);
      socket.binaryType = 'arraybuffer';
      socket.heard = [];
      socket.onopen = () => done(socket);
      socket.onerror = () => fail(new Error('not opened: ' + path));
      socket.onmessage = (event) => { socket.heard.push(event.data); socket.wakes?.(); };
    });
    const next = async (socket) => {
      while (!socket.heard.length) await new Promise((wakes) => { socket.wakes = wakes; });
      return socket.heard.shift();
    };
    const ask = (socket, data) => { socket.send(data); return next(socket); };
    const closed = (socket) => new Promise((done) => { socket.onclose = (event) => done([event.code, event.reason, event.wasClean]); });
  JS

  FIRST = <<~JS
    const page = await (await fetch('/')).text();
    const [one, greeted, ...others] = await Promise.all([open('/chat'), open('/greets', ['chat']), ...Array.from({ length: 20 }, () => open('/chat'))]);
    window.sockets = { one, others, ask, closed };
    const large = 'x'.repeat(1000000);
    const echoes = [await ask(one, 'hello \\u00fc'), (await ask(one, large)) === large, new Uint8Array(await ask(one, new Uint8Array([1, 255]))).join()];
    const counts = await Promise.all(others.map((socket) => ask(socket, 'count')));
    const refused = await open('/refused').catch((error) => error.message);
    const ordinary = await open('/').catch((error) => error.message);
    const bye = closed(greeted);
    const greeting = [greeted.protocol, await next(greeted)];
    greeted.send('close 4321');
    return [page, echoes, [...new Set(counts)], refused, ordinary, greeting, await bye];
  JS
  SECOND = <<~JS
    const { one, others, ask, closed } = window.sockets;
    const counts = await Promise.all(others.map((socket) => ask(socket, 'count')));
    const bye = closed(one);
    one.close(3000, 'enough');
    return [[...new Set(counts)], await bye];
  JS

  def wait_until(...) = E2E.wait_until(...)
  def closed_lines = File.exist?("#{@one.dir}/closed") ? File.readlines("#{@one.dir}/closed", chomp: true) : []

  def test_sockets_over_http2
    skip "no chromedriver here" unless system("command -v chromedriver >/dev/null")
    serve("--status", "#{@dir}/status", app: "e2e/apps/websocket.#{E2E::RUBY ? "ru" : "psgi"}")
    E2E::Browser.open(flags: %w[--ignore-certificate-errors]) do |browser|
      browser.visit("https://127.0.0.1:#{@one.port}/")
      first = browser.script("return (async () => {#{TALK}#{FIRST}})()")
      assert_equal ["Hello, World!", ["hello ü", true, "1,255"], %w[1], "not opened: /refused", "not opened: /", ["chat", 'open "chat" 127.0.0.1'],
                    [4321, "as you wish", true]], first
      assert_equal 21, connections["websocket"]
      assert_nil connections["http1"], "they are streams of the page's connection"
      assert_operator connections["http2"], :<=, 2 # a browser may keep one more ready
      output, status = ctl("reload")
      assert status.success?, output
      assert_equal [%w[2], [3000, "", true]], browser.script("return (async () => {#{SECOND}})()")
      wait_until("on_close") { closed_lines.any? { |line| line.end_with?(" 3000 enough") } }
    end
    wait_until("the others") { closed_lines.size == 22 }
    refute_match(/error|failed/, @one.stderr)
  end

  # That are open, by their protocol.
  def connections
    curl_status("/metrics").scan(/^oribi_frontend_connections_open\{protocol="(\w+)"\} (\d+)$/).to_h.transform_values(&:to_i).reject { |_, count| count.zero? }
  end
end
