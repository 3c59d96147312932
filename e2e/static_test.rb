# frozen_string_literal: true

require_relative "support"
require_relative "support/tree"

# Files of mounts: one server with three of them, and nothing kept open, so that what is left over shows.
E2E.suite("static", transports: %i[tcp unix frontend], options: [*E2E::Tree.mounts, "--static-open-max", "0"]) do
  define_method(:lines) { |response, *names| names.map { |name| response[name] } }

  # --- mounts ---

  define_method(:test_a_mount_at_a_prefix) do
    response = connect.get("/assets/a.txt")
    assert_equal [200, "0123456789"], [response.status, response.body]
    assert_equal ["public, max-age=60", "yes", "nosniff", "bytes", "text/plain; charset=utf-8"],
                 lines(response, "cache-control", "x-extra", "x-content-type-options", "accept-ranges", "content-type")
    missing = connect.get("/assets/none")
    assert_equal [404, nil, nil], [missing.status, *lines(missing, "cache-control", "x-extra")]
    assert_equal 404, connect.get("/assetsx/a.txt").status, "of the application"
    assert_equal "0123456789", connect.get("/%61ssets/a%2etxt").body, "matched after decoding"
  end

  define_method(:test_the_root_falls_through) do
    assert_equal "a file of the root", connect.get("/robots.txt").body
    assert_equal "front", connect.get("/index.html").body
    assert_equal "Hello, World!", connect.get("/").body, "of the application: there is no index"
    assert_equal worker.to_s, connect.get("/pid").body
    assert_equal "no route\n", connect.get("/about").body
    assert_equal "no route\n", connect.get("/sub").body
  end

  define_method(:test_index_and_html) do
    assert_equal %w[front front inner about about], %w[/site/ /site/index.html /site/sub/ /site/about /site/about.html].map { |path| connect.get(path).body }
    { "/site" => "/site/", "/site/sub?a=b%20c" => "/site/sub/?a=b%20c" }.each do |target, location|
      response = connect.get(target)
      assert_equal [301, location, nil], [response.status, response["location"], response["cache-control"]]
    end
    assert_equal 404, connect.get("/site/empty-folder/").status
  end

  define_method(:test_the_longest_prefix_is_asked_first) do
    assert_equal "deep", connect.get("/assets/deep/d.txt").body
    assert_equal "of the shorter prefix", connect.get("/assets/deep/only-above.txt").body, "the longer one falls through"
    assert_equal 404, connect.get("/assets/deep/none").status
  end

  define_method(:test_other_methods_are_the_applications) do
    %w[OPTIONS POST PUT DELETE].each do |method|
      assert_equal "no route\n", connect.request(method, "/assets/a.txt", {}, "").read_response.body, method
    end
  end

  define_method(:test_head_equals_get) do
    %w[/assets/a.txt /assets/style.css /assets/empty /assets/none /assets/% /site/sub].each do |target|
      get = connect.get(target)
      head = connect.head(target, { "Range" => "bytes=1-2" })
      fields = [get, head].map { |one| one.fields.reject { |name,| name == "Date" } }
      assert_equal [get.status, fields[0]], [head.status, fields[1]], target
      assert_empty head.body
    end
  end

  define_method(:test_http_1_0) do
    response = exchange("GET /assets/a.txt HTTP/1.0\r\n\r\n")
    assert_equal "0123456789", response.body
    assert response.close?
  end

  # --- safe paths ---

  define_method(:test_paths_that_are_no_file) do
    { "/assets/../a.txt" => 404, "/assets/%2e%2e/a.txt" => 404, "/assets/./a.txt" => 404, "/assets//a.txt" => 404,
      "/assets/.hidden" => 404, "/assets/%2ehidden" => 404, "/assets/sub%2fx" => 404, "/assets/a.txt/" => 404,
      "/assets/a.txt%00" => 400, "/assets/a%" => 400, "/assets/a%2" => 400, "/assets/%zz" => 400,
      "/assets/#{"a" * 300}" => 404, "/assets/#{"a/" * 2100}" => 404, "/assets" => 404, "/assets/" => 404,
      "/assets/pipe" => 404, "/assets/out" => 404, "/assets/absolute-out" => 404, "/assets/loop" => 404,
      "/assets/null" => 404 }.each do |target, status|
      assert_equal status, connect.get(target).status, target[0, 60]
    end
    assert_equal "well known", connect.get("/.well-known/x").body
    assert_alive
  end

  define_method(:test_links) do
    assert_equal "0123456789", connect.get("/assets/link").body
    assert_equal "0123456789", connect.get("/assets/absolute").body, "an absolute link that stays inside"
    assert_equal "shared", connect.get("/assets/linked/s.txt").body, "a folder that links may lead to"
    assert_equal "spaced", connect.get("/assets/spaced%20n%C3%A4me.txt").body
  end

  # --- conditions and ranges ---

  define_method(:test_conditions) do
    etag = connect.get("/assets/a.txt")["etag"]
    assert_equal "\"3b9aca00-a\"", etag, "strong, of time and size"
    date = Time.at(1_000_000_000).httpdate
    [["If-None-Match", etag, 304], ["If-None-Match", "W/#{etag}", 304], ["If-None-Match", "\"x\", #{etag}", 304],
     ["If-None-Match", "\"x\"", 200], ["If-Match", etag, 200], ["If-Match", "W/#{etag}", 412], ["If-Match", "\"x\"", 412],
     ["If-Match", "*", 200], ["If-Modified-Since", date, 304], ["If-Modified-Since", Time.at(999_999_999).httpdate, 200],
     ["If-Unmodified-Since", date, 200], ["If-Unmodified-Since", Time.at(999_999_999).httpdate, 412],
     ["If-Modified-Since", "nonsense", 200]].each do |name, value, status|
      response = connect.get("/assets/a.txt", { name => value })
      assert_equal status, response.status, "#{name}: #{value}"
      assert_equal [("public, max-age=60" unless status == 412)], [response["cache-control"]], "#{name}: #{value}"
    end
    response = connect.get("/assets/style.css", { "If-None-Match" => "*" })
    assert_equal ["Accept-Encoding", "public, max-age=60", nil, nil], lines(response, "vary", "cache-control", "content-length", "content-type")
    refute_nil response["etag"]
  end

  define_method(:test_ranges) do
    [["bytes=2-4", 206, "234", "bytes 2-4/10"], ["bytes=8-", 206, "89", "bytes 8-9/10"], ["bytes=-3", 206, "789", "bytes 7-9/10"],
     ["bytes=0-99", 206, "0123456789", "bytes 0-9/10"], ["bytes=2-4,3-5", 206, "2345", "bytes 2-5/10"],
     ["bytes=10-", 416, "", "bytes */10"], ["bytes=4-2", 200, "0123456789", nil], ["bytes=nonsense", 200, "0123456789", nil],
     ["lines=1-2", 200, "0123456789", nil], ["bytes=#{"0-0," * 1000}1-1", 206, "01", "bytes 0-1/10"]].each do |range, status, body, field|
      response = connect.get("/assets/a.txt", { "Range" => range })
      assert_equal [status, body, field], [response.status, response.body, response["content-range"]], range[0, 60]
    end
    assert_equal 416, connect.get("/assets/empty", { "Range" => "bytes=0-" }).status
    big = E2E::Tree.big
    assert_equal big.byteslice(1_000_000, 1_000_001), connect.get("/assets/big.bin", { "Range" => "bytes=1000000-2000000" }).body
    etag = connect.get("/assets/a.txt")["etag"]
    assert_equal 206, connect.get("/assets/a.txt", { "Range" => "bytes=1-1", "If-Range" => etag }).status
    assert_equal 200, connect.get("/assets/a.txt", { "Range" => "bytes=1-1", "If-Range" => "\"x\"" }).status
  end

  define_method(:test_several_ranges) do
    ["/assets/a.txt", "/assets/big.bin"].each do |target|
      whole = connect.get(target).body
      client = connect
      response = client.get(target, { "Range" => "bytes=1-2,5-5,-2" })
      parts = E2E::Tree.parts(response)
      size = whole.bytesize
      assert_equal [[1, 2], [5, 5], [size - 2, size - 1]], parts.map(&:first), target
      parts.each { |(first, last), body| assert_equal whole.byteslice(first..last), body }
      assert_equal "01", client.get("/assets/a.txt", { "Range" => "bytes=0-1" }).body, "the connection goes on"
    end
    ranges = (0...16).map { |i| "#{i * 100_000}-#{i * 100_000 + 70_000}" }.join(",")
    parts = E2E::Tree.parts(connect.get("/assets/big.bin", { "Range" => "bytes=#{ranges}" }))
    assert_equal 16, parts.size
    parts.each { |(first, last), body| assert_equal E2E::Tree.big.byteslice(first..last), body }
    many = (0..16).map { |i| "#{i * 100}-#{i * 100}" }.join(",")
    assert_equal 200, connect.get("/assets/big.bin", { "Range" => "bytes=#{many}" }).status, "more than 16 are the whole"
  end

  # --- types, precompressed files ---

  define_method(:test_types) do
    { "style.css" => "text/css; charset=utf-8", "big.bin" => "application/octet-stream", "page.html" => "text/html; charset=utf-8",
      "image.png" => "image/png", "no-extension" => "application/octet-stream" }.each do |name, type|
      assert_equal type, connect.get("/assets/#{name}")["content-type"], name
    end
  end

  define_method(:test_precompressed_files) do
    { "gzip" => %w[gzip css-gz], "br, gzip" => %w[br css-br], "gzip, br, zstd" => %w[zstd css-zst], "gzip;q=1, br;q=0.5" => %w[gzip css-gz],
      "identity" => [nil, "plain css"], "gzip;q=0" => [nil, "plain css"], "" => [nil, "plain css"],
      "identity;q=0, gzip" => %w[gzip css-gz], "*" => %w[zstd css-zst] }.each do |accepted, (coding, body)|
      response = connect.get("/assets/style.css", { "Accept-Encoding" => accepted })
      assert_equal [coding, body, "Accept-Encoding", "text/css; charset=utf-8"],
                   [response["content-encoding"], response.body, response["vary"], response["content-type"]], accepted
    end
    tags = ["gzip", "br", ""].map { |accepted| connect.get("/assets/style.css", { "Accept-Encoding" => accepted })["etag"] }
    assert_equal tags, tags.uniq, "an entity tag of its own each"
    refused = connect.get("/assets/style.css", { "Accept-Encoding" => "deflate, identity;q=0" })
    assert_equal [406, nil], [refused.status, refused["cache-control"]]
    stale = connect.get("/assets/stale.js", { "Accept-Encoding" => "gzip" })
    assert_equal [nil, "newer", nil], [stale["content-encoding"], stale.body, stale["vary"]]
    2.times { connect.get("/assets/stale.js", { "Accept-Encoding" => "gzip" }) }
    assert_equal 1, server.stderr.scan("stale.js.gz is 10 s older than the file").size, "said once"
  end

  define_method(:test_an_accept_encoding_of_8_kib) do
    long = (1..800).map { |i| "x#{i};q=0.#{i % 10}" }.join(",")
    response = connect.get("/assets/style.css", { "Accept-Encoding" => "#{long},gzip" })
    assert_equal [200, "plain css"], [response.status, response.body], "too long to be believed"
    assert_equal "css-gz", connect.get("/assets/style.css", { "Accept-Encoding" => "#{long[0, 8000]},gzip" }).body
  end

  # --- while the worker is in a call, in order ---

  define_method(:test_files_while_the_worker_is_in_a_call) do
    held = enter_gate(server, "files")
    clients = Array.new(100) { connect }
    clients.each_with_index { |client, i| client.request("GET", i % 10 > 0 ? "/assets/a.txt" : "/assets/big.bin") }
    clients.each_with_index do |client, i|
      assert_equal i % 10 > 0 ? "0123456789" : E2E::Tree.big, client.read_response.body
    end
    assert held.quiet?, "the call is not over"
  ensure
    open_gate(server, "files")
    assert_equal 200, held.read_response.status
  end

  define_method(:test_pipelined_requests_in_order) do
    held = enter_gate(server, "order")
    client = connect
    targets = %w[/assets/a.txt /pid /assets/style.css /pid /robots.txt]
    client.send_raw(targets.map { |target| "GET #{target} HTTP/1.1\r\nHost: a\r\n\r\n" }.join)
    assert_equal "0123456789", client.read_response.body, "before the first one that needs a call"
    open_gate(server, "order")
    assert_equal 200, held.read_response.status
    assert_equal [worker.to_s, "plain css", worker.to_s, "a file of the root"], Array.new(4) { client.read_response.body }
  end

  define_method(:test_files_and_calls_in_turn) do
    client = connect
    50.times do |i|
      assert_equal "0123456789", client.get("/assets/a.txt").body
      assert_equal i.to_s, client.post("/echo", i.to_s).body
    end
  end

  define_method(:test_a_body_behind_a_request_for_a_file) do
    client = connect
    2.times { assert_equal "0123456789", client.request("GET", "/assets/a.txt", {}, "x" * 200_000).read_response.body }
    assert_equal 200, client.get("/pid").status
  end
end
