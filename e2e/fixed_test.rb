# frozen_string_literal: true

require_relative "support"
require_relative "support/askers"
require "json"
require "open3"

# Fixed answers, redirects and health of the real commands.
E2E.suite("fixed", transports: E2E::EITHER | %i[frontend]) do
  const_set(:WORDS, ["--answer", "/robots.txt=200:User-agent: *", "--answer", "/gone=410", "--redirect", "/old=/hello?a=1",
                     "--redirect", "/was/*=308:/is/*", "--redirect", "/is/robots=302:/robots.txt", "--health", "/up"].freeze)

  define_method(:serve) { |*words| start("--workers", "1", *self.class::WORDS, *words) }
  define_method(:health) { |one| one.get("/up").then { |response| [response.status, response.body] } }

  define_method(:test_answers_and_redirects) do
    one = serve
    robots = one.get("/robots.txt?x")
    assert_equal [200, "User-agent: *", ["text/plain; charset=utf-8"]], [robots.status, robots.body, robots.values("content-type")]
    assert_equal [410, "410 Gone\n"], one.get("/gone").then { |gone| [gone.status, gone.body] }
    assert_equal [301, ["/hello?a=1&b=2"]], one.get("/old?b=2").then { |old| [old.status, old.values("location")] }
    assert_equal [308, ["/is/a%20b?q"]], one.get("/was/a%20b?q").then { |was| [was.status, was.values("location")] }
    client = connect(one)
    post = client.post("/robots.txt", "body")
    assert_equal [405, ["GET, HEAD"]], [post.status, post.values("allow")]
    assert_equal 308, client.post("/was/x", "body").status
    assert_equal "Hello, World!", client.get("/").body
  end

  define_method(:test_curl_follows_redirects) do
    one = serve
    at = unix? ? ["--unix-socket", one.path] : []
    url = unix? ? "http://localhost" : "http://127.0.0.1:#{one.port}"
    text, status = Open3.capture2("curl", "-sL", *at, "-w", " %{num_redirects} %{http_code}", "#{url}/was/robots")
    assert_equal [true, "User-agent: * 2 200"], [status.success?, text]
  end

  define_method(:test_health_answers_while_every_worker_is_in_a_call) do
    one = serve
    client = enter_gate(one, "call")
    assert_equal [200, "ok\n"], health(one)
    answer = one.get("/up", { "Accept" => "application/json" })
    assert_equal({ "status" => "ok", "generation" => 1, "workers" => 1, "busy" => 1 }, JSON.parse(answer.body))
    assert_equal [["application/json"], ["no-store"]], [answer.values("content-type"), answer.values("cache-control")]
    open_gate(one, "call")
    assert_equal 200, client.read_response.status
  end

  define_method(:test_without_helper_health_is_answered_between_calls) do
    one = serve("--no-helper")
    client = enter_gate(one, "call")
    asker = connect(one)
    asker.request("GET", "/up")
    open_gate(one, "call")
    assert_equal 200, client.read_response.status
    assert_equal "ok\n", asker.read_response.body
  end

  define_method(:test_a_reload_never_turns_health_red) do
    one = start("--workers", "2", *self.class::WORDS)
    askers = E2E::Askers.new(unix? ? one.path : ["127.0.0.1", one.port], path: "/up")
    wait_until("the server to be up") { one.stderr.include?("listening on") }
    2.times do |i|
      one.signal(:HUP)
      wait_until("generation #{i + 2}: #{one.stderr}") do
        JSON.parse(one.get("/up", { "Accept" => "application/json" }).body)["generation"] == i + 2
      end
      before = askers.answered
      wait_until("answers after the reload") { askers.answered > before + 20 }
    end
    assert_empty askers.stop
  end

  define_method(:test_a_drain_turns_health_red_before_a_connection_is_refused) do
    one = start("--workers", "2", *self.class::WORDS, "--drain-delay", "60s")
    kept = connect(one)
    assert_equal "ok\n", kept.get("/up").body
    askers = E2E::Askers.new(unix? ? one.path : ["127.0.0.1", one.port])
    one.signal(:TERM)
    wait_until("health to turn red") { health(one) == [503, "draining\n"] }
    assert_equal [503, false], kept.get("/up").then { |response| [response.status, response.close?] }
    before = askers.answered
    wait_until("answers of the application") { askers.answered > before + 20 }
    assert_empty askers.stop
    one.signal(:INT)
    one.wait
  end

  define_method(:test_a_stop_without_a_delay_is_told_to_who_is_connected) do
    one = start("--workers", "1", *self.class::WORDS)
    client = enter_gate(one, "call")
    kept = connect(one)
    assert_equal "ok\n", kept.get("/up").body
    one.signal(:TERM)
    answer = nil
    # The worker may hear of the stop a moment before its slot says that the server ends: then the last 200 closes.
    wait_until("the stop: #{one.stderr}") { (answer = kept.get("/up")).close? }
    assert_includes [200, 503], answer.status
    open_gate(one, "call")
    assert_equal 200, client.read_response.status
    one.wait
  end

  define_method(:test_what_is_wrong_refuses_a_start) do
    { ["--answer", "robots.txt=200"] => /answer "robots.txt=200" needs a path that begins with a slash/,
      ["--redirect", "/a=/b", "--redirect", "/b=/a"] => %r{redirect /\w leads back to itself, by /\w},
      ["--answer", "/up=200:x", "--health", "/up"] => %r{/up has two fixed answers: \w+ and \w+} }.each do |words, line|
      one = run_to_end(*words)
      assert_equal 1, one.status.exitstatus, one.stderr
      assert_match line, one.stderr
    end
  end
end
