# frozen_string_literal: true

require "support"

# Servers that misbehave, callers that leave: no answer is ever another's, and the next command is right.
class FailuresTest < RedisTest
  # Answers each command with what it is about, until the script of the connection says otherwise.
  def echo(socket)
    while (command = read_command(socket))
      socket.write("$#{command.last.bytesize}\r\n#{command.last}\r\n")
    end
  end

  # As often as a busy machine needs for a reply within the limit.
  def patient(redis, *words)
    redis.command(*words)
  rescue Oribi::Redis::TimeoutError
    retry if (@attempts = @attempts.to_i + 1) < 1000
    raise
  end

  def test_a_reply_that_is_none
    { "HTTP/1.1 400 Bad Request\r\n\r\n" => /is it a Redis/, "$4611686018427387904\r\n" => /too long/, "*1\r\n" * 10_000 => /too deeply/,
      "+#{"x" * 70_000}" => /line is too long/, "*1\r\n>1\r\n+x\r\n" => /push within/, "$3\r\nabcd\r\n" => /does not end/ }.each do |bytes, words|
      r, server = against { |socket, number| number.zero? ? (read_command(socket); socket.write(bytes)) : echo(socket) }
      error = assert_raises(Oribi::Redis::ProtocolError, bytes[0, 20]) { r.command("GET", "first") }
      assert_match words, error.message
      assert_equal "second", r.command("GET", "second")
      assert_equal 2, server.accepted
    end
  end

  def test_a_reply_that_is_cut_at_every_byte
    reply = "*3\r\n$3\r\nabc\r\n:17\r\n%1\r\n+k\r\n$-1\r\n"
    (0...reply.size).each do |cut|
      r, = against(read_timeout_ms: 30) { |socket, number| number.zero? ? (read_command(socket); socket.write(reply[0, cut])) : echo(socket) }
      assert_raises(Oribi::Redis::TimeoutError, "cut at #{cut}") { r.command("INCR", "first") }
      assert_equal "second", patient(r, "GET", "second")
    end
    r, = against { |socket| read_command(socket); reply.each_char { |byte| socket.write(byte) } }
    assert_equal ["abc", 17, { "k" => nil }], r.command("GET", "x")
  end

  def test_a_reply_that_nobody_asked_for
    sent = Queue.new
    r, server = against do |socket, number|
      read_command(socket)
      socket.write(number.zero? ? "+one\r\n+another's\r\n" : "+two\r\n")
      sent << true
      echo(socket)
    end
    assert_equal "one", r.command("GET", "a")
    sent.pop
    error = assert_raises(Oribi::Redis::ProtocolError) { r.command("GET", "b") }
    assert_match(/nobody asked for/, error.message)
    assert_equal "two", r.command("GET", "b")
    assert_equal 2, server.accepted
  end

  def test_pushes_stay_out_of_pipelines
    r, = against do |socket|
      3.times { read_command(socket) }
      socket.write("+one\r\n>2\r\n+invalidate\r\n*1\r\n+k\r\n+two\r\n>1\r\n+x\r\n+three\r\n")
      echo(socket)
    end
    assert_equal %w[one two three], r.pipeline("PING", "PING", "PING")
    assert_equal "four", r.command("ECHO", "four")
  end

  def test_what_may_have_been_done_is_not_sent_again
    seen = Queue.new
    script = lambda do |socket, number|
      command = read_command(socket)
      seen << command
      number.zero? ? socket.close : socket.write("+done\r\n")
      echo(socket)
    end
    r, server = against(&script)
    assert_raises(Oribi::Redis::ConnectionError) { r.command("INCR", "n") }
    assert_equal [["INCR", "n"], 1], [seen.pop, server.accepted]
    r, = against(&script)
    assert_equal "done", r.command("GET", "n")
    r, = against(resend: :never, &script)
    assert_raises(Oribi::Redis::ConnectionError) { r.command("GET", "n") }
    r, = against(resend: :always, &script)
    assert_equal "done", r.command("INCR", "n")
  end

  # The greeting was sent, and nothing of the command.
  def test_a_greeting_that_fails_is_made_again
    seen = Queue.new
    r, server = against(protocol: 3, connect_timeout_ms: 1000, reconnect_attempts: 2) do |socket, number|
      seen << read_command(socket).first
      next socket.close if number.zero?
      next if number == 1 # silence, until the time limit

      socket.write("*0\r\n")
      seen << read_command(socket).first
      socket.write(":1\r\n")
    end
    assert_equal 1, r.command("INCR", "n")
    assert_equal [%w[HELLO HELLO HELLO INCR], 3], [Array.new(4) { seen.pop }, server.accepted]
    r, server = against(protocol: 3, reconnect_attempts: 2) { |socket| socket.close }
    assert_raises(Oribi::Redis::ConnectionError) { r.command("INCR", "n") }
    wait_until("three connections") { server.accepted == 3 }
  end

  # The exception comes between connect(2) and the greeting, which selects the database.
  def test_a_connection_whose_opener_was_raised_out_of_it_is_not_used
    redis(db: 1).command("SET", "a", "in 1")
    redis(db: 0).command("SET", "a", "in 0")
    redis(db: 1).with do |session|
      session.link.define_singleton_method(:greet) { raise IndexError }
      assert_raises(IndexError) { session.command("GET", "a") }
      session.link.singleton_class.remove_method(:greet)
      assert_equal "in 1", session.command("GET", "a")
    end
  end

  def test_a_connection_that_the_server_has_closed_is_replaced_before_anything_is_sent
    r = redis(connections_max: 1)
    r.command("SET", "n", 1)
    id = r.command("CLIENT", "ID")
    Oribi::Redis.new(path: server.path).command("CLIENT", "KILL", "ID", id)
    assert_equal 2, r.command("INCR", "n")
    r.command("SET", "n", 5)
    server.kill
    assert_raises(Oribi::Redis::ConnectionError) { r.command("INCR", "n") }
    server.start
    assert_equal 1, r.command("INCR", "n")
  end

  def test_within_a_transaction_a_connection_is_not_replaced
    r = redis(connections_max: 1)
    error = assert_raises(Oribi::Redis::ConnectionError) do
      r.multi(watch: ["a"]) do |queue, session|
        id = session.command("CLIENT", "ID")
        Oribi::Redis.new(path: server.path).command("CLIENT", "KILL", "ID", id)
        queue.command("SET", "a", "never")
        session.command("GET", "a")
      end
    end
    assert_match(/transaction is lost|closed/, error.message)
    assert_nil r.command("GET", "a")
  end

  def test_time_limits
    r = redis(connections_max: 1)
    assert_raises(Oribi::Redis::TimeoutError) { r.blocking(30, "BLPOP", "q", 0) }
    assert_equal "PONG", r.command("PING")
    assert_nil r.blocking(5000, "BLPOP", "q", 0.05)
    full = TCPServer.new("127.0.0.1", 0).tap { |one| one.listen(0) }
    fillers = Array.new(4) { Socket.new(:INET, :STREAM).tap { |one| one.connect_nonblock(full.local_address, exception: false) } }
    slow = Oribi::Redis.new(host: "127.0.0.1", port: full.addr[1], connect_timeout_ms: 50, reconnect_attempts: 0)
    assert_match(/within 50 ms|refuse|reply/, assert_raises(Oribi::Redis::Error) { slow.command("PING") }.message)
  ensure
    [full, *fillers].compact.each(&:close)
  end

  # The caller leaves between request and reply: by a time-out of Ruby's, by another thread, by a signal.
  def test_callers_that_leave
    r = redis(connections_max: 1)
    r.command("SET", "a", "mine")
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { r.blocking(0, "BLPOP", "q", 0) } }
    assert_equal "mine", r.command("GET", "a")
    thread = Thread.new { r.blocking(0, "BLPOP", "q", 0) rescue $!.class }
    wait_until("the thread to wait") { r_waits }
    thread.raise(IndexError)
    assert_equal IndexError, thread.value
    assert_equal "mine", r.command("GET", "a")
    thread = Thread.new { r.blocking(0, "BLPOP", "q", 0) }
    wait_until("the thread to wait") { r_waits }
    thread.kill.join
    assert_equal "mine", r.command("GET", "a")
    old = trap(:USR2) { raise KeyError }
    waker = Thread.new { wait_until("a waiting client") { r_waits }; Process.kill(:USR2, Process.pid) }
    assert_raises(KeyError) { r.blocking(0, "BLPOP", "q", 0) }
    waker.join
    assert_equal "mine", r.command("GET", "a")
  ensure
    trap(:USR2, old) if old
  end

  def r_waits = Oribi::Redis.new(path: server.path).command("INFO", "clients").match?(/blocked_clients:[1-9]/)

  def test_a_handler_that_does_not_raise_changes_nothing
    r = redis
    seen = 0
    old = trap(:USR2) { seen += 1 }
    waker = Thread.new do
      5.times { wait_until("a waiting client") { r_waits }; Process.kill(:USR2, Process.pid) }
      Oribi::Redis.new(path: server.path).command("RPUSH", "q", "x")
    end
    assert_equal %w[q x], r.blocking(20_000, "BLPOP", "q", 0)
    waker.join
    wait_until("the handler") { seen.positive? }
  ensure
    trap(:USR2, old) if old
  end

  def test_a_child_has_a_connection_of_its_own
    r = redis(connections_max: 1)
    id = r.command("CLIENT", "ID")
    reader, writer = IO.pipe
    pid = fork do
      writer.puts r.command("CLIENT", "ID")
      exit!(0)
    end
    Process.wait(pid)
    refute_equal id, reader.gets.to_i
    assert_equal id, r.command("CLIENT", "ID")
    Process.wait(fork { exit })
    assert_equal id, r.command("CLIENT", "ID")
  end

  def test_threads_and_fibers_never_get_each_others_replies
    r = redis(connections_max: 4)
    found = Array.new(12) { |i| Thread.new { Array.new(200) { |j| r.command("ECHO", "#{i}-#{j}") == "#{i}-#{j}" }.all? } }.map(&:value)
    assert_equal [true] * 12, found
    assert_operator r.command("INFO", "stats")[/total_connections_received:(\d+)/, 1].to_i, :<=, 4 + 2
    one = redis(connections_max: 1, connect_timeout_ms: 500) # also of its greeting
    one.with { assert_raises(Oribi::Redis::TimeoutError) { one.command("PING") } }
    assert_equal "PONG", one.command("PING")
  end

  def test_garbage_collection_at_every_place
    r = redis
    r.command("SET", "big", "x" * 100_000)
    r.command("RPUSH", "l", *Array.new(200) { |i| "element #{i}" })
    r.command("HSET", "h", *Array.new(100) { |i| ["f#{i}", "v#{i}"] }.flatten)
    GC.stress = true
    list, hash, big = r.pipeline(["LRANGE", "l", 0, -1], ["HGETALL", "h"], ["GET", "big"])
    r.command("SET", "other", "y" * 50_000)
    GC.stress = false
    assert_equal [200, "element 199", 100, "v99", 100_000], [list.size, list.last, hash.size, hash["f99"], big.size]
    GC.verify_compaction_references(double_heap: true, toward: :empty) if GC.respond_to?(:verify_compaction_references)
    assert_equal "element 0", r.command("LINDEX", "l", 0)
  ensure
    GC.stress = false
  end

  # A Sentinel of a script: who the master is, and which others there are.
  def sentinel(master, others = [])
    scripted do |socket|
      while (command = read_command(socket))
        words = command[1] == "SENTINELS" ? others.map { |port| ["ip", "127.0.0.1", "port", port.to_s] } : master.call&.then { |port| ["127.0.0.1", port.to_s] }
        socket.write(words ? resp(words) : "*-1\r\n")
      end
    end
  end

  def resp(value) = value.is_a?(Array) ? "*#{value.size}\r\n#{value.map { |one| resp(one) }.join}" : "$#{value.bytesize}\r\n#{value}\r\n"

  def test_sentinels_say_where_the_master_is
    one, two = Array.new(2) { Support::Server.new.tap { |server| @ends << server } }
    now = one
    last = sentinel(-> { now.port })
    first = sentinel(-> { now.port }, [last.port])
    dead = Support.free_port
    r = Oribi::Redis.new(sentinels: ["127.0.0.1:#{dead}", "127.0.0.1:#{first.port}"], service: "main", reconnect_delay_ms: 1, reconnect_attempts: 20)
    r.command("SET", "a", "one")
    now = two
    one.kill
    assert_nil r.command("GET", "a")
    first.stop
    two.kill
    two.start
    assert_equal "OK", r.command("SET", "a", "two")
    Oribi::Redis.new(path: two.path).command("REPLICAOF", "127.0.0.1", dead)
    r.close
    unknown = Oribi::Redis.new(sentinels: ["127.0.0.1:#{last.port}"], service: "main", reconnect_attempts: 0)
    assert_match(/no master/, assert_raises(Oribi::Redis::ConnectionError) { unknown.command("GET", "a") }.message)
    last = sentinel(-> {})
    nobody = Oribi::Redis.new(sentinels: ["127.0.0.1:#{last.port}"], service: "main", reconnect_attempts: 0)
    assert_match(/knows no master of that name/, assert_raises(Oribi::Redis::ConnectionError) { nobody.command("GET", "a") }.message)
    [{ sentinels: [] }, { sentinels: ["x"] }, { sentinels: ["x:0"], service: "main" }, { sentinels: ["x"], service: "x" * 256 },
     { sentinels: Array.new(33) { |i| "x:#{i + 1}" }, service: "main" }].each do |options|
      assert_raises(Oribi::Redis::UsageError, options.inspect) { Oribi::Redis.new(**options) }
    end
    assert Oribi::Redis.new(sentinels: Array.new(32) { |i| "x:#{i + 1}" }, service: "x" * 255)
  end

  # The server does not close the connection when it is made a replica by hand.
  def test_a_server_that_says_it_is_no_master_is_left
    one, two = Array.new(2) { Support::Server.new.tap { |server| @ends << server } }
    now = one
    asked = sentinel(-> { now.port })
    r = Oribi::Redis.new(sentinels: ["127.0.0.1:#{asked.port}"], service: "main", reconnect_delay_ms: 1)
    r.command("SET", "a", "one")
    Oribi::Redis.new(path: one.path).command("REPLICAOF", "127.0.0.1", two.port)
    now = two
    assert_equal "READONLY", assert_raises(Oribi::Redis::CommandError) { r.command("SET", "a", "1") }.code
    assert_equal "OK", r.command("SET", "a", "two")
    assert_equal "two", Oribi::Redis.new(path: two.path).command("GET", "a")
    Oribi::Redis.new(path: two.path).command("REPLICAOF", "127.0.0.1", "1")
    now = one.tap { Oribi::Redis.new(path: one.path).command("REPLICAOF", "NO", "ONE") }
    r.noreply("INCR", "n") # its error is read before the next command's reply
    assert_nil r.command("GET", "n")
    assert_equal 1, r.command("INCR", "n")
    assert_equal [1, "READONLY"], r.settle.then { |count, error| [count, error.code] }
    Oribi::Redis.new(path: one.path).command("REPLICAOF", "127.0.0.1", "1")
    assert_equal "READONLY", assert_raises(Oribi::Redis::CommandError) { r.multi { |queue| queue.command("SET", "a", "1") } }.code
    now = two.tap { Oribi::Redis.new(path: two.path).command("REPLICAOF", "NO", "ONE") }
    assert_equal "OK", r.command("SET", "a", "three")
    plain = Oribi::Redis.new(host: "127.0.0.1", port: one.port)
    before = plain.command("CLIENT", "ID")
    assert_raises(Oribi::Redis::CommandError) { plain.command("SET", "a", 1) }
    assert_equal before, plain.command("CLIENT", "ID"), "without Sentinels it is kept"
  end

  def test_the_server_s_own_refusals_are_errors_with_a_code
    { "-LOADING Redis is loading\r\n" => "LOADING", "-READONLY You can't write\r\n" => "READONLY", "-OOM command not allowed\r\n" => "OOM",
      "-NOPERM this user\r\n" => "NOPERM" }.each do |bytes, code|
      r, = against { |socket| read_command(socket); socket.write(bytes); echo(socket) }
      assert_equal code, assert_raises(Oribi::Redis::CommandError) { r.command("SET", "a", 1) }.code
      assert_equal "b", r.command("GET", "b")
    end
  end

  def test_a_server_without_hello
    ["-ERR unknown command 'HELLO'", "-ERR unknown command `HELLO`, with args beginning with: `3`", "-NOPROTO unsupported protocol version"].each do |line|
      _, server = against { |socket| read_command(socket) && socket.write("#{line}\r\n") }
      one = Oribi::Redis.new(host: "127.0.0.1", port: server.port, reconnect_attempts: 0)
      error = assert_raises(Oribi::Redis::ConnectionError) { one.command("GET", "a") }
      assert_match(/refuses the connection: #{Regexp.escape(line[1..])}; servers before Redis 6 want protocol: 2\z/, error.message)
    end
  end
end
