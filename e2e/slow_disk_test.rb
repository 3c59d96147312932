# frozen_string_literal: true

require_relative "support"
require_relative "support/slow_disk"

# A disk that is slow, full or stands still (load/slow_disk.c): only those wait for it whose bytes go there, and no
# thread but the writer's ever writes.
module SlowDisk
  BODY = 200_000
  ANSWER = 8 << 20

  def setup
    super
    @dir = Dir.mktmpdir("oribi-e2e")
    @disk = E2E::SlowDisk.new(@dir)
    @plan = @disk.plan
  end

  def teardown
    @plan.held = 0
    super
    FileUtils.remove_entry(@dir)
  end

  def launch(*options, more: {}, **others)
    start("--workers", "1", "--body-memory-max", "16K", "--response-memory-max", "64K", *options, env: { **more, **@disk.env }, **others)
  end

  def post(one, size = BODY, client = connect(one))
    client.send_raw("POST /digest HTTP/1.1\r\nHost: a\r\nContent-Length: #{size}\r\n\r\n#{"x" * size}")
  end

  def assert_stored(client, size = BODY)
    assert_equal "#{size} #{size} #{Digest::SHA256.hexdigest("x" * size)}", client.read_response.body
  end

  def ask_big(one)
    connect(one, receive_buffer: 65_536).send_raw("GET /big?size=#{ANSWER} HTTP/1.1\r\nHost: a\r\n\r\n")
  end

  def assert_big(client) = assert_equal(ANSWER, client.read_response.body.bytesize)

  def await_write(count = 1) = wait_until("a write to begin") { @plan.begun >= count }

  def names(pid) = Dir["/proc/#{pid}/task/*/comm"].map { |path| File.read(path).chomp }
  def writers(pid) = Dir["/proc/#{pid}/task/*/comm"].select { |path| File.read(path) == "oribi-writer\n" }.map { |path| path[%r{task/(\d+)}, 1].to_i }

  # `pid` is the only one that has written.
  def assert_only_the_writer_wrote(pid)
    assert_operator @plan.begun, :>, 0
    return refute_includes(@plan.threads, pid, "the worker's own thread wrote") if E2E.portable? # threads have no names

    assert_equal writers(pid), @plan.threads, "threads that wrote, of #{names(pid)}"
  end

  # Unlinked files of a worker.
  def files(pid)
    E2E::Processes.descriptors(pid).values.select { |name| name.start_with?("#{@dir}/") && name.end_with?(" (deleted)") }
  rescue Errno::ENOENT
    [] # it has had its requests, and has ended
  end

  def assert_others_served(one)
    20.times { assert_alive(one) }
    assert_equal "y" * 10_000, connect(one).post("/echo", "y" * 10_000).body
  end
end

