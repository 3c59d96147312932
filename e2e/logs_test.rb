# frozen_string_literal: true

require_relative "support"

LOG_ADDRESS = /(?:-|127\.0\.0\.1)/
LOG_TIME = %r{\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]}

# What was refused: [bytes, the request in the access log, status, the words of the error log].
LOG_HOST = "Host: a\r\n\r\n"
LOG_REFUSED = {
  "a byte in the target" => ["GET /a<b HTTP/1.1\r\n#{LOG_HOST}", "GET /a<b HTTP/1.1", 400,
                             %q(byte not allowed in the target: 0x3c '<' at column 7 of "GET /a<b HTTP/1.1")],
  "a target that strict_target refuses" => ["GET /a|b HTTP/1.1\r\n#{LOG_HOST}", "GET /a|b HTTP/1.1", 400,
                                            %q(byte not allowed in the target while strict_target is on: 0x7c '|' at column 7 of "GET /a|b HTTP/1.1")],
  "a line feed" => ["GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1", 400, %q(malformed HTTP version or line end: 0x0a at column 15 of "GET / HTTP/1.1")],
  "rubbish" => ["\x16\x03\x01\"\r\n\r\n", '\x16\x03\x01\"', 400, 'method is not a token: 0x16 at column 1 of "\x16\x03\x01\""'],
  "a version of the future" => ["HEAD / HTTP/2.0\r\n#{LOG_HOST}", "HEAD / HTTP/2.0", 505, 'unsupported HTTP version: "HEAD / HTTP/2.0"'],
  "a target without end" => ["GET /#{"a" * 20_000}", "GET /#{"a" * 4091}", 414, /target longer than target_bytes_max: "GET \/a{251}\.\.\."/],
  "a secret" => ["GET /x HTTP/1.0\r\nCookie: a=\x01secret\r\n\r\n", "GET /x HTTP/1.0", 400, 'control in a field line: 0x01 at column 11 of field "Cookie"'],
  "a host" => ["GET /x HTTP/1.1\r\nHost: a b\r\n\r\n", "GET /x HTTP/1.1", 400, 'invalid Host field: field "Host: a b"'],
  "a body" => ["POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx", "POST /x HTTP/1.1", 400, 'malformed chunk size: "POST /x HTTP/1.1"'],
}.freeze

