# frozen_string_literal: true

require "support"

# Applications that fail, in every way Ruby has, and clients that leave: the worker lives on and everything is closed.
class FailureTest < BindingTest
  # GET /fail runs the block, GET / on the same connection is answered as ever.
  def fails_with_500(&block)
    app = ->(env) { env["PATH_INFO"] == "/fail" ? block.call(env) : text(["fine"]) }
    capture_log do
      serve(app, lint: false) do |client|
        assert_equal 500, client.get("/fail").status
        assert_equal "fine", client.get("/").body
      end
    end
  end

  def test_exceptions
    [RuntimeError, ScriptError, NoMemoryError, SecurityError, SystemStackError, NotImplementedError, Class.new(Exception)].each do |kind|
      fails_with_500 { raise kind, "told to fail" }
      assert_match(%r{error: GET /fail: the application died: #{Regexp.escape(kind.to_s)}: told to fail$}, logged)
    end
  end

  def test_one_entry_with_class_message_and_backtrace
    fails_with_500 { raise ArgumentError, "told to fail" }
    assert_equal 1, logged.scan("told to fail").size
    assert_match(/ArgumentError: told to fail/, logged)
    assert_match(/failure_test\.rb:\d+:in /, logged)
    refute_match(%r{^ .*/ruby/lib/oribi}, logged, "frames of the server")
  end

  def test_a_message_cannot_forge_a_line
    fails_with_500 { raise "first\r\n2026-01-01T00:00:00Z oribi[1] error: forged" }
    refute_match(/^2026-01-01/, logged)
  end

  def test_messages_in_any_encoding
    shown_as = {
      "caf\xE9 é" => "caf\\xE9 é", "caf\xE9".b => "caf\\xE9", "café".encode("UTF-16LE") => "café", "café".encode("ISO-8859-1") => "café"
    }
    shown_as.each do |given, shown|
      fails_with_500 { raise given }
      assert_includes logged.force_encoding("UTF-8"), "GET /fail: the application died: RuntimeError: #{shown}\n    "
    end
  end

  def test_cause_is_logged
    fails_with_500 do
      raise "inner"
    rescue StandardError
      raise "outer"
    end
    assert_match(/outer.*caused by RuntimeError: inner/m, logged)
  end

  def test_an_exception_that_cannot_be_printed
    broken = Class.new(StandardError) { def message = raise("no message either") }
    fails_with_500 { raise broken }
    assert_match(/GET \/fail: the application died: an exception of class .* that cannot be printed/, logged)
  end

  def test_endless_recursion
    deep = ->(n) { deep.call(n + 1) + 1 }
    fails_with_500 { deep.call(0) }
    assert_match(/SystemStackError/, logged)
  end

  def test_exit_ends_the_request_and_not_the_worker
    fails_with_500 { exit(3) }
    assert_match(/SystemExit: exit/, logged)
    fails_with_500 { abort }
  end

  def test_throw_and_break
    fails_with_500 { throw :nowhere }
    fails_with_500(&proc { |_| break })
    assert_match(/LocalJumpError/, logged)
  end

  def test_throw_beyond_the_loop
    app = ->(env) { env["PATH_INFO"] == "/fail" ? throw(:outside) : text(["fine"]) }
    capture_log do
      outer = Class.new do
        define_method(:call) { |env| app.call(env) }
      end.new
      options = Oribi::Options.new.set("bind", path = File.join(@log, "throw")).set("workers", 1)
      listeners = Oribi::Listeners.new(options.finish)
      worker = nil
      thread = Thread.new do
        catch(:outside) do
          worker = Oribi::Worker.new(options, listeners, nil, Oribi::Environment.constants)
          worker.run(outer)
          :ran_to_its_end
        end
      end
      wait_until("worker") { worker }
      client = Client.new { UNIXSocket.new(path) }
      assert_equal 500, client.get("/fail").status
      assert_equal "fine", client.get("/").body
      client.close
      worker.stop
      assert_equal :ran_to_its_end, thread.value
    ensure
      listeners&.close(true)
    end
    assert_match(/throw, break or return out of the application/, logged)
  end

  def test_killing_the_thread_ends_the_loop
    app = ->(_) { Thread.current.kill }
    options = Oribi::Options.new.set("bind", path = File.join(@log, "kill")).set("workers", 1)
    listeners = Oribi::Listeners.new(options.finish)
    worker = nil
    thread = Thread.new do
      worker = Oribi::Worker.new(options, listeners, nil, Oribi::Environment.constants)
      worker.run(app)
    end
    wait_until("worker") { worker }
    client = Client.new { UNIXSocket.new(path) }
    assert_equal 500, client.get("/").status
    assert thread.join(DEADLINE)
    assert_nil thread.value
  ensure
    client&.close
    worker&.close
    listeners&.close(true)
  end

  def test_a_body_that_fails_at_its_start
    closed = false
    body = Class.new do
      def each = raise("body failed")
      define_method(:close) { closed = true }
    end.new
    fails_with_500 { text(body) }
    assert closed
    assert_match(/body failed/, logged)
  end

  # Part of the answer is out: the client must see that it is not complete, never a second head.
  def test_a_body_that_fails_in_the_middle
    closed = 0
    body = Class.new do
      def each
        yield "x" * 100
        raise "body failed"
      end
      define_method(:close) { closed += 1 }
    end
    capture_log do
      serve(->(env) { env["PATH_INFO"] == "/" ? text(["fine"]) : text(body.new) }, lint: false) do |client|
        client.send_raw("GET /fail HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = client.read_eof
        assert_match(/\AHTTP\/1.1 200 /, answer)
        assert_equal 1, answer.scan("HTTP/1.1").size
        refute answer.end_with?("0\r\n\r\n")
        client.reconnect
        assert_equal "fine", client.get("/").body
      end
    end
    assert_equal 1, closed
  end

  def test_close_that_fails
    body = Class.new do
      def each = yield("whole")
      def close = raise("close failed")
    end
    capture_log do
      serve(->(_) { text(body.new) }, lint: false) { |client| 2.times { assert_equal "whole", client.get("/").body } }
    end
    assert_match(%r{GET /: close of the body died: RuntimeError: close failed}, logged)
  end

  def test_close_is_called_for_every_kind_of_end
    closed = []
    bodies = {
      "/array" => -> { %w[a] }, "/each" => -> { %w[a].each }, "/ary" => -> { Struct.new(:to_ary) { def each = yield("a") }.new(%w[a]) },
      "/call" => -> { ->(stream) { stream.write("a") } }
    }
    app = lambda do |env|
      body = bodies.fetch(env["PATH_INFO"]).call
      path = env["PATH_INFO"]
      text(path == "/array" ? body : Rack::BodyProxy.new(body) { closed << path })
    end
    serve(app, lint: false) do |client|
      bodies.each_key { |path| assert_equal "a", client.get(path).body, path }
    end
    assert_equal %w[/each /ary /call], closed
  end

  def test_close_is_called_when_the_answer_is_refused
    closed = false
    capture_log do
      serve(->(_) { [200, { "bad name" => "x" }, Rack::BodyProxy.new(["a"].each) { closed = true }] }, lint: false) do |client|
        assert_equal 500, client.get("/").status
      end
    end
    assert closed
  end

  def test_a_client_that_leaves_stops_the_body
    yielded = 0
    ended = closed = false
    errors_seen = []
    body = Class.new do
      define_method(:each) do |&block|
        10_000.times { yielded += 1; block.call("x" * 100_000) }
      ensure
        ended = true
      end
      define_method(:close) { closed = true }
    end
    app = lambda do |env|
      next text(["fine"]) if env["PATH_INFO"] == "/"

      env["rack.response_finished"] << ->(*arguments) { errors_seen << arguments.last }
      text(body.new)
    end
    capture_log do
      serve(app, lint: false) do |client|
        client.send_raw("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n")
        client.socket.readpartial(10)
        client.reconnect
        assert_equal "fine", client.get("/").body
      end
    end
    assert_operator yielded, :<, 10_000
    assert_equal [true, true], [ended, closed]
    assert_kind_of Oribi::DisconnectError, errors_seen.first
    assert_empty logged, "a client that leaves is nobody's mistake"
  end

  # --- rack.response_finished ---

  def test_response_finished
    seen = []
    app = lambda do |env|
      env["rack.response_finished"] << ->(*arguments) { seen << [:first, *arguments] } << ->(*arguments) { seen << [:second, *arguments] }
      text(["x"], { "x-a" => "1" })
    end
    serve(app) do |client|
      client.get("/path")
      client.get("/path")
    end
    assert_equal %i[second first second first], seen.map(&:first)
    _, env, status, headers, error = seen.first
    assert_equal ["/path", 200, "1", nil], [env["PATH_INFO"], status, headers["x-a"], error]
  end

  def test_response_finished_after_a_failure
    seen = []
    fails_with_500 do |env|
      env["rack.response_finished"] << ->(*arguments) { seen << arguments }
      raise "told to fail"
    end
    assert_equal [nil, nil, "told to fail"], [*seen.first[1, 2], seen.first.last.message]
  end

  def test_response_finished_that_fails_does_not_keep_the_others_from_their_turn
    seen = []
    app = lambda do |env|
      env["rack.response_finished"] << ->(*) { seen << 1 } << ->(*) { raise "callback failed" } << ->(*) { seen << 3 }
      text([])
    end
    capture_log { serve(app) { |client| assert_equal 200, client.get("/").status } }
    assert_equal [3, 1], seen
    assert_match(%r{GET /: a rack.response_finished callback died: RuntimeError: callback failed}, logged)
  end

  FINISHED = "rack.response_finished"

  # What an application leaves under rack.response_finished, and which of its callbacks are called.
  def finished(lint: false)
    seen = []
    app = lambda do |env|
      yield env, ->(what) { ->(*) { seen << what } }
      text(["x"])
    end
    capture_log { serve(app, lint: lint) { |client| 2.times { assert_equal "x", client.get("/").body } } }
    assert_equal seen[seen.size / 2..], seen[0, seen.size / 2], "the same for both requests"
    seen[0, seen.size / 2]
  end

  def test_response_finished_frozen
    assert_equal %i[b a], finished { |env, call| env[FINISHED].push(call[:a], call[:b]).freeze }
    assert_empty finished { |env, _| env[FINISHED].freeze }
    assert_empty logged
  end

  def test_response_finished_replaced
    assert_equal %i[b a], finished { |env, call| env[FINISHED] = [call[:a], call[:b]] }
    assert_equal %i[b a], finished { |env, call| (env[FINISHED] << call[:a]) && env[FINISHED] += [call[:b]] }
    assert_equal %i[a], finished { |env, call| env[FINISHED] = Class.new(Array).new([call[:a]]) }
    assert_empty logged
  end

  # The server looks first where it has put the key.
  def test_response_finished_in_another_place
    assert_equal %i[a], finished { |env, call| env[FINISHED] = env.delete(FINISHED) << call[:a] }
    assert_equal %i[b], finished { |env, call| env[FINISHED] = env.delete(FINISHED) && [call[:b]] }
    assert_equal %i[a], finished { |env, call| env.replace({ "x" => 1, FINISHED => [call[:a]] }) }
    assert_equal %i[a], finished { |env, call| env.clear.merge!(FINISHED => [call[:a]]) }
    assert_equal %i[b], finished { |env, call| env.clear && 40.times { |i| env["key#{i}"] = i } && env[FINISHED] = [call[:b]] }
    assert_equal %i[a], finished { |env, call| env.shift && env.rehash && env[FINISHED] << call[:a] }
    assert_equal %i[a], finished { |env, call| 5000.times { |i| env["key#{i}"] = i } && 5000.times { |i| env.delete("key#{i}") } && env[FINISHED] << call[:a] }
    assert_equal %i[a], finished { |env, call| env.to_a.first(12).each { |key, _| env.delete(key) } && env[FINISHED] = [call[:a]] }
    assert_equal %i[a], finished { |env, call| env.compare_by_identity && env.each_key { |key| env[key] = [call[:a]] if key == FINISHED } }
    assert_empty finished { |env, _| env.keep_if { |key, _| key == FINISHED } && env.delete(FINISHED) && env["x"] = 1 }
    assert_empty logged
  end

  def test_response_finished_replaced_by_what_is_no_array
    ["text", 1, {}, ->(*) {}].each do |other|
      assert_equal %i[a], finished { |env, call| (env[FINISHED] << call[:a]) && env[FINISHED] = other }
      assert_match(/rack.response_finished is a #{other.class}, not an Array/, logged)
    end
    assert_equal(%i[a], finished { |env, call| (env[FINISHED] << call[:a]) && env[FINISHED] = nil })
    assert_equal(%i[a], finished { |env, call| (env[FINISHED] << call[:a]) && env.delete("rack.response_finished") })
    assert_equal(%i[a], finished { |env, call| (env[FINISHED] << call[:a]) && env.clear })
    assert_empty logged
  end

  def test_response_finished_that_cannot_be_called
    assert_equal %i[b a], finished { |env, call| env[FINISHED].push(call[:a], nil, "text", call[:b], Object.new) }
    assert_equal 6, logged.scan(/a rack.response_finished callback died: NoMethodError/).size
  end

  def test_response_finished_that_grows_while_it_runs
    seen = finished do |env, call|
      list = env[FINISHED]
      list << call[:a] << ->(*) { list << call[:c] << call[:d] } << call[:b]
    end
    assert_equal %i[b a d c], seen, "what is added comes after all that were there"
    assert_empty logged
    seen = finished { |env, call| (list = env[FINISHED]).push(call[:a], ->(*) { list.clear }, call[:b]) }
    assert_equal %i[b], seen, "and what is taken out does not"
  end

  def test_response_finished_that_never_ends
    count = 0
    app = lambda do |env|
      again = ->(*) { (count += 1) && env[FINISHED] << again }
      env[FINISHED] << again
      text(["x"])
    end
    capture_log { serve(app, lint: false) { |client| assert_equal "x", client.get("/").body } }
    assert_equal 1024, count
    assert_equal 1, logged.scan(/#{FINISHED}: 1024 callbacks of one request have run, the others are left out/).size
  end

  AFTER = "rack.after_reply"

  def test_after_reply
    seen = []
    told = Queue.new
    app = lambda do |env|
      env[AFTER] << -> { seen << :a } << -> { raise "after the reply" } << proc { seen << :b }
      env[FINISHED] << ->(*) { seen << :finished }
      env[AFTER] << -> { told << seen }
      text(["x"])
    end
    capture_log { serve(app) { |client| assert_equal ["x", %i[finished a b]], [client.get("/").body, told.pop] } }
    assert_equal 1, logged.scan("a rack.after_reply callback died: RuntimeError: after the reply").size
  end

  def test_after_reply_of_a_call_that_fails
    told = Queue.new
    app = lambda do |env|
      env[AFTER] << -> { told << :called }
      raise "in the call"
    end
    capture_log { serve(app) { |client| assert_equal [500, :called], [client.get("/").status, told.pop] } }
  end

  # Middleware of Puma and Unicorn puts an Array there where it finds none.
  def test_after_reply_replaced
    told = Queue.new
    app = lambda do |env|
      env[AFTER] = [*env[AFTER], -> { told << :own }]
      text(["x"])
    end
    capture_log { serve(app) { |client| assert_equal ["x", :own], [client.get("/").body, told.pop] } }
    capture_log { serve(->(env) { env[AFTER] = 1 and text(["x"]) }, lint: false) { |client| assert_equal "x", client.get("/").body } }
    assert_match(/rack.after_reply is a Integer, not an Array/, logged)
  end

  def test_each_request_has_callbacks_of_its_own
    lists = []
    serve(->(env) { (lists << env[AFTER]) && text(["x"]) }) { |client| 2.times { assert_equal "x", client.get("/").body } }
    refute_same(*lists)
  end
end
