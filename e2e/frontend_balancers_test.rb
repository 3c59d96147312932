# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/frames"
require_relative "support/haproxy"
require "json"

# Balancers in front of a frontend: HTTP/2 that carries the requests of many clients, and PROXY headers before TLS.
E2E.suite("frontend_balancers", transports: %i[tcp]) do
  include E2E::HAProxy
  include FrontendServers

  # One connection to the server, as far as HAProxy may.
  const_set(:DEFAULTS, <<~TEXT)
    global
        nbthread 1
    defaults
        timeout connect 5s
        timeout client 30s
        timeout server 30s
        http-reuse always
        retries 0
  TEXT

  # As HAProxy writes them: of TCP over IPv4, from 192.0.2.7 port 4711. The last tells of TLS.
  const_set(:LINE, "PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\n")
  const_set(:BINARY, "\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c".b + ["c0000207c0000201126701bb"].pack("H*"))
  const_set(:BINARY_SSL, "\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x14".b + ["c0000207c0000201126701bb2000050100000000"].pack("H*"))
  const_set(:GET, "GET /env HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")

  def serve_h2c(*options, **more) = serve("--frontends", "1", *options, address: FrontendServers::PLAIN_ADDRESS, **more)
  def connect(port = @one.port) = hold(E2E::Client.new(["127.0.0.1", port]))
  def scheme_of(env) = env[E2E.differing(:url_scheme_key)]
  def gone_app = "e2e/apps/gone#{E2E.differing(:app_extension)}"

  # A worker of whom the first call has all, until leave() is called. So all other requests wait in the frontend.
  def serve_held(*options)
    serve_h2c("--workers", "1", "--cancel-gone", "off", *options, app: gone_app)
  end

  def enter(one, stream)
    one.get(stream, "/looks/first")
    wait_until("the call's begin") { File.exist?("#{@one.dir}/first-entered.done") }
  end

  def leave = File.write("#{@one.dir}/first-left", "")
  def streams = JSON.parse(ctl("status", "--json").first).fetch("frontends").sum { |frontend| frontend["streams"].to_i }
  def refute_cut = refute_match(/ended a connection/, @one.stderr)

  # --- what HTTP/2 has a client do for each answer ---

  def test_small_answers_at_ordinary_load
    serve_h2c("--workers", "2")
    h1, h2 = Array.new(2) { E2E.free_port }
    run_haproxy(<<~TEXT, h1)
      #{self.class::DEFAULTS}
          mode http
      listen front
          bind 127.0.0.1:#{h1}
          bind 127.0.0.1:#{h2} proto h2
          server one 127.0.0.1:#{@one.port} proto h2
    TEXT
    out, status = Open3.capture2e(FrontendServers::PLAIN, "h2load", "-n", "6000", "-c", "4", "-m", "10", "http://127.0.0.1:#{h2}/pid")
    assert_predicate status, :success?
    assert_match(/ 6000 2xx/, out)
    refute_cut
  end

  def test_a_download_by_windows_of_100_octets
    serve_h2c
    one = E2E::Frames.new(connect, E2E::Frames::INITIAL_WINDOW_SIZE => 100)
    one.get(1, "/big?size=200000")
    bytes = 0
    loop do
      frame = one.await(:data)
      bytes += frame.payload.bytesize
      break if frame.flags & E2E::Frames::END_STREAM != 0

      [1, 0].each { |stream| one.send(:window_update, stream, [frame.payload.bytesize].pack("N")) }
    end
    assert_equal 200_000, bytes
  end

  # --- requests that are given up ---

  def cancel(stream) = E2E::Frames.frame(:rst_stream, stream, [8].pack("N"))
  def ask(one, stream, path) = E2E::Frames.frame(:headers, stream, "\x82".b + one.about(path), flags: E2E::Frames::END_STREAM | E2E::Frames::END_HEADERS)

  def assert_answered(one, *streams)
    until streams.empty?
      frame = one.next_frame
      refute_includes %i[rst_stream goaway], frame.type, "#{frame.stream}: #{frame.payload.unpack("N*")} #{@one.stderr}"
      streams.delete(frame.stream) if frame.type == :headers
    end
  end

  def test_resets_of_a_trusted_balancer
    serve_held("--trusted-proxies", "127.0.0.1")
    client = connect
    enter(one = E2E::Frames.new(client), 1)
    client.send_raw((1..300).sum("".b) { |i| ask(one, 2 * i + 1, "/given-up") + cancel(2 * i + 1) })
    one.get(603, "/last")
    leave
    assert_answered(one, 1, 603)
    refute_cut
  end

  def test_resets_of_others_end_their_connection
    serve_held
    client = connect
    enter(one = E2E::Frames.new(client), 1)
    client.send_raw((1..300).sum("".b) { |i| ask(one, 2 * i + 1, "/given-up") + cancel(2 * i + 1) })
    assert_equal 11, one.await(:goaway).payload.unpack("NN").last
    leave
    wait_until("the line of it") { @one.stderr.include?("too many resets (error 11 of HTTP/2)") }
  end

  def test_clients_of_haproxy_that_give_up
    serve_held("--trusted-proxies", "127.0.0.1")
    port = E2E.free_port
    spawn_haproxy("#{self.class::DEFAULTS}    mode http\nlisten front\n    bind 127.0.0.1:#{port} proto h2\n    server one 127.0.0.1:#{@one.port} proto h2\n")
    client = wait_until("HAProxy") { connect(port) rescue false }
    enter(one = E2E::Frames.new(client), 1)
    5.times do |round|
      wave = (1..60).map { |i| 2 * (60 * round + i) + 1 }
      client.send_raw(wave.sum("".b) { |stream| ask(one, stream, "/given-up") })
      wait_until("the requests") { streams == 61 }
      client.send_raw(wave.sum("".b) { |stream| cancel(stream) })
      wait_until("their end") { streams == 1 }
    end
    one.get(603, "/last")
    leave
    assert_equal [[1, "\x88".b], [603, "\x88".b]], Array.new(2) { one.await(:headers).then { |frame| [frame.stream, frame.payload[0]] } }.sort
    refute_cut
  end

  # RFC 9113 5.1.2.
  def test_a_reset_and_a_new_request_in_one_read
    serve_held
    client = connect
    enter(one = E2E::Frames.new(client), 1)
    (2..100).each { |i| one.get(2 * i - 1, "/waits") }
    client.send_raw((1..20).sum("".b) { |i| cancel(2 * i + 1) + ask(one, 199 + 2 * i, "/last") })
    leave
    assert_answered(one, 1, *(22..120).map { |i| 2 * i - 1 })
  end

  # --- PROXY headers ---

  # A listener for TLS and one without, of which each connection begins with a header.
  def serve_proxied(*options)
    @plain = E2E.free_port
    serve("--frontends", "1", "--trusted-proxies", "127.0.0.1", "--bind", "tcp://127.0.0.1:#{@plain}?frontend=on&proxy=on", *options,
          address: "#{bind}&proxy=on")
  end

  # By HAProxy, which passes bytes on, from a client that has an address of its own.
  { "send-proxy" => "line", "send-proxy-v2" => "binary", "send-proxy-v2-ssl" => "binary_of_tls" }.each do |word, name|
    define_method(:"test_haproxy_passes_bytes_on_behind_a_#{name}") do
      serve_proxied
      plain, tls = Array.new(2) { E2E.free_port }
      run_haproxy(<<~TEXT, plain)
        #{self.class::DEFAULTS}
            mode tcp
        listen plain
            bind 127.0.0.1:#{plain}
            server one 127.0.0.1:#{@plain} #{word}
        listen tls
            bind 127.0.0.1:#{tls}
            server one 127.0.0.1:#{@one.port} #{word}
      TEXT
      { "--http1.1" => "HTTP/1.1", "--http2" => "HTTP/2" }.each do |flag, protocol|
        env = env_by_curl(tls, flag, scheme: "https")
        assert_equal ["127.0.0.2", protocol, "https", "on"], [env["REMOTE_ADDR"], env["SERVER_PROTOCOL"], scheme_of(env), env["HTTPS"]]
      end
      { "--http1.1" => "HTTP/1.1", "--http2-prior-knowledge" => "HTTP/2" }.each do |flag, protocol|
        env = env_by_curl(plain, flag, scheme: "http")
        assert_equal ["127.0.0.2", protocol, "http"], [env["REMOTE_ADDR"], env["SERVER_PROTOCOL"], scheme_of(env)]
      end
    end
  end

  # By HAProxy, which ends TLS and says so, or speaks TLS in its turn.
  def test_haproxy_ends_tls
    serve_proxied
    File.write("#{@dir}/both.pem", File.read("#{@dir}/site.pem") + File.read("#{@dir}/site.key"))
    ports = Array.new(4) { E2E.free_port }
    run_haproxy(<<~TEXT, ports.first)
      #{self.class::DEFAULTS}
          mode http
      listen plain
          bind 127.0.0.1:#{ports[0]}
          server one 127.0.0.1:#{@plain} proto h2 send-proxy-v2-ssl
      listen h1
          bind 127.0.0.1:#{ports[1]} ssl crt #{@dir}/both.pem alpn h2,http/1.1
          server one 127.0.0.1:#{@plain} send-proxy-v2-ssl
      listen h2
          bind 127.0.0.1:#{ports[2]} ssl crt #{@dir}/both.pem alpn h2,http/1.1
          server one 127.0.0.1:#{@plain} proto h2 send-proxy-v2-ssl
      listen again
          bind 127.0.0.1:#{ports[3]} ssl crt #{@dir}/both.pem alpn h2,http/1.1
          server one 127.0.0.1:#{@one.port} ssl ca-file #{@dir}/site.pem sni str(localhost) alpn h2 send-proxy-v2
    TEXT
    { ports[1] => "HTTP/1.1", ports[2] => "HTTP/2", ports[3] => "HTTP/2" }.each do |port, protocol|
      env = env_by_curl(port, "--http2", scheme: "https")
      assert_equal ["127.0.0.2", protocol, "https"], [env["REMOTE_ADDR"], env["SERVER_PROTOCOL"], scheme_of(env)]
    end
  end

  def env_by_curl(port, flag, scheme:)
    out, error, status = Open3.capture3(FrontendServers::PLAIN, "curl", "-sS", "--max-time", FrontendServers.patience, "--cacert", "#{@dir}/site.pem",
                                        "--interface", "127.0.0.2", "--resolve", "localhost:#{port}:127.0.0.1", flag, "#{scheme}://localhost:#{port}/env")
    assert_predicate status, :success?, "#{flag} #{scheme}: #{error}#{@one.stderr}"
    JSON.parse(out)
  end

  # The client's side of a handshake behind these bytes.
  def shake_hands(client)
    context = OpenSSL::SSL::SSLContext.new
    context.alpn_protocols = %w[http/1.1]
    OpenSSL::SSL::SSLSocket.new(client.socket, context).tap do |tls|
      tls.hostname = "localhost"
      tls.connect
    end
  end

  def answer_within(tls, bytes)
    tls.write(bytes)
    tls.read.split("\r\n\r\n", 2)
  end

  def test_a_header_in_pieces_before_tls
    serve_proxied
    [self.class::LINE, self.class::BINARY, self.class::BINARY_SSL].each do |header|
      tls = shake_hands(connect.send_pieces(*header.b.scan(/.{1,7}/mn)))
      env = JSON.parse(answer_within(tls, self.class::GET).last)
      assert_equal ["192.0.2.7", "4711", "https"], [env["REMOTE_ADDR"], env["REMOTE_PORT"], scheme_of(env)]
    end
  end

  def test_a_header_in_pieces_before_http2
    serve_proxied
    [self.class::LINE, self.class::BINARY, self.class::BINARY_SSL].each do |header|
      client = connect(@plain).send_pieces(*header.b.scan(/.{1,7}/mn))
      one = E2E::Frames.new(client)
      one.get(1, "/env")
      env = JSON.parse(one.await(:data).payload)
      assert_equal ["192.0.2.7", "4711", header == self.class::BINARY_SSL ? "https" : "http"], [env["REMOTE_ADDR"], env["REMOTE_PORT"], scheme_of(env)]
    end
  end

  # The proxy's own connection, as checks of its servers' health are.
  def test_a_header_that_names_nobody
    serve_proxied
    ["PROXY UNKNOWN\r\n", "\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00".b].each do |header|
      env = JSON.parse(answer_within(shake_hands(connect.send_raw(header)), self.class::GET).last)
      assert_equal "127.0.0.1", env["REMOTE_ADDR"]
    end
  end

  # A header within TLS is the client's: no balancer has written it.
  def test_no_client_names_itself_within_tls
    serve_proxied
    head, body = answer_within(shake_hands(connect.send_raw(self.class::LINE)), "PROXY TCP4 6.6.6.6 192.0.2.1 1 443\r\n#{self.class::GET}")
    assert_match(/\AHTTP\/1.1 400 /, head)
    refute_includes body, "6.6.6.6"
    assert_raises(OpenSSL::SSL::SSLError, Errno::ECONNRESET) { shake_hands(connect) }
    wait_until("the line of it") { @one.stderr.include?("a handshake with 127.0.0.1 failed: no PROXY header") }
  end

  def test_what_is_no_header_is_refused
    serve_proxied("--access-log", "-")
    assert_equal 400, connect(@plain).send_raw(self.class::GET).read_response.status
    wait_until("its line") { @one.stderr.include?("no PROXY header") && @one.stdout.include?(%("GET /env HTTP/1.1" 400 )) }
    assert_raises(OpenSSL::SSL::SSLError, Errno::ECONNRESET) { shake_hands(connect.send_raw("PROXY TCP4 192.0.2.7\r\n")) }
    wait_until("its line") { @one.stderr.include?("a handshake with 127.0.0.1 failed: malformed PROXY line") }
  end

  def test_half_a_header_is_not_waited_for
    serve_proxied("--head-timeout", "200ms")
    [@plain, @one.port].product(["PROXY TCP4", "\r\n\r\n\0\r\nQUIT\n", self.class::BINARY[0, 20]]) do |port, half|
      assert_predicate connect(port).send_raw(half), :closed?, half
    end
  end

  def test_half_a_header_whose_sender_has_gone
    serve_proxied
    [@plain, @one.port].each do |port|
      client = connect(port).send_raw(self.class::BINARY[0, 20])
      client.half_close
      assert_predicate client, :closed?
    end
  end

  # Others are served without, and are not believed.
  def test_a_header_of_a_peer_that_is_not_trusted
    serve("--frontends", "1", "--trusted-proxies", "192.0.2.1", address: "#{bind}&proxy=on")
    env = JSON.parse(answer_within(shake_hands(connect), self.class::GET).last)
    assert_equal "127.0.0.1", env["REMOTE_ADDR"]
    assert_match(/\AHTTP\/1.1 400 /, connect.send_raw(self.class::LINE).read_to_end)
  end

  # More than a first read of a head would hold.
  def test_much_plain_http_at_a_port_of_tls
    serve("--frontends", "1")
    before = frontend
    answer = connect.send_raw("GET /#{"x" * 9000} HTTP/1.1\r\nHost: a\r\n\r\n").read_to_end
    wait_until("a frontend that serves") { curl("/pid") rescue false }
    assert_equal before, frontend, @one.stderr
    assert_match(/\AHTTP\/1.1 400 /, answer)
  end
end
