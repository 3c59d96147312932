# frozen_string_literal: true

require_relative "support"

# Files that the application answers with (to_path, handles), and files that it only names (X-Sendfile,
# X-Accel-Redirect), with conditions and ranges.
E2E.suite("sendfile", transports: E2E::EITHER) do
  const_set(:APP, "e2e/apps/sendfile#{E2E.differing(:app_extension)}")
  const_set(:OLD, Time.utc(2001, 9, 9, 1, 46, 40))
  const_set(:LARGE, 64 << 20)

  def setup
    super
    @top = Dir.mktmpdir("oribi-e2e")
    @files = "#{@top}/files"
    Dir.mkdir(@files)
    put("files/a.txt", "0123456789")
    put("files/a b.css", "p{}")
    put("outside.txt", "secret")
    File.symlink("../outside.txt", "#{@files}/out")
    File.mkfifo("#{@files}/fifo")
  end

  def teardown
    super
    FileUtils.remove_entry(@top)
  end

  def put(name, text)
    File.binwrite("#{@top}/#{name}", text)
    File.utime(self.class::OLD, self.class::OLD, "#{@top}/#{name}")
  end

  def launch(*options, env: {})
    one = start(*options, app: self.class::APP, env: { "E2E_FILES" => @files }.merge(env))
    [one, connect(one)]
  end

  def rooted = launch("--sendfile-root", @files)
  def mapped = launch("--sendfile-map", "/private=#{@files}")

  # The status and the body.
  def ask(client, target, fields = {}, **options) = client.get(target, fields, **options).then { |answer| [answer.status, answer.body] }
  def named(client, path, way: "X-Sendfile", at: "named", **fields) = client.get("/#{at}?#{path}", { "X-Way" => way }.merge(fields))

  def closed(one) = one.stderr.scan(/^closed/).size

  def test_ranges_and_conditions_of_to_path_and_handles
    one, client = launch
    %w[to_path handle].each do |way|
      assert_equal [200, "0123456789"], ask(client, "/#{way}?a.txt")
      assert_equal [206, "234"], ask(client, "/#{way}?a.txt", { "Range" => "bytes=2-4" })
      assert_equal [416, ""], ask(client, "/#{way}?a.txt", { "Range" => "bytes=10-" })
      assert_equal [200, "0123456789"], ask(client, "/#{way}?a.txt", { "Range" => "bytes=2-4", "If-Range" => '"v1"' })
      assert_equal [200, "0123456789"], ask(client, "/#{way}?a.txt", { "If-Modified-Since" => Time.now.httpdate })
      assert_equal [206, "89"], ask(client, "/#{way}?a.txt", { "Range" => "bytes=-2", "Connection" => "keep-alive" }, version: "1.0")
      several = client.get("/#{way}?a.txt", { "Range" => "bytes=0-1,9-" })
      assert_equal 206, several.status
      boundary = several["Content-Type"][/\Amultipart\/byteranges; boundary=(\w+)\z/, 1]
      assert_equal ["0-1/10\r\n\r\n01", "9-9/10\r\n\r\n9"], several.body.split(/\r\n--#{boundary}(?:--)?\r\n/).map { |part| part[/(?<=bytes ).*/m] }.compact
      head = client.request("HEAD", "/#{way}?a.txt", { "Range" => "bytes=2-4" }).read_response(head: true)
      assert_equal [200, "10"], [head.status, head["Content-Length"]]
    end
    assert_equal [304, ""], ask(client, "/tagged?a.txt", { "If-None-Match" => 'W/"v1"' })
    assert_equal [412, ""], ask(client, "/tagged?a.txt", { "If-Match" => '"v2"' })
    assert_equal [206, "2"], ask(client, "/tagged?a.txt", { "Range" => "bytes=2-2", "If-Range" => '"v1"' })
    assert_equal [200, "0123456789"], ask(client, "/tagged?a.txt", { "Range" => "bytes=2-2", "If-Range" => '"v2"' })
    assert_equal [200, "0123456789"], ask(client, "/whole?a.txt", { "Range" => "bytes=2-2" })
    assert_equal [200, "Hello, World!"], ask(client, "/")
    wait_until("all bodies closed: #{closed(one)}") { closed(one) == 13 }
  end

  def test_a_file_made_for_the_answer_is_sent_whole
    _, client = launch
    File.write("#{@files}/new", "0123456789")
    File.utime(Time.now + 30, Time.now + 30, "#{@files}/new")
    assert_equal [200, "0123456789"], ask(client, "/to_path?new", { "Range" => "bytes=2-4" })
  end

  def test_a_named_file_of_a_root
    one, client = rooted
    answer = named(client, "#{@files}/a.txt")
    assert_equal [200, "0123456789", "10", "yes"], [answer.status, answer.body, answer["Content-Length"], answer["X-Named"]]
    assert_match(/\Atext\/plain/, answer["Content-Type"])
    assert_nil answer["X-Sendfile"]
    assert_equal 304, named(client, "#{@files}/a.txt", "If-None-Match": answer["ETag"]).status
    assert_equal "234", named(client, "#{@files}/a.txt", Range: "bytes=2-4", "If-Range": answer["ETag"]).body
    assert_equal "p{}", named(client, "#{@files}/a%20b.css", way: "X-Lighttpd-Send-File").body
    assert_equal "/private/a.txt", named(client, "/private/a.txt", way: "X-Accel-Redirect")["X-Accel-Redirect"]
    ["#{@files}/none", "#{@top}/outside.txt", "#{@files}/../outside.txt", "#{@files}/out", "#{@files}/fifo", "/dev/zero", "a.txt", @files].each do |path|
      assert_equal 500, named(client, path).status, path
    end
    assert_match(/error: GET \/named\S*: X-Sendfile names #{@files}\/none: no such file; answered with 500$/, one.stderr)
    wait_until("all bodies closed: #{closed(one)}") { closed(one) == 13 }
    assert_equal [200, "Hello, World!"], ask(client, "/")
  end

  def test_a_named_path_of_a_map
    _, client = mapped
    answer = named(client, "/private/a.txt", way: "X-Accel-Redirect", Range: "bytes=-1")
    assert_equal [206, "9", nil], [answer.status, answer.body, answer["X-Accel-Redirect"]]
    assert_equal "p{}", named(client, "/private/a%2520b.css", way: "X-Accel-Redirect").body
    %w[/private/../outside.txt /private/%252e%252e/outside.txt /private/out /private/ /other/a.txt /private/fifo].each do |path|
      assert_equal 500, named(client, path, way: "X-Accel-Redirect").status, path
    end
    assert_equal "/x", named(client, "/x")["X-Sendfile"]
  end

  # Rack's middleware encodes what it names, Plack's does not.
  def test_names_with_percent_signs_and_question_marks_through_the_middleware
    _, client = mapped
    names = ["a%41.txt", "aA.txt", "50%.txt", "a?b.txt", "a", "a%2541.txt", "%"]
    names.each { |name| put("files/#{name}", "this is #{name}") }
    names.each { |name| assert_equal [200, "this is #{name}"], ask(client, "/accel?#{name}") }
  end

  unless E2E::RUBY
    def test_answers_of_strings_and_delayed_ones
      _, client = rooted
      %w[plain delayed].each { |at| assert_equal "0123456789", named(client, "#{@files}/a.txt", at: at).body }
    end
  end

  # Without a line in the application.
  def test_middleware_uses_roots_and_maps
    one, client = rooted
    %w[/middleware?a.txt /static/a.txt].each do |target|
      answer = client.get(target)
      assert_equal [200, "0123456789", true], [answer.status, answer.body, !answer["ETag"].nil?], target
      assert_nil answer["X-Sendfile"]
      assert_equal [206, "23"], ask(client, target, { "Range" => "bytes=2-3" }), target
    end
    File.write("#{@top}/outside.txt", "secret")
    assert_equal 500, client.get("/middleware?../outside.txt").status
    assert_match(/X-Sendfile names #{@top}\S*outside.txt: it is in no folder of sendfile_root/i, one.stderr)
    _, client = mapped
    answer = client.get("/accel?a.txt")
    assert_equal [200, "0123456789", true], [answer.status, answer.body, !answer["ETag"].nil?]
    _, client = launch
    answer = client.get("/middleware?a.txt")
    assert_equal [200, "0123456789", nil], [answer.status, answer.body, answer["ETag"]]
  end

  # The body that the middleware compresses is empty, and not sent.
  def test_middleware_that_compresses_around_it
    _, client = rooted
    answer = client.get("/deflated?a.txt", { "Accept-Encoding" => "gzip" })
    assert_equal [200, "0123456789", nil], [answer.status, answer.body, answer["Content-Encoding"]]
  end

  def test_frameworks
    _, client = rooted
    answer = client.get("/framework")
    skip "no Sinatra or Dancer2 here" if answer.body == "Hello, World!"
    assert_equal [200, "0123456789"], [answer.status, answer.body]
    assert_equal [206, "23"], ask(client, "/framework", { "Range" => "bytes=2-3" })
  end

  if E2E::RUBY
    def test_rails
      begin
        gem "railties"
      rescue Gem::LoadError
        skip "no Rails here"
      end
      _, client = launch("--sendfile-root", @files, env: { "E2E_RAILS" => "1" })
      answer = client.get("/rails")
      assert_equal [200, "0123456789", "text/x-mine"], [answer.status, answer.body, answer["Content-Type"]]
      assert_match(/\Aattachment/, answer["Content-Disposition"])
      assert_nil answer["X-Sendfile"]
      assert_equal [206, "23"], ask(client, "/rails", { "Range" => "bytes=2-3" })
      assert_equal 304, client.get("/rails", { "If-None-Match" => answer["ETag"] }).status
      answer = client.get("/disk")
      assert_equal [200, "0123456789", nil], [answer.status, answer.body, answer["X-Sendfile"]]
      assert_equal [206, "23"], ask(client, "/disk", { "Range" => "bytes=2-3" })
    end
  end

  def announced(option)
    type = E2E::RUBY ? "sendfile.type" : "plack.xsendfile.type"
    case option
    when "--sendfile-root" then { type => "X-Sendfile" }
    when "--sendfile-map"
      E2E::RUBY ? { "HTTP_X_ACCEL_MAPPING" => "#{@files}/=/private/" } : { "HTTP_X_ACCEL_MAPPING" => "#{@files}/=as-is:/private/", type => "X-Accel-Redirect" }
    else {}
    end
  end

  # Whoever sends them: Plack's middleware believes them.
  def test_a_client_cannot_choose_how_files_are_sent
    fields = { "X-Sendfile-Type" => "X-Sendfile", "X-Accel-Mapping" => "/=/x/", "x-sendfile-typE" => "a" }
    [[], ["--sendfile-root", @files], ["--sendfile-map", "/private=#{@files}"], ["--underscores-allow"]].each do |options|
      one, client = launch(*options)
      env = JSON.parse(client.get("/env", fields.merge(options == ["--underscores-allow"] ? { "X_Sendfile_Type" => "b" } : {})).body)
      said = env.slice("HTTP_X_SENDFILE_TYPE", "HTTP_X_ACCEL_MAPPING", "sendfile.type", "plack.xsendfile.type")
      assert_equal announced(options[0]), said, options.inspect
      assert_equal [200, "0123456789"], ask(client, "/middleware?a.txt", options[0] == "--sendfile-root" ? {} : fields), options.inspect
      one.stop
    end
  end

  def test_a_slow_client_and_the_next_request_of_its_connection
    File.open("#{@files}/large", "wb") do |file|
      64.times { |i| file.write([i].pack("C") * (1 << 20)) }
    end
    File.utime(self.class::OLD, self.class::OLD, "#{@files}/large")
    one, quick = rooted
    slow = connect(one, receive_buffer: 65_536)
    slow.send_raw("GET /named?#{@files}/large HTTP/1.1\r\nHost: a\r\nX-Way: X-Sendfile\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_equal "Hello, World!", quick.get("/").body
    answer = slow.read_response
    assert_equal self.class::LARGE, answer.body.bytesize
    assert_equal((0..63).to_a, answer.body.bytes.each_slice(1 << 20).map { |slice| slice.uniq.then { |few| few.size == 1 ? few[0] : few } })
    assert_equal "Hello, World!", slow.read_response.body
  end

  # Never an answer that looks whole.
  def test_a_file_that_is_cut_while_it_is_sent
    _, client = (one, = rooted)
    File.write("#{@files}/large", "")
    File.truncate("#{@files}/large", self.class::LARGE)
    File.utime(self.class::OLD, self.class::OLD, "#{@files}/large")
    [{}, { "Range" => "bytes=1-" }, { "Range" => "bytes=0-1,100-" }].each do |fields|
      File.truncate("#{@files}/large", self.class::LARGE)
      slow = connect(one, receive_buffer: 65_536)
      slow.request("GET", "/named?#{@files}/large", { "X-Way" => "X-Sendfile" }.merge(fields))
      assert slow.socket.wait_readable(E2E::DEADLINE * E2E.patience)
      File.truncate("#{@files}/large", self.class::LARGE / 2)
      assert_raises(E2E::Client::Closed, Errno::ECONNRESET) { slow.read_response }
    end
    assert_equal "0123456789", named(client, "#{@files}/a.txt").body
  end

  def test_what_the_options_say
    assert_match(/sendfile.map .*"private=x" needs a prefix/, run_to_end("--sendfile-map", "private=x").stderr)
    assert_match(/sendfile.map "\/private" needs a prefix/, run_to_end("--sendfile-map", "/private").stderr)
    assert_match(/sendfile.map "\/private=" needs a folder/, run_to_end("--sendfile-map", "/private=").stderr)
    assert_match(/sendfile.root must not be empty/, run_to_end("--sendfile-root", "").stderr)
    assert_match(/sendfile_root #{@top}\/none: no such file or directory/, run_to_end("--sendfile-root", "#{@top}/none").stderr)
    assert_match(/sendfile_map \/b=#{@top}\/a: /, run_to_end("--sendfile-map", "/b=#{@top}/a").stderr)
    shown = run_to_end("--print-config", "--sendfile-root", "/a", "--sendfile-map", "/b=/c").stdout
    assert_match(/^sendfile_root .*\/a/, shown)
    assert_match(/^sendfile_map .*\/b.*\/c/, shown)
  end
end
