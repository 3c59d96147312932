# frozen_string_literal: true

require_relative "support"
require "open3"
require "tmpdir"

# Formats of one's own for the access log, request ids, and the error log as JSON.
E2E.suite("log_formats", transports: E2E::EITHER) do
  uuid = /\A\h{8}-\h{4}-7\h{3}-[89ab]\h{3}-\h{12}\z/
  trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

  define_method(:start_logging) do |format, *more|
    dir = Dir.mktmpdir("oribi-e2e")
    @log_dirs = [*@log_dirs, dir]
    start("--access-log", "#{dir}/access.log", "--access-log-format", format, *more, dir: dir)
  end

  define_method(:log_of) do |one, lines|
    path = "#{one.dir}/access.log"
    wait_until("#{lines} log lines; #{one.stderr}") { File.exist?(path) && File.read(path).lines.size >= lines }
    File.read(path).lines.map(&:chomp)
  end

  define_method(:env_of) { |client, fields = {}| JSON.parse(client.get("/env", fields).body) }

  define_method(:teardown) do
    super()
    [*@log_dirs].each { |dir| FileUtils.remove_entry(dir) }
  end

  define_method(:test_in_the_manner_of_apache) do
    one = start_logging('%m %U%q %>s %B "%{X-Thing}i" "%{Content-Type}o" %{Content-Length}o %k %X %I')
    client = connect(one)
    client.get("/?a=1", { "X-Thing" => 'a"b' })
    client.get("/nowhere")
    first, second = log_of(one, 2)
    assert_match(/\AGET \/\?a=1 200 13 "a\\"b" "text\/plain[^"]*" 13 0 \+ \d\d+\z/, first)
    assert_match(/\AGET \/nowhere 404 9 "-" "text\/plain[^"]*" 9 1 \+ \d\d+\z/, second)
  end

  define_method(:test_in_the_manner_of_nginx) do
    one = start_logging('{"status":$status,"path":"$uri","time":$request_time,"agent":"$http_user_agent",' \
                        '"id":"$request_id","trace":"$trace_id","out":$bytes_sent}')
    answer = connect(one).get("/", { "User-Agent" => "a\"b\\", "traceparent" => trace })
    entry = JSON.parse(log_of(one, 1).first)
    assert_equal [200, "/", "a\"b\\", trace[3, 32]], entry.values_at("status", "path", "agent", "trace")
    assert_match uuid, entry["id"]
    assert_operator entry["out"], :>, answer.body.bytesize
  end

  define_method(:test_an_unknown_directive_ends_the_start) do
    _out, error, status = Open3.capture3(E2E::Server.binary, "--check", "--access-log-format", "%h %{cs}T")
    refute status.success?
    assert_includes error, "access_log_format: unknown directive %{cs}T; did you mean %{us}T"
  end

  define_method(:test_bytes_out_are_those_that_the_client_got) do
    one = start_logging("json", "--answer", "/robots.txt=200:nobody", "--body-bytes-max", "4")
    ["GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
     "GET /raise HTTP/1.0\r\n\r\n", "GET /robots.txt HTTP/1.0\r\n\r\n", "GET /env HTTP/1.0\r\n\r\n"].each.with_index(1) do |request, line|
      got = connect(one).send_raw(request).read_to_end
      sizes = [got.bytesize, got.partition("\r\n\r\n").last.bytesize]
      assert_equal sizes, JSON.parse(log_of(one, line).last).values_at("bytes_out", "bytes"), got
    end
  end

  # What the head says that is known when the request is refused.
  requests = {
    ["POST /up?x=1 HTTP/1.1", ["User-Agent: u", "Content-Length: 5"]] => "413 /up x=1 a.example u",
    ["POST /up?x=2 HTTP/1.1", ["User-Agent: u", "Transfer-Encoding: chunked"], "5\r\nhello\r\n0\r\n\r\n"] => "413 /up x=2 a.example u",
    ["POST /up?x=3 HTTP/1.1", ["User-Agent: u", "Expect: tea"]] => "417 /up x=3 a.example u",
    ["GET /up?x=4 HTTP/1.1", ["User-Agent: u", "B: 2", "C: 3", "D: 4"]] => "431 /up x=4 a.example u",
    ["GET /up?x=5 HTTP/1.1", ["User-Agent: u", "Host: b.example"]] => "400 /up x=5 - u",
    ["GET /up?x=6 HTTP/1.1", ["A B: 1", "User-Agent: u"]] => "400 /up x=6 a.example -",
    ["CONNECT b.example:443 HTTP/1.1", ["User-Agent: u"]] => "501 - - - -",
    ["GET /#{"x" * 70} HTTP/1.1", ["User-Agent: u"]] => "414 - - - -"
  }.transform_keys { |line, fields, body| "#{[line, "Host: a.example", *fields].join("\r\n")}\r\n\r\n#{body}" }

  define_method(:test_refused_requests_have_what_is_known_of_them) do
    one = start_logging("$status $uri $args $host $http_user_agent", "--body-bytes-max", "4", "--fields-max", "4", "--target-bytes-max", "64")
    requests.each.with_index(1) do |(request, line), count|
      connect(one).send_raw(request).read_to_end
      assert_equal line, log_of(one, count).last, request
    end
  end

  define_method(:test_refused_requests_as_json) do
    one = start_logging("json", "--body-bytes-max", "4")
    connect(one).send_raw(requests.keys.first).read_to_end
    assert_equal ["POST", "/up?x=1", "a.example", "u", 413], JSON.parse(log_of(one, 1).first).values_at("method", "target", "host", "user_agent", "status")
  end

  define_method(:test_json_tells_where_and_how_long) do
    one = start_logging("json", "--workers", "1")
    connect(one).send_raw("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").read_response
    entry = JSON.parse(log_of(one, 1).first)
    assert_match uuid, entry["request_id"]
    refute entry.key?("trace_id")
    assert_equal "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello".bytesize, entry["bytes_in"]
    assert_operator entry["bytes_out"], :>, entry["bytes"]
    assert_equal 0, entry["worker"]
    assert_match(/\A(tcp|unix):/, entry["listener"])
    assert_operator entry["queue_us"] + entry["call_us"], :<=, entry["total_us"]
    refute entry.key?("upstream_us")
    connect(one).get("/", { "X-Request-Start" => "t=#{Time.now.to_f - 2}" })
    assert_includes 1_900_000..60_000_000, JSON.parse(log_of(one, 2).last)["upstream_us"]
  end

  define_method(:test_skipped_paths_and_samples) do
    one = start_logging("%U", "--access-log-skip", "/env", "--access-log-skip", "/stat*", "--access-log-sample", "2")
    client = connect(one)
    %w[/env /status/200 / / / /nowhere /nowhere].each { |path| client.get(path) }
    assert_equal %w[/ / /nowhere /nowhere], log_of(one, 4)
  end

  define_method(:test_no_id_unless_asked_for) do
    env = env_of(connect(start), { "X-Request-Id" => "theirs" })
    assert_equal "theirs", env["HTTP_X_REQUEST_ID"] # a field as any other
    refute env.key?("oribi.request_id")
  end

  define_method(:test_an_id_in_the_environment_the_answer_and_the_log) do
    one = start_logging("$request_id", "--request-id-header", "X-Request-Id")
    client = connect(one)
    answers = [client.get("/env"), client.get("/env", { "X-Request-Id" => "forged" })]
    ids = answers.map { |answer| answer["x-request-id"] }
    assert_equal ids, log_of(one, 2)
    assert_equal ids, ids.uniq
    ids.each { |id| assert_match uuid, id }
    answers.zip(ids) do |answer, id|
      assert_equal [id, id], JSON.parse(answer.body).values_at("HTTP_X_REQUEST_ID", "oribi.request_id")
    end
  end

  define_method(:test_workers_make_different_ids) do
    one = start_logging("$request_id", "--workers", "4", "--request-id")
    clients = Array.new(8) { connect(one) }
    25.times { clients.each { |client| client.get("/") } }
    assert_equal 200, log_of(one, 200).uniq.size
  end

  define_method(:test_the_id_of_a_trusted_proxy_is_kept) do
    one = start("--trusted-proxies", "127.0.0.0/8 unix", "--request-id-header", "X-Id")
    client = connect(one)
    [["a-b._~+/=:@9", true], ["x" * 128, true], ["x" * 129, false], ["a b", false], ["a\"b", false], ["", false]].each do |id, kept|
      answer = client.get("/env", { "X-Request-Id" => id })
      assert_equal answer["x-id"], JSON.parse(answer.body)["HTTP_X_REQUEST_ID"]
      kept ? assert_equal(id, answer["x-id"]) : assert_match(uuid, answer["x-id"])
    end
    env = env_of(client, { "traceparent" => trace })
    assert_equal trace, env["HTTP_TRACEPARENT"]
  end

  define_method(:test_errors_of_the_application_say_the_id) do
    one = start("--request-id-header", "X-Request-Id")
    id = connect(one).get("/raise")["x-request-id"]
    assert_match uuid, id
    wait_until("the error; #{one.stderr}") { one.stderr.match?(%r{error: GET /raise: .*told to fail.*\(request #{id}\)}) }
    refused = connect(one).send_raw("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").read_response
    assert_equal 400, refused.status
    wait_until("the refusal; #{one.stderr}") { one.stderr.match?(/refused with 400: .*\(request \h{8}-[-\h]+\)/) }
  end

  # Not well-formed, two of them, of a request that the core refuses: when is a proxy's id kept?
  define_method(:test_ids_of_refused_requests) do
    one = start_logging("$status $request_id", "--trusted-proxies", "127.0.0.0/8 unix", "--body-bytes-max", "10", "--request-id")
    client = connect(one)
    refused = client.send_raw("POST /echo HTTP/1.1\r\nHost: a\r\nX-Request-Id: theirs\r\nTransfer-Encoding: chunked\r\n\r\n99\r\n").read_response
    assert_equal 413, refused.status
    connect(one).send_raw("GET /a<b HTTP/1.1\r\nHost: a\r\nX-Request-Id: theirs\r\n\r\n").read_response
    env = JSON.parse(connect(one).send_raw("GET /env HTTP/1.1\r\nHost: a\r\nX-Request-Id: a\r\nX-Request-Id: b\r\n\r\n").read_response.body)
    lines = log_of(one, 3)
    assert_equal "413 theirs", lines[0]
    assert_match(/\A400 \h{8}-/, lines[1])
    assert_equal "200 #{env["HTTP_X_REQUEST_ID"]}", lines[2]
    assert_match uuid, env["HTTP_X_REQUEST_ID"]
    wait_until("the refusal; #{one.stderr}") { one.stderr.match?(/refused with 413: .* \(request theirs\)$/) }
  end

  # Whoever finds an id in the access log finds it in the error log.
  define_method(:test_a_log_with_ids_gives_them_to_the_error_log) do
    one = start_logging("json")
    connect(one).get("/raise", { "traceparent" => trace })
    entry = JSON.parse(log_of(one, 1).first)
    assert_equal trace[3, 32], entry["trace_id"]
    wait_until("the error; #{one.stderr}") do
      one.stderr.include?("told to fail") && one.stderr.include?("(request #{entry["request_id"]}, trace #{entry["trace_id"]})")
    end
  end

  define_method(:test_whatever_a_client_sends_is_valid_json) do
    one = start_logging("json", "--error-log-format", "json", "--error-log", path = File.join(Dir.tmpdir, "oribi-e2e-#{$$}.log"))
    random = Random.new(7)
    40.times do
      noise = random.bytes(60)
      connect(one).send_raw("GET /#{noise} HTTP/1.1\r\nHost: a\r\n\r\n").tap { |client| client.half_close }.read_to_end
      fields = "User-Agent: #{noise.delete("\r\n\0")}\r\nX-Request-Id: #{noise}\r\n"
      connect(one).send_raw("GET / HTTP/1.1\r\nHost: a\r\n#{fields}\r\n").tap(&:half_close).read_to_end
    end
    lines = log_of(one, 60) + File.read(path).lines
    lines.each do |line|
      text = line.dup.force_encoding("UTF-8")
      assert_predicate text, :valid_encoding?
      assert_kind_of Hash, JSON.parse(text)
    end
  ensure
    FileUtils.rm_f(path) if path
  end

  define_method(:test_the_error_log_as_json) do
    dir = Dir.mktmpdir("oribi-e2e")
    @log_dirs = [dir]
    one = start_logging("json", "--error-log-format", "json", "--error-log", path = "#{dir}/error.log")
    connect(one).get("/raise")
    found = nil
    wait_until("the error; #{File.read(path)}") do
      found = File.read(path).lines.filter_map { |line| JSON.parse(line) if line.start_with?("{") }.find { |line| line["message"].include?("told to fail") }
    end
    assert_equal ["error", 1], found.values_at("level", "generation")
    assert_kind_of Integer, found["worker"]
    assert_equal JSON.parse(log_of(one, 1).first)["request_id"], found["request_id"]
    assert_match(/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\z/, found["time"])
  end

  # The worker can say nothing any more.
  define_method(:test_the_supervisor_names_worker_generation_and_request) do
    one = start("--error-log-format", "json", "--trusted-proxies", "127.0.0.0/8 unix")
    client = connect(one)
    client.request("GET", "/exit", { "X-Request-Id" => "the-last" })
    client.read_to_end
    entries = nil
    wait_until("the worker's end; #{one.stderr}") do
      entries = one.stderr.lines.map { |line| JSON.parse(line) }
      entries.any? { |entry| entry["message"].include?("during GET /exit") }
    end
    ended = entries.find { |entry| entry["message"].include?("during GET /exit") }
    assert_equal [one.pid, 0, 1, "the-last"], ended.values_at("pid", "worker", "generation", "request_id")
    assert_equal [1], entries.map { |entry| entry["generation"] }.uniq
    assert_equal [ended], entries.select { |entry| entry["pid"] == one.pid && (entry["worker"] || entry["request_id"]) }
  end
end
