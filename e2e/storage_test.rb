# frozen_string_literal: true

require_relative "support"

STORAGE_MEGABYTE = 1 << 20

# Files that cannot be made or written: TMPDIR is full, over the limit of file sizes, or not there, from the start or
# later. Bodies that need one are refused before the application sees them, answers break off, both logs say so, and
# everything else goes on.
E2E.suite("storage", transports: E2E::EITHER) do
  def setup
    super
    @space = Dir.mktmpdir("oribi-e2e")
    @log = "#{@space}/access.log"
  end

  def teardown
    super
    FileUtils.remove_entry(@space)
  end

  def launch(tmpdir, before: [], answers: "64K")
    argv = [*before, E2E::Server.binary, "--bind", unix? ? "unix:%{path}" : "127.0.0.1:%{port}", "--workers", "1", "--body-memory-max", "16K",
            "--response-memory-max", answers, "--access-log", @log, "--access-log-format", "common", File.expand_path(E2E.differing(:app), E2E::ROOT)]
    one = E2E::Server.new(transport: transport, argv: argv, env: { "TMPDIR" => tmpdir })
    @servers << one
    one.start
  end

  # The kernel gives a folder of this size, which nobody else sees, to the server alone.
  def launch_in(size, **options)
    inside = ["unshare", "--mount", "--propagation", "private"]
    mount = "mount -t tmpfs -o size=#{size} tmpfs #{@space}/tmp"
    FileUtils.mkdir_p("#{@space}/tmp")
    skip "no mount namespaces for us here" unless system(*inside, "sh", "-c", mount, err: File::NULL)
    launch("#{@space}/tmp", before: [*inside, "sh", "-c", "#{mount} && exec \"$@\"", "sh"], **options)
  end

  def post(one, size)
    connect(one).send_raw("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: #{size}\r\n\r\n#{"x" * size}")
  end

  def assert_refused_with(status, one, words, size: STORAGE_MEGABYTE)
    before = one.worker_pid
    response = post(one, size).tap { |client| @last = client }.read_response
    assert_equal [status, "close"], [response.status, response["Connection"]]
    assert @last.closed?
    assert_match(/request from \S.* refused with #{status}: request body cannot be stored in #{@space}\S*: #{words}: "POST/, one.stderr)
    wait_until("the access log") { File.read(@log).include?(%("POST /echo HTTP/1.1" #{status} #{response.body.bytesize}\n)) }
    assert_equal before, one.worker_pid
    assert_equal "x" * 10_000, post(one, 10_000).read_response.body # needs no file
  end

  # The client reads when the rest of the answer had to be stored, and then as much as it gets.
  def assert_cut(one, words)
    client = connect(one, receive_buffer: 65_536)
    client.send_raw("GET /big?size=#{16 * STORAGE_MEGABYTE} HTTP/1.1\r\nHost: a\r\n\r\n")
    wait_until("the line; #{one.stderr}") { one.stderr.match?(/answer cut/) }
    head, received = client.socket.read.split("\r\n\r\n", 2)
    assert_match(/\AHTTP\/1.1 200 .*^Content-Length: #{16 * STORAGE_MEGABYTE}\r?$/mi, head)
    assert_match(/error: GET \/big\S*: answer cut after #{received.bytesize} bytes of its body: the rest cannot be stored in #{@space}\S*: #{words}; closing/,
                 one.stderr)
    wait_until("the access log") { File.read(@log).match?(/"GET \/big\?size=\d+ HTTP\/1.1" 200 #{received.bytesize} cut$/) }
    assert_alive(one)
  end

  def test_a_full_disk
    one = launch_in("256k")
    assert_refused_with(507, one, "no space left on device")
    assert_cut(one, "no space left on device")
    one.stop
    assert_empty one.left_behind
  end

  # What one client's body takes is missing for another's, until it is gone.
  # Bytes in the unlinked files of the worker.
  def stored(one)
    Dir["/proc/#{one.worker_pid}/fd/*"].sum { |fd| File.readlink(fd).start_with?(@space) ? File.size(fd) : 0 }
  rescue Errno::ENOENT # closed meanwhile
    0
  end

  def test_a_disk_that_fills_and_empties
    one = launch_in("1m", answers: "4M")
    first = connect(one).send_raw("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 800000\r\n\r\n#{"y" * 799_999}")
    wait_until("the first to take the room") { stored(one) > 750_000 } # the last bytes may wait in memory
    assert_equal 507, post(one, 700_000).read_response.status
    assert_equal "y" * 800_000, first.send_raw("y").read_response.body
    assert_equal "x" * 700_000, post(one, 700_000).read_response.body
  end

  # 2 MiB, in blocks of 512 bytes: room for the scoreboard, which the limit holds for as well.
  def test_a_limit_of_file_sizes
    one = launch(@space, before: ["sh", "-c", 'ulimit -f 4096; exec "$@"', "sh"])
    assert_refused_with(507, one, "file too large", size: 4 * STORAGE_MEGABYTE)
    assert_cut(one, "file too large")
  end

  def test_a_folder_that_is_not_there
    one = launch("#{@space}/nowhere")
    refusal = "request bodies over body_memory_max (16384 bytes) are refused with 503"
    assert_alive(one) # the worker is up
    assert_includes one.stderr, "warn: no file can be made in #{@space}/nowhere: no such file or directory; #{refusal}\n"
    assert_refused_with(503, one, "no such file or directory")
    assert_cut(one, "no such file or directory")
  end

  def test_a_folder_that_goes_and_comes_back
    FileUtils.mkdir("#{@space}/tmp")
    one = launch("#{@space}/tmp")
    refute_match(/no file can be made/, one.stderr)
    assert_equal STORAGE_MEGABYTE, post(one, STORAGE_MEGABYTE).read_response.body.bytesize
    FileUtils.rmdir("#{@space}/tmp")
    assert_refused_with(503, one, "no such file or directory")
    FileUtils.mkdir("#{@space}/tmp")
    assert_equal STORAGE_MEGABYTE, post(one, STORAGE_MEGABYTE).read_response.body.bytesize
  end
end
