# frozen_string_literal: true

require_relative "../support"
require_relative "../support/every_request"

# A whole server under valgrind's memcheck, all its processes: requests of every kind, the application's mistakes, a
# call that lasts, a reload, the control socket, a stop. Not one invalid access, value nobody has written, or lost block
# may come from our code; what the interpreters do by themselves is in tools/sanitize/memcheck.supp, with the reasons.
class MemcheckTest < Minitest::Test
  SUPPRESSIONS = File.join(E2E::ROOT, "tools/sanitize/memcheck.supp")
  # Ruby jumps over its whole stack once at its start.
  VALGRIND = ["valgrind", "-q", "--trace-children=yes", "--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite",
              "--num-callers=25", "--max-stackframe=8400000", "--track-fds=no", "--suppressions=#{SUPPRESSIONS}"].freeze
  SECONDS = 120

  def setup
    @dir = Dir.mktmpdir("oribi-e2e")
    @control = File.join(@dir, "control")
  end

  def teardown
    @server&.cleanup
    FileUtils.remove_entry(@dir)
  end

  def interpreter = E2E::RUBY ? RbConfig.ruby : "perl"

  def launch
    argv = [*VALGRIND, "--log-file=#{@dir}/memcheck.%%p", interpreter, E2E::Server.binary, "--bind", "unix://%{path}", "--workers", "1",
            "--access-log", "#{@dir}/access.log", "--control", @control, "--pid-file", "#{@dir}/pid", "--trusted-proxies", "unix", "--body-memory-max", "16K",
            "--boot-timeout", "#{SECONDS}s", "--shutdown-timeout", "60s", "--warmup", "/", E2E.differing(:app)]
    @server = E2E::Server.new(transport: :unix, argv: argv)
    @server.launch
    E2E.wait_until("an answer; it wrote #{@server.stderr if @server.said?}", seconds: SECONDS) do
      raise "ended: #{@server.stderr}" if @server.ended?

      File.exist?(@control) && answer("GET / HTTP/1.1\r\nHost: a\r\n\r\n").status == 200
    rescue SystemCallError
      nil
    end
  end

  def answer(bytes)
    client = @server.connect
    client.send_raw(bytes).read_response(seconds: SECONDS)
  rescue E2E::Client::Closed
    nil
  ensure
    client&.close
  end

  def get(target) = answer("GET #{target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

  def ctl(*words)
    output = IO.popen([E2E::Server.binary, "ctl", "--control", @control, *words], err: %i[child out], &:read)
    assert $?.success?, "ctl #{words.join(" ")}: #{output}"
  end

  MISTAKES = %w[/raise /raise-in-body?after=1 /raise-in-body?after=0 /bad-header?kind=crlf /bad-status?status=word /short /long /bad-hints?kind=nul
                /framed-hints /cookies /own /hop /empty /status/204 /status/304 /after /stderr /closed /env/a?b=c].freeze
  REFUSED = ["GET / HTTP/1.1\r\nHost: a\r\nBad Name: b\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n", "\0\r\n\r\n",
             "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"].freeze

  def long_call
    client = @server.connect
    client.request("GET", "/gate?name=long")
    E2E.wait_until("the call", seconds: SECONDS) { File.exist?("#{@server.dir}/long.entered") }
    beside = @server.connect # whom the helper takes in
    beside.request("GET", "/")
    FileUtils.touch("#{@server.dir}/long.open")
    [client, beside].each { |one| assert_equal 200, one.read_response(seconds: SECONDS).status }
  ensure
    [client, beside].each { |one| one&.close }
  end

  def leave_in_the_middle
    client = @server.connect
    client.send_raw("GET /flood?count=500 HTTP/1.1\r\nHost: a\r\n\r\n").read_bytes(100, seconds: SECONDS)
    client.close
    @server.connect.send_raw("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc").close
  end

  def exercise
    E2E::EVERY_REQUEST.each do |name, (bytes, body)|
      assert body === answer(bytes)&.body, name
    end
    MISTAKES.each { |target| get(target) }
    REFUSED.each { |bytes| assert_includes 400..499, answer(bytes).status }
    answer("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4, 5.6.7.8\r\nForwarded: for=a\r\n\r\n")
    leave_in_the_middle
  end

  def reports = Dir["#{@dir}/memcheck.*"].map { |path| File.read(path).scrub }.reject(&:empty?)

  # What our code is part of comes first.
  def assert_nothing_reported
    ours, others = reports.partition { |text| text.match?(/ribi\.so|oribi_|\.c:\d/) }
    flunk "#{ours.size + others.size} processes with reports, the first:\n#{[*ours, *others].first.lines.first(60).join}" unless [*ours, *others].empty?
    pass
  end

  def test_every_way_through_a_server
    skip "no valgrind" unless system("valgrind", "--version", out: File::NULL, err: File::NULL)
    launch
    exercise
    long_call
    ctl("status")
    ctl("status", "--json")
    first = get("/pid").body
    ctl("reload")
    E2E.wait_until("the new generation", seconds: SECONDS) { get("/pid")&.then { |response| response.body != first } }
    exercise
    ctl("stop")
    assert_equal 0, @server.wait(seconds: SECONDS).exitstatus, @server.stderr
    refute_match(/not given back/, @server.stderr)
    assert_operator Dir["#{@dir}/memcheck.*"].size, :>=, 4, "processes that were looked at"
    assert_nothing_reported
  end
end
