# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/stalled_reads"
require "json"

# A disk that stands still while a frontend reads a file there: who asked for that file waits for it, and nobody else.
E2E.suite("frontend_disk", transports: %i[tcp]) do
  include FrontendServers

  SIZE = 3_000_000

  def setup
    super
    @disk = E2E::StalledReads.new("#{@dir}/plan")
    FileUtils.mkdir_p("#{@dir}/s")
    File.write("#{@dir}/s/a.txt", "0123456789")
    File.write("#{@dir}/s/stalled", "x" * SIZE)
    File.chmod(0o1644, "#{@dir}/s/stalled")
  end

  def teardown
    @disk&.release
    super
  end

  # The library's pauses are no calls that a frontend may make.
  def launch(*options)
    serve("--static", "/s=#{@dir}/s", "--health", "/up", "--no-frontend-sandbox", "--workers", "2", *options, env: @disk.env)
    curl("/pid")
  end

  def by_itself = JSON.parse(ctl("status", "--json").first)["frontends"].first["requests_uncalled"]

  # One that waits for the file, while its disk stands still.
  def stalled(*words)
    @disk.hold
    before = @disk.begun
    waiting = Thread.new { curl("/s/stalled", *words) }
    wait_until("the read to begin") { @disk.begun > before }
    waiting
  end

  # Those that came before the frontend saw that the disk stands still, and those that come behind that.
  def assert_others_are_answered
    others = Array.new(4) do |i|
      Thread.new { %w[/s/a.txt /up /s/none /pid].map { |target| curl(target, i.even? ? "--http1.1" : "--http2") } }
    end
    others.each do |thread|
      file, health, missing, pid = thread.value
      assert_equal %W[0123456789 ok\n], [file, health]
      assert_match(/404/, missing)
      assert_match(/\A\d+\z/, pid)
    end
  end

  %w[--http1.1 --http2].each do |flag|
    define_method(:"test_nobody_else_waits_for_a_disk_that_stands_still_#{flag.delete("-.")}") do
      launch
      assert_equal "0123456789", curl("/s/a.txt")
      reads = @disk.begun
      waiting = stalled(flag)
      before = by_itself
      2.times { assert_others_are_answered }
      assert_equal before, by_itself, "workers answer meanwhile"
      assert_equal reads + 1, @disk.begun, "no worker reads the file that nobody else has asked for"
      assert waiting.alive?
      @disk.release
      assert_equal SIZE, waiting.value.bytesize
      wait_until("the frontend to answer files again") { curl("/s/a.txt") && by_itself > before + 1 }
      pass
    end
  end

  def log_lines = File.readlines("#{@dir}/access.log").map { |line| line[/GET (\S+)/, 1] }

  # What workers answered in the place of the thread has no line of the thread's when that goes on.
  def test_a_request_that_others_answer_has_one_line
    launch("--access-log", "#{@dir}/access.log")
    waiting = stalled("--http1.1")
    targets = Array.new(6) { |i| "/s/a.txt?#{i}" }
    targets.map { |target| Thread.new { curl(target) } }.each { |thread| assert_equal "0123456789", thread.value }
    @disk.release
    assert_equal SIZE, waiting.value.bytesize
    before = by_itself
    wait_until("the frontend to answer files again") { curl("/s/a.txt") && by_itself > before + 1 }
    @one.stop
    assert_equal targets.to_h { |target| [target, 1] }, log_lines.tally.slice(*targets)
    assert_equal 1, log_lines.count("/s/stalled")
  end

  # The thread is where it was when its client has gone, and others still are not held up.
  def test_a_client_that_leaves_a_stalled_file
    launch
    @disk.hold
    client = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", @one.port)).tap { |tls| tls.sync_close = true }
    client.connect.write("GET /s/stalled HTTP/1.1\r\nHost: localhost\r\n\r\n")
    wait_until("the read to begin") { @disk.begun > 0 }
    client.close
    assert_others_are_answered
    @disk.release
    wait_until("the frontend to answer files again") do
      before = by_itself
      curl("/s/a.txt") && by_itself > before
    end
    pass
  end

  # A reload makes another thread for files; the one before answers what it has begun when its disk goes on.
  def test_a_reload_while_the_disk_stands_still
    launch
    waiting = stalled("--http1.1")
    assert_match(/generation 2/, ctl("reload").first)
    assert_others_are_answered
    @disk.release
    assert_equal SIZE, waiting.value.bytesize
  end
end
