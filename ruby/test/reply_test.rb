# frozen_string_literal: true

require "support"
require "delegate"
require "rack/body_proxy"
require "tempfile"

# What an application returns, and what of it reaches the client. Lint puts a body of its own, which can be closed,
# around each: with it even an Array is read part by part.
class ReplyTest < BindingTest
  # Lint of rack 2 refuses what rack 3 brought (lists of values, bodies that are called) and hides to_ary and to_path.
  def serve(app, lint: RACK3, **more, &block) = super

  # A body that counts what is done to it.
  class Parts
    attr_reader :closed, :yielded

    def initialize(*parts, fail_at: nil)
      @parts = parts
      @fail_at = fail_at
      @closed = 0
      @yielded = 0
    end

    def each
      @parts.each_with_index do |part, index|
        raise "body failed" if index == @fail_at

        @yielded += 1
        yield part
      end
    ensure
      @left = true
    end

    def left? = @left
    def close = @closed += 1
  end

  def answer(response, method: "GET", lint: RACK3, **options)
    serve(->(_) { response }, lint: lint) { |client| return client.request(method, "/", **options) }
  end

  # --- bodies ---

  def test_array
    response = answer(text(%w[a b c]), lint: false)
    assert_equal [200, "abc", "3"], [response.status, response.body, response["content-length"]]
  end

  def test_empty_array_and_empty_parts
    assert_equal ["", "0"], answer(text([]), lint: false).then { |response| [response.body, response["content-length"]] }
    assert_equal "ab", answer(text(["", "a", "", "b", ""]), lint: false).body
  end

  def test_arrays_of_every_size
    [1, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 5000].each do |count|
      parts = Array.new(count) { |i| "#{i};" }
      assert_equal parts.join, answer(text(parts), lint: false).body, count
      assert_equal parts.join, answer(text(parts)).body, "#{count}, which Lint makes a body to be read"
    end
  end

  def test_parts_that_are_no_strings
    assert_equal "a1b", answer(text(["a", 1, nil, :b]), lint: false).body
  end

  def test_binary_and_wide_parts
    assert_equal "\xff\x00é".b, answer(text(["\xff\x00".b, "é"]), lint: false).body.b
  end

  def test_large_body
    body = Random.bytes(3_000_000)
    assert_equal body, answer(text([body]), lint: false).body
    assert_equal body, answer(text([body])).body
  end

  def test_each
    parts = Parts.new("a", "", "bc")
    response = answer(text(parts))
    assert_equal ["abc", "chunked", nil], [response.body, response["transfer-encoding"], response["content-length"]]
    assert_equal 1, parts.closed
  end

  def test_each_to_http10_ends_with_the_connection
    response = answer(text(Parts.new("a", "bc")), version: "1.0")
    assert_equal ["abc", nil, nil], [response.body, response["transfer-encoding"], response["content-length"]]
  end

  def test_each_with_a_length
    response = answer(text(Parts.new("ab", "c"), { "content-length" => "3" }))
    assert_equal ["abc", "3", nil], [response.body, response["content-length"], response["transfer-encoding"]]
  end

  def test_each_larger_than_any_buffer
    parts = Parts.new(*Array.new(200) { "x" * 50_000 })
    assert_equal 10_000_000, answer(text(parts)).body.bytesize
  end

  def test_enumerator
    assert_equal "012", answer(text(Enumerator.new { |out| 3.times { |i| out << i.to_s } })).body
  end

  def test_to_ary
    body = Object.new
    def body.each = to_ary.each { |part| yield part }
    def body.to_ary = %w[a b]
    response = answer(text(body), lint: false)
    assert_equal %w[ab 2], [response.body, response["content-length"]]
  end

  # --- to_ary ---

  # A body whose to_ary, each and close leave their names, in order.
  class Traced
    attr_reader :trace

    def initialize(parts, &array)
      @parts = parts
      @array = array
      @trace = []
    end

    def to_ary
      @trace << :to_ary
      @array.call
    end

    def each(&block)
      raise LocalJumpError, "no block given (yield)" unless block

      @trace << :each
      @parts.each(&block)
    end
  end

  # The same with close: whether its to_ary has closed it, as Rack 3 wants, nobody can know.
  class Closable < Traced
    def close = @trace << :close
  end

  def test_to_ary_that_gives_no_array_of_strings
    [-> { raise "not to be had" }, -> {}, -> { %w[a b].each }, -> { "ab" }, -> { ["a", 1] }, -> { ["a", nil] }].each do |array|
      body = Traced.new(%w[a b], &array)
      response = answer(text(body), lint: false)
      assert_equal ["ab", "chunked", %i[to_ary each]], [response.body, response["transfer-encoding"], body.trace]
      assert_empty failures_of(StandardError)
    end
  end

  def test_to_ary_that_fails_for_good
    body = Traced.new(nil) { raise "to_ary" }
    assert_equal 500, answer(text(body), lint: false).status
    assert_equal [NoMethodError], failures_of(StandardError).map(&:class), "what each raises is told"
  end

  def test_to_ary_of_a_body_that_is_closed
    body = Closable.new(%w[a b]) { raise "nobody asks" }
    assert_equal %w[ab chunked], answer(text(body), lint: false).then { |response| [response.body, response["transfer-encoding"]] }
    assert_equal %i[each close], body.trace
  end

  # As Rails passes on its own bodies, whose to_ary is each without a block.
  def test_proxies_around_what_is_no_array
    body = Closable.new(%w[a b]) { body.each }
    proxy = Rack::BodyProxy.new(Rack::BodyProxy.new(body) { body.trace << :inner }) { body.trace << :outer }
    assert_equal "ab", answer(text(proxy), lint: false).body
    assert_equal %i[each close inner outer], body.trace
  end

  def test_proxies_around_an_array
    trace = []
    serve(->(_) { text(Rack::BodyProxy.new(Rack::BodyProxy.new(%w[a b]) { trace << :inner }) { trace << :outer }) }, lint: false) do |client|
      response = client.get("/")
      assert_equal ["ab", "2", nil], [response.body, response["content-length"], response["transfer-encoding"]]
      assert_equal "2", client.request("HEAD", "/")["content-length"]
    end
    assert_equal %i[inner outer] * 2, trace, "closed once, from the inside"
  end

  def test_a_proxy_is_closed_after_its_parts_have_been_sent
    sent = Queue.new
    proxy = Rack::BodyProxy.new(["a"]) { sent.pop }
    serve(->(_) { text(proxy) }, lint: false) do |client|
      assert_equal "a", client.get("/").body
      sent << true
    end
  end

  # A delegator's own each is what its body is, whatever the array inside is.
  def test_a_delegator_around_an_array
    body = Class.new(SimpleDelegator) { def each = super { |part| yield part.upcase } }.new(%w[a b])
    assert_equal "AB", answer(text(body), lint: false).body
  end

  def test_to_path
    file = Tempfile.create("body", binmode: true)
    file.write("0123456789" * 20_000)
    file.flush
    body = Parts.new("0123456789" * 20_000)
    body.define_singleton_method(:to_path) { file.path }
    response = answer(text(body))
    assert_equal ["0123456789" * 20_000, "200000"], [response.body, response["content-length"]]
    assert_equal [0, 1], [body.yielded, body.closed], "the file was sent, not the parts, and the body closed"
  ensure
    File.unlink(file)
  end

  def test_to_path_of_what_is_no_regular_file_falls_back_to_each
    ["/dev/null", "/nonexistent/file", nil].each do |path|
      body = Parts.new("from each")
      body.define_singleton_method(:to_path) { path }
      assert_equal "from each", answer(text(body), lint: false).body
    end
  end

  # /proc says 0 bytes of files that have some; /sys says a page of files that have fewer.
  def test_files_whose_size_is_not_their_content_are_read
    sys = ["/sys/kernel/mm/transparent_hugepage/enabled", *Dir["/sys/kernel/mm/*/*"]].find { |path| File.readable?(path) && File.size(path) == 4096 }
    paths = ["/proc/version", sys].select { |path| path && File.readable?(path) }
    skip "neither /proc nor /sys is here" if paths.empty?
    paths.each do |path|
      assert_equal File.read(path), answer(text(File.open(path)), lint: false).body, path
      body = Parts.new("from each")
      body.define_singleton_method(:to_path) { path }
      assert_equal "from each", answer(text(body), lint: false).body, path
    end
  end

  def test_file_from_where_it_stands
    Tempfile.create("body") do |file|
      file.write("0123456789")
      file.flush
      file.rewind
      file.gets(nil, 4)
      assert_equal "456789", answer(text(file), lint: false).body
      assert file.closed?
    end
  end

  # Without Lint: since Ruby 3.2 a pipe has a to_path, which is nil, and Lint wants a name.
  def test_pipes_and_sockets_are_read
    read, write = IO.pipe
    write << "through a pipe"
    write.close
    assert_equal ["through a pipe", nil], answer(text(read), lint: false).then { |response| [response.body, response["content-length"]] }
    fifo = File.join(@log, "fifo")
    File.mkfifo(fifo)
    body = File.open(fifo, File::RDWR) # a File, and so with to_path, but it has no position
    body << "through a fifo"
    body.define_singleton_method(:each) { |&block| block.call(readpartial(100)) }
    assert_equal "through a fifo", answer(text(body), lint: false).body
    assert read.closed? && body.closed?
  end

  def test_an_array_that_can_be_closed_is_closed
    closed = 0
    body = %w[a b]
    body.define_singleton_method(:close) { closed += 1 }
    assert_equal "ab", answer(text(body), lint: false).body
    assert_equal 1, closed
  end

  def test_a_block_that_is_called_after_its_answer
    kept = nil
    body = Object.new
    body.define_singleton_method(:each) { |&block| (kept = block).call("in time") }
    late = lambda do
      kept.call("too late" * 1000)
    rescue IOError => e
      e.message
    end
    serve(->(env) { text(env["PATH_INFO"] == "/late" ? [late.call] : body) }, lint: false) do |client|
      assert_equal ["in time", "the answer has ended, and its body still yields", "in time"], ["/", "/late", "/"].map { |path| client.get(path).body }
      assert_match(/ended/, late.call)
    end
  end

  def test_static_files_of_rack
    Dir.mktmpdir do |dir|
      File.write(File.join(dir, "a.txt"), "0123456789")
      serve(Rack::Files.new(dir)) do |client|
        assert_equal ["0123456789", "10"], client.get("/a.txt").then { |response| [response.body, response["content-length"]] }
        assert_equal [206, "234"], client.get("/a.txt", { "Range" => "bytes=2-4" }).then { |response| [response.status, response.body] }
        assert_equal [200, "10"], client.request("HEAD", "/a.txt").then { |response| [response.status, response["content-length"]] }
        assert_equal 404, client.get("/b.txt").status
      end
    end
  end

  def test_a_body_with_neither_each_nor_call
    assert_equal 500, answer(text(Object.new), lint: false).status
    assert_match(/Object, which has neither each nor call/, failures_of(TypeError).first.message)
  end

  # --- no body ---

  def test_head
    assert_equal [200, "3", ""], answer(text(%w[a bc]), method: "HEAD", lint: false).then { |r| [r.status, r["content-length"], r.body] }
    parts = Parts.new("abc")
    response = answer(text(parts), method: "HEAD")
    assert_equal [200, 0, 1], [response.status, parts.yielded, parts.closed]
  end

  def test_head_and_nothing_after_it
    serve(->(env) { text([env["REQUEST_METHOD"]]) }, lint: false) do |client|
      client.request("HEAD", "/")
      assert_equal "GET", client.get("/").body
    end
  end

  def test_statuses_without_a_body
    [204, 304].each do |status|
      [["ignored"], Parts.new("ignored")].each do |body|
        serve(->(_) { [status, {}, body] }) do |client|
          response = client.get("/")
          assert_equal [status, nil, nil], [response.status, response["content-length"], response["transfer-encoding"]]
          assert_equal status, client.get("/").status, "nothing of the body was left on the connection"
        end
      end
    end
  end

  # As Perl's cases have it: a length of nothing is no mistake.
  def test_a_length_of_nothing_beside_204
    ["0", 0].each do |length|
      answer = answer([204, { "content-length" => length }, []], lint: false)
      assert_equal [204, nil], [answer.status, answer["content-length"]]
    end
  end

  # --- status ---

  def test_statuses
    { 200 => 200, 299 => 299, 404 => 404, 599 => 599, 600 => 600, 999 => 999, "201" => 201 }.each do |given, sent|
      assert_equal sent, answer([given, {}, []], lint: false).status
    end
  end

  def test_bad_statuses_are_500
    [0, 99, 100, 101, 1000, -1, "word", nil, 2**40, Object.new].each do |status|
      capture_log { assert_equal 500, answer([status, {}, ["x"]], lint: false).status, status.inspect }
    end
  end

  # --- headers ---

  def test_names_that_begin_like_those_of_the_server
    names = %w[c co con conn d da dat s se ser serv t content content-lengt transfer]
    response = answer(text(["x"], names.to_h { |name| [name, "of the app"] }))
    names.each { |name| assert_equal ["of the app"], response.all(name), name }
    assert response["date"]
  end

  def test_date_and_server_of_the_application_win
    response = answer(text([], { "date" => "Thu, 01 Jan 1970 00:00:00 GMT", "server" => "mine" }))
    assert_equal [["Thu, 01 Jan 1970 00:00:00 GMT"], ["mine"]], [response.all("date"), response.all("server")]
  end

  def test_several_values
    response = answer(text([], { "set-cookie" => ["a=1", "b=2"], "x-none" => [] }))
    assert_equal [%w[a=1 b=2], []], [response.all("set-cookie"), response.all("x-none")]
    response = answer(text([], { "set-cookie" => "a=1\n\nb=2\n", "x-empty" => "", "x-newline" => "\n" }), lint: false)
    assert_equal [%w[a=1 b=2], [""], []], [response.all("set-cookie"), response.all("x-empty"), response.all("x-newline")]
  end

  def test_names_and_values_that_are_no_strings
    response = answer([200, { "x-number": 5, "x-list" => [1, :two] }, []], lint: false)
    assert_equal [200, ["5"], %w[1 two]], [response.status, response.all("x-number"), response.all("x-list")]
  end

  MENDED = {
    "has no value \\(undef, nil\\): it is left out" =>
      [[{ "x-a" => nil }, []], [{ "x-a" => [nil, "1", nil] }, ["1"]], [{ "x-number": 5, "x-a" => nil }, []], [[["x-a", nil]].each, []]],
    "has a value that ends in white space or a line end: that is cut off" =>
      [[{ "x-a" => "1 " }, ["1"]], [{ "x-a" => ["1\n"] }, ["1"]], [{ "x-a" => "1\r\n" }, ["1"]]],
    "has a value on several lines: they are joined with a space" =>
      [[{ "x-a" => "1\r\n 2" }, ["1 2"]], [{ "x-a" => "1\n\t2" }, ["1 2"]], [{ "x-a" => ["1\n 2"] }, ["1 2"]]],
  }.freeze

  def test_headers_that_are_not_quite_right
    MENDED.each do |words, cases|
      cases.each do |headers, values|
        capture_log do
          response = answer([200, headers, ["x"]], lint: false)
          assert_equal [200, "x", values], [response.status, response.body, response.all("x-a")], headers.inspect
        end
        assert_match(%r{ warn: GET /: header x-a of the answer #{words}$}, logged)
      end
    end
  end

  def test_lengths_that_are_not_quite_right
    ["", "3 ", " 3", "3\r\n", nil].each do |length|
      capture_log do
        response = answer([200, { "content-length" => length }, ["hello"]], lint: false)
        assert_equal %w[hello 5], [response.body, response["content-length"]], length.inspect
      end
      assert_match(%r{GET /: header content-length of the answer}, logged)
    end
    capture_log { assert_equal "abc", answer([200, { "content-length" => "3 " }, %w[a bc].each], lint: false).body }
  end

  def test_a_status_with_its_reason
    { "200 OK" => 200, "404 Not Found" => 404, "201\n" => 201 }.each do |given, sent|
      capture_log { assert_equal sent, answer([given, {}, []], lint: false).status }
      assert_match(/ warn: GET \/: the status '#{sent}.*' of the answer is taken for #{sent}$/, logged)
    end
  end

  # Of old applications that give such headers always, a few lines in ten seconds are enough.
  def test_what_is_put_right_is_not_said_for_ever
    capture_log { serve(->(_) { [200, { "x-a" => nil }, []] }, lint: false) { |client| 50.times { client.get("/") } } }
    assert_operator logged.scan("it is left out").size, :<=, 10
    assert_operator logged.scan("it is left out").size, :>, 0
  end

  def test_headers_that_only_have_each
    headers = [["x-a", "1"], ["x-b", %w[2 3]]].each
    assert_equal [["1"], %w[2 3]], answer([200, headers, []], lint: false).then { |response| [response.all("x-a"), response.all("x-b")] }
    capture_log { assert_equal 500, answer([200, nil, []], lint: false).status }
  end

  def test_many_headers
    [47, 48, 49, 500].each do |count|
      response = answer(text(["x"], count.times.to_h { |i| ["x-#{i}", i.to_s] }))
      count.times { |i| assert_equal [i.to_s], response.all("x-#{i}") }
      assert_equal "x", response.body
    end
  end

  def test_special_headers_are_not_sent
    assert_nil answer(text([], { "rack.other" => "x" })).fields.find { |name, _| name.start_with?("rack.") }
  end

  def test_line_breaks_and_nul_never_reach_the_wire
    [["x-a", "1\r\nx-injected: 1"], ["x-a", "1\rx"], ["x-a", "1\0x"], ["x-a", ["1\nx-injected: 1"]], ["x-a\r\nx-injected", "1"],
     ["x-a\nb", "1"], ["x a", "1"], ["x-a:", "1"], ["", "1"], [nil, "1"], ["\xff", "1"]].each do |name, value|
      capture_log do
        response = answer(text(["body"], { name => value }), lint: false)
        assert_equal 500, response.status, [name, value].inspect
        assert_nil response["x-injected"]
      end
      assert_match(/error: .*not valid/, logged)
    end
  end

  def test_the_application_does_not_own_framing
    response = answer(text(["body"], { "transfer-encoding" => "gzip", "connection" => "keep-alive" }), lint: false)
    assert_equal ["body", "4", nil, nil], [response.body, *%w[content-length transfer-encoding connection].map { |name| response[name] }]
  end

  # --- bodies that the application has framed itself; more in spec/response/framed.case ---

  CHUNKED = { "transfer-encoding" => "chunked" }.freeze

  # As Rack::Chunked of rack 2 and ActionController::Streaming make them.
  class Framed
    attr_reader :closed

    def initialize(parts) = @parts = parts
    def close = @closed = true

    def each
      @parts.each { |part| yield [part.bytesize.to_s(16), "\r\n", part, "\r\n"].join }
      yield "0\r\n\r\n"
    end
  end

  def test_framed_by_the_application
    body = Framed.new(%w[one two three])
    response = answer(text(body, CHUNKED), lint: false)
    assert_equal ["onetwothree", "chunked", nil, true], [response.body, response["transfer-encoding"], response["content-length"], body.closed]
    response = answer(text(Framed.new(%w[one two]), CHUNKED), version: "1.0", lint: false)
    assert_equal ["onetwo", nil], [response.body, response["transfer-encoding"]]
    response = answer(text(Framed.new(%w[one two]), CHUNKED), method: "HEAD", lint: false)
    assert_equal [200, nil, nil], [response.status, response["transfer-encoding"], response["content-length"]]
  end

  def test_framed_by_a_body_that_is_called
    response = answer(text(->(stream) { Framed.new(%w[one two]).each { |part| stream << part } && stream.close }, CHUNKED), lint: false)
    assert_equal %w[onetwo chunked], [response.body, response["transfer-encoding"]]
  end

  def test_a_framed_file
    Tempfile.create("framed") do |file|
      Framed.new(["one\n", "two\n"]).each { |part| file.write(part) }
      file.rewind
      assert_equal "one\ntwo\n", answer(text(File.open(file.path), CHUNKED), lint: false).body
      body = Parts.new(File.binread(file.path))
      body.define_singleton_method(:to_path) { file.path }
      assert_equal "one\ntwo\n", answer(text(body, CHUNKED), lint: false).body
    end
  end

  def test_framed_badly
    body = Framed.new(["one"])
    def body.each = super { |part| yield part.sub("3", "x") }
    capture_log { assert_equal 500, answer(text(body, CHUNKED), lint: false).status }
    assert body.closed
    assert_match(/GET \/: the answer says Transfer-Encoding: chunked, but its body is not framed so: malformed chunk size/, logged)
    assert_match(/the answer says Transfer-Encoding: chunked, but its body is not framed so/, failures_of(Oribi::Error).first.message)
  end

  def test_a_body_unlike_its_length
    assert_equal "abc", capture_log { answer(text(["abcdef"], { "content-length" => "3" }), lint: false) }.body
    capture_log do
      assert_raises(EOFError, NoMethodError) { answer(text(Parts.new("ab"), { "content-length" => "3" }), lint: false).body.fetch(2) }
    end
  end

  # --- what is no response at all ---

  def test_no_response
    [nil, 200, [], [200, {}], "text", { status: 200 }].each do |response|
      capture_log { assert_equal 500, answer(response, lint: false).status, response.inspect }
      assert_match(/the application returned/, logged)
    end
  end

  def test_frozen_response
    assert_equal "x", answer([200, { "a" => "b" }.freeze, ["x".freeze].freeze].freeze, lint: false).body
  end
end
