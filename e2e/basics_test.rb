# frozen_string_literal: true

require_relative "support"

# Requests and answers as every application sees them.
E2E.suite("basics") do
  def env_of(target = "/env", fields = {}) = JSON.parse(connect.get(target, fields).body)

  def test_hello
    response = connect.get("/")
    assert_equal [200, "OK", "Hello, World!", :length], [response.status, response.reason, response.body, response.framing]
    assert_equal "text/plain", response["content-type"]
    refute response.close?
  end

  def test_methods_reach_the_application_with_their_case
    client = connect
    %w[GET POST PUT PATCH DELETE OPTIONS PROPFIND FROB get].each do |method|
      assert_equal method, client.request(method, "/method").read_response.body
    end
  end

  def test_a_method_of_32_bytes_passes_and_of_33_does_not
    assert_equal "M" * 32, connect.request("M" * 32, "/method").read_response.body
    assert_includes [400, 501], exchange("#{"M" * 33} /method HTTP/1.1\r\nHost: a\r\n\r\n").status
  end

  def test_connect_is_not_implemented
    assert_refused 501, "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n"
  end

  def test_asterisk_is_for_options_only
    assert_equal 200, exchange("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").status
    assert_refused 400, "GET * HTTP/1.1\r\nHost: a\r\n\r\n"
  end

  def test_request_line_in_the_environment
    env = env_of("/env/x//y;z?q=%20&r=+")
    assert_equal "/env/x//y;z", env["PATH_INFO"]
    assert_equal "q=%20&r=+", env["QUERY_STRING"]
    assert_equal "", env["SCRIPT_NAME"]
    assert_equal "GET", env["REQUEST_METHOD"]
    assert_equal "HTTP/1.1", env["SERVER_PROTOCOL"]
    assert_equal "http", env[E2E.differing(:url_scheme_key)]
  end

  def test_request_uri_is_raw
    assert_equal "/env/%41?x", env_of("/env/%41?x")["REQUEST_URI"]
  end

  def test_query_is_empty_when_there_is_none
    assert_equal "", env_of["QUERY_STRING"]
  end

  def test_escapes_in_the_path
    assert_equal E2E.differing(:path_info_of_escaped_space), env_of("/env/a%20b")["PATH_INFO"]
  end

  def test_bad_escapes_in_the_path
    assert_equal E2E.differing(:status_of_bad_escape), connect.get("/env/%2z").status
    assert_equal E2E.differing(:status_of_bad_escape), connect.get("/env/%2").status
  end

  def test_absolute_form_brings_its_own_host
    response = exchange("GET http://other.example:81/env?x HTTP/1.1\r\nHost: ignored\r\n\r\n")
    env = JSON.parse(response.body)
    assert_equal "/env", env["PATH_INFO"]
    assert_equal "other.example:81", env["HTTP_HOST"]
    assert_equal "other.example", env["SERVER_NAME"]
  end

  def test_fields_become_keys
    env = env_of("/env", "X-Forwarded-For" => "10.0.0.1", "Content-Type" => "text/x", "Accept" => "*/*")
    assert_equal "10.0.0.1", env["HTTP_X_FORWARDED_FOR"]
    assert_equal "text/x", env["CONTENT_TYPE"]
    assert_equal "*/*", env["HTTP_ACCEPT"]
    refute env.key?("HTTP_CONTENT_TYPE")
  end

  def test_white_space_around_values_is_not_theirs
    env = JSON.parse(exchange("GET /env HTTP/1.1\r\nHost: a\r\nX-A: \t b  c \t\r\n\r\n").body)
    assert_equal "b  c", env["HTTP_X_A"]
  end

  def test_repeated_fields_are_joined_in_order
    env = JSON.parse(exchange("GET /env HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nCookie: a=1\r\nX-A: 2\r\nCookie: b=2\r\n\r\n").body)
    assert_equal "1, 2", env["HTTP_X_A"]
    assert_equal "a=1; b=2", env["HTTP_COOKIE"]
  end

  def test_names_with_underscores_and_proxy_never_arrive
    env = env_of("/env", "X_Forwarded_For" => "10.6.6.6", "Proxy" => "http://evil")
    refute env.key?("HTTP_X_FORWARDED_FOR")
    refute env.key?("HTTP_PROXY")
  end

  def test_server_name_and_port
    env = env_of("/env", "Host" => "shop.example:8080")
    assert_equal "shop.example", env["SERVER_NAME"]
    assert_equal(unix? ? "8080" : server.port.to_s, env["SERVER_PORT"])
  end

  def test_remote_address
    client = connect
    env = JSON.parse(client.get("/env").body)
    if unix?
      assert_equal [E2E.differing(:unix_peer), nil], env.values_at("REMOTE_ADDR", "REMOTE_PORT")
    else
      assert_equal "127.0.0.1", env["REMOTE_ADDR"]
      assert_equal client.socket.local_address.ip_port.to_s, env["REMOTE_PORT"]
    end
  end

  def test_reset_of_the_environment_between_requests
    client = connect
    client.get("/env", { "X-Secret" => "1" })
    refute JSON.parse(client.get("/env").body).key?("HTTP_X_SECRET")
  end

  def test_repeated_answer_fields_stay_apart
    assert_equal %w[a=1 b=2], connect.get("/cookies").values("set-cookie")
  end

  def test_the_applications_date_and_server_win
    response = connect.get("/own")
    assert_equal ["Thu, 01 Jan 1970 00:00:00 GMT"], response.values("date")
    assert_equal ["own"], response.values("server")
  end

  def test_no_server_field_of_our_own
    assert_empty connect.get("/").values("server")
  end

  def test_statuses
    client = connect
    [200, 201, 206, 302, 404, 418, 500, 503].each do |status|
      response = client.get("/status/#{status}")
      assert_equal [status, "body"], [response.status, response.body]
    end
  end

  def test_what_the_application_prints_is_seen_while_it_serves
    one = start
    assert_equal "printed", one.get("/stdout").body
    wait_until("the line") { one.stdout.include?("a line on standard output\n") }
  end

  def test_an_empty_body_has_length_zero
    response = connect.get("/empty")
    assert_equal ["0"], response.values("content-length")
  end
end

# SERVER_NAME and REMOTE_ADDR of the other address family.
E2E.suite("ipv6", transports: %i[tcp]) do
  def test_environment_over_ipv6
    port = E2E.free_port("::1")
    start_serving("--bind", "tcp://[::1]:#{port}")
    client = E2E::Client.new(["::1", port])
    @clients << client
    env = JSON.parse(client.get("/env", { "Host" => "[::1]:#{port}" }).body)
    assert_equal "::1", env["REMOTE_ADDR"]
    assert_equal "[::1]", env["SERVER_NAME"]
    assert_equal port.to_s, env["SERVER_PORT"]
  end
end
