# frozen_string_literal: true

require_relative "support"

# `threads N`: several calls at a time in one worker. What is asserted is who is in a call together, not how long it
# took.
if E2E::RUBY
  # Calls that wait at gates, and what a busy machine does to others meanwhile.
  module Threads
    def serve(*options, **more) = start("--threads", "4", *options, **more)

    def calls_of(server) = Dir["/proc/#{server.worker_pid}/task/*/comm"].map { |path| File.read(path).chomp }.grep(/\Aoribi \d/).sort
  end

  E2E.suite("threads", options: %w[--threads 4 --access-log off]) do
    include Threads

    def test_threads_have_names
      skip_without "names of threads"
      assert_equal ["oribi 1", "oribi 2", "oribi 3", "oribi 4"], calls_of(server)
    end

    def test_four_calls_at_a_time_and_no_fifth
      names = %w[a b c d]
      waiting = names.map { |name| enter_gate(server, name) }
      fifth = connect
      fifth.request("GET", "/gate?name=e")
      early = connect # nobody is free, and yet what is not HTTP is answered
      early.send_raw("GET / HTTP/1.1\r\n\r\n") if fifth.quiet?
      refute entered?(server, "e")
      open_gate(server, *names, "e")
      assert_equal ["gate passed"] * 4, waiting.map { |client| client.read_response.body }
      assert_equal "gate passed", fifth.read_response.body
      assert_equal 400, early.read_response.status
    end

    def test_one_free_thread_serves_everybody_else
      held = %w[f g h].map { |name| enter_gate(server, name) }
      clients = Array.new(20) { connect }
      3.times { clients.each { |client| assert_equal "Hello, World!", client.get("/").body } }
      open_gate(server, "f", "g", "h")
      held.each { |client| assert_equal "gate passed", client.read_response.body }
    end

    # 64 kept-alive connections, 8 at a time, every body checked.
    def test_many_clients_and_mixed_calls
      wrong = Queue.new
      Array.new(8) { |number| Thread.new { drive(Array.new(8) { connect }, number, wrong) } }.each(&:join)
      assert_empty Array.new(wrong.size) { wrong.pop }
    end

    def drive(clients, number, wrong)
      8.times do |round|
        asked = clients.each_with_index.map { |client, i| ask(client, "#{number}.#{i}.#{round}", (number + i + round) % 6) }
        clients.zip(asked) { |client, (want, what)| (got = client.read_response.body) == want or wrong << [what, want[0, 80], got[0, 80]] }
      end
    end

    def ask(client, tag, kind)
      case kind
      when 0 then client.request("GET", "/") && ["Hello, World!", "/"]
      when 1 then client.request("POST", "/echo", {}, tag) && [tag, "/echo"]
      when 2 then client.request("GET", "/stream") && [Array.new(3) { |i| "line #{i}\n" }.join, "/stream"]
      when 3 then client.request("GET", "/file") && [E2E::Server.numbers, "/file"]
      when 4 then client.request("GET", "/parts?count=50") && [Array.new(50) { |i| "part #{i}\n" }.join, "/parts"]
      else
        body = tag * 50_000
        client.request("POST", "/digest", {}, body)
        ["#{body.bytesize} #{body.bytesize} #{Digest::SHA256.hexdigest(body)}", "/digest"]
      end
    end

    def test_pipelined_requests_are_answered_in_order
      client = connect
      client.send_raw(Array.new(20) { |i| "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n#{format("%02d", i)}" }.join)
      assert_equal Array.new(20) { |i| format("%02d", i) }, Array.new(20) { client.read_response.body }
    end

    def test_hijacked_sockets_beside_each_other
      clients = Array.new(8) { connect }
      clients.each { |client| client.request("GET", "/hijack") }
      assert_equal ["hijacked"] * 8, clients.map { |client| client.read_response.body }
    end

    def test_a_failing_call_leaves_the_others_alone
      held = enter_gate(server, "beside")
      failing = connect
      10.times { assert_equal 500, failing.get("/raise").status }
      open_gate(server, "beside")
      assert_equal "gate passed", held.read_response.body
    end

    # A slow reader's stream holds one thread, not the worker.
    def test_a_slow_reader_of_a_stream
      slow = server.connect(receive_buffer: 4096)
      slow.request("GET", "/flood?count=400")
      clients = Array.new(8) { connect }
      clients.each { |client| assert_equal "Hello, World!", client.get("/").body }
      assert_equal 400 * 65_536, slow.read_response.body.bytesize
    ensure
      slow&.close
    end
  end

  E2E.suite("threads_life", transports: E2E::EITHER) do
    include Threads

    # Until the client reads, the rest of its answer goes to a file, and the call's clock stands still.
    { "answer" => "/big?size=20000000", "stream" => "/flood?count=400" }.each do |what, target|
      define_method("test_a_long_#{what}_that_nobody_reads_holds_nobody_else") do
        one = serve("--call-timeout", "60s", "--health", "/up")
        slow = one.connect(receive_buffer: 4096)
        slow.request("GET", target)
        wait_until("the answer to begin") { slow.readable? }
        clients = Array.new(8) { connect(one) }
        clients.each { |client| assert_equal ["Hello, World!", 200], [client.get("/").body, client.get("/up").status] }
        assert_operator slow.read_response.body.bytesize, :>=, 20_000_000
      ensure
        slow&.close
      end
    end

    %i[TERM HUP].each do |signal|
      define_method("test_#{signal.downcase}_waits_for_all_calls") do
        one = serve
        held = %w[a b c].map { |name| enter_gate(one, name) }
        one.signal(signal)
        wait_until("the signal to be taken") { one.stderr.match?(/stopping|generation 2/) }
        open_gate(one, "a", "b", "c")
        assert_equal ["gate passed"] * 3, held.map { |client| client.read_response.body }
        one.signal(:TERM) if signal == :HUP
        assert_equal 0, one.wait.exitstatus
      end
    end

    # Calls shorter than a change of threads are left to the thread that is there. On a machine where threads wait for
    # a processor no call is short, so a round of several counts.
    def test_short_calls_change_threads_seldom
      client = connect(serve(app: "e2e/apps/threads.ru"))
      wait_until("a round with fewer than 500 changes") { changes_of_thread(client) < 500 }
    end

    def changes_of_thread(client)
      names = Array.new(25) do
        client.send_raw("GET /name HTTP/1.1\r\nHost: a\r\n\r\n" * 40)
        Array.new(40) { client.read_response.body }
      end.flatten
      names.each_cons(2).count { |one, other| one != other }
    end

    # Two workers of two threads: whoever has a free one takes what the other cannot.
    def test_free_threads_count_for_placement
      one = start("--workers", "2", "--threads", "2")
      clients = Array.new(12) { connect(one).tap { |client| client.get("/") } }
      5.times do |round|
        names = Array.new(4) { |i| "r#{round}.#{i}" }
        used = clients.rotate(round * 3).first(4)
        used.zip(names) { |client, name| client.request("GET", "/gate?name=#{name}") }
        wait_until("all four calls") { names.all? { |name| entered?(one, name) } }
        open_gate(one, *names)
        used.each { |client| assert_equal "gate passed", client.read_response.body }
      end
    end

    # Behind a call that keeps Ruby's lock, free threads of its worker are none: another worker has them.
    def test_a_call_that_computes_keeps_no_request_of_another_workers
      one = start("--workers", "2", "--threads", "5", app: "e2e/apps/threads.ru")
      clients = Array.new(8) { connect(one) }
      pid, others = clients.group_by { |client| client.get("/").body }.find { |_, list| list.size > 1 }
      busy, *behind = others
      passed = 8.times.count do
        busy.request("GET", "/compute/80") # less than the 100 ms after which Ruby lets another thread run
        other = behind.first.get("/").body != pid
        busy.read_response
        pid, (busy, *behind) = clients.group_by { |client| client.get("/").body }.find { |_, list| list.size > 1 }
        other
      end
      assert_operator passed, :>, 4
    end

    def test_requests_max_replaces_the_worker
      one = serve("--requests-max", "20")
      first = one.worker_pid
      wait_until("another worker") { one.worker_pid != first }
      assert_equal "Hello, World!", one.get("/").body
    end

    # A mold is forked off a worker that stands still: its threads end before and are there again after.
    def test_a_mold_made_of_a_worker
      one = serve("--refork-after", "20")
      held = enter_gate(one, "long")
      20.times { one.get("/") }
      open_gate(one, "long")
      assert_equal "gate passed", held.read_response.body
      wait_until("the warm mold") { one.stderr.include?("come from a warm mold") }
      wait_until("threads") { calls_of(one).size == 4 }
      assert_equal "Hello, World!", one.get("/").body
    end

    def test_status_counts_threads
      one = serve("--control", control = File.join(Dir.mktmpdir("oribi-e2e"), "control"))
      held = %w[a b].map { |name| enter_gate(one, name) }
      assert_equal [4, 2], status(control)["processes"][0].values_at("threads", "threads_busy")
      open_gate(one, "a", "b")
      held.each(&:read_response)
      wait_until("nothing to do") { status(control)["processes"][0]["threads_busy"].zero? }
    ensure
      FileUtils.rm_rf(File.dirname(control)) if control
    end

    def status(control)
      JSON.parse(IO.popen([E2E::Server.binary, "ctl", "--control", control, "status", "--json"], &:read))
    end
  end

  E2E.suite("threads_deadlines", transports: E2E::EITHER) do
    include Threads

    def setup
      super
      @server = start("--threads", "4", "--call-timeout", "300ms", app: "e2e/apps/threads.ru")
      @client = connect(@server)
      @pid = @client.get("/").body
    end

    def test_only_the_call_that_is_overdue
      extended = connect(@server)
      extended.request("GET", "/patient/1000")
      late = Array.new(2) { connect(@server) }
      late.zip(%w[/sleep/20000 /spin]) { |client, path| client.request("GET", path) }
      assert_equal [504, 504], late.map { |client| client.read_response.status }
      assert_equal "patient", extended.read_response.body
      assert_equal @pid, @client.get("/").body, "the worker was replaced: #{@server.stderr}"
      assert_equal 2, @server.stderr.scan("CallTimeout: ").size
    end

    def test_one_call_after_another
      clients = Array.new(4) { connect(@server) }
      3.times do
        clients.each { |client| client.request("GET", "/sleep/20000") }
        assert_equal [504] * 4, clients.map { |client| client.read_response.status }
      end
      assert_equal @pid, @client.get("/").body, "the worker was replaced: #{@server.stderr}"
    end

    # A call that takes no exception: its client hears of it, and calls that end soon still end well.
    def test_a_deaf_call_does_not_cut_those_that_end_soon
      deaf = connect(@server)
      deaf.request("GET", "/deaf")
      other = connect(@server)
      assert_equal "patient", other.get("/patient/100").body until deaf.socket.wait_readable(0)
      assert_equal 504, deaf.read_response.status
      wait_until("the line") { @server.stderr.include?("call deadline: GET /deaf") }
      wait_until("another worker") { @server.get("/").body != @pid }
    end

    # With the VM's lock held nothing of the worker can go on: all clients get an answer.
    def test_a_stuck_call_takes_the_others_with_it
      beside = connect(@server)
      beside.request("GET", "/patient/20000")
      wait_until("the call") { @server.stderr.include?("patient") }
      stuck = connect(@server)
      stuck.request("GET", "/stuck")
      assert_equal [504, 504], [stuck, beside].map { |client| client.read_response.status }
      refute_equal @pid, @client.get("/").body
      assert_match(%r{call deadline: GET /stuck .*, 504 sent; 1 other calls ended, }, @server.stderr)
    end
  end
else
  E2E.suite("threads", transports: %i[tcp]) do
    def test_the_option_is_refused_in_one_line
      one = run_to_end("--threads", "2")
      refute_equal 0, one.status.exitstatus
      assert_equal ["oribi-psgi: --threads is an option of oribi only"], one.stderr.lines.map(&:chomp)
    end
  end
end
