# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/frames"
require "etc"
require "json"

# What a frontend answers by itself: files, fixed answers, health. That it is what workers answer show the suites
# `static`, `static_life`, `fixed` and `server_answers`, too, over the transport `frontend`.
E2E.suite("frontend_site", transports: %i[tcp]) do
  include FrontendServers

  H2C = FrontendServers::PLAIN_ADDRESS

  def workers = @one.descendants.select { |pid| File.read("/proc/#{pid}/cmdline").include?("worker") }

  # What comes while the block runs is not the workers'.
  def without_workers
    stopped = wait_until("the workers' titles") { workers.then { |all| all if all.any? } }
    stopped.each { |pid| Process.kill(:STOP, pid) }
    yield
  ensure
    stopped&.each { |pid| Process.kill(:CONT, pid) }
  end

  # Long ago: an entity tag of a file that is new is weak, and another one later.
  def put(path, text, mode = 0o644)
    FileUtils.mkdir_p(File.dirname("#{@dir}/#{path}"))
    File.write("#{@dir}/#{path}", text, perm: mode)
    File.utime(0, 1_000_000_000, "#{@dir}/#{path}")
  end

  def test_files_and_health_need_no_worker
    put("s/a.txt", "0123456789")
    serve("--static", "/s=#{@dir}/s?cache=public", "--health", "/up")
    curl("/pid")
    without_workers do
      %w[--http1.1 --http2].each do |flag|
        assert_equal "0123456789", curl("/s/a.txt", flag)
        assert_equal "234", curl("/s/a.txt", flag, "-H", "Range: bytes=2-4")
        assert_match(/\AHTTP\/\S+ 404/, curl("/s/none", flag, "-i"))
        assert_equal "ok\n", curl("/up", flag)
      end
    end
  end

  # A C library looks at a path with .. or a slash at its end by other calls of the system.
  def test_folders_by_way_of_others
    put("s/a.txt", "0123456789")
    serve("--static", "/up=#{@dir}/s/../s", "--static", "/slash=#{@dir}/s/")
    curl("/pid")
    without_workers { %w[up slash].each { |prefix| assert_equal "0123456789", curl("/#{prefix}/a.txt") } }
    refute_match(/without the mount/, @one.stderr)
  end

  # --- as workers do ---

  # The head of an answer without its date, and its body.
  def answer_of(port, scheme, target, *words)
    out, error, status = Open3.capture3("curl", "-sSik", "--raw", "--max-time", FrontendServers.patience, "--path-as-is", *words,
                                        "#{scheme}://127.0.0.1:#{port}#{target}")
    assert status.success?, "#{scheme} #{words} #{target}: #{error}"
    head, body = out.b.split("\r\n\r\n", 2)
    status_line, *fields = head.split("\r\n")
    boundary = head[/boundary=(\S+)/, 1] || " "
    fields = fields.map { |field| field.sub(/\A[^:]+/, &:downcase).sub(boundary, "B") }
    [status_line[/ (\d+)/, 1], fields.grep_v(/\A(date|connection):/).sort, body.gsub(boundary, "B")]
  end

  ASKED = [["/s/a.txt"], ["/s/a.txt", "-H", "Range: bytes=2-4"], ["/s/a.txt", "-H", "Range: bytes=90-"], ["/s/a.txt", "-H", "Range: bytes=0-1,4-5"],
           ["/s/a.txt", "-H", "Range: bytes=0-1", "-H", 'If-Range: "other"'], ["/s/a.txt", "-H", 'If-None-Match: *'], ["/s/a.txt", "-H", 'If-Match: "other"'],
           ["/s/a.txt", "-H", "If-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT"], ["/s/a.txt", "-H", "Accept-Encoding: gzip"],
           ["/s/a.txt", "-H", "Accept-Encoding: identity;q=0"], ["/s/a.txt", "-I"], ["/s/a.txt", "-I", "-H", "Range: bytes=2-4"],
           ["/s/a.txt", "-X", "GET", "-d", "a body"], ["/s/large", "-I"], ["/s/large", "-H", "Range: bytes=-3"], ["/s/empty"], ["/s/sub"], ["/s"],
           ["/s/none"], ["/s/none", "-I"], ["/s/../a.txt"], ["/s/%2e%2e/site.key"], ["/s/..%2fsite.key"], ["/s/a%zz"], ["/s/a%00"], ["/s/.hidden"],
           ["/s/out"], ["/up"], ["/up", "-I"], ["/up", "-H", "Accept: application/json"], ["/up", "-X", "POST", "-d", "x"], ["/old"], ["/old", "-X", "POST"],
           ["/robots.txt"]].freeze

  def test_files_are_answered_as_workers_do
    put("s/a.txt", "0123456789")
    put("s/a.txt.gz", "gz")
    put("s/empty", "")
    put("s/large", "x" * 300_000)
    put("s/sub/index.html", "index")
    File.symlink("../site.key", "#{@dir}/s/out")
    plain = E2E.free_port
    serve("--bind", "127.0.0.1:#{plain}", "--static", "/s=#{@dir}/s?cache=public&header=X-Extra: yes&index=index.html", "--health", "/up",
          "--redirect", "/old=/new", "--answer", "/robots.txt=200:none", "--header", "X-All:1")
    curl("/pid")
    direct = ASKED.map { |target, *more| answer_of(plain, "http", target, "--http1.1", *more) }
    assert_equal "206", direct[3].first
    without_workers do
      ASKED.zip(direct) do |(target, *more), answer|
        assert_equal answer, answer_of(@one.port, "https", target, "--http1.1", *more), [target, *more].join(" ")
        assert_equal answer, answer_of(@one.port, "https", target, "--http2", *more), ["h2", target, *more].join(" ")
      end
    end
  end

  # --- files that change ---

  def test_a_file_that_becomes_shorter_resets_its_stream
    put("s/large", "x" * 20_000_000)
    serve("--static", "/s=#{@dir}/s", "--frontends", "1", address: H2C)
    client = @one.connect
    one = E2E::Frames.new(client, E2E::Frames::INITIAL_WINDOW_SIZE => 1_000_000)
    one.get(1, "/s/large")
    one.await(:data)
    File.truncate("#{@dir}/s/large", 5_000_000)
    one.send(:window_update, 0, [100_000_000].pack("N"))
    one.send(:window_update, 1, [100_000_000].pack("N"))
    assert_equal [1, 2], one.await(:rst_stream).then { |frame| [frame.stream, frame.payload.unpack1("N")] }
    one.get(3, "/up/none")
    assert_equal 3, one.await(:headers).stream, "the connection goes on"
  ensure
    client&.close
  end

  # --- rights ---

  def test_what_a_frontend_may_not_read_workers_answer
    return skip("only root can give a frontend another user") unless Process.uid.zero?

    FileUtils.chmod(0o755, @dir)
    put("s/open", "open")
    put("s/secret", "secret", 0o600)
    put("s/shut/a", "shut")
    put("closed/a", "closed")
    FileUtils.chmod(0o700, ["#{@dir}/s/shut", "#{@dir}/closed"])
    serve("--frontend-user", "nobody", "--static", "/s=#{@dir}/s", "--static", "/c=#{@dir}/closed")
    assert_equal %w[open secret shut closed], ["/s/open", "/s/secret", "/s/shut/a", "/c/a"].map { |path| curl(path) }
    without_workers { assert_equal "open", curl("/s/open") }
  end

  # No file was to be read when the frontend gave up what it did not need.
  def test_workers_answer_for_a_confined_frontend_without_files_what_a_reload_adds
    put("s/a", "of s")
    config = "#{@dir}/config"
    File.write(config, E2E::RUBY ? "" : "+{}")
    serve("--config", config, "--health", "/up")
    File.write(config, E2E::RUBY ? "static \"/s\", \"#{@dir}/s\"" : "+{ static => [\"/s=#{@dir}/s\"] }")
    assert_match(/generation 2/, ctl("reload").first)
    assert_equal "of s", curl("/s/a")
    without_workers { assert_equal "ok\n", curl("/up") }
  end

  # --- reloads, logs ---

  # Workers of the next generation work in the folder that the link leads to then.
  def test_a_reload_sees_relative_folders_from_the_new_release
    { "1" => "first", "2" => "second" }.each { |release, text| put("releases/#{release}/public/a", text) }
    File.symlink("releases/1", "#{@dir}/current")
    serve("--chdir", "#{@dir}/current", "--static", "/s=public", "--error-page", "404=public/a")
    assert_equal "first", curl("/s/a")
    File.symlink("releases/2", "#{@dir}/next")
    File.rename("#{@dir}/next", "#{@dir}/current")
    assert_match(/generation 2/, ctl("reload").first)
    without_workers { assert_equal %w[second second], [curl("/s/a"), curl("/s/none")] }
  end

  def lines(path) = File.exist?(path) ? File.readlines(path).map { |line| JSON.parse(line).values_at("target", "status") } : []

  def test_lines_go_on_in_another_access_log
    log = "#{@dir}/access"
    put("s/a", "a")
    serve("--static", "/s=#{@dir}/s", "--health", "/up", "--access-log", log, "--access-log-format", "json")
    curl("/s/a")
    E2E.wait_until("a line") { lines(log).include?(["/s/a", 200]) }
    File.rename(log, "#{log}.1")
    @one.signal(:USR1)
    wait_until("another log") { File.exist?(log) }
    E2E.wait_until("a line in it") do
      curl("/up")
      lines(log).include?(["/up", 200])
    end
    refute_includes lines(log), ["/s/a", 200]
  end
end
