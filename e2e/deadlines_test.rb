# frozen_string_literal: true

# What call_timeout counts and what it does not, and what else than the call has a deadline.
require "support"
require "pty"

E2E.suite("call_timeout", transports: E2E::EITHER) do
  app = "e2e/apps/deadlines#{E2E.differing(:app_extension)}"

  define_method(:setup) do
    super()
    @server = start("--workers", "1", "--call-timeout", "1s", app: app)
    @client = connect(@server)
    @pid = @client.get("/").body
  end

  def assert_goes_on
    assert_equal @pid, connect(@server).get("/").body, "the worker was replaced: #{@server.stderr}"
  end

  def test_a_stream_lasts_as_long_as_something_is_sent
    assert_equal "." * 40, @client.get("/trickle/40").body
    assert_equal 0, @server.stderr.scan("error:").size
    assert_goes_on
  end

  # The client stops reading for longer than the deadline and the time after which a worker is ended.
  def test_a_client_that_reads_slowly_is_waited_for
    slow = connect(@server, receive_buffer: 4096)
    slow.request("GET", "/flood/24")
    sleep(4) # there is no event to wait for: something must not happen
    assert_equal 24 << 20, slow.read_response.body.bytesize
    assert_equal 0, @server.stderr.scan("error:").size
    assert_goes_on
  end

  # Answered, and ended where it is: the worker goes on with the next request.
  %w[slow-close slow-finish goes-on].each do |path|
    define_method(:"test_#{path.tr("-", "_")}") do
      assert_equal "answered", @client.get("/#{path}").body
      assert_goes_on
      assert_match(/error: .*CallTimeout/, @server.stderr)
      assert_equal 1, @server.stderr.scan(/error:.*CallTimeout/).size
    end
  end

  # As Rails and Dancer2 do, whose own page it gets.
  def test_a_call_that_catches_the_exception_is_logged
    assert_equal 503, @client.get("/caught").status
    assert_goes_on
    assert_match(%r{warn: call deadline: GET /caught ran for [1-9]\S* m?s, over call_timeout; the application answered 503$}, @server.stderr)
    assert_equal 1, @server.stderr.scan("/caught").size
  end

  def test_more_time_after_the_answer
    assert_equal "answered", @client.get("/patient-close").body
    assert_goes_on
    assert_includes @server.stderr, "closed"
    assert_equal 0, @server.stderr.scan("error:").size
  end

  # It never looks: its other connections go to the next worker.
  def test_stuck_after_the_answer
    other = connect(@server)
    other.get("/")
    assert_equal "answered", @client.get("/stuck-close").body
    refute_equal @pid, other.get("/").body
    assert_match(%r{call deadline: GET /stuck-close has run for \d+ ms .*, answer complete; 2 connections passed on}, @server.stderr)
  end

  if E2E::RUBY
    def test_a_call_whose_socket_was_taken
      assert_equal "answered", @client.get("/slow-hijack").body
      assert_goes_on
      assert_equal 1, @server.stderr.scan(/error:.*CallTimeout/).size
    end

    def test_more_time_asked_for_by_another_thread
      assert_equal "extended", @client.get("/thread-extends").body
      assert_equal 0, @server.stderr.scan("error:").size
    end
  end
end