# Access log formats, and what peers can write into logs: nothing but their own line.
E2E.suite("logs", transports: E2E::EITHER) do
  def log_of(one, lines)
    path = "#{one.dir}/access.log"
    wait_until("#{lines} log lines; #{one.stderr}") { File.exist?(path) && File.read(path).lines.size >= lines }
    File.read(path)
  end

  def start_logging(format)
    dir = Dir.mktmpdir("oribi-e2e")
    @log_dirs = [*@log_dirs, dir]
    start("--access-log", "#{dir}/access.log", "--access-log-format", format, dir: dir)
  end

  def teardown
    super
    [*@log_dirs].each { |dir| FileUtils.remove_entry(dir) }
  end

  def test_on_in_development_and_off_in_production
    one = start("--env", "development")
    assert_alive(one)
    wait_until("the line") { one.stdout.include?('"GET / HTTP/1.1" 200 13') }
    two = start("--env", "production")
    assert_alive(two)
    refute_match(%r{GET / HTTP}, two.stdout + two.stderr)
  end

  def test_common
    one = start_logging("common")
    client = connect(one)
    client.get("/env?a=1")
    client.get("/nowhere")
    first, second = log_of(one, 2).lines
    assert_match(%r{\A#{LOG_ADDRESS} - - #{LOG_TIME} "GET /env\?a=1 HTTP/1\.1" 200 \d+$}, first)
    assert_match(%r{\A#{LOG_ADDRESS} - - #{LOG_TIME} "GET /nowhere HTTP/1\.1" 404 9$}, second)
  end

  def test_combined
    one = start_logging("combined")
    connect(one).get("/", { "Referer" => "http://a/b", "User-Agent" => "test agent" })
    assert_match(%r{\A#{LOG_ADDRESS} - - #{LOG_TIME} "GET / HTTP/1\.1" 200 13 "http://a/b" "test agent"$}, log_of(one, 1))
  end

  def test_json
    one = start_logging("json")
    connect(one).get("/?q=%22", { "User-Agent" => "quote\" back\\slash" })
    entry = JSON.parse(log_of(one, 1))
    assert_equal 200, entry["status"]
    assert_includes entry.values, "GET"
    assert(entry.values.any? { |value| value.to_s.start_with?("/?q=%22") })
    assert_includes entry.values, "quote\" back\\slash"
  end

  def test_lines_cannot_be_forged
    %w[combined json].each do |format|
      one = start_logging(format)
      connect(one).get("/", { "User-Agent" => "a\tb\"c\x80" })
      line = log_of(one, 1)
      assert_equal 1, line.lines.size
      assert line.valid_encoding? || format != "json", line.inspect
      if format == "json"
        assert(JSON.parse(line).values.any? { |value| value.to_s.start_with?("a\tb\"c") })
      else
        refute_match(/[^\\]"c/, line)
      end
    end
  end

  def test_bytes_are_those_of_the_body
    one = start_logging("common")
    client = connect(one)
    client.get("/big?size=100000")
    client.head("/big?size=100000")
    client.get("/parts?count=3")
    client.get("/file")
    sizes = log_of(one, 4).lines.map { |line| line.split.last }
    assert_equal "100000", sizes[0]
    assert_includes %w[0 -], sizes[1]
    assert_equal "21", sizes[2]
    assert_equal E2E::Server.numbers.bytesize.to_s, sizes[3]
  end

  def test_refused_requests_are_logged_as_they_came
    dir = Dir.mktmpdir("oribi-e2e")
    @log_dirs = [dir]
    one = start("--access-log", "#{dir}/access.log", "--access-log-format", "common", "--strict-target", dir: dir)
    LOG_REFUSED.each_with_index do |(name, (bytes, line, status, words)), i|
      response = connect(one).send_raw(bytes).read_response(head: bytes.start_with?("HEAD"))
      assert_match(/ #{Regexp.escape(%("#{line}" #{status} #{response.body.bytesize}))}$/, log_of(one, i + 1).lines.last, name)
      words = /#{Regexp.escape(words)}/ if words.is_a?(String)
      assert_match(/request from (127\.0\.0\.1|a unix socket) refused with #{status}: #{words}; closing its connection$/, one.stderr, name)
    end
    refute_includes one.stderr, "secret"
  end

  def test_refused_requests_in_json
    one = start_logging("json")
    connect(one).send_raw("GET /a<\xff HTTP/1.1\r\n#{LOG_HOST}".b).read_response
    connect(one).send_raw("GET / HTTP/1.1\r\n\r\n").read_response
    bad, known = log_of(one, 2).lines.map { |line| JSON.parse(line) }
    assert_equal ["", "", "", "GET /a<\u00ff HTTP/1.1"], bad.values_at("method", "target", "protocol", "line")
    assert_equal ["GET", "/", "HTTP/1.1", nil], known.values_at("method", "target", "protocol", "line")
  end

  def test_raw_bytes_of_a_target_in_the_logs
    one = start_logging("json")
    two = start_logging("common")
    [one, two].each { |server| connect(server).get("/nowhere|{\xc3\xa9}\xff\\".b) }
    assert_equal "/nowhere|{\u00e9}\u00ff\\", JSON.parse(log_of(one, 1))["target"]
    assert_includes log_of(two, 1), %q("GET /nowhere|{\xc3\xa9}\xff\\\\ HTTP/1.1" 404)
  end

  # The same in both languages, but for the names that each gives its exceptions; frames of the server are left out.
  def test_an_exception_of_the_application
    one = start
    assert_equal 500, connect(one).get("/raise?x=1").status
    line = wait_until("the line") { one.stderr[/^.*told to fail.*$/] }
    assert_match(%r{ error: GET /raise\?x=1: the application died: #{"RuntimeError: " if E2E::RUBY}told to fail$}, line)
    refute_match(%r{^    .*/(?:ruby/lib/oribi|ruby/exe|perl/lib/Oribi)}, one.stderr)
  end

  def test_access_log_on_standard_output
    one = start("--access-log", "-")
    assert_alive(one)
    wait_until("the line") { one.stdout.include?('"GET / HTTP/1.1" 200 13') }
    pass
  end

  # A peer that sends rubbish without end fills no log.
  def test_malformed_requests_are_logged_at_a_rate
    one = start
    before = one.stderr.lines.size
    began = E2E.clock
    200.times do
      client = connect(one)
      client.send_raw("rubbish\r\n\r\n").read_response
      client.close
    end
    # 20 in each 10 s, and what else a server says at its start.
    assert_operator one.stderr.lines.size - before, :<=, 30 * (1 + ((E2E.clock - began) / 10).to_i)
  end

  # --- a reader that does not read ---

  # Both logs lead to a named pipe that is open and that nobody reads, as behind a log service that hangs. Answers all
  # the same, and ends in its time.
  def start_unread(*options, user: nil)
    @space = Dir.mktmpdir("oribi-e2e")
    @log_dirs = [*@log_dirs, @space]
    File.mkfifo("#{@space}/log")
    @reader = File.open("#{@space}/log", File::RDONLY | File::NONBLOCK)
    as_user = user ? ["setpriv", "--reuid=#{user}", "--regid=#{user}", "--clear-groups"] : []
    argv = ["sh", "-c", 'log=$1; shift; exec "$@" >"$log" 2>&1', "sh", "#{@space}/log", *as_user, E2E::Server.binary, "--bind",
            unix? ? "unix://%{path}" : "127.0.0.1:%{port}", "--workers", "2", "--access-log", "-", *options,
            File.expand_path(E2E.differing(:app), E2E::ROOT)]
    start(argv: argv)
  end

  def read_log
    text = +""
    while (part = @reader.read_nonblock(65_536, exception: false)).is_a?(String)
      text << part
    end
    text
  end

  # More than the pipe holds (64 KiB), what is kept for both logs, and some.
  def ask_much(one, count: 6000)
    client = connect(one)
    count.times do |i|
      client.request("GET", i % 20 == 0 ? "/raise" : "/env?#{"x" * 100}")
      assert_includes [200, 500], client.read_response.status
    rescue E2E::Client::Closed, SystemCallError
      client = connect(one)
    end
  end

  def assert_stops_unread(one)
    below = one.descendants
    one.signal(:TERM)
    assert_equal 0, one.wait.exitstatus # within the deadline, which is none of the server's
    wait_until("its processes to be gone") { below.none? { |pid| E2E::Processes.alive?(pid) } }
  end

  def test_logs_that_nobody_reads_stop_nobody
    one = start_unread("--shutdown-timeout", "1h")
    ask_much(one)
    assert_alive(one)
    one.signal(:HUP)
    wait_until("the next generation alone") do
      titles = one.descendants.map { |pid| E2E::Processes.title(pid) }
      titles.size == 3 && titles.all? { |title| title.include?("generation 2") }
    end
    assert_alive(one)
    assert_stops_unread(one)
  end

  def test_lost_lines_are_counted_when_somebody_reads_again
    one = start_unread("--shutdown-timeout", "1h", "--access-log-format", "json")
    ask_much(one)
    text = +""
    wait_until("the count of lost lines") do
      text << read_log
      text.include?("lines lost while its reader did not read; writing goes on")
    end
    lost = text[/access log: (\d+) lines lost while/, 1].to_i
    assert_operator lost, :>, 0
    connect(one).get("/after")
    wait_until("lines as before") { (text << read_log).include?("/after") }
    # Every line is whole: JSON, or one of the server's, or a part of a trace.
    text.lines.each { |line| assert(line.start_with?("{") ? JSON.parse(line) : line.match?(/\A(\d{4}-\d\d-\d\dT| )/), line) }
    assert_stops_unread(one)
  end

  # The pipe is root's and the server is not: it cannot open it once more. (A unix socket would be in a folder of
  # root's.)
  if transport == :tcp
    def test_logs_on_a_pipe_of_another_user
      skip "needs root to be another user" unless Process.uid.zero?
      one = start_unread("--shutdown-timeout", "1h", user: 65_534)
      ask_much(one)
      assert_alive(one)
      assert_stops_unread(one)
    end
  end
end