E2E.suite("slow_disk", transports: E2E::EITHER) do
  include SlowDisk

  def test_without_a_file_there_is_no_thread
    one = launch
    assert_others_served(one)
    assert_empty writers(one.worker_pid)
    assert_equal 0, @plan.begun
  end

  def test_a_disk_that_stands_still_and_a_body
    one = launch
    @plan.held = 1
    clients = Array.new(5) { post(one) }
    await_write
    assert_others_served(one)
    assert_equal 0, @plan.ended
    @plan.held = 0
    clients.each { |client| assert_stored(client) }
    assert_only_the_writer_wrote(one.worker_pid)
  end

  def test_a_disk_that_stands_still_and_an_answer
    one = launch
    @plan.held = 1
    client = ask_big(one)
    await_write
    assert_others_served(one)
    assert_equal 0, @plan.ended
    @plan.held = 0
    assert_big(client)
    assert_only_the_writer_wrote(one.worker_pid)
  end

  # The helper has the reactor while the call is long.
  def test_a_disk_that_stands_still_beside_a_long_call
    one = launch
    client = connect(one) # newcomers wait at the listener, where a worker without siblings is in a call
    client.get("/")
    gated = self.class.enter_gate(one, "slow-disk")
    @plan.held = 1
    post(one, SlowDisk::BODY, client)
    await_write
    refute gated.socket.wait_readable(0), "the call has ended before the write began"
    self.class.open_gate(one, "slow-disk")
    gated.read_response
    assert_others_served(one)
    @plan.held = 0
    assert_stored(client)
    assert_only_the_writer_wrote(one.worker_pid)
  ensure
    gated&.close
  end

  def test_every_write_takes_50_ms
    one = launch
    @plan.delay_ms = 50
    bodies = Array.new(8) { post(one) }
    answers = Array.new(3) { ask_big(one) }
    chunked = connect(one)
    chunked.request("POST", "/digest", { "Transfer-Encoding" => "chunked" }, "#{"x" * 50_000}".then { |part| "c350\r\n#{part}\r\n" * 4 + "0\r\n\r\n" })
    assert_others_served(one)
    bodies.each { |client| assert_stored(client) }
    assert_stored(chunked)
    answers.each { |client| assert_big(client) }
    assert_only_the_writer_wrote(one.worker_pid)
  end

  def test_files_of_a_form
    library = E2E::RUBY ? {} : { "PERL5LIB" => "#{E2E::ROOT}/perl/blib/lib:#{E2E::ROOT}/perl/blib/arch" }
    one = launch("--multipart-stream", app: "e2e/apps/multipart_stream#{E2E.differing(:app_extension)}", more: library)
    file = "0123456789abcde\n" * 20_000
    form = %w[f g].map { |name| "--b\r\nContent-Disposition: form-data; name=\"#{name}\"; filename=\"#{name}.bin\"\r\n\r\n#{file}\r\n" }.join + "--b--\r\n"
    @plan.held = 1
    client = connect(one)
    fields = { "Content-Type" => "multipart/form-data; boundary=b", "Content-Length" => form.bytesize.to_s }
    sender = Thread.new { client.request("POST", "/", fields, form) } # nothing is read while the write is held
    await_write
    5.times { assert_equal 200, one.get("/pid").status }
    @plan.held = 0
    sender.join
    assert_equal "f:f.bin:320000 g:g.bin:320000", client.read_response.body
    assert_only_the_writer_wrote(one.worker_pid)
  end

  # More than may wait for the disk: calls wait, and everything arrives.
  def test_many_long_answers
    one = launch("--buffers-memory-max", "1M")
    @plan.delay_ms = 50
    answers = Array.new(6) { ask_big(one) }
    answers.each { |client| assert_big(client) }
    assert_alive(one)
    assert_only_the_writer_wrote(one.worker_pid)
  end

  { "full" => [Errno::ENOSPC::Errno, 507], "broken" => [Errno::EIO::Errno, 503] }.each do |what, (number, status)|
    define_method(:"test_a_disk_that_is_#{what}") do
      one = launch
      @plan.error = number
      [SlowDisk::BODY, 20_000].each do |size|
        client = post(one, size)
        assert_equal status, client.read_response.status
        assert client.closed?, "bytes behind the #{status}"
      end
      client = ask_big(one)
      wait_until("the line; #{one.stderr}") { one.stderr.match?(/answer cut after/) }
      assert_operator client.socket.read.bytesize, :<, SlowDisk::ANSWER
      @plan.error = 0
      assert_stored(post(one))
      assert_only_the_writer_wrote(one.worker_pid)
    end
  end

  def test_clients_that_leave_meanwhile
    one = launch
    assert_stored(post(one))
    pid = one.worker_pid
    @plan.held = 1
    clients = [post(one), ask_big(one)]
    await_write(@plan.ended + 1)
    refute_empty files(pid)
    clients.each(&:close)
    assert_others_served(one)
    @plan.held = 0
    wait_until("files to be closed") { files(pid).empty? }
    assert_stored(post(one))
  end

  def test_a_stop
    one = launch
    @plan.held = 1
    client = post(one)
    await_write
    one.signal(:TERM)
    wait_until("the stop; #{one.stderr}") { E2E::Processes.title(one.descendants.last).match?(/drain|stop/i) || one.stderr.match?(/stop|TERM/i) }
    @plan.held = 0
    assert_stored(client)
    assert_equal 0, one.wait.exitstatus
    assert_memory_given_back(one)
  end

  def test_a_reload
    one = launch
    worker = one.worker_pid
    @plan.held = 1
    client = post(one)
    answer = ask_big(one)
    await_write
    one.signal(:HUP)
    wait_until("a new worker") { one.worker_pid != worker }
    @plan.held = 0
    assert_stored(client)
    assert_big(answer)
    wait_until("the old worker to end") { !E2E::Processes.alive?(worker) }
    assert_stored(post(one))
    assert_memory_given_back(one)
  end

  def test_an_upgrade
    one = launch
    worker = one.worker_pid
    @plan.held = 1
    client = post(one)
    await_write
    one.signal(:USR2)
    wait_until("the successor's worker") { one.worker_pid != worker }
    @plan.held = 0
    assert_stored(client)
    assert_stored(post(one))
  end

  def test_a_worker_that_is_killed
    one = launch("--err-respawn-interval", "0")
    worker = one.worker_pid
    @plan.held = 1
    client = post(one)
    await_write
    Process.kill(:KILL, worker)
    assert client.closed?
    @plan.held = 0
    assert_stored(post(one))
    refute_equal worker, one.worker_pid
  end
