# frozen_string_literal: true

require "support"

# The environment of a request, key by key.
class EnvTest < BindingTest
  # Serves an application that hands its environment to the test.
  def env_of(transport: :unix, **settings)
    seen = []
    app = lambda do |env|
      seen << env.dup
      text([env["rack.input"].read])
    end
    serve(app, transport: transport, **settings) { |client, worker| yield client, seen, worker }
  end

  def test_request_line_and_constants
    env_of do |client, seen|
      client.get("/a%20b//c?x=1&y=%2F")
      env = seen.last
      assert_equal "GET", env["REQUEST_METHOD"]
      assert_equal "", env["SCRIPT_NAME"]
      assert_equal "/a%20b//c", env["PATH_INFO"], "Rack applications decode paths themselves"
      assert_equal "x=1&y=%2F", env["QUERY_STRING"]
      assert_equal "/a%20b//c?x=1&y=%2F", env["REQUEST_URI"]
      assert_equal "HTTP/1.1", env["SERVER_PROTOCOL"]
      assert_equal "http", env["rack.url_scheme"]
      assert_equal [false, true, false], env.values_at("rack.multithread", "rack.multiprocess", "rack.run_once")
      assert_equal true, env["rack.hijack?"]
      assert_equal [], env["rack.response_finished"]
      assert_match(/\Aoribi/, env["SERVER_SOFTWARE"])
    end
  end

  def test_methods_keep_their_case_and_may_be_unknown
    env_of do |client, seen|
      %w[GET POST PUT PATCH DELETE OPTIONS TRACE FROB get].each do |method|
        client.request(method, "/", method == "POST" ? { "Content-Length" => "0" } : {})
        assert_equal method, seen.last["REQUEST_METHOD"]
      end
    end
  end

  def test_query_is_empty_when_absent_and_does_not_stay_from_the_request_before
    env_of do |client, seen|
      client.get("/?a=1")
      client.get("/")
      assert_equal ["a=1", ""], seen.map { |env| env["QUERY_STRING"] }
    end
  end

  def test_http10
    env_of(lint: false) do |client, seen| # Lint's bodies are read, and have no length for 1.0
      client.get("/", { "Connection" => "keep-alive" }, version: "1.0")
      client.get("/")
      assert_equal %w[HTTP/1.0 HTTP/1.1], seen.map { |env| env["SERVER_PROTOCOL"] }
    end
  end

  # Lint knows the path "*" since rack 3.1.
  def test_asterisk_form
    env_of(lint: Gem::Version.new(Rack.release) >= Gem::Version.new("3.1")) do |client, seen|
      client.request("OPTIONS", "*")
      assert_equal "*", seen.last["PATH_INFO"]
    end
  end

  def test_absolute_form
    env_of do |client, seen|
      client.get("http://other.test:81/x?y", { "Host" => "other.test:81" })
      assert_equal ["/x", "y", "other.test"], seen.last.values_at("PATH_INFO", "QUERY_STRING", "SERVER_NAME")
    end
  end

  def test_fields_become_http_keys
    env_of do |client, seen|
      client.get("/", { "User-Agent" => "tester", "X-Frob-Nicate" => "yes", "Content-Type" => "text/x", "Accept" => "\xe9".b })
      env = seen.last
      assert_equal "tester", env["HTTP_USER_AGENT"]
      assert_equal "yes", env["HTTP_X_FROB_NICATE"]
      assert_equal "text/x", env["CONTENT_TYPE"]
      assert_equal "\xe9".b, env["HTTP_ACCEPT"]
      refute env.key?("HTTP_CONTENT_TYPE")
      refute env.key?("CONTENT_LENGTH"), "no body, no length"
    end
  end

  def test_every_known_field_has_its_key
    names = %w[Accept Accept-Encoding Authorization Cache-Control Cookie If-None-Match Origin Range Referer Sec-Fetch-Mode
               Upgrade-Insecure-Requests X-Forwarded-For X-Request-Id]
    env_of do |client, seen|
      client.get("/", names.to_h { |name| [name.swapcase, "value of #{name}"] })
      names.each { |name| assert_equal "value of #{name}", seen.last["HTTP_#{name.upcase.tr("-", "_")}"] }
    end
  end

  def test_repeated_fields_are_joined
    env_of do |client, seen|
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nCookie: a=1\r\nX-A: 2\r\nCookie: b=2\r\n\r\n")
      client.read_response
      assert_equal ["1, 2", "a=1; b=2"], seen.last.values_at("HTTP_X_A", "HTTP_COOKIE")
    end
  end

  def test_names_with_underscores_are_dropped
    env_of do |client, seen|
      client.get("/", { "X_Forwarded_For" => "6.6.6.6", "X-Forwarded-For" => "1.1.1.1" })
      assert_equal "1.1.1.1", seen.last["HTTP_X_FORWARDED_FOR"]
    end
  end

  # More names than the cache of keys has slots, twice over, so that hits, misses and displacements all happen.
  def test_many_unknown_names
    env_of do |client, seen|
      2.times do
        600.times.each_slice(60) do |numbers|
          client.get("/", numbers.to_h { |i| ["X-N#{i}-#{"y" * (i % 40)}", "v#{i}"] })
          numbers.each { |i| assert_equal "v#{i}", seen.last["HTTP_X_N#{i}_#{"Y" * (i % 40)}"] }
        end
      end
    end
  end

  def test_many_fields_outgrow_the_table
    env_of do |client, seen|
      [0, 5, 30, 90].each do |count|
        client.get("/", count.times.to_h { |i| ["X-#{i}", i.to_s] })
        assert_equal count, seen.last.keys.count { |key| key.start_with?("HTTP_X_") }
      end
    end
  end

  KNOWN = %w[Accept Accept-Charset Accept-Encoding Accept-Language Authorization Cache-Control Cookie DNT Forwarded If-Match
             If-Modified-Since If-None-Match If-Range If-Unmodified-Since Origin Pragma Priority Range Referer Sec-Ch-Ua Sec-Ch-Ua-Mobile
             Sec-Ch-Ua-Platform Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User Sec-WebSocket-Extensions Sec-WebSocket-Key
             Sec-WebSocket-Protocol Sec-WebSocket-Version TE Upgrade-Insecure-Requests User-Agent Via X-Csrf-Token X-Forwarded-For
             X-Forwarded-Host X-Forwarded-Port X-Forwarded-Proto X-Real-Ip X-Requested-With X-Request-Id X-Request-Start].freeze

  def http_keys(env) = env.select { |key, _| key.start_with?("HTTP_") && !%w[HTTP_HOST HTTP_VERSION].include?(key) }

  # Environments are copied by shape, the order of known fields; each of these is met often enough to be kept, and never
  # mixed up.
  def test_shapes
    random = Random.new(1)
    shapes = [[], KNOWN.first(1), KNOWN.first(39), KNOWN.first(40), KNOWN, KNOWN.reverse] + Array.new(80) { KNOWN.sample(8, random: random) }
    env_of(head_bytes_max: "64K") do |client, seen|
      4.times do |round|
        shapes.shuffle(random: random).each_with_index do |names, turn|
          fields = names.to_h { |name| [name, "#{name} #{round} #{turn}"] }
          fields["X-Other"] = "other" if turn.odd?
          client.get("/#{turn}?#{round}", fields)
          env = seen.pop
          expected = fields.to_h { |name, value| ["HTTP_#{name.upcase.tr("-", "_")}", value] }
          assert_equal expected, http_keys(env)
          assert_equal ["GET", "/#{turn}", round.to_s, "/#{turn}?#{round}", "HTTP/1.1"],
                       env.values_at("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "REQUEST_URI", "SERVER_PROTOCOL")
          refute env.value?(nil), env.key(nil)
        end
      end
    end
  end

  def test_one_shape_over_both_transports_and_methods
    %i[unix tcp].each do |transport|
      env_of(transport: transport) do |client, seen|
        5.times do
          client.get("/a", { "Accept" => "x" })
          client.request("POST", "/b", { "Accept" => "y", "Content-Length" => "2" }, body: "ab")
          assert_equal [["GET", "x", nil], ["POST", "y", "2"]], seen.pop(2).map { |env| env.values_at("REQUEST_METHOD", "HTTP_ACCEPT", "CONTENT_LENGTH") }
        end
      end
    end
  end

  # Entries that hang on an option or a transport, in environments made key by key and copied from a template.
  def test_entries_that_only_some_environments_have
    [false, true].product([false, true], %i[unix tcp]).each do |request_id, early_hints, transport|
      env_of(transport: transport, request_id: request_id, early_hints: early_hints) do |client, seen|
        5.times { |i| client.get("/#{i}", { "Accept" => "x", "User-Agent" => "y" * 40 }) }
        seen.each_with_index do |env, i|
          assert_equal request_id, env.key?("oribi.request_id")
          assert_operator env["HTTP_X_REQUEST_ID"], :equal?, env["oribi.request_id"]
          assert_match(/\A\h{8}-\h{4}-7\h{3}-[89ab]\h{3}-\h{12}\z/, env["oribi.request_id"]) if request_id
          assert_equal early_hints, env.key?("rack.early_hints")
          assert_respond_to env["rack.early_hints"], :call if early_hints
          assert_equal transport == :tcp, env.key?("REMOTE_PORT")
          assert_equal ["/#{i}", "x", "y" * 40, Integer], [*env.values_at("PATH_INFO", "HTTP_ACCEPT", "HTTP_USER_AGENT"), env["oribi.queue_us"].class]
          refute env.value?(nil), env.key(nil)
        end
        assert_equal seen.size, seen.map { |env| env["oribi.request_id"] }.uniq.size if request_id
      end
    end
  end

  # Long values that come again share their bytes; whoever changes one in place changes nobody else's.
  def test_repeated_long_values_are_nobody_elses
    agent = "agent #{"x" * 100}"
    app = lambda do |env|
      value = env["HTTP_USER_AGENT"].dup
      env["HTTP_USER_AGENT"] << " changed"
      env["HTTP_USER_AGENT"].setbyte(0, 33)
      text([value, "|", env["HTTP_USER_AGENT"].frozen?.to_s])
    end
    serve(app) do |client|
      50.times { assert_equal "#{agent}|false", client.get("/", { "User-Agent" => agent }).body }
      50.times { |i| assert_equal "#{agent}#{i}|false", client.get("/", { "User-Agent" => "#{agent}#{i}" }).body }
    end
  end

  def test_values_are_binary_and_belong_to_the_request
    env_of do |client, seen|
      2.times { client.get("/path?query", { "X-A" => "value" }) }
      %w[PATH_INFO QUERY_STRING REQUEST_URI HTTP_X_A HTTP_HOST].each do |key|
        assert_equal Encoding::BINARY, seen.last[key].encoding, key
        refute seen.last[key].frozen?, key
        refute_same seen.first[key], seen.last[key], key
      end
    end
  end

  def test_keys_are_frozen_and_shared
    env_of do |client, seen|
      2.times { client.get("/", { "X-A" => "value", "Accept" => "x" }) }
      first, last = seen.map { |env| env.keys.to_h { |key| [key, key] } }
      first.each { |name, key| assert_same key, last[name], name }
      assert(first.values.all?(&:frozen?))
    end
  end

  def test_the_environment_may_be_changed_without_touching_the_next
    app = lambda do |env|
      changed = env.key?("mine.key") || env["SERVER_NAME"] == "changed"
      env["mine.key"] = 1
      env["SERVER_NAME"] = "changed"
      env.delete("rack.errors")
      text([changed.to_s])
    end
    serve(app, lint: false) { |client| 3.times { assert_equal "false", client.get("/").body } }
  end

  def test_unix_peer
    env_of do |client, seen|
      client.get("/", { "Host" => "example.test:8080" })
      env = seen.last
      assert_equal "127.0.0.1", env["REMOTE_ADDR"]
      refute env.key?("REMOTE_PORT")
      assert_equal %w[example.test 8080], env.values_at("SERVER_NAME", "SERVER_PORT")
      client.get("/")
      assert_equal "80", seen.last["SERVER_PORT"]
    end
  end

  def test_ports_of_many_connections
    app = ->(env) { text([env.values_at("REMOTE_ADDR", "REMOTE_PORT", "SERVER_PORT").join(" "), " ", env["REMOTE_PORT"].frozen?.to_s]) }
    serve(app, transport: :tcp) do |client|
      600.times do # more than are kept, each met twice
        socket = client.socket
        want = "127.0.0.1 #{socket.local_address.ip_port} #{socket.remote_address.ip_port} true"
        2.times { assert_equal want, client.get("/").body }
        client.reconnect
      end
    end
  end

  def test_ipv4_peer
    env_of(transport: :tcp) do |client, seen|
      client.get("/")
      env = seen.last
      assert_equal "127.0.0.1", env["REMOTE_ADDR"]
      assert_equal client.socket.local_address.ip_port.to_s, env["REMOTE_PORT"]
      assert_equal client.socket.remote_address.ip_port.to_s, env["SERVER_PORT"]
    end
  end

  def test_ipv6_peer
    env_of(transport: :tcp6) do |client, seen|
      client.get("/", { "Host" => "[::1]" })
      env = seen.last
      assert_equal "::1", env["REMOTE_ADDR"]
      assert_equal client.socket.local_address.ip_port.to_s, env["REMOTE_PORT"]
      assert_equal "[::1]", env["SERVER_NAME"]
    end
  rescue Oribi::Error => e
    skip "no IPv6 here: #{e.message}"
  end

  def test_server_name_follows_the_request
    env_of do |client, seen|
      %w[a.test b.test a.test].each { |host| client.get("/", { "Host" => host }) }
      assert_equal %w[a.test b.test a.test], seen.map { |env| env["SERVER_NAME"] }
    end
  end

  def test_version_keys_of_older_rack
    constants = { "HTTP_VERSION" => "HTTP/1.1" }
    env_of(constants: constants) do |client, seen|
      client.get("/", { "Version" => "forged" })
      assert_equal "HTTP/1.1", seen.last["HTTP_VERSION"]
      client.get("/", {}, version: "1.0")
      assert_equal "HTTP/1.0", seen.last["HTTP_VERSION"]
    end
  end

  def test_version_of_a_client
    env_of do |client, seen|
      client.get("/", { "Version" => "7" })
      assert_equal((Gem::Version.new(Rack.release) >= Gem::Version.new("3.1") ? "7" : nil), seen.last["HTTP_VERSION"])
      client.get("/")
      refute seen.last.key?("HTTP_VERSION")
    end
  end

  def test_errors_stream
    app = lambda do |env|
      env["rack.errors"].puts("told")
      text([])
    end
    serve(app) { |client| assert_equal 200, client.get("/").status }
    assert_equal "told\n", errors.string
  end
end
