# frozen_string_literal: true

require_relative "support"
require "open3"
require "zlib"

# Compressed answers of both commands: by their bytes, with curl, behind middleware that does the same or compares tags.
E2E.suite("compress", transports: E2E::EITHER) do
  self::APP = File.join(E2E::ROOT, "e2e/apps/compress#{E2E.differing(:app_extension)}")
  self::GZIP = { "Accept-Encoding" => "gzip" }.freeze
  self::JSON_TEXT = "[#{(1..600).map { |i| %({"id":#{i},"name":"item #{i}","open":#{i.even?}}) }.join(",")}]".freeze

  def setup
    super
    version, = Open3.capture2(E2E::Server.binary, "--version")
    skip "this build has no gzip" if version.include?("no gzip")
  end

  def app = self.class::APP
  def gzip = self.class::GZIP
  def json = self.class::JSON_TEXT

  def compressing(*options, lint: false) = start("--compress", "gzip", *options, app: app, env: lint ? { "E2E_LINT" => "1" } : {})

  def unpacked(answer)
    assert_equal ["gzip", "Accept-Encoding"], [answer["content-encoding"], answer["vary"]]
    Zlib.gunzip(answer.body)
  end

  def assert_plain(answer, text = nil)
    assert_nil answer["content-encoding"]
    assert_equal text, answer.body if text
  end

  def test_whole_answers_streams_and_files
    one = compressing
    client = connect(one)
    File.write(File.join(one.dir, "small.txt"), json)
    answer = client.get("/json", gzip)
    assert_equal [json, :length], [unpacked(answer), answer.framing]
    answer = client.get("/large", gzip)
    assert_equal [json * 20, :chunked], [unpacked(answer), answer.framing]
    assert_equal json, unpacked(client.get("/small-file", gzip))
    assert_plain client.get("/file", gzip), E2E::Server.numbers
    assert_plain client.get("/image", gzip), json
    assert_plain client.get("/cookie", gzip), json
    assert_plain client.get("/", gzip), "Hello, World!"
    answer = client.get("/json")
    assert_equal [json, "Accept-Encoding"], [answer.body, answer["vary"]]
    head = client.head("/json")
    assert_equal ["Accept-Encoding"], head.values("vary")
    answer = connect(one).get("/large", gzip, version: "1.0")
    assert_equal [json * 20, :close], [unpacked(answer), answer.framing]
  end

  def test_head_says_what_get_says
    client = connect(compressing)
    got = client.get("/json", gzip)
    head = client.request("HEAD", "/json", gzip).read_response(head: true)
    without = ->(answer) { answer.fields.reject { |name, _| name.match?(/\A(?:content-length|date)\z/i) } }
    assert_equal without.(got), without.(head)
    assert_nil head["content-length"]
  end

  def test_each_step_of_a_stream_is_seen_at_once
    one = compressing
    client = connect(one)
    client.request("GET", "/steps", gzip)
    assert_equal "gzip", client.read_head["content-encoding"]
    inflate = Zlib::Inflate.new(31)
    text = +""
    3.times do |i|
      text << inflate.inflate(client.read_chunk) until text == (0..i).map { |n| "step #{n}\n" }.join
      File.write(File.join(one.dir, "step#{i}"), "")
    end
    text << inflate.inflate(client.read_chunk) until inflate.finished?
    assert_empty client.read_chunk
    assert_equal "step 0\nstep 1\nstep 2\n", text
  end

  def test_events_stay_as_they_are
    one = compressing
    3.times { |i| File.write(File.join(one.dir, "step#{i}"), "") }
    answer = connect(one).get("/events", gzip)
    assert_plain answer, "step 0\nstep 1\nstep 2\n"
    assert_nil answer["vary"]
  end

  def test_tags_that_were_made_weak_come_back
    client = connect(compressing)
    assert_equal 'W/"one"', client.get("/strong", gzip)["etag"]
    assert_equal '"one"', client.get("/strong")["etag"]
    assert_equal 'W/"one", "one"', client.get("/seen", { "If-None-Match" => 'W/"one"' }).body
    assert_equal '"one"', client.get("/seen", { "If-None-Match" => '"one"' }).body
    # The first knows nothing of conditions; the second compares the whole value with one tag.
    ["", "/conditional"].product(%w[/strong /weak]).each do |prefix, path|
      answer = client.get(prefix + path, gzip.merge("If-None-Match" => 'W/"one"'))
      assert_equal [304, 'W/"one"', ""], [answer.status, answer["etag"], answer.body], prefix + path
      assert_equal 200, client.get(prefix + path, gzip.merge("If-None-Match" => 'W/"two"')).status
    end
    answer = client.get("/conditional/strong", { "If-None-Match" => '"one"' })
    assert_equal [304, '"one"'], [answer.status, answer["etag"]]
  end

  def test_what_middleware_has_compressed_is_not_compressed_again
    client = connect(compressing)
    assert_equal json, unpacked(client.get("/deflater/json", gzip))
    assert_equal json, client.get("/deflater/json").body
  end

  def test_under_lint
    one = compressing(lint: true)
    client = connect(one)
    File.write(File.join(one.dir, "small.txt"), json)
    assert_equal json, unpacked(client.get("/json", gzip))
    assert_equal json, unpacked(client.get("/small-file", gzip))
    assert_equal 304, client.get("/strong", gzip.merge("If-None-Match" => 'W/"one"')).status
    3.times { |i| File.write(File.join(one.dir, "step#{i}"), "") }
    assert_equal "step 0\nstep 1\nstep 2\n", unpacked(client.get("/steps", gzip))
    assert_empty one.stderr.lines.grep(/lint/i)
  end

  def test_private_answers_with_padding
    client = connect(compressing("--compress-private"))
    sizes = Array.new(50) do
      answer = client.get("/cookie", gzip)
      assert_equal json, unpacked(answer)
      answer.body.bytesize
    end
    assert_operator sizes.uniq.size, :>, 5
  end

  def test_options_decide
    one = start("--compress", "gzip", "--compress-types", "image/*", "--compress-min", "100K", "--compress-level", "9", app: app)
    client = connect(one)
    assert_plain client.get("/json", gzip), json
    assert_plain client.get("/image", gzip), json
    one = start("--compress", "gzip", "--compress-types", "image/*, text/plain", "--compress-min", "1", app: app)
    client = connect(one)
    assert_equal json, unpacked(client.get("/image", gzip))
    assert_equal "Hello, World!", unpacked(client.get("/", gzip))
  end

  def test_wrong_words_are_refused
    { %w[--compress deflate] => "compress deflate: takes gzip, zstd and br",
      ["--compress", "gzip gzip"] => "compress gzip: is given twice",
      ["--compress-types", "text"] => "compress_types text: takes types such as text/*, application/json, image/*+xml" }.each do |words, line|
      one = run_to_end(*words, app: app)
      assert_equal [1, "#{E2E::COMMAND}: #{line}\n"], [one.status.exitstatus, one.stderr]
    end
    one = run_to_end("--compress-level", "10", app: app)
    assert_equal 1, one.status.exitstatus
    assert_equal 1, one.stderr.lines.size
  end

  def test_curl_takes_every_coding
    skip "no curl here" unless system("curl", "--version", out: File::NULL)
    version, = Open3.capture2(E2E::Server.binary, "--version")
    known, = Open3.capture2("curl", "--version")
    { "gzip" => "libz", "br" => "brotli", "zstd" => "zstd" }.each do |coding, feature|
      if version.include?("no #{coding}") || !known.match?(/^Features:.* #{feature}/)
        puts "# #{coding} is not tried: the server or curl does not have it"
        next
      end
      one = start("--compress", coding, app: app)
      place = unix? ? ["--unix-socket", one.path, "http://localhost"] : ["http://127.0.0.1:#{one.port}"]
      place[-1] += "/large"
      text, status = Open3.capture2("curl", "-sS", "-f", "--compressed", *place)
      assert_equal [true, json * 20], [status.success?, text], coding
      assert_equal coding, connect(one).get("/json", { "Accept-Encoding" => coding })["content-encoding"]
    end
  end
end
