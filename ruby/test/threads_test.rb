# frozen_string_literal: true

require "support"

# `threads N`: several calls at a time in one worker. What is counted is how many were in the application together.
class ThreadsTest < BindingTest
  THREADS = 4

  # Calls that end when so many are in it together.
  class Meeting
    attr_reader :most

    def initialize(size)
      @size = size
      @lock = Mutex.new
      @met = ConditionVariable.new
      @inside = @most = @arrived = 0
    end

    def join(deadline = BindingTest::DEADLINE)
      @lock.synchronize do
        @inside += 1
        @arrived += 1
        @most = [@most, @inside].max
        @met.broadcast
        @met.wait(@lock, deadline) until @arrived >= @size
        @inside -= 1
      end
    end
  end

  def threaded(app, **settings, &block) = serve(app, threads: THREADS, lint: false, **settings, &block)

  # More connections to the same worker.
  def clients(client, count)
    connect = client.instance_variable_get(:@connect)
    others = Array.new(count) { Client.new(&connect) }
    yield others
  ensure
    others&.each(&:close)
  end

  def ask_all(clients, target)
    clients.each { |client| client.send_raw("GET #{target} HTTP/1.1\r\nHost: a\r\n\r\n") }
    clients.map(&:read_response)
  end

  def test_as_many_calls_as_threads_at_a_time
    meeting = Meeting.new(THREADS)
    app = lambda do |env|
      meeting.join
      text([env["PATH_INFO"]])
    end
    threaded(app) do |client|
      clients(client, THREADS) { |all| assert_equal ["/x"] * THREADS, ask_all(all, "/x").map(&:body) }
    end
    assert_equal THREADS, meeting.most
  end

  def test_no_more_calls_than_threads
    entered = Queue.new
    gate = Queue.new
    app = lambda do |_env|
      entered << true
      gate.pop
      text(["in"])
    end
    threaded(app) do |client|
      clients(client, THREADS + 2) do |all|
        all.each { |one| one.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
        THREADS.times { entered.pop }
        wait_until("all to sleep") { gate.num_waiting == THREADS }
        assert_equal 0, entered.size
        (THREADS + 2).times { gate << true }
        assert_equal ["in"] * (THREADS + 2), all.map { |one| one.read_response.body }
      end
    end
  end

  def test_threads_have_names_and_the_environment_says_so
    app = ->(env) { text(["#{env["rack.multithread"]} #{Thread.current.name}"]) }
    threaded(app) { |client| assert_match(/\Atrue oribi [1-4]\z/, client.get("/").body) }
    serve(app) { |client| assert_match(/\Afalse /, client.get("/").body) }
  end

  def test_rack_lint_finds_nothing
    serve(->(env) { text([env["rack.input"]&.read.to_s]) }, threads: THREADS) do |client|
      3.times { |i| assert_equal "body #{i}", client.post("/", "body #{i}").body }
    end
  end

  def test_every_client_gets_its_own_answers
    app = lambda do |env|
      Thread.pass if rand < 0.3
      body = env["rack.input"]&.read.to_s
      case env["PATH_INFO"]
      when "/sleep" then sleep(rand / 500)
      when "/each" then next [200, { "content-type" => "text/plain" }, Enumerator.new { |out| body.each_char { |char| out << char } }]
      when "/stream" then next [200, { "content-type" => "text/plain" }, ->(stream) { body.each_char { |char| stream << char } && stream.close }]
      end
      text([body, env["HTTP_X_TAG"]])
    end
    threaded(app) do |client|
      clients(client, 16) do |all|
        all.each_with_index.map { |one, number| Thread.new { drive(one, number) } }.each(&:join)
      end
    end
  end

  def drive(client, number)
    30.times do |i|
      body = "client #{number} request #{i}"
      path = %w[/ /sleep /each /stream][(number + i) % 4]
      want = %w[/each /stream].include?(path) ? body : "#{body}tag #{number}/#{i}"
      assert_equal want, client.post(path, body, { "X-Tag" => "tag #{number}/#{i}" }).body
    end
  end

  def test_pipelined_answers_keep_their_order
    app = lambda do |env|
      sleep(env["PATH_INFO"].end_with?("0") ? 0.01 : 0)
      text([env["PATH_INFO"]])
    end
    threaded(app) do |client|
      client.send_raw(Array.new(30) { |i| "GET /#{i} HTTP/1.1\r\nHost: a\r\n\r\n" }.join)
      assert_equal Array.new(30) { |i| "/#{i}" }, Array.new(30) { client.read_response.body }
    end
  end

  def test_hijacked_and_early_answered_calls_beside_each_other
    app = lambda do |env|
      if env["PATH_INFO"] == "/hijack"
        io = env["rack.hijack"].call
        Thread.pass
        io.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\ntaken")
        io.close
        next [-1, {}, []]
      end
      env["rack.early_hints"].call("link" => "</#{env["HTTP_X_TAG"]}>")
      text(["hinted"])
    end
    threaded(app, early_hints: true) do |client|
      clients(client, 8) do |all|
        all.each_with_index.map do |one, i|
          Thread.new do
            response = one.get("/hints", { "X-Tag" => i.to_s })
            assert_equal ["</#{i}>"], response.interim.map { |interim| interim["link"] }
            assert_equal "taken", one.get("/hijack").body
          end
        end.each(&:join)
      end
    end
  end

  def test_a_failing_call_leaves_the_others_alone
    meeting = Meeting.new(THREADS)
    app = lambda do |env|
      meeting.join
      case env["PATH_INFO"]
      when "/raise" then raise "told to fail"
      when "/exit" then exit
      when "/throw" then throw :nowhere
      end
      text(["fine"])
    end
    capture_log do
      threaded(app) do |client|
        clients(client, THREADS) do |all|
          %w[/raise /exit /throw /fine].zip(all) { |path, one| one.send_raw("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n") }
          assert_equal [500, 500, 500, 200], all.map { |one| one.read_response.status }
          assert_equal [200] * THREADS, ask_all(all, "/fine").map(&:status)
        end
      end
    end
  end

  def test_a_thread_that_the_application_kills_is_replaced
    meeting = Meeting.new(THREADS)
    app = lambda do |env|
      Thread.current.kill if env["PATH_INFO"] == "/kill"
      meeting.join if env["PATH_INFO"] == "/meet"
      text(["alive"])
    end
    threaded(app) do |client|
      3.times { assert_equal 500, client.get("/kill").status }
      clients(client, THREADS) { |all| assert_equal ["alive"] * THREADS, ask_all(all, "/meet").map(&:body) }
    end
    assert_equal THREADS, meeting.most
  end

  # Requests have come while a call had Ruby's lock, and threads are on their way to them when they are killed.
  def test_threads_that_are_killed_before_they_take_a_request_keep_none
    others = -> { Thread.list.select { |thread| thread.name&.start_with?("oribi ") } - [Thread.current] }
    app = lambda do |env|
      if env["PATH_INFO"] == "/kill"
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) - began > 0.05 # Ruby's lock is kept
        others.call.each(&:kill)
      end
      text([env["PATH_INFO"]])
    end
    threaded(app) do |client|
      clients(client, THREADS) do |all|
        5.times do
          all.each_with_index { |one, i| one.send_raw("GET /#{i.zero? ? "kill" : "beside"} HTTP/1.1\r\nHost: a\r\n\r\n") }
          statuses = all.map { |one| one.read_response.status }
          assert_empty statuses - [200, 500], "500 is for those that were in their call already"
          assert_equal 200, statuses.first
          assert_equal ["/beside"] * THREADS, ask_all(all, "/beside").map(&:body)
        end
      end
      wait_until("threads in their places") { others.call.count(&:alive?) == THREADS }
    end
  end

  # What a call leaves in its thread is the next call's, as anywhere; what it raises or times out is not.
  def test_timeouts_and_exceptions_stay_in_their_call
    app = lambda do |env|
      case env["PATH_INFO"]
      when "/timeout" then Timeout.timeout(0.01) { sleep }
      when "/throw" then throw :nowhere
      end
      text([Thread.current.report_on_exception.inspect, Thread.current.pending_interrupt?.inspect])
    rescue Timeout::Error
      text(["in time"])
    end
    capture_log do
      threaded(app) do |client|
        clients(client, THREADS) do |all|
          5.times do
            assert_equal ["in time"] * THREADS, ask_all(all, "/timeout").map(&:body)
            assert_equal [500] * THREADS, ask_all(all, "/throw").map(&:status)
            assert_equal ["falsefalse"] * THREADS, ask_all(all, "/").map(&:body)
          end
        end
      end
    end
  end

  def test_a_stop_lets_all_calls_finish
    entered = Queue.new
    gate = Queue.new
    app = lambda do |_env|
      entered << true
      gate.pop
      text(["finished"])
    end
    threaded(app) do |client, worker|
      clients(client, THREADS - 1) do |all|
        all.each { |one| one.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
        all.size.times { entered.pop }
        worker.stop
        wait_until("the worker to notice") { client.socket.read_nonblock(1, exception: false).nil? } # it was idle
        all.size.times { gate << true }
        assert_equal [["finished", "close"]] * all.size, all.map { |one| one.read_response.then { |r| [r.body, r["connection"]] } }
      end
    end
  end

  # What concerns the process ends #run, as it does with one thread.
  def test_an_exception_of_the_process_ends_all
    app = lambda do |env|
      sleep if env["PATH_INFO"] == "/sleep"
      raise Interrupt, "from the application"
    end
    options = Oribi::Options.new.set("bind", File.join(@log, "s")).set("quiet", true).set("threads", 3)
    listeners = Oribi::Listeners.new(options.finish)
    program = Thread.new do
      worker = Oribi::Worker.new(options, listeners, nil, Oribi::Environment.constants(errors: errors))
      worker.run(app)
    ensure
      worker.close
    end
    program.report_on_exception = false
    asleep = UNIXSocket.new(File.join(@log, "s"))
    asleep.write("GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n")
    client = UNIXSocket.new(File.join(@log, "s"))
    # A thread's exception is raised in the main thread, where a server's #run is called; here that is the test's.
    assert_raises(Interrupt) do
      client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      Timeout.timeout(DEADLINE) { program.join }
    end
  ensure
    program&.kill&.join
    [asleep, client].each { |socket| socket&.close }
    listeners&.close(true)
  end

  def test_the_callbacks_after_an_answer_belong_to_their_call
    seen = Queue.new
    app = lambda do |env|
      tag = env["HTTP_X_TAG"]
      env["rack.response_finished"] << ->(its_env, *) { seen << [tag, its_env["HTTP_X_TAG"]] }
      text([tag])
    end
    threaded(app) do |client|
      clients(client, 8) do |all|
        all.each_with_index.map { |one, i| Thread.new { 10.times { |k| one.get("/", { "X-Tag" => "#{i}.#{k}" }) } } }.each(&:join)
      end
    end
    pairs = Array.new(80) { seen.pop }
    assert_equal 80, pairs.uniq.size
    assert(pairs.all? { |own, its| own == its })
  end

  def test_the_option_takes_a_number_or_two
    options = Oribi::Options.new
    assert_equal "5", options.set("threads", "0:5")["threads"].to_s
    assert_equal "2", options.set("threads", 2)["threads"].to_s
    assert_raises(Oribi::Error) { options.set("threads", 65) }
  end
end
