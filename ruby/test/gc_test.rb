# frozen_string_literal: true

require "support"

# Every object a request makes survives, or is freed, under the collector's hardest settings.
class GcTest < BindingTest
  # Everything the binding converts, in one application.
  APP = lambda do |env|
    body = env["rack.input"].read
    env["rack.response_finished"] << ->(*) {}
    headers = { "x-long" => "v" * 200, "x-list" => %w[a b c], "x-path" => env["PATH_INFO"], "x-agent" => env["HTTP_X_AGENT"].to_s }
    case env["PATH_INFO"]
    when "/array" then [200, headers, Array.new(100) { |i| "part #{i};" }]
    when "/each" then [200, headers, Array.new(20) { |i| "part #{i};" }.each]
    when "/stream" then [200, headers, ->(stream) { 5.times { |i| stream << "part #{i};" } && stream.close }]
    when "/headers" then [200, headers.merge(60.times.to_h { |i| ["x-#{i}", "value #{i}"] }), ["short"]]
    when "/symbols" then [200, { "x-a": :symbol, "x-b" => [1, 2] }, ["short", 5, nil]]
    when "/raise" then raise "told to fail"
    else [200, headers, [body]]
    end
  end

  # Asks from a process of its own, so that only the server works under the settings of the test.
  def exercise_from_outside
    pid = fork do
      GC.stress = false
      client = Client.new { UNIXSocket.new(File.join(@log, "s")) }
      exercise(client, 1)
      exit!(0)
    rescue Exception => e # rubocop:disable Lint/RescueException
      File.write(File.join(@log, "failure"), e.full_message(highlight: false))
      exit!(1)
    end
    Process.wait(pid)
    assert $?.success?, -> { File.read(File.join(@log, "failure")) }
  end

  def exercise(client, round)
    agent = "agent #{round} #{"z" * 50}"
    response = client.post("/echo", "body #{round} #{"x" * 300}", { "X-Agent" => agent })
    assert_equal ["body #{round} #{"x" * 300}", agent, %w[a b c]], [response.body, response["x-agent"], response.all("x-list")]
    assert_equal Array.new(100) { |i| "part #{i};" }.join, client.get("/array").body
    assert_equal Array.new(20) { |i| "part #{i};" }.join, client.get("/each", { "X-Frob-#{round}" => "1" }).body
    assert_equal Array.new(5) { |i| "part #{i};" }.join, client.get("/stream").body
    assert_equal "value 59", client.get("/headers")["x-59"]
    assert_equal ["symbol", "short5"], client.get("/symbols").then { |r| [r["x-a"], r.body] }
    assert_equal 500, client.get("/raise").status
  end

  def test_stress
    capture_log do
      serve(APP, lint: false) do |client|
        exercise(client, 0)
        GC.stress = true
        exercise_from_outside
      ensure
        GC.stress = false
      end
    end
  end

  def test_compaction_between_requests
    skip "no compaction here" unless GC.respond_to?(:compact)
    capture_log do
      serve(APP, lint: false) do |client|
        5.times do |round|
          exercise(client, round)
          GC.compact
        end
      end
    end
  rescue NotImplementedError
    skip "no compaction here"
  end

  def test_compaction_with_every_collection
    skip "no compaction here" unless GC.respond_to?(:auto_compact=)
    capture_log do
      serve(APP, lint: false) do
        GC.auto_compact = true
        GC.stress = true
        exercise_from_outside
      ensure
        GC.stress = false
        GC.auto_compact = false
      end
    end
  rescue NotImplementedError
    skip "no compaction here"
  end

  def test_references_are_right_after_compaction
    skip "no checks here" unless GC.respond_to?(:verify_compaction_references)
    capture_log do
      serve(APP, lint: false) do |client|
        exercise(client, 0)
        GC.verify_compaction_references(toward: :empty, **(RUBY_VERSION >= "3.2" ? { expand_heap: true } : { double_heap: true }))
        exercise(client, 1)
      end
    end
  rescue NotImplementedError
    skip "no compaction here"
  end

  # What requests leave behind is collected: nothing of the binding holds on to them.
  def test_requests_leave_nothing_behind
    kept = ObjectSpace::WeakMap.new
    app = lambda do |env|
      kept[env] = true
      text([env["rack.input"].read])
    end
    serve(app, lint: false) do |client|
      200.times { |i| client.post("/", "x" * 50, { "X-Name-#{i}" => "v" }) }
      GC.start
      assert_operator kept.size, :<, 20
      before = GC.stat(:heap_live_slots)
      2000.times { client.post("/", "x" * 50) }
      GC.start
      assert_operator GC.stat(:heap_live_slots) - before, :<, 2000
    end
  end

  def test_sizes_are_reported
    require "objspace"
    assert_operator ObjectSpace.memsize_of(Oribi::Options.new), :>, 500
    assert_operator ObjectSpace.memsize_of(Oribi::Worker.allocate), :>, 500
  end

  def test_objects_without_their_setup
    worker = Oribi::Worker.allocate
    assert_raises(Oribi::Error) { worker.run(->(_) {}) }
    assert_raises(Oribi::Error) { worker.stop }
    assert_nil worker.close
    [Oribi::Hijack, Oribi::EarlyHints, Oribi::Output].each { |kind| assert_raises(NoMethodError) { kind.new } }
    assert_raises(TypeError) { Oribi::Hijack.allocate.call }
  end
end
