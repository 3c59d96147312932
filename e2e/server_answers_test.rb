# frozen_string_literal: true

require_relative "support"

# `header` on everything that the real commands answer, and `error_page` for the server's answers.
E2E.suite("server_answers", transports: E2E::EITHER | %i[frontend]) do
  define_method(:setup) do
    super()
    @dir = File.realpath(Dir.mktmpdir("oribi-pages"))
    File.write("#{@dir}/500.html", "<p>our mistake</p>")
    File.write("#{@dir}/404.html", "<p>not here</p>")
    File.write("#{@dir}/a.txt", "file")
  end

  define_method(:teardown) do
    super()
    FileUtils.remove_entry(@dir)
  end

  define_method(:serve) do |*words, **more|
    start("--workers", "1", "--header", "X-Frame-Options:DENY", "--header", "Content-Language: en", "--static", "/s=#{@dir}",
          "--answer", "/robots.txt=200:x", "--redirect", "/old=/", "--health", "/up",
          "--error-page", "500,502,503,504,400=#{@dir}/500.html", "--error-page", "404=#{@dir}/404.html", *words, **more)
  end

  define_method(:once) do |response|
    assert_equal [%w[DENY], %w[en]], %w[x-frame-options content-language].map { |name| response.values(name) }, response.status
    response
  end

  define_method(:test_every_answer_has_the_headers_once) do
    one = serve
    { "/" => 200, "/s/a.txt" => 200, "/s/none" => 404, "/robots.txt" => 200, "/old" => 301, "/up" => 200, "/numbers" => nil,
      "/raise" => 500 }.each do |target, status|
      response = once(one.get(target))
      assert_equal status, response.status, target if status
    end
    once(connect(one).send_raw("GET / HTTP/1.1\r\n\r\n").read_response)
  end

  define_method(:test_pages_replace_the_servers_answers) do
    one = serve
    html = ["text/html; charset=utf-8"]
    assert_equal [500, "<p>our mistake</p>", html], one.get("/raise").then { |own| [own.status, own.body, own.values("content-type")] }
    assert_equal [404, "<p>not here</p>", html], one.get("/s/none").then { |own| [own.status, own.body, own.values("content-type")] }
    assert_equal [400, "<p>our mistake</p>", true],
                 connect(one).send_raw("GET / HTTP/1.1\r\n\r\n").read_response.then { |own| [own.status, own.body, own.close?] }
    assert_equal [404, "no route\n"], one.get("/none").then { |theirs| [theirs.status, theirs.body] }
    head = connect(one).head("/s/none")
    assert_equal [404, "15"], [head.status, head["content-length"]]
  end

  define_method(:test_a_stuck_call_is_answered_with_its_page) do
    one = serve("--call-timeout", "200ms")
    client = connect(one)
    client.request("GET", "/gate?name=stuck")
    own = once(client.read_response)
    assert_equal [504, "<p>our mistake</p>"], [own.status, own.body]
  end

  # The answer is written by a signal's handler.
  define_method(:test_a_call_that_nothing_ends_is_answered_with_its_page) do
    one = serve("--call-timeout", "200ms", app: E2E::RUBY ? "e2e/apps/deadlines.ru" : "e2e/apps/deadlines.psgi")
    own = once(connect(one).get("/stuck"))
    assert_equal [504, "<p>our mistake</p>"], [own.status, own.body]
    wait_until("the line") { one.stdout.match?(%r{"GET /stuck HTTP/1\.1" 504 18\b}) }
  end

  define_method(:test_a_reload_takes_a_changed_page) do
    one = serve
    wait_until("the server to be up") { one.stderr.include?("listening on") }
    File.write("#{@dir}/404.html", "changed")
    assert_equal "<p>not here</p>", one.get("/s/none").body
    one.signal(:HUP)
    wait_until("the new page: #{one.stderr}") { one.get("/s/none").body == "changed" }
  end

  define_method(:test_what_is_wrong_refuses_a_start) do
    { ["--error-page", "500=#{@dir}/none.html"] => %r{error_page 500=.*/none\.html: no such file or directory},
      ["--error-page", "200=x"] => /error_page "200=x" needs statuses from 400 to 599/,
      ["--header", "Content-Length:5"] => /header "Content-Length:5" has a name that the server or the application alone sets/,
      ["--header", "X-A:1", "--header", "x-a:2"] => /header "x-a:2" has a name that another one has/ }.each do |words, line|
      one = run_to_end(*words)
      assert_equal 1, one.status.exitstatus, one.stderr
      assert_match line, one.stderr
    end
  end
end