# Where a call stands is told in its own language, by the line, whatever it is stuck in: those that a runtime can end by
# an exception, and those that cost the worker's life.
E2E.suite("where_calls_stand", transports: %i[tcp]) do
  app = "e2e/apps/deadlines#{E2E.differing(:app_extension)}"
  source = File.readlines(File.join(E2E::ROOT, app))
  # path => the function that it is in
  ended = { "spin" => "spin", "read" => "block_on_a_pipe", "select" => "block_in_select", "sleep" => "block_in_sleep" }
  ended["regex"] = "backtrack" unless E2E::RUBY # on a Perl whose regular expressions no signal ends it costs the worker's life
  given_up = { "stuck" => "stuck", "deep" => "stuck", "stuck-close" => "stuck" }
  given_up.update("without-lock" => "stuck_without_lock", "held-back" => "held_back") if E2E::RUBY

  define_method(:line_of) do |function|
    from = source.index { |line| line.match?(/^(?:def|sub) #{function}\b/) }
    inner = source[from..].index { |line| line.match?(/crypt\.call|\.crypt\(|crypt '|loop \{\}/) } if function.start_with?("stuck", "held")
    from + 1 + inner.to_i
  end

  define_method(:frame_of) do |function|
    place = "deadlines#{E2E.differing(:app_extension)}"
    E2E::RUBY ? /^    .*#{place}:#{line_of(function)}:in `#{function}'$/ : /^    #{function} at .*#{place} line #{line_of(function)}$/
  end

  define_method(:setup) do
    super()
    @server = start("--workers", "1", "--call-timeout", "300ms", "--request-id-header", "X-Id", app: app)
  end

  def assert_stands_in(function)
    wait_until("the frames in #{@server.stderr}") { @server.stderr.match?(frame_of(function)) }
    refute_match(%r{^    .*(?:ruby/lib/oribi|ruby/exe|perl/lib/Oribi|Oribi::(?:Supervisor|Deadline))}, @server.stderr, "frames of the server")
  end

  ended.each do |path, function|
    define_method(:"test_#{path}") do
      assert_equal 504, connect(@server).get("/#{path}").status
      assert_stands_in(function)
    end
  end

  given_up.each do |path, function|
    define_method(:"test_#{path.tr("-", "_")}") do
      connect(@server).get("/#{path}")
      wait_until("the post-mortem") { @server.stderr.include?("where the call stands") }
      assert_stands_in(function)
      id = @server.stderr[/call deadline: GET .* \(request (\h{8}-[-\h]+)\)$/, 1]
      frames = @server.stderr[/where the call stands, innermost first \(request #{id}\)\n((?:    .*\n)*)/, 1].lines
      native, own = frames.partition { |line| line.start_with?("    C: ") }
      assert_operator own.size, :<=, 20
      assert_equal 20, own.size if path == "deep"
      assert_includes E2E.portable? ? [0] : 1..8, native.size
      refute_match(/worker 0, generation/, native.join, "the title in place of the program's name")
    end
  end

  # What was sent is what is logged.
  def test_the_access_log_has_the_bytes_of_the_504
    answer = connect(@server).get("/stuck")
    assert_equal "504 Gateway Timeout\n", answer.body
    wait_until("the line") { @server.stdout.match?(%r{"GET /stuck HTTP/1\.1" 504 20\b}) }
    pass
  end
end

# A developer who has stopped a call at a prompt, on a terminal: the deadline passes again and again.
class PromptTest < Minitest::Test
  APP = E2E::RUBY ? "require 'irb'; run ->(env) { answer = 1; binding.irb; [200, {}, [answer.to_s]] }"
                  : "sub { my $answer = 1; $DB::single = 1; $answer += 0; [200, [], [$answer]] }"
  COMMAND = E2E::RUBY ? [RbConfig.ruby] : ["perl", "-d", "-Mblib=#{E2E::ROOT}/perl"]
  PROMPT = E2E::RUBY ? /irb\(.*>/ : /DB<1>/
  TYPED = E2E::RUBY ? ["answer = 42\n", "exit\n"] : ["$answer = 42\n", "c\n"]

  def await(what) = E2E.wait_until("#{what} in #{@seen}") { @seen.match?(what) }

  def on_terminal(file)
    @seen = +""
    env = { "TERM" => "dumb", "RACK_ENV" => "production", "PLACK_ENV" => "production", "HOME" => File.dirname(file),
            "PERLDB_OPTS" => "NonStop inhibit_exit=0" }
    binary = File.join(E2E::ROOT, E2E.differing(:binary))
    PTY.spawn(env, *COMMAND, binary, "-b", "127.0.0.1:0", "-w", "1", "-t", "300ms", file, chdir: E2E::ROOT) do |output, input, pid|
      reader = Thread.new { loop { @seen << output.readpartial(4096).scrub } rescue nil }
      yield input
    ensure
      Process.kill(:TERM, pid)
      Process.wait(pid)
      reader.kill
    end
  end

  def test_a_call_at_a_prompt
    Dir.mktmpdir do |dir|
      file = File.join(dir, "app#{E2E.differing(:app_extension)}")
      File.write(file, APP)
      on_terminal(file) do |input|
        await(%r{listening on tcp://127\.0\.0\.1:(\d+)})
        client = E2E::Client.new(["127.0.0.1", @seen[%r{tcp://127\.0\.0\.1:(\d+)}, 1].to_i])
        @seen.clear
        client.request("GET", "/")
        await(PROMPT)
        sleep(3) # there is no event to wait for: something must not happen
        TYPED.each { |line| input.write(line) }
        assert_equal "42", client.read_response.body
      end
    end
  end
end
