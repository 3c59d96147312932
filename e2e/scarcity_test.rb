# frozen_string_literal: true

require_relative "support"
require_relative "support/native"
require_relative "support/every_request"

# Out of memory, once, at every place where the extension asks for some: load/scarce_heap.c lets the n-th allocation
# fail, n from 1 to the last. While the server starts it says so in one line and ends with 71, or serves all the same (a
# worker or mold was replaced). While it serves, requests have their answer, an error or a closed connection, and the
# next one is served. Nobody ever dies of a signal.
#
#   SCARCITY=full   every allocation (make soak); otherwise some at the start, and each while it serves
class ScarcityTest < Minitest::Test
  SOURCE = File.join(E2E::ROOT, "e2e/load/scarce_heap.c")
  LIBRARY = File.join(E2E::ROOT, "build/e2e/scarce_heap.so")
  FULL = ENV["SCARCITY"] == "full"
  EXIT_MEMORY = 71
  # A warm-up request is one like others: what it meets is an error or a closed connection.
  SAYS_SO = %r{out of memory|warmup: GET / (got no answer|was answered with 50\d)}
  CRASH = /Segmentation fault|\[BUG\]|panic|Assertion|double free|corrupt|ended.*: signal|core dumped/i

  # What the processes share with load/scarce_heap.c.
  class Plan
    attr_reader :path

    WORDS = 7

    def initialize(dir)
      @path = File.join(dir, "plan")
      fail_at(0)
    end

    # One write: no process ever sees half of it.
    def fail_at(n) = File.open(@path, File::RDWR | File::CREAT | File::BINARY) { |file| file.pwrite([0, n, 0, 0, 0, 0, 0].pack("Q#{WORDS}"), 0) }
    def never = File.open(@path, "r+b") { |file| file.pwrite([0].pack("Q"), 8) }
    def words = File.binread(@path).unpack("Q#{WORDS}")
    def tried = words.first

    # Where it failed: addresses in the extension, from the innermost on; nil when nothing has failed.
    def place = words.drop(2).reject(&:zero?).map { |at| "+0x#{at.to_s(16)}" }.then { |list| list.join(" ") unless list.empty? }
  end

  def setup
    @dir = Dir.mktmpdir("oribi-e2e")
    @plan = Plan.new(@dir)
    @servers = []
    E2E::Native.build(SOURCE, LIBRARY, "-shared", "-fPIC", "-ldl")
  end

  def teardown
    @servers.each(&:cleanup)
    FileUtils.remove_entry(@dir)
  end

  def env = { "LD_PRELOAD" => [ENV["LD_PRELOAD"], LIBRARY].compact.join(":"), "SCARCE_HEAP" => @plan.path }

  OPTIONS = ["--workers", "1", "--body-memory-max", "16K", "--err-respawn-interval", "0"].freeze

  def server(*options)
    E2E::Server.new(transport: :unix, options: OPTIONS + options, env: env).tap { |one| @servers << one }
  end

  def all_options
    ["--access-log", "#{@dir}/access.log", "--control", "#{@dir}/control", "--pid-file", "#{@dir}/pid", "--env", "A=b", "--bind", "#{@dir}/second",
     "--trusted-proxies", "10.0.0.0/8", "--warmup", "/"]
  end

  # :ended or :serves
  def outcome(one)
    E2E.wait_until("an end or an answer; it wrote #{one.stderr if one.said?}", seconds: 30) do
      next :ended if one.ended?

      :serves if one.get("/").status == 200
    rescue SystemCallError, E2E::Client::Closed
      nil
    end
  end

  def assert_no_crash(text, what) = refute_match(CRASH, text, what)

  def start_with_failure(n)
    @plan.fail_at(n)
    one = server(*all_options)
    one.launch
    how = outcome(one)
    what = "allocation #{n} at #{@plan.place || "no place"}: #{how}, #{one.status.inspect}: #{one.stderr}"
    if how == :ended # 1: what ended was the mold, without which nothing can be served
      assert_includes [EXIT_MEMORY, 1], one.status.exitstatus, what
      assert_equal 1, one.stderr.lines.grep(SAYS_SO).size, what
    end
    assert_no_crash(one.stderr, what)
    failed = !@plan.place.nil?
    one.stop
    assert_empty one.left_behind, what
    one.cleanup
    failed
  end

  def test_every_allocation_of_a_start
    refute start_with_failure(1_000_000), "the failure of the millionth"
    count = @plan.tried
    assert_operator count, :>=, 20
    (1..count).each { |n| start_with_failure(n) if FULL || (n % 7).zero? }
  end

  def reload_with_failure(n)
    control = "#{@dir}/control#{n}"
    one = server("--control", control).start
    E2E.wait_until("the control socket") { File.exist?(control) && one.get("/").status == 200 }
    @plan.fail_at(n)
    said = IO.popen([E2E::Server.binary, "ctl", "--control", control, "reload"], err: %i[child out], &:read)
    what = "allocation #{n} of a reload at #{@plan.place || "no place"}: #{said}#{one.stderr}"
    @plan.never
    place = @plan.place
    tried = @plan.tried
    refute one.ended?, what
    assert_equal "Hello, World!", one.get("/").body, what
    assert_match(/reload (done|failed)/, one.stderr, what)
    assert_no_crash(one.stderr, what)
    one.stop
    one.cleanup
    [place, tried]
  end

  # The server goes on, whether the reload comes about or not: while the new process is started and reads its options,
  # and while its listeners and options are taken over.
  def test_allocations_of_a_reload
    place, count = reload_with_failure(1_000_000)
    assert_nil place, "the failure of the millionth"
    assert_operator count, :>=, 10
    (1..count).each { |n| reload_with_failure(n) if FULL || (n % 7).zero? || n <= 3 }
  end

  ERRORS = [400, 408, 413, 431, 500, 503].freeze

  # The body, a status of refusal, or :closed.
  def ask(one, bytes)
    client = one.connect
    begin
      client.send_raw(bytes)
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil # an answer may have come before
    end
    response = client.read_response
    response.status == 200 ? response.body : response.status
  rescue E2E::Client::Closed, Errno::EPIPE, Errno::ECONNRESET
    :closed
  ensure
    client&.close
  end

  def assert_as_good_as_can_be(answer, wanted, what)
    case answer
    when Integer then assert_includes ERRORS, answer, what
    when String then assert wanted === answer, "#{what}: #{answer.bytesize} bytes: #{answer[0, 80].inspect}"
    end
  end

  # Fails the n-th allocation of this request, n from 1 until all go well; returns the places.
  def places_of(one, name, bytes, wanted)
    (1..200).each_with_object([]) do |n, places|
      @plan.fail_at(n)
      answer = ask(one, bytes)
      @plan.never
      place = @plan.place
      what = "#{name}, allocation #{n} at #{place || "no place"} -> #{answer.is_a?(String) ? "answered" : answer}: #{one.stderr.lines.last(5).join}"
      assert_as_good_as_can_be(answer, wanted, what)
      assert_equal "Hello, World!", ask(one, E2E::EVERY_REQUEST["get"].first), what
      if place.nil?
        assert wanted === answer, what
        return places
      end
      places << place
    end
    flunk "#{name}: no end of allocations"
  end

  def test_every_allocation_of_a_request
    one = server("--access-log", "#{@dir}/access.log").start
    one.get("/")
    first = one.worker_pid
    places = E2E::EVERY_REQUEST.map { |name, (bytes, wanted)| places_of(one, name, bytes, wanted).tap { |list| warn "#{name}: #{list}" if ENV["VERBOSE"] } }
    assert_operator places.flatten.uniq.size, :>=, 8, "places of the code that asked for memory"
    assert_no_crash(one.stderr, "serving")
    assert_equal first, one.worker_pid, "no allocation for a request ends the worker: #{one.stderr}"
    one.stop
    assert_equal 0, one.status.exitstatus
    refute_match(/not given back/, one.stderr)
  end
end
