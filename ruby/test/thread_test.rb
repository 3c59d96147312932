# frozen_string_literal: true

require "support"

# The VM lock: an idle worker does not hold it, a busy one gives it away, and interrupts arrive in both.
class ThreadTest < BindingTest
  def test_other_threads_run_while_the_worker_waits
    serve(->(_) { text([]) }) do |client|
      client.get("/")
      ran = 0
      Thread.new { 1000.times { ran += 1 } }.join
      assert_equal 1000, ran
    end
  end

  # Requests never stop: a client process of its own keeps the queue full, and another thread of the worker's process
  # still gets on.
  def test_other_threads_get_their_turn_under_full_load
    rounds = 0
    served = 0
    app = ->(_) { text([(served += 1).to_s]) }
    serve(app, lint: false) do |_, _worker|
      path = File.join(@log, "s")
      flood = <<~RUBY
        require "socket"
        request = "GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n" * 50
        sockets = Array.new(4) { UNIXSocket.new(#{path.dump}) }
        sockets.each { |socket| Thread.new { loop { socket.readpartial(100_000) } } }
        loop { sockets.each { |socket| socket.write(request) } }
      RUBY
      pid = spawn(RUBY, "-e", flood, err: File::NULL)
      begin
        wait_until("load") { served > 1000 }
        before = served
        counter = Thread.new { 20.times { rounds += 1; Thread.pass } }
        assert counter.join(DEADLINE), "a thread starved"
        assert_equal 20, rounds
        assert_operator served, :>=, before
      ensure
        Process.kill(:KILL, pid)
        Process.wait(pid)
      end
    end
  end

  def test_traps_run_while_the_worker_waits
    trapped = Thread::Queue.new
    saved = trap(:USR2) { trapped << :signal }
    serve(->(_) { text(["x"]) }) do |client|
      client.get("/")
      Process.kill(:USR2, Process.pid)
      assert_equal :signal, trapped.pop
      assert_equal "x", client.get("/").body
    end
  ensure
    trap(:USR2, saved || "DEFAULT")
  end

  def test_other_threads_run_while_a_slow_client_reads
    app = ->(_) { text(["x" * 65_536].cycle.lazy.first(200).each) }
    serve(app, lint: false, response_memory_max: "64K") do |client|
      client.send_raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      wait_until("the head") { client.socket.wait_readable(0) }
      ran = 0
      Thread.new { 1000.times { ran += 1 } }.join
      assert_equal 1000, ran
      assert_operator client.read_eof.bytesize, :>, 200 * 65_536
    end
  end

  def test_an_exception_raised_into_the_loop_leaves_it
    options = Oribi::Options.new.set("bind", File.join(@log, "raise"))
    listeners = Oribi::Listeners.new(options.finish)
    worker = nil
    thread = Thread.new do
      Thread.current.report_on_exception = false
      worker = Oribi::Worker.new(options, listeners, nil, Oribi::Environment.constants)
      worker.run(->(_) { text([]) })
    end
    wait_until("worker") { worker && thread.status == "sleep" }
    thread.raise(Interrupt, "stop")
    assert_raises(Interrupt) { thread.join(DEADLINE) }
    assert_equal 0, worker.request_count
  ensure
    worker&.close
    listeners&.close(true)
  end

  def test_running_twice_is_refused
    serve(->(_) { text([]) }) do |client, worker|
      client.get("/")
      assert_raises(Oribi::Error) { worker.run(->(_) {}) }
      assert_raises(Oribi::Error) { worker.close }
    end
  end

  # A child that the application forks leaves the server's connections alone.
  def test_fork_in_the_application
    app = lambda do |env|
      pid = fork { exit!(0) }
      Process.wait(pid)
      text([$?.exitstatus.to_s, env["PATH_INFO"]])
    end
    serve(app) { |client| 3.times { |i| assert_equal "0/#{i}", client.get("/#{i}").body } }
  end

  def test_a_child_that_comes_back_from_the_application_answers_nothing
    script = <<~'RUBY'
      require "oribi"
      $stdout.sync = true
      options = Oribi::Options.new.set("bind", ARGV[0]).finish
      listeners = Oribi::Listeners.new(options)
      worker = Oribi::Worker.new(options, listeners, nil, Oribi::Environment.constants)
      at_exit { puts "end of #{Process.pid == ARENT ? "parent" : "child"}" }
      ARENT = Process.pid
      puts "ready"
      worker.run(lambda do |_env|
        child = fork
        Process.wait(child) if child
        worker.stop if child
        [200, {}, [child ? "parent" : "child"]]
      end)
    RUBY
    path = File.join(@log, "fork")
    IO.popen([RUBY, "-I#{ROOT}/ruby/lib", "-e", script, path]) do |output|
      assert_equal "ready\n", output.gets
      client = Client.new { UNIXSocket.new(path) }
      assert_equal "parent", client.get("/").body
      assert_equal "", client.read_eof
      assert_equal %W[end\ of\ child\n end\ of\ parent\n], output.readlines
    end
    assert $?.success?
  end
end