end

# What becomes of a worker while a write to its disk is under way.
E2E.suite("slow_disk_life", transports: %i[tcp]) do
  include SlowDisk

  # A body and an answer that wait for the disk.
  def hold(one)
    @plan.held = 1
    held = [post(one), ask_big(one)]
    await_write(@plan.ended + 1)
    held
  end

  # They are served to the last byte when the disk goes on.
  def release(body, answer)
    @plan.held = 0
    assert_stored(body)
    assert_big(answer)
  end

  # The worker has ended by itself, and the next has nothing of it.
  def assert_replaced(one, worker)
    wait_until("worker #{worker} to end: #{one.stderr}") { !E2E::Processes.alive?(worker) }
    assert_stored(post(one))
    refute_equal worker, one.worker_pid
    wait_until("files to be closed") { files(one.worker_pid).empty? }
    assert_memory_given_back(one)
    refute_match(/killed|signal \d|error:/, one.stderr)
  end

  def test_a_worker_that_has_had_its_requests = check_recycling

  def check_recycling(*options)
    one = launch("--requests-max", "8", *options)
    worker = one.worker_pid
    held = hold(one)
    wait_until("a new worker: #{one.stderr}") { one.get("/") && one.worker_pid != worker }
    release(*held)
    assert_replaced(one, worker)
  end

  # The worker has to stand still to become the mold: its writer ends before, and is there again after.
  def test_a_mold_made_of_a_worker
    one = launch("--refork-after", "8")
    first = one.worker_pid
    assert_stored(post(one)) # its writer is there
    held = hold(one)
    12.times { assert_alive(one) }
    release(*held)
    wait_until("the warm mold: #{one.stderr}") { one.stderr.include?("come from a warm mold") } # no request: eight make the next
    wait_until("worker #{first} to make way") { !E2E::Processes.alive?(first) } # both serve for a moment
    worker = one.worker_pid
    before = files(worker)
    assert_empty before
    @plan.delay_ms = 20
    clients = Array.new(3) { post(one) }
    answer = ask_big(one)
    wait_until("its writer") { writers(worker).size == 1 } unless E2E.portable?
    clients.each { |client| assert_stored(client) }
    assert_big(answer)
    wait_until("files to be closed") { files(worker).empty? }
    assert_memory_given_back(one)
  end

  def test_scaling_down
    one = launch("--workers", "3", "--control", "#{@dir}/control")
    wait_until("three workers") { workers(one).size == 3 }
    @plan.held = 1
    bodies = Array.new(9) { post(one) }
    answer = ask_big(one) # of more than one, calls would wait (UNSTORED_MAX in event/conn_store.c)
    await_write
    [2, 1].each do |count|
      one.signal(:TTOU)
      wait_until("the line: #{one.stderr}") { one.stderr.include?("workers: #{count}, were") }
    end
    assert_others_served(one)
    @plan.held = 0
    bodies.each { |client| assert_stored(client) }
    assert_big(answer)
    wait_until("one worker: #{one.stderr}") { workers(one).size == 1 }
    wait_until("files to be closed") { files(workers(one).first).empty? }
    refute_match(/killed|error:/, one.stderr)
  end

  def workers(one) = one.descendants.select { |pid| E2E::Processes.title(pid).match?(/ worker \d/) }

  if E2E::RUBY
    # Calls that wait for the disk beside calls that do not; the application's threads are Ruby's.
    def test_threads
      one = launch("--threads", "5", "--buffers-memory-max", "1M")
      @plan.delay_ms = 10
      bodies = Array.new(10) { post(one) }
      answers = Array.new(10) { ask_big(one) }
      assert_others_served(one)
      bodies.each { |client| assert_stored(client) }
      answers.map { |client| Thread.new { assert_big(client) } }.each(&:join)
      assert_only_the_writer_wrote(one.worker_pid)
      wait_until("files to be closed") { files(one.worker_pid).empty? }
    end

    def test_threads_and_a_worker_that_has_had_its_requests = check_recycling("--threads", "5")
  end
end
