# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require "digest"

# Files that an application answers with (to_path, handles, X-Sendfile) through a frontend: their descriptors go over
# the channel, and the frontend reads them. Content, conditions and ranges, clients that are slow or leave, files that
# change, workers that die.
E2E.suite("frontend_files", transports: %i[tcp]) do
  include FrontendServers

  const_set(:APP, "e2e/apps/sendfile#{E2E.differing(:app_extension)}")
  # About what goes by the ring (16 KiB), the first piece of a file (128 KiB), and what h2 keeps of strings (256 KiB).
  const_set(:SIZES, [1, 16_384, 16_385, 102_400, 131_071, 131_072, 131_073, 300_000, 1 << 20, 5_000_001].freeze)
  const_set(:LARGE, 48 << 20)
  const_set(:OLD, Time.utc(2001, 9, 9, 1, 46, 40))

  FILES_MAX = 256 # of a frontend at a time
  BLOCK = Random.new(7).bytes(1 << 20).freeze

  WAYS = {
    "tls_http1" => ["https", "--http1.1"], "tls_h2" => ["https", "--http2"],
    "http1" => ["http", "--http1.1"], "h2c" => ["http", "--http2-prior-knowledge"]
  }.freeze

  def setup
    super
    FileUtils.mkdir_p("#{@dir}/files")
    File.write("#{@dir}/files/a.txt", "not sent")
  end

  def teardown
    @readers&.each { |io| Process.kill(:KILL, io.pid) && io.close }
    super
  end

  def content(size) = (BLOCK * (size / BLOCK.bytesize + 1)).byteslice(0, size)

  def put(size, name = "f#{size}")
    path = "#{@dir}/files/#{name}"
    File.open(path, "wb") do |file|
      (size / BLOCK.bytesize).times { file.write(BLOCK) }
      file.write(BLOCK.byteslice(0, size % BLOCK.bytesize))
    end
    File.utime(self.class::OLD, self.class::OLD, path)
    path
  end

  def launch(scheme, *options, **more)
    address = scheme == "https" ? bind : FrontendServers::PLAIN_ADDRESS
    serve("--workers", "1", *options, address: address, app: self.class::APP, env: { "E2E_FILES" => "#{@dir}/files" }, **more)
    @scheme = scheme
  end

  def fetch(target, *words) = curl(target, *words, scheme: @scheme).b
  def status_of(target, *words) = fetch(target, "-o", "#{@dir}/out", "-w", "%{http_code}", *words).to_i
  def head_of(target, *words) = fetch(target, "-o", "#{@dir}/out", "-D", "-", *words)

  # A client that reads nothing but what its own buffers take, until it is asked to.
  def slow_reader(target, flag)
    words = ["curl", "-sS", "--max-time", (60 * E2E.patience).ceil.to_s, "--cacert", "#{@dir}/site.pem", "--resolve", "localhost:#{@one.port}:127.0.0.1"]
    io = IO.popen([FrontendServers::PLAIN, *words, flag, "#{@scheme}://localhost:#{@one.port}#{target}", { err: "#{@dir}/curl" }], "rb")
    (@readers ||= []) << io
    io
  end

  # The bytes that came, and curl's exit code.
  def read_out(io)
    bytes = io.read
    @readers.delete(io)
    io.close
    [bytes, $?.exitstatus]
  end

  def assert_whole(size, bytes, way)
    assert_equal [size, Digest::SHA256.hexdigest(content(size))], [bytes.bytesize, Digest::SHA256.hexdigest(bytes)], way
  end

  def held(path, pid = frontend) = E2E::Processes.descriptors(pid).values.count { |file| file.delete_suffix(" (deleted)") == path }
  def worker = @one.descendants.find { |pid| E2E::Processes.title(pid).match?(/\Aoribi(?:-psgi)? worker/) }
  def wait_for_hold(path) = wait_until("the frontend to hold the file") { held(path) == 1 }
  def wait_for_end(path) = wait_until("the frontend to close the file: #{E2E::Processes.descriptors(frontend)}") { held(path).zero? }

  WAYS.each do |name, (scheme, flag)|
    define_method(:"test_files_come_as_they_are_#{name}") do
      launch(scheme, "--sendfile-root", "#{@dir}/files")
      self.class::SIZES.each do |size|
        path = put(size)
        %w[to_path handle].each { |way| assert_whole size, fetch("/#{way}?f#{size}", flag), way }
        assert_whole size, fetch("/named?#{path}", flag, "-H", "X-Way: X-Sendfile"), "X-Sendfile"
        wait_for_end(path)
      end
      refute_match(/error/, @one.stderr)
    end

    define_method(:"test_ranges_conditions_and_head_#{name}") do
      launch(scheme, "--sendfile-root", "#{@dir}/files")
      path = put(1 << 20)
      body = content(1 << 20)
      target = "/to_path?f#{1 << 20}"
      { "0-" => 0.., "1-" => 1.., "100-199999" => 100..199_999, "-300000" => -300_000.., "1048575-" => 1_048_575.. }.each do |range, part|
        assert_equal body[part], fetch(target, flag, "-r", range), range
        assert_equal 206, status_of(target, flag, "-r", range)
      end
      assert_equal 416, status_of(target, flag, "-r", "1048576-")
      several = fetch(target, flag, "-r", "0-99999,500000-599999,1000000-1048575")
      [0..99_999, 500_000..599_999, 1_000_000..1_048_575].each { |part| assert_includes several, body[part] }
      head = head_of(target, flag, "-I")
      assert_match(/content-length: 1048576/i, head)
      named = ["/named?#{path}", flag, "-H", "X-Way: X-Sendfile"]
      tag = head_of(*named)[/^etag: (\S+)/i, 1]
      assert_equal 304, status_of(*named, "-H", "If-None-Match: #{tag}")
      assert_equal 304, status_of(*named, "-H", "If-Modified-Since: #{self.class::OLD.httpdate}")
      assert_equal 200, status_of(*named, "-H", "If-Modified-Since: #{(self.class::OLD - 1).httpdate}")
      assert_equal body, fetch(target, flag)
      wait_for_end(path)
    end

    # The worker is free at once, and neither memory nor a temporary file has the answer meanwhile.
    define_method(:"test_a_slow_reader_holds_no_worker_#{name}") do
      launch(scheme)
      path = put(self.class::LARGE, "large")
      reader = slow_reader("/to_path?large", flag)
      wait_for_hold(path)
      3.times { assert_equal "Hello, World!", fetch("/") }
      assert_empty(E2E::Processes.descriptors(frontend).values.grep(/deleted/).grep_v(/memfd/))
      bytes, code = read_out(reader)
      assert_equal [0, self.class::LARGE], [code, bytes.bytesize]
      assert_equal Digest::SHA256.hexdigest(content(self.class::LARGE)), Digest::SHA256.hexdigest(bytes)
      wait_for_end(path)
    end

    define_method(:"test_the_worker_dies_behind_its_file_#{name}") do
      launch(scheme)
      path = put(self.class::LARGE, "large")
      reader = slow_reader("/handle?large", flag)
      wait_for_hold(path)
      Process.kill(:KILL, wait_until("the worker's title") { worker })
      bytes, code = read_out(reader)
      assert_equal [0, content(self.class::LARGE) == bytes], [code, true]
      wait_for_end(path)
    end

    # Neither its worker's end nor its frontend's successor is anything to it.
    define_method(:"test_a_reload_and_an_upgrade_behind_a_file_#{name}") do
      launch(scheme, group: true)
      path = put(self.class::LARGE, "large")
      old = frontend
      reader = slow_reader("/to_path?large", flag)
      wait_for_hold(path)
      output, status = ctl("reload")
      assert status.success?, output
      upgrade = Thread.new { ctl("upgrade") }
      wait_until("the successor: #{@one.stderr}") { @one.stderr.include?("has taken over") }
      assert_equal "Hello, World!", fetch("/")
      assert_equal 1, held(path, old)
      bytes, code = read_out(reader)
      assert_equal [0, content(self.class::LARGE) == bytes], [code, true]
      output, status = upgrade.value
      assert status.success?, output
      wait_until("the old frontend to end") { !E2E::Processes.alive?(old) }
    ensure
      upgrade&.join
    end

    # Positions of more than 31 bits; bytes of the hole have to be fetched, those of the block are in memory.
    define_method(:"test_ranges_behind_three_gibibytes_#{name}") do
      launch(scheme)
      size = (3 << 30) + 5
      path = "#{@dir}/files/sparse"
      File.open(path, "wb") { |file| file.truncate(size) && file.pwrite(BLOCK, size - BLOCK.bytesize) }
      File.utime(self.class::OLD, self.class::OLD, path)
      target = "/to_path?sparse"
      assert_equal BLOCK, fetch(target, flag, "-r", "-#{BLOCK.bytesize}")
      assert_equal "\0".b * 100_000 + BLOCK, fetch(target, flag, "-r", "#{size - BLOCK.bytesize - 100_000}-")
      assert_match(/content-length: #{size}/i, head_of(target, flag, "-I"))
      wait_for_end(path)
    end

    define_method(:"test_an_empty_file_#{name}") do
      launch(scheme)
      put(0)
      %w[to_path handle].each { |way| assert_equal "", fetch("/#{way}?f0", flag) }
    end

    define_method(:"test_a_client_that_leaves_#{name}") do
      launch(scheme)
      path = put(self.class::LARGE, "large")
      reader = slow_reader("/to_path?large", flag)
      wait_for_hold(path)
      Process.kill(:KILL, reader.pid)
      wait_for_end(path)
      assert_equal "Hello, World!", fetch("/")
    end

    # The client must not take for whole what lacks its end.
    define_method(:"test_a_file_that_becomes_shorter_#{name}") do
      launch(scheme)
      path = put(self.class::LARGE, "large")
      reader = slow_reader("/to_path?large", flag)
      wait_for_hold(path)
      File.truncate(path, 1000)
      bytes, code = read_out(reader)
      assert_includes [18, 56, 92], code, File.read("#{@dir}/curl")
      assert_operator bytes.bytesize, :<, self.class::LARGE
      assert_equal content(bytes.bytesize), bytes
      wait_for_end(path)
      wait_until("the frontend to say so: #{@one.stderr}") { @one.stderr.include?("the file of an answer has become shorter") }
      assert_equal "Hello, World!", fetch("/")
    end
  end

  # More than a frontend reads at a time; the worker sends the others, and answers new clients meanwhile.
  def test_many_slow_readers
    launch("http")
    size = 12 << 20 # three times as much as the kernel takes for a client
    path = put(size, "large")
    readers = Array.new(FILES_MAX + 20) do
      connect(@one, receive_buffer: 4096).tap { |client| client.request("GET", "/to_path?large") }
    end
    wait_until("the frontend to hold as many files as it may") { held(path) >= FILES_MAX }
    assert_equal "Hello, World!", fetch("/")
    expected = Digest::SHA256.hexdigest(content(size))
    readers.values_at(0, 100, -1).each { |client| assert_equal expected, Digest::SHA256.hexdigest(client.read_response.body) }
    readers.each(&:close)
    wait_for_end(path)
  end

  # As a file that an application has opened for writing: nobody else gets that.
  unless E2E::RUBY
    def test_a_handle_that_can_be_written_to_is_sent_by_the_worker
      app = "#{@dir}/app.psgi"
      File.write(app, "sub { open my $fh, '+<:raw', '#{@dir}/files/large' or die; [200, ['Content-Type' => 'text/plain'], $fh] }")
      path = put(4 << 20, "large")
      serve("--workers", "1", app: app)
      assert_equal content(4 << 20), curl("/").b
      wait_for_end(path)
    end
  end
end
