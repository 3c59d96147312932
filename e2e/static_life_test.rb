# frozen_string_literal: true

require_relative "support"
require_relative "support/tree"
require "open3"
require "zlib"

# Files of mounts over time: what changes on the disk, what programs download, reload, siblings, logs. Each test has a
# folder and a server of its own.
E2E.suite("static_life", transports: E2E::EITHER | %i[frontend]) do
  define_method(:setup) do
    super()
    @dir = File.realpath(Dir.mktmpdir("oribi-static"))
  end

  define_method(:teardown) do
    super()
    FileUtils.remove_entry(@dir)
  end

  define_method(:put) { |name, text, time = E2E::Tree::OLD| E2E::Tree.put("#{@dir}/#{name}", text, time) }
  define_method(:mounted) { |*options, **more| start("--static", "/s=#{@dir}/s?cache=public", *options, **more) }
  define_method(:ctl) { |*words| Open3.capture2e(E2E::Server.binary, "ctl", "--control", "#{@dir}/control", *words).first }
  define_method(:status) { JSON.parse(ctl("status", "--json")) }

  # --- what changes on the disk ---

  define_method(:test_a_file_replaced_by_rename_is_new_within_a_second) do
    put("s/a", "old")
    one = mounted
    client = connect(one)
    etag = client.get("/s/a").then { |response| assert_equal("old", response.body) && response["etag"] }
    put("new", "newer", E2E::Tree::OLD + 1)
    File.rename("#{@dir}/new", "#{@dir}/s/a")
    wait_until("the new file") { client.get("/s/a").body == "newer" }
    refute_equal etag, client.get("/s/a")["etag"]
    assert_equal 404, client.get("/s/b").status
    put("s/b", "there now")
    wait_until("the file that was missing") { client.get("/s/b").body == "there now" }
    File.unlink("#{@dir}/s/b")
    wait_until("the file to be gone") { client.get("/s/b").status == 404 }
  end

  define_method(:test_a_deployment_changes_a_link) do
    put("releases/1/a", "first")
    put("releases/2/a", "second")
    File.symlink("releases/1", "#{@dir}/s")
    client = connect(mounted)
    assert_equal "first", client.get("/s/a").body
    File.symlink("releases/2", "#{@dir}/next")
    File.rename("#{@dir}/next", "#{@dir}/s")
    wait_until("the new release") { client.get("/s/a").body == "second" }
  end

  # How many bytes came; a frontend resets a connection whose answer it cannot end.
  define_method(:cut_off) do |client|
    client.read_to_end.bytesize
  rescue Errno::ECONNRESET
    raise unless frontend?

    0
  end

  define_method(:test_a_file_truncated_while_it_is_sent_ends_the_connection) do
    put("s/large", "x" * 20_000_000)
    one = mounted
    client = connect(one, receive_buffer: 4096)
    client.request("GET", "/s/large")
    assert_equal 20_000_000, client.read_head["content-length"].to_i
    File.truncate("#{@dir}/s/large", 10_000_000)
    assert_operator cut_off(client), :<, 20_000_000
    assert_equal 10_000_000, connect(one).get("/s/large").body.bytesize
  end

  define_method(:test_a_file_replaced_while_it_is_sent_is_sent_to_its_end) do
    put("s/large", "x" * 20_000_000)
    one = mounted
    client = connect(one, receive_buffer: 4096)
    client.request("GET", "/s/large")
    client.read_head
    put("new", "y" * 100)
    File.rename("#{@dir}/new", "#{@dir}/s/large")
    assert_equal "x" * 20_000_000, client.read_bytes(20_000_000)
  end

  # --- descriptors and memory ---

  define_method(:test_nothing_stays_open) do
    200.times { |i| put("s/#{i}", "x" * 70_000) }
    one = mounted("--static-open-max", "10")
    pid = one.worker_pid
    client = connect(one)
    client.get("/s/0")
    before = E2E::Processes.descriptors(pid).size
    slow = Array.new(50) { connect(one, receive_buffer: 4096).tap { |other| other.request("GET", "/s/1") } }
    200.times { |i| assert_equal 200, client.get("/s/#{i}").status }
    slow.each(&:close)
    wait_until("descriptors to be back") { E2E::Processes.descriptors(pid).size <= before + 10 }
    assert_operator E2E::Processes.descriptors(pid).count { |_, name| name.start_with?("#{@dir}/s/") }, :<=, 10
  end

  define_method(:test_without_descriptors_files_are_503) do
    skip "a frontend without descriptors takes no clients" if frontend?
    put("s/a", "x" * 70_000)
    one = mounted("--static-open-max", "0")
    pid = one.worker_pid
    client = connect(one)
    assert_equal 200, client.get("/s/a").status
    response = nil
    wait_until("descriptors to be out") do
      open = E2E::Processes.descriptors(pid).keys.map(&:to_i)
      lowest = (0..).find { |fd| !open.include?(fd) }
      system("prlimit", "--pid", pid.to_s, "--nofile=#{lowest}:4096") or raise "prlimit is not there"
      response = client.get("/s/a")
      response.status != 200
    end
    assert_equal [503, "1", nil], [response.status, response["retry-after"], response["cache-control"]]
    system("prlimit", "--pid", pid.to_s, "--nofile=4096:4096")
    assert_equal 200, client.get("/s/a").status
  end

  # --- logs, counts, who the client is ---

  define_method(:test_logs_and_counts) do
    put("s/a", "0123456789")
    one = mounted("--access-log", "#{@dir}/access", "--access-log-format", "json", "--control", "#{@dir}/control")
    client = connect(one)
    client.get("/s/a")
    client.get("/s/none")
    client.head("/s/a")
    client.get("/method")
    own = -> { File.readlines("#{@dir}/access").map { |line| JSON.parse(line) }.select { |line| line["target"] != "/" } }
    wait_until("four lines") { own.call.size >= 4 }
    lines = own.call
    # A frontend and a worker write in turns; the first is a worker's, if it came before there was one.
    lines.sort_by! { |line| %w[GET/s/a GET/s/none HEAD/s/a GET/method].index(line.values_at("method", "target").join) } if frontend?
    assert_equal [["GET", "/s/a", 200, 10], ["GET", "/s/none", 404, 14], ["HEAD", "/s/a", 200, 0], ["GET", "/method", 200, 3]],
                 lines.map { |line| line.values_at("method", "target", "status", "bytes") }
    assert_equal [0, 0, 0], lines.first(3).map { |line| line["call_us"] }
    next if frontend? # status counts what workers have answered

    wait_until("the counts") { status["requests_uncalled"] == 3 && status["requests"] == 4 }
    assert_equal [3, 4], status["processes"].first.values_at("requests_uncalled", "requests")
    assert_equal({ "2xx" => 3, "4xx" => 1 }, status["answers"].slice("2xx", "4xx"))
    assert_includes ctl("status"), "4 requests (3 answered without the application)"
  end

  define_method(:test_the_client_behind_a_proxy) do
    put("s/a", "x")
    one = mounted("--trusted-proxies", "127.0.0.0/8 unix", "--proxy-protocol", "--access-log", "#{@dir}/access")
    client = connect(one).send_raw("PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n")
    assert_equal "x", client.get("/s/a").body
    assert_equal "x", client.get("/s/a", { "X-Forwarded-For" => "203.0.113.9" }).body
    wait_until("both lines") { File.readlines("#{@dir}/access").size >= 2 }
    assert_equal %w[192.0.2.7 192.0.2.7], File.readlines("#{@dir}/access").first(2).map { |line| line.split.first }
  end

  define_method(:test_the_forwarded_client_in_the_log) do
    put("s/a", "x")
    one = mounted("--trusted-proxies", "127.0.0.0/8 unix", "--access-log", "#{@dir}/access")
    connect(one).get("/s/a", { "X-Forwarded-For" => "203.0.113.9" })
    wait_until("the line") { File.readlines("#{@dir}/access").any? { |line| line.start_with?("203.0.113.9 ") } }
    pass
  end

  # --- limits ---

  define_method(:test_keepalive_requests_max) do
    put("s/a", "x")
    client = connect(mounted("--keepalive-requests-max", "3"))
    assert_equal [false, false, true], Array.new(3) { client.get("/s/a").close? }
    assert client.closed?
  end

  define_method(:test_queue_max_sheds_no_file) do
    put("s/a", "x")
    one = mounted("--queue-max", "1")
    warm = enter_gate(one, "warm")
    open_gate(one, "warm")
    warm.read_response
    held = enter_gate(one, "full")
    waiting = connect(one).tap { |client| client.request("GET", "/method") }
    clients = Array.new(20) { connect(one) }
    clients.each { |client| client.request("GET", "/s/a") }
    clients.each { |client| assert_equal [200, "x"], client.read_response.then { |response| [response.status, response.body] } }
    open_gate(one, "full")
    assert_equal [200, 200], [held, waiting].map { |client| client.read_response.status }
  end

  define_method(:test_a_client_that_does_not_read_times_out) do
    put("s/large", "x" * 20_000_000)
    one = mounted("--write-timeout", "1s", "--control", "#{@dir}/control")
    client = connect(one, receive_buffer: 4096)
    client.request("GET", "/s/large")
    wait_until("the first bytes") { client.readable? }
    wait_until("the connection to be closed") { status["connections_by_state"].values.sum.zero? }
    assert_operator client.read_to_end.bytesize, :<, 20_000_000
  end

  # --- the first long call of all, siblings, threads ---

  define_method(:test_a_first_call_that_lasts) do
    put("s/a", "x")
    one = mounted
    held = connect(one).tap { |client| client.request("GET", "/gate?name=first") }
    wait_until("the call") { entered?(one, "first") }
    100.times { assert_equal "x", connect(one).get("/s/a").body }
    assert held.quiet?
    open_gate(one, "first")
    assert_equal 200, held.read_response.status
  end

  define_method(:test_every_worker_in_a_call) do
    put("s/a", "x")
    one = mounted("--workers", "3")
    held = %w[a b c].map { |name| enter_gate(one, name) }
    kept = connect(one)
    50.times { assert_equal %w[x x], [connect(one), kept].map { |client| client.get("/s/a").body } }
    queued = connect(one)
    queued.send_raw("GET /s/a HTTP/1.1\r\nHost: a\r\n\r\nGET /method HTTP/1.1\r\nHost: a\r\n\r\nGET /s/a HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_equal "x", queued.read_response.body
    open_gate(one, "b")
    assert_equal %w[GET x], Array.new(2) { queued.read_response.body }, "in order, by whichever worker"
    open_gate(one, "a", "c")
    held.each { |client| assert_equal 200, client.read_response.status }
  end

  if E2E::RUBY
    define_method(:test_every_thread_in_a_call) do
      put("s/a", "x")
      one = mounted("--threads", "3")
      held = %w[a b c].map { |name| enter_gate(one, name) }
      50.times { assert_equal "x", connect(one).get("/s/a").body }
      open_gate(one, "a", "b", "c")
      held.each { |client| assert_equal 200, client.read_response.status }
      assert_equal "x", connect(one).get("/s/a").body
    end
  end

  # --- reload and the end ---

  define_method(:test_a_reload_takes_the_mounts_of_the_new_configuration) do
    put("s/a", "of s")
    put("t/a", "of t")
    config = "#{@dir}/config"
    write = ->(folder) { File.write(config, E2E::RUBY ? "static \"/s\", \"#{@dir}/#{folder}\"" : "+{ static => [\"/s=#{@dir}/#{folder}\"] }") }
    write.call("s")
    one = start("--config", config, "--control", "#{@dir}/control")
    kept = connect(one)
    assert_equal "of s", kept.get("/s/a").body
    write.call("t")
    assert_match(/generation 2/, ctl("reload"))
    assert_equal "of t", connect(one).get("/s/a").body
  end

  define_method(:test_a_download_outlives_a_reload) do
    put("s/large", "x" * 20_000_000)
    one = mounted("--control", "#{@dir}/control")
    client = connect(one, receive_buffer: 4096)
    client.request("GET", "/s/large")
    client.read_head
    assert_match(/generation 2/, ctl("reload"))
    assert_equal "x" * 20_000_000, client.read_bytes(20_000_000)
    assert_equal 206, connect(one).get("/s/large", { "Range" => "bytes=0-0" }).status
  end

  define_method(:test_files_are_sent_to_their_end_when_the_server_stops) do
    put("s/large", "x" * 20_000_000)
    one = mounted
    client = connect(one, receive_buffer: 4096)
    client.request("GET", "/s/large")
    client.read_head
    one.signal(:TERM)
    assert_equal "x" * 20_000_000, client.read_bytes(20_000_000)
    assert client.closed?
    assert_equal 0, one.wait.exitstatus
  end

  # --- programs ---

  define_method(:url) { |one, path| "http://127.0.0.1:#{one.port}#{path}" }
  define_method(:curl) { |one, *words| Open3.capture2("curl", "-sS", *(unix? ? ["--unix-socket", one.path] : []), *words).first }

  define_method(:test_curl) do
    put("s/large", E2E::Tree.big)
    put("s/x.css", "plain")
    put("s/x.css.gz", Zlib.gzip("packed"))
    one = mounted
    url = unix? ? "http://localhost/s" : url(one, "/s")
    assert_equal E2E::Tree.big, curl(one, "#{url}/large").b
    assert_equal E2E::Tree.big.byteslice(100..200), curl(one, "-r", "100-200", "#{url}/large").b
    assert_equal "packed", curl(one, "--compressed", "-H", "Accept-Encoding: gzip", "#{url}/x.css")
    File.binwrite("#{@dir}/got", E2E::Tree.big.byteslice(0, 1_000_000))
    curl(one, "-C", "-", "-o", "#{@dir}/got", "#{url}/large")
    assert_equal E2E::Tree.big, File.binread("#{@dir}/got")
    curl(one, "--etag-save", "#{@dir}/etag", "-o", "#{@dir}/other", "#{url}/large")
    assert_equal "304", curl(one, "--etag-compare", "#{@dir}/etag", "-o", "/dev/null", "-w", "%{http_code}", "#{url}/large")
    assert_equal "304", curl(one, "-z", "#{@dir}/got", "-o", "/dev/null", "-w", "%{http_code}", "#{url}/large")
  end

  define_method(:test_wget_goes_on_with_a_download) do
    return if unix? # wget knows no unix sockets

    put("s/large", E2E::Tree.big)
    one = mounted
    File.binwrite("#{@dir}/large", E2E::Tree.big.byteslice(0, 1_234_567))
    2.times { assert system("wget", "-q", "-c", "-P", @dir, url(one, "/s/large")) } # the second finds it complete
    assert_equal E2E::Tree.big, File.binread("#{@dir}/large")
    assert system("wget", "-q", "-N", "-P", @dir, url(one, "/s/large"))
  end

  define_method(:test_ab) do
    return if unix? # ab knows no unix sockets

    put("s/a", "x" * 1000)
    put("s/large", "x" * 100_000)
    one = mounted
    %w[a large].each do |name|
      text, = Open3.capture2e("ab", "-q", "-k", "-n", "2000", "-c", "20", url(one, "/s/#{name}"))
      assert_match(/^Complete requests:\s+2000$/, text)
      assert_match(/^Failed requests:\s+0$/, text)
      assert_match(/^Keep-Alive requests:\s+2000$/, text)
      refute_match(/Non-2xx/, text)
    end
  end
end
