# frozen_string_literal: true

require_relative "support"

# Uploads of processes that are killed, and forms that are too large: nothing stays on the disk, and the client is told
# that the request was at fault.
E2E.suite("form_mishaps", transports: %i[tcp]) do
  FORM = "application/x-www-form-urlencoded"
  PARTS = "multipart/form-data; boundary=b"
  UPLOAD = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n#{"x" * 100_000}\r\n--b--\r\n"

  def serve(argv: nil)
    @tmp = Dir.mktmpdir("oribi-e2e")
    @argv = argv
    launch
  end

  def launch
    @one = E2E::Server.new(transport: transport, app: "e2e/apps/form_mishaps#{E2E.differing(:app_extension)}", group: true, argv: @argv,
                           options: %w[--workers 1 --access-log off --err-respawn-interval 100ms], env: { "TMPDIR" => @tmp, **library })
    @servers << @one
    @one.start
  end

  def library = E2E::RUBY ? {} : { "PERL5LIB" => "#{E2E::ROOT}/perl/blib/lib:#{E2E::ROOT}/perl/blib/arch" }

  def teardown
    super
    FileUtils.remove_entry(@tmp) if @tmp
  end

  def left = Dir.children(@tmp).sort

  # A request whose upload is on the disk, and whose worker waits: the worker's pid.
  def hold
    connect(@one).request("POST", "/hold", { "Content-Type" => PARTS }, UPLOAD)
    noted = File.join(@one.dir, "noted")
    wait_until("the upload: #{@one.stderr}") { File.exist?(noted) }
    pid, size, path = File.read(noted).split(" ", 3)
    assert_equal "100000", size
    assert_equal [true, 1], [File.exist?(path), left.size] unless E2E::RUBY # where it has a name
    pid.to_i
  end

  def test_a_worker_that_is_killed_with_an_upload
    serve
    Process.kill(:KILL, hold)
    wait_until("the replacement to remove #{left}: #{@one.stderr}") { left.empty? }
    assert_alive(@one)
    assert_equal "100000", connect(@one).post("/take", UPLOAD, { "Content-Type" => PARTS }).body
    assert_equal 0, @one.stop.exitstatus, @one.stderr
    assert_empty left
  end

  def test_all_of_a_server_that_is_killed_with_an_upload
    serve
    hold
    [@one.pid, *@one.descendants].each { |pid| E2E::Processes.kill(pid) } # some end by themselves behind the first
    wait_until("all to be gone") { @one.ended? && @one.group.empty? }
    refute_empty left unless E2E::RUBY
    launch
    assert_alive(@one)
    wait_until("the next server to remove #{left}") { left.empty? }
  end

  def test_a_form_with_too_many_pairs
    serve
    assert_too_many
    assert_match(%r{POST /pairs: the request is refused: .*the form has more than 65536 pairs}, @one.stderr)
  end

  unless E2E::RUBY
    %w[development deployment].each do |environment|
      define_method(:"test_too_many_pairs_in_#{environment}_of_plackup") do
        serve(argv: ["plackup", "-s", "Oribi", "-E", environment, "--workers", "1", "--host", "127.0.0.1", "--port", "%{port}",
                     "e2e/apps/form_mishaps.psgi"])
        assert_too_many
      end
    end
  end

  def assert_too_many
    client = connect(@one)
    assert_equal [200, "65536"], client.post("/pairs", pairs(65_536), { "Content-Type" => FORM }).then { |answer| [answer.status, answer.body] }
    assert_equal 413, client.post("/pairs", pairs(65_537), { "Content-Type" => FORM }).status
    assert_alive(@one)
  end

  def pairs(count) = Array.new(count) { |i| "k#{i}=1" }.join("&")
end
