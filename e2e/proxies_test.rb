# frozen_string_literal: true

require_relative "support"

# A proxy in front that is trusted: PROXY headers and X-Forwarded-*.
E2E.suite("proxied", transports: E2E::EITHER, options: ["--trusted-proxies", "10.0.0.0/8"]) do
  line = "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n"
  # TCP over IPv6, and an extension that says that the client speaks TLS.
  binary = "\r\n\r\n\0\r\nQUIT\n\x21\x21\x00\x2c".b +
           ["20010db8000000000000000000000007", "20010db8000000000000000000000001", "126701bb", "2000050100000000"].pack("H*" * 4)
  get = "GET /env HTTP/1.1\r\nHost: a\r\n\r\n"
  hops = "X-Forwarded-For: 6.6.6.6, 203.0.113.9, 10.0.0.3\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop\r\n"

  define_method(:proxied) { |*more| @proxied ||= start("--trusted-proxies", "127.0.0.0/8 unix", "--proxy-protocol", *more) }
  define_method(:env_of) { |client| JSON.parse(client.read_response.body) }
  define_method(:scheme_of) { |env| env.values_at(E2E.differing(:url_scheme_key), "HTTPS").join(" ") } # as Mojolicious and CGI.pm read it

  define_method(:test_a_header_names_the_client) do
    [line, binary].zip([%w[192.0.2.7 4711], %w[2001:db8::7 4711]]).each do |header, want|
      client = connect(proxied).send_raw(header + get + get)
      2.times { assert_equal want, env_of(client).values_at("REMOTE_ADDR", "REMOTE_PORT") }
      assert_equal want.first, JSON.parse(client.get("/env").body)["REMOTE_ADDR"]
    end
  end

  define_method(:test_a_header_in_pieces) do
    client = connect(proxied).send_pieces(*(line + get).scan(/.{1,13}/m))
    assert_equal "192.0.2.7", env_of(client)["REMOTE_ADDR"]
  end

  define_method(:test_a_header_that_tells_of_tls) do
    [binary, line].zip(["https on", "http "]).each do |header, want|
      client = connect(proxied).send_raw(header + get + get)
      2.times { assert_equal want, scheme_of(env_of(client)) }
    end
  end

  define_method(:test_a_header_comes_once) do
    client = connect(proxied).send_raw(line + get)
    client.read_response
    assert_equal 400, client.send_raw(line + get).read_response.status
    assert client.closed?
  end

  define_method(:test_a_header_on_one_listener) do
    one = start_serving("--trusted-proxies", "127.0.0.1", "--trusted-proxies", "unix", "--bind", "127.0.0.1:#{port = E2E.free_port}?proxy=on")
    client = E2E::Client.new(["127.0.0.1", port])
    assert_equal "192.0.2.7", env_of(client.send_raw(line + get))["REMOTE_ADDR"]
    assert_refused 400, line + get, to: one
  ensure
    client&.close
  end

  define_method(:test_nothing_else_passes_for_a_header) do
    [get, "PROXY TCP4 192.0.2.7\r\n#{get}", "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\n#{get}", "\r\n\r\n\0\r\nQUIT\n\x22\x11\x00\x00#{get}"].each do |bytes|
      assert_refused 400, bytes, to: proxied
    end
  end

  define_method(:test_without_a_header_nothing_is_waited_for_in_vain) do
    one = start("--trusted-proxies", "127.0.0.0/8 unix", "--proxy-protocol", "--head-timeout", "200ms")
    ["PROXY TCP4", "\r\n\r\n\0\r\nQUIT\n", "\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00".b].each do |half|
      assert connect(one).send_raw(half).closed?, half
    end
    client = connect(one).send_raw("\r\n\r\n\0\r\nQUIT\n\x21\x11".b)
    client.socket.close_write
    assert_predicate client, :closed?, "half a header, and the balancer is gone"
  end

  define_method(:test_forwarded_fields_of_a_trusted_peer) do
    one = start("--trusted-proxies", "127.0.0.1,unix,10.0.0.0/8")
    env = env_of(connect(one).send_raw("GET /env HTTP/1.1\r\nHost: a\r\n#{hops}\r\n"))
    assert_equal ["203.0.113.9", "https", "shop", "a"],
                 env.values_at("REMOTE_ADDR", E2E.differing(:url_scheme_key), "HTTP_X_FORWARDED_HOST", "HTTP_HOST")
    wait_until("the access log") { one.stdout.include?("203.0.113.9") }
  end

  define_method(:test_the_environment_says_https_wherever_the_scheme_is_https) do
    client = connect(start("--trusted-proxies", "127.0.0.1,unix"))
    2.times do # the second time the environment is a copy of a kept one
      %w[https http wss].zip(["https on", "http ", "https on"]).each do |proto, want|
        assert_equal want, scheme_of(JSON.parse(client.get("/env", { "X-Forwarded-Proto" => proto }).body))
      end
      assert_equal "http ", scheme_of(JSON.parse(client.get("/env", { "HTTPS" => "on" }).body)), "a field of the client's"
    end
  end

  define_method(:test_forwarded_fields_of_another_peer) do
    env = env_of(connect.send_raw("GET /env HTTP/1.1\r\nHost: a\r\n#{hops}\r\n"))
    assert_equal [unix? ? E2E.differing(:unix_peer) : "127.0.0.1", "http"], env.values_at("REMOTE_ADDR", E2E.differing(:url_scheme_key))
    refute env.key?("HTTPS")
    assert_equal "6.6.6.6, 203.0.113.9, 10.0.0.3", env["HTTP_X_FORWARDED_FOR"]
  end
end

# Nobody is trusted unless the operator says so.
E2E.suite("unproxied", transports: E2E::EITHER) do
  def test_a_proxy_header_is_no_request
    assert_refused 400, "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\nGET /exit HTTP/1.1\r\nHost: a\r\n\r\n"
  end

  def test_forwarded_fields_are_only_text
    env = JSON.parse(connect.get("/env", { "X-Forwarded-For" => "6.6.6.6", "X-Forwarded-Proto" => "https" }).body)
    peer = unix? ? E2E.differing(:unix_peer) : "127.0.0.1"
    assert_equal [peer, "http", "6.6.6.6"], env.values_at("REMOTE_ADDR", E2E.differing(:url_scheme_key), "HTTP_X_FORWARDED_FOR")
  end

  def test_the_protocol_needs_to_know_whom_it_believes
    one = run_to_end("--proxy-protocol")
    refute_equal 0, one.status.exitstatus
    assert_includes one.stderr, "needs trusted_proxies"
  end
end
