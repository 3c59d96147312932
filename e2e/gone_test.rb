# frozen_string_literal: true

# Clients that leave while their call runs: what oribi.gone? says, and whom cancel_gone ends.
require_relative "support"

module Leaving
  APP = "e2e/apps/gone#{E2E.differing(:app_extension)}"

  def serve(*options)
    @server = start("--workers", "1", "--access-log", "-", *options, app: APP)
    connect(@server).get("/") # it serves
  end

  def file(name) = File.join(@server.dir, name)

  # What the application has noted under this name.
  def noted(name)
    wait_until("#{name}; #{@server.stderr}") { File.exist?(file("#{name}.done")) }
    File.read(file("#{name}.done"))
  end

  def leave(name) = File.write(file("#{name}-left"), "")

  # Has a call entered, and the client do something; what the application saw then.
  def enter(path, name, method: "GET", version: "1.1", fields: {}, more: "")
    client = connect(@server)
    client.request(method, "/#{path}/#{name}", fields, method == "POST" ? "x" : nil, version: version)
    noted("#{name}-entered")
    client.send_raw(more) unless more.empty?
    client
  end

  def seen(name)
    leave(name)
    before, looks = noted("#{name}-seen").split
    assert_equal "false", before, "gone before it went"
    looks
  end

  def assert_seen(name) = assert_operator(seen(name).then { |looks| looks == "never" ? 1000 : looks.to_i }, :<=, 10, name)
  def refute_seen(name) = assert_equal("never", seen(name), name)

  def assert_cancelled(name, word = "Oribi::ClientGone") = assert_equal(word, noted("#{name}-ensured"))

  def logged(path, status) = wait_until("#{status} of #{path} in #{@server.stdout}") { @server.stdout.match?(%r{"\w+ /#{path} HTTP/1\.\d" #{status} }) }

  # A client in a process of its own, which is killed.
  def killed_client(path, name)
    code = 'require "socket"; a = ARGV[0]; s = a.include?("/") ? UNIXSocket.new(a) : TCPSocket.new("127.0.0.1", a); ' \
           's.write(ARGV[1]); $stdin.read'
    address = @server.path || @server.port.to_s
    pipe = IO.popen([RbConfig.ruby, "--disable=gems", "-e", code, address, "GET /#{path}/#{name} HTTP/1.1\r\nHost: a\r\n\r\n"], "r+")
    noted("#{name}-entered")
    Process.kill(:KILL, pipe.pid)
    pipe.close
  end
end

E2E.suite("gone", transports: E2E::EITHER) do
  include Leaving

  # One server for all of these: nothing of one may reach another.
  def test_what_counts_as_gone
    serve("--cancel-gone", "off")
    enter("looks", "closed").close
    assert_seen("closed")
    enter("looks", "reset").reset
    assert_seen("reset")
    killed_client("looks", "killed")
    assert_seen("killed")
    enter("looks", "post", method: "POST").close
    assert_seen("post")

    stays = enter("looks", "stays")
    refute_seen("stays")
    assert_equal "never", stays.read_response.body
    piped = enter("looks", "piped", more: "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    refute_seen("piped")
    assert_equal ["never", 200], [piped.read_response.body, piped.read_response.status]
    piped = enter("looks", "piped-half", more: "GET / HTTP/1.1\r\nHost: a\r\n\r\n").tap(&:half_close)
    refute_seen("piped-half")
    assert_equal ["never", 200], [piped.read_response.body, piped.read_response.status]
  end

  # TCP does not tell half a close from a whole one: it is the client's own words that count.
  def test_half_a_close
    serve("--cancel-gone", "on")
    { "http10" => { version: "1.0" }, "close" => { fields: { "Connection" => "close" } } }.each do |name, with|
      half = enter("looks", name, **with).tap(&:half_close)
      refute_seen(name)
      assert_equal "never", half.read_response.body
    end
    half = enter("finishes", "half", fields: { "Connection" => "close" }).tap(&:half_close)
    leave("half")
    assert_equal "finished", half.read_response.body
  end

  def test_cancelling
    serve("--cancel-gone", "on")
    enter("cancel", "closed").close
    assert_cancelled("closed")
    enter("cancel", "spinning").reset
    assert_cancelled("spinning")
    killed_client("cancel", "killed")
    assert_cancelled("killed")
    enter("rescues", "rescues").close
    assert_cancelled("rescues")
    enter("makes-500", "page").close
    assert_cancelled("page", "500")
    logged("makes-500/page", 499)
    enter("stream", "stream").close
    assert_cancelled("stream")
    logged("cancel/closed", 499)
    logged("cancel/killed", 499)
    assert_equal "complete", connect(@server).tap { |late| @late = late }.get("/late/late").body
    @late.close
    leave("late")
    assert_cancelled("late", "false")
    client = enter("finishes", "post", method: "POST").tap(&:close)
    assert_predicate client.socket, :closed?
    leave("post")
    assert_cancelled("post", "true")
    enter("raises", "raises").close
    leave("raises")
    assert_cancelled("raises", "nil Oribi::ClientGone")
    unless E2E::RUBY
      enter("io", "io").close
      assert_cancelled("io", "1 0 0")
    end
    refute_match(/error:|warn:/, @server.stderr)
    assert_equal "brief", connect(@server).get("/brief").body
  end
end

E2E.suite("gone_on", transports: %i[tcp]) do
  include Leaving

  def test_what_is_taken_for_gone
    serve("--gone-on", "fin")
    half = enter("looks", "http10", version: "1.0").tap(&:half_close)
    assert_seen("http10")
    half.read_response # nothing is taken from it
    @server.stop

    serve("--gone-on", "reset", "--cancel-gone", "on")
    half = enter("looks", "half").tap(&:half_close)
    refute_seen("half")
    assert_equal "never", half.read_response.body
    enter("cancel", "reset").reset
    assert_cancelled("reset")
  end

  # Clients that leave at the very end of their calls: others' calls, and the next of the same thread, are left alone.
  variants = E2E::RUBY ? { "one" => [], "five" => %w[--threads 5] } : { "one" => [] }
  variants.each do |called, options|
    define_method(:"test_#{called}_thread") do
      status = "127.0.0.1:#{E2E.free_port}"
      serve("--cancel-gone", "on", "--status", status, *options)
      stays = Array.new(2) { connect(@server) }
      done = false
      leavers = Thread.new do
        80.times do |i|
          client = @server.connect
          client.request("GET", "/brief")
          IO.select(nil, nil, nil, 0.007 + (i % 20 * 0.0003))
          i.odd? ? client.close : client.reset
        end
      ensure
        done = true
      end
      kept = stays.map { |client| Thread.new { [].tap { |all| all << client.get("/brief").status until done } } }
      assert_equal [200], kept.flat_map(&:value).uniq
      leavers.join
      enter("cancel", "last").close
      assert_cancelled("last")
      refute_match(/error:|warn:/, @server.stderr)
      text = E2E::Client.new(status.split(":")).tap { |client| @clients << client }.get("/metrics").body
      assert_operator text[/^oribi_calls_cancelled_total (\d+)/, 1].to_i, :>=, 1
    end
  end

  if E2E::RUBY
    def test_only_the_thread_of_the_one_that_left
      serve("--cancel-gone", "GET,POST", "--threads", "5")
      stays = Array.new(3) { |i| enter("looks", "stays#{i}") }
      enter("cancel", "left", method: "POST").close
      assert_cancelled("left")
      3.times { |i| refute_seen("stays#{i}") }
      assert_equal ["never"] * 3, stays.map { |client| client.read_response.body }
    end
  end
end
