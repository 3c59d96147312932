# frozen_string_literal: true

require "support"

# Every object a request makes survives, or is freed, under the collector's hardest settings.
class GcTest < BindingTest
  APP = eval(File.read(File.join(__dir__, "gc_app.rb")), binding, File.join(__dir__, "gc_app.rb"))

  # A server of its own with nothing loaded that the test does not need, RubyGems neither: these settings cost as much
  # as the heap is large.
  SERVER = <<~'RUBY'
    require "oribi"
    options = Oribi::Options.new.set("bind", ARGV[0]).set("threads", ARGV[3]).finish
    worker = Oribi::Worker.new(options, Oribi::Listeners.new(options), nil, Oribi::Environment.constants)
    app = eval(File.read(ARGV[1]))
    trap(:TERM) { worker.stop }
    $stdout.write("ready\n")
    $stdout.flush
    GC.start
    ARGV[2].split.each { |setting| GC.public_send("#{setting}=", true) }
    worker.run(app)
  RUBY

  RACK = $LOADED_FEATURES.find { |path| path.end_with?("/rack/version.rb") }.delete_suffix("/rack/version.rb")
  ALONE = [RUBY, "--disable-gems", "-I#{ROOT}/ruby/lib", "-I#{RACK}", "-e", SERVER].freeze

  def exercise_under(*settings, threads: 1)
    path = File.join(@log, "gc")
    IO.popen([*ALONE, path, File.join(__dir__, "gc_app.rb"), settings.join(" "), threads.to_s, err: File::NULL]) do |output|
      assert_equal "ready\n", output.gets
      clients = Array.new(threads) { Client.new { UNIXSocket.new(path) } }
      Timeout.timeout(10 * DEADLINE) { clients.map { |client| Thread.new { exercise(client, 1) } }.each(&:join) }
    ensure
      Process.kill(:TERM, output.pid)
      clients&.each(&:close)
    end
    assert $?.success?, "the server ended with #{$?}"
  end

  def exercise(client, round)
    agent = "agent #{round} #{"z" * 50}"
    response = client.post("/echo", "body #{round} #{"x" * 300}", { "X-Agent" => agent })
    assert_equal ["body #{round} #{"x" * 300}", agent, %w[a b c]], [response.body, response["x-agent"], response.all("x-list")]
    assert_equal Array.new(70) { |i| "part #{i};" }.join, client.get("/array").body
    assert_equal Array.new(5) { |i| "part #{i};" }.join, client.get("/each", { "X-Frob-#{round}" => "1" }).body
    assert_equal Array.new(5) { |i| "part #{i};" }.join, client.get("/stream").body
    assert_equal "value 49", client.get("/headers")["x-49"]
    assert_equal ["symbol", "short5"], client.get("/symbols").then { |r| [r["x-a"], r.body] }
    assert_equal 500, client.get("/raise").status
  end

  def test_stress = exercise_under(:stress)
  def test_stress_with_threads = exercise_under(:stress, threads: 3)

  def test_compaction_with_every_collection
    skip "no compaction here" unless GC.respond_to?(:auto_compact=) && compaction?
    exercise_under(:auto_compact, :stress)
  end

  def compaction?
    GC.compact
    true
  rescue NotImplementedError
    false
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

  # A reference stored without telling the collector shows here as an old object that points to an unmarked young one.
  def test_no_reference_is_stored_behind_the_collectors_back
    skip "no checks here" unless GC.respond_to?(:verify_internal_consistency)
    capture_log do
      serve(APP, lint: false) do |client|
        8.times do |round|
          exercise(client, round % 3)
          GC.start(full_mark: round % 4 == 0, immediate_sweep: false)
          GC.verify_internal_consistency
        end
      end
    end
  end

  # Environments are made while the collector marks step by step, and are kept until they are old.
  def test_kept_environments_have_their_values
    kept = []
    app = lambda do |env|
      GC.start(full_mark: true, immediate_mark: false, immediate_sweep: false) if kept.size % 3 == 0
      kept << env
      text([env["REQUEST_URI"]])
    end
    capture_log do
      serve(app, lint: false) do |client|
        200.times do |i|
          fields = { "User-Agent" => "agent #{i} #{"u" * 50}", "Accept" => "a#{i}" }
          assert_equal "/p#{i}?q#{i}", client.get("/p#{i}?q#{i}", fields).body
        end
      end
      3.times { GC.start }
      GC.verify_internal_consistency if GC.respond_to?(:verify_internal_consistency)
    end
    kept.each_with_index do |env, i|
      keys = %w[PATH_INFO QUERY_STRING REQUEST_URI HTTP_USER_AGENT HTTP_ACCEPT rack.response_finished]
      assert_equal ["/p#{i}", "q#{i}", "/p#{i}?q#{i}", "agent #{i} #{"u" * 50}", "a#{i}", []], env.values_at(*keys)
      assert_equal "", env["rack.input"].read.to_s
    end
  end

  COUNTS = '->(_) { [200, {}, [GC.stat(:total_allocated_objects).to_s]] }'

  # The environment, its path, target and fields, two Arrays of callbacks, the input, and rack.hijack; what the
  # application makes (three and a String) comes on top.
  def test_objects_of_a_request
    path = File.join(@log, "app.rb")
    File.write(path, COUNTS)
    listen = File.join(@log, "objects")
    IO.popen([*ALONE, listen, path, "", "1", err: File::NULL]) do |output|
      assert_equal "ready\n", output.gets
      client = Client.new { UNIXSocket.new(listen) }
      { { "Host" => "a" } => 8, { "Host" => "a", "Accept" => "b", "User-Agent" => "c" } => 10 }.each do |fields, count|
        40.times { client.get("/x", fields) } # templates are made, values are learnt
        seen = Array.new(9) { client.get("/x", fields).body.to_i }
        assert_operator seen.each_cons(2).map { |one, two| two - one }.max, :<=, count + 4, fields.inspect
      end
    ensure
      Process.kill(:TERM, output.pid)
      client&.close
    end
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
      assert_operator kept.keys.size, :<, 20 # size counts what has gone, too, since Ruby 3.3
      before = GC.stat(:heap_live_slots)
      2000.times { client.post("/", "x" * 50) }
      GC.start
      assert_operator GC.stat(:heap_live_slots) - before, :<, 2000
    end
  end

  # How many full collections 20 requests bring, each of which finds the worker at leisure.
  def collections(**settings)
    GC.disable
    before = GC.stat(:major_gc_count)
    serve(->(_) { text([]) }, lint: false, **settings) { |client| 20.times { client.get("/") } }
    GC.stat(:major_gc_count) - before
  ensure
    GC.enable
  end

  def test_collections_out_of_band
    assert_equal 0, collections
    assert_equal 0, collections(oob_gc_requests: 5)
    assert_equal 4, collections(oob_gc: true)
    assert_equal 2, collections(oob_gc: true, oob_gc_requests: 10)
    assert_includes 2..5, collections(oob_gc: true, oob_gc_requests: 4..10)
    assert_equal 0, collections(oob_gc: true, oob_gc_requests: 21)
  end

  # A worker that has had nothing to do for a while collects once.
  def test_collections_at_rest
    GC.disable
    before = GC.stat(:major_gc_count)
    serve(->(_) { text([]) }, lint: false, oob_gc: true, oob_gc_idle: "50ms") do |client|
      2.times do |round|
        20.times { client.get("/") }
        wait_until("a collection") { GC.stat(:major_gc_count) - before == round + 1 }
      end
    end
    assert_equal 2, GC.stat(:major_gc_count) - before
  ensure
    GC.enable
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
    [Oribi::Call, Oribi::EarlyHints, Oribi::Output].each { |kind| assert_raises(NoMethodError) { kind.new } }
    assert_raises(TypeError) { Oribi::Call.allocate.call }
  end
end
