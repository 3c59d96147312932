# frozen_string_literal: true

require "support"

class ClientTest < RedisTest
  def test_each_kind_of_reply
    r = redis
    assert_equal "OK", r.command("SET", "a", "b")
    assert_predicate r.command("SET", "a", "b"), :frozen?
    assert_equal "b", r.command(:get, "a")
    assert_nil r.command("GET", "none")
    assert_equal [1, -2], [r.command("INCR", "n"), r.command("INCRBY", "n", -3)]
    r.command("HSET", "h", "f", 1.5, :g, 12_345_678_901_234_567_890)
    assert_equal({ "f" => "1.5", "g" => "12345678901234567890" }, r.command("HGETALL", "h"))
    assert_predicate r.command("HGETALL", "h").keys.first, :frozen?
    r.command("SADD", "s", "x")
    assert_equal ["x"], r.command("SMEMBERS", "s")
    r.command("ZADD", "z", 2.5, "m")
    assert_equal 2.5, r.command("ZSCORE", "z", "m")
    lua = "redis.setresp(3); return {true, false, {double=1.25}, {big_number='123456789012345678901234567890'}, " \
          "{map={k='v'}}, {set={q=true}}, {verbatim_string={format='txt', string='words'}}, redis.error_reply('MY own')}"
    *values, error = r.command("EVAL", lua, 0)
    assert_equal [true, false, 1.25, 123_456_789_012_345_678_901_234_567_890, { "k" => "v" }, ["q"], "words"], values
    assert_equal ["MY", "MY own"], [error.code, error.message]
  end

  def test_texts_are_utf8_where_they_can_be
    r = redis
    ["", "abc", "grün", "x" * 100, "ü" * 70, "y" * 70_000, "ö" * 40_000].each do |text|
      r.command("SET", "a", text)
      found = r.command("GET", "a")
      assert_equal [text, Encoding::UTF_8, text.ascii_only?], [found, found.encoding, found.ascii_only?]
    end
    bytes = "\xff\x00\xfe".b
    r.command("SET", "a", bytes)
    assert_equal [bytes, Encoding::BINARY], r.command("GET", "a").then { |found| [found, found.encoding] }
    big = Random.new(1).bytes(3 << 20)
    r.command("SET", "a", big)
    assert_equal big, r.command("GET", "a")
    assert_equal [big, "PONG", big], r.pipeline(["GET", "a"], "PING", ["GET", "a"])
    assert_equal [["a" * 40_000, big, "b"], "OK"], [["a" * 40_000, big, "b"].tap { |words| r.command("RPUSH", "l", *words) }, "OK"]
    assert_equal ["a" * 40_000, big, "b"], r.command("LRANGE", "l", 0, -1)
  end

  def test_one_byte_of_a_text_decides_wherever_it_stands
    r = redis
    [1, 7, 8, 31, 32, 33, 4095, 4096, 4097, 4096 + 41].each do |size|
      texts = [0, size / 2, size - 1].uniq.map { |at| ("a" * size).b.tap { |text| text.setbyte(at, 0xff) } }
      umlauts = [0, size / 2].uniq.map { |at| "#{"a" * at}ä#{"a" * (size - at)}" }
      r.command("DEL", "l")
      r.command("RPUSH", "l", *texts, *umlauts, "a" * size)
      found = r.command("LRANGE", "l", 0, -1)
      assert_equal [*texts, *umlauts, "a" * size], found
      assert_equal [*texts.map { Encoding::BINARY }, *umlauts.map { Encoding::UTF_8 }, Encoding::UTF_8], found.map(&:encoding)
      assert_equal [*[false] * (texts + umlauts).size, true], found.map(&:ascii_only?)
      assert(found.drop(texts.size).all?(&:valid_encoding?))
    end
  end

  def test_a_text_that_is_only_announced_takes_no_room
    skip "this system does not tell how much room a process takes" unless File.exist?("/proc/self/status")
    room_kb = -> { File.read("/proc/self/status")[/^VmPeak:\s+(\d+)/, 1].to_i }
    one, = against(read_timeout_ms: 20_000, reconnect_attempts: 0) do |socket|
      read_command(socket)
      socket.write("$#{512 << 20}\r\n", "x" * 100_000)
      socket.close
    end
    before = room_kb.call
    assert_raises(Oribi::Redis::ConnectionError) { one.command("GET", "a") }
    # Each thread may reserve 64 MiB for its own memory, besides.
    assert_operator room_kb.call - before, :<, 400 << 10
  end

  def test_texts_longer_than_what_is_reserved_at_first
    r = redis
    [(16 << 20) - 1, 16 << 20, (16 << 20) + 1, 33 << 20].each do |size|
      text = ("0123456789abcdefg" * (size / 17 + 1))[0, size]
      r.command("SET", "a", text)
      assert r.command("GET", "a") == text, size
    end
  end

  def test_names_in_a_pipeline_are_looked_at_in_any_case
    r = redis
    ["SUBSCRIBE", "Monitor", :quit, "sync"].each do |name|
      assert_raises(Oribi::Redis::UsageError, name.inspect) { r.pipeline(["GET", "a"], [name, "x"]) }
      assert_raises(Oribi::Redis::UsageError, name.inspect) { r.noreply(["INCR", "a"], [name, "x"]) }
    end
    assert_nil r.command("GET", "a")
    link = Oribi::Redis::Link
    assert_equal [false, true, true, true], [[["GET"]], [["Exec"]], [[]], [[1]]].map { |commands| link.any_named?(commands, %w[EXEC]) }
    id = r.command("CLIENT", "ID")
    r.with { |one| one.pipeline(%w[GET a], %w[wAtch a]) }
    refute_equal id, r.command("CLIENT", "ID"), "what is watched is not the next user's"
  end

  def test_arrays_of_any_length
    r = redis
    lua = "local t = {} for i = 1, ARGV[1] do t[i] = i end return t"
    [0, 1, 15, 16, 17, 32, 33, 1000].each { |count| assert_equal [*1..count], r.command("EVAL", lua, 0, count) }
  end

  def test_what_cannot_be_sent_is_refused_and_the_connection_goes_on
    r = redis
    r.command("SET", "a", "b")
    connection = r.command("CLIENT", "ID")
    [["SET", "a", nil], ["SET", "a", []], ["SET", "a", Object.new], [], [nil], ["SUBSCRIBE", "c"], ["monitor"], ["Quit"]].each do |words|
      assert_raises(Oribi::Redis::UsageError, words.inspect) { r.command(*words) }
    end
    assert_raises(Oribi::Redis::UsageError) { r.pipeline(["GET", "a"], ["GET", nil]) }
    assert_raises(Oribi::Redis::UsageError) { r.noreply(["GET", nil]) }
    assert_equal ["b", connection], [r.command("GET", "a"), r.command("CLIENT", "ID")]
    changing = Object.new
    def changing.to_s = raise("never asked")
    assert_raises(Oribi::Redis::UsageError) { r.command("SET", "a", changing) }
  end

  def test_errors_are_raised_or_stand_in_their_place
    r = redis
    r.command("SET", "a", "b")
    error = assert_raises(Oribi::Redis::CommandError) { r.command("LPOP", "a") }
    assert_equal "WRONGTYPE", error.code
    one, two, three = r.pipeline(["GET", "a"], ["LPOP", "a"], ["GET", "a"])
    assert_equal ["b", "b"], [one, three]
    assert_kind_of Oribi::Redis::CommandError, two
    assert_equal [], r.pipeline
  end

  def test_replies_of_noreply_are_counted_and_never_taken_for_others
    r = redis(connections_max: 1)
    r.command("SET", "a", "b")
    assert_equal 1, r.noreply("INCR", "n")
    assert_equal 3, r.noreply(["INCR", "a"], ["INCR", "n"], ["GET", "a"])
    assert_equal "b", r.command("GET", "a")
    count, *errors = r.settle
    assert_equal [4, 1], [count, errors.size]
    assert_match(/not an integer/, errors.first.message)
    assert_equal [0], r.settle
    r.noreply(*Array.new(20) { ["LPOP", "a"] })
    count, *errors = r.settle
    assert_equal [20, 17, "4 more errors"], [count, errors.size, errors.last.message]
    server.kill
    r.noreply(["INCR", "n"]) rescue nil
    server.start
    assert_equal 1, r.command("INCR", "n")
  end

  # Its next connection is in the same database, and the next user's is not.
  def test_a_database_that_was_selected_is_its_user_s
    r = redis(connections_max: 1)
    r.command("SET", "a", "in 0")
    assert_equal "OK", r.command("SELECT", 1)
    assert_equal "in 0", r.command("GET", "a")
    r.with do |session|
      session.pipeline(["SELECT", 1], ["SET", "a", "in 1"])
      Oribi::Redis.new(path: server.path).command("CLIENT", "KILL", "ID", session.command("CLIENT", "ID"))
      assert_equal "in 1", session.command("GET", "a")
      assert_raises(Oribi::Redis::CommandError) { session.command("SELECT", 100_000) }
      Oribi::Redis.new(path: server.path).command("CLIENT", "KILL", "ID", session.command("CLIENT", "ID"))
      assert_equal "in 1", session.command("GET", "a")
    end
    assert_equal "in 0", r.command("GET", "a")
    r.noreply(["SELECT", 1], *Array.new(1000) { %w[INCR n] })
    assert_equal ["in 0", nil, [1001]], [r.command("GET", "a"), r.command("GET", "n"), r.settle]
    assert_equal "1000", redis(db: 1).command("GET", "n")
    id = r.command("CLIENT", "ID")
    assert_equal id, r.command("CLIENT", "ID"), "others are used again"
  end

  def test_lost_replies_are_told
    one = scripted { |socket| 5.times { read_command(socket) }; socket.close }
    r = Oribi::Redis.new(host: "127.0.0.1", port: one.port, protocol: 2)
    r.noreply(*Array.new(5) { ["INCR", "n"] })
    count, error = r.settle
    assert_equal 5, count
    assert_kind_of Oribi::Redis::ConnectionError, error
    assert_match(/5 replies were lost/, error.message)
  end

  def test_transactions
    r = redis
    assert_equal ["OK", 1, nil], r.multi { |queue| queue.command("SET", "a", "1").command("INCR", "n").command("GET", "none") }
    assert_equal [], r.multi { nil }
    found = r.multi(watch: ["a"]) do |queue, session|
      assert_equal "1", session.command("GET", "a")
      r.command("SET", "a", "2")
      queue.command("SET", "a", "3")
    end
    assert_nil found
    assert_equal "2", r.command("GET", "a")
    assert_raises(ArgumentError) { r.multi(watch: ["a"]) { raise ArgumentError, "mine" } }
    r.command("SET", "a", "4")
    assert_equal ["OK"], r.multi { |queue| queue.command("SET", "a", "5") }
    assert_raises(Oribi::Redis::CommandError) { r.multi { |queue| queue.command("NOSUCH") } }
    first, = r.multi { |queue| queue.command("LPOP", "a").command("GET", "a") }
    assert_kind_of Oribi::Redis::CommandError, first
  end

  def test_what_a_connection_remembers_does_not_reach_the_next_user
    r = redis(connections_max: 1)
    r.with { |session| session.command("WATCH", "a") }
    r.command("SET", "a", "x")
    assert_equal ["OK"], r.multi { |queue| queue.command("SET", "a", "y") }
    r.with do |session|
      session.command("MULTI")
      session.command("SET", "a", "never")
    end
    assert_equal "y", r.command("GET", "a")
  end

  def test_ractors_have_clients_of_their_own
    verbose, $VERBOSE = $VERBOSE, nil # that Ractor is experimental
    ractor = Ractor.new(server.path.dup.freeze) { |path| Oribi::Redis.new(path: path).command("ECHO", "words") }
    assert_equal "words", ractor.take
  ensure
    $VERBOSE = verbose
  end

  def test_iterators_and_scripts
    r = redis
    200.times { |i| r.command("SET", "k#{i}", i) }
    assert_equal Array.new(200) { |i| "k#{i}" }.sort, r.scan(match: "k*", count: 7).to_a.uniq.sort
    assert_equal 3, r.scan.first(3).size
    r.command("HSET", "h", "a", 1, "b", 2)
    assert_equal({ "a" => "1", "b" => "2" }, r.hscan("h").to_h)
    r.command("ZADD", "z", 1, "m")
    assert_equal [["m", 1.0]], r.zscan("z").map { |member, score| [member, score.to_f] }
    script = r.script("return {KEYS[1], ARGV[1]}")
    2.times { assert_equal ["k", "5"], script.call(["k"], 5) }
    r.command("SCRIPT", "FLUSH")
    assert_equal ["k", "6"], script.call(["k"], 6)
  end

  def test_greeting
    server("--requirepass", "secret")
    assert_raises(Oribi::Redis::ConnectionError) { redis(password: "wrong", reconnect_attempts: 0).command("PING") }
    [2, 3].each do |protocol|
      r = redis(password: "secret", db: 5, client_name: "tester", protocol: protocol)
      assert_match(/name=tester .*db=5 /, r.command("CLIENT", "LIST"))
      assert_equal "PONG", r.command("PING")
    end
    assert_equal "PONG", Oribi::Redis.new("unix://:secret@#{server.path}?db=1").command("PING")
    assert_equal "PONG", Oribi::Redis.new("redis://:secret@127.0.0.1:#{server.port}/1").command("PING")
    refute_match(/secret/, Oribi::Redis.new("redis://:secret@127.0.0.1:#{server.port}/1").inspect)
  end

  def test_options_that_cannot_be
    { { url: "http://x" } => /must begin with/, { url: "redis://h:0/" } => /port/, { url: "redis://h/x" } => /database/,
      { nonsense: 1 } => /no option nonsense/, { resend: :maybe } => /resend/, { host: "a", path: "/b" } => /exclude/ }.each do |options, words|
      url = options[:url]
      error = assert_raises(Oribi::Redis::UsageError) { url ? Oribi::Redis.new(url) : Oribi::Redis.new(**options) }
      assert_match words, error.message
    end
  end

  def test_subscriptions
    r = redis
    subscription = r.subscribe("a")
    assert_equal ["subscribe", "a", 1], subscription.next_event(5000)
    subscription.psubscribe("b*")
    assert_equal ["psubscribe", "b*", 2], subscription.next_event(5000)
    r.command("PUBLISH", "a", "one")
    r.command("PUBLISH", "bb", "two")
    assert_equal({ channel: "a", message: "one" }, subscription.next(5000))
    assert_equal({ pattern: "b*", channel: "bb", message: "two" }, subscription.next(5000))
    assert_nil subscription.next(20)
    r.command("PUBLISH", "a", "x" * 100_000)
    assert_equal 100_000, subscription.next(5000)[:message].size
    server.kill
    assert_raises(Oribi::Redis::ConnectionError) { subscription.next(5000) }
    assert_raises(Oribi::Redis::ConnectionError) { subscription.next(5000) }
  end
end

# Encrypted, by a certificate that the client knows.
class TLSTest < RedisTest
  def setup
    super
    require "openssl"
    @folder = Dir.mktmpdir("oribi-redis-tls")
    key = OpenSSL::PKey::RSA.new(2048)
    certificate = OpenSSL::X509::Certificate.new.tap do |one|
      one.version = 2
      one.serial = 1
      one.subject = one.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
      one.public_key = key.public_key
      one.not_before = Time.now - 60
      one.not_after = Time.now + 3600
      extensions = OpenSSL::X509::ExtensionFactory.new(one, one)
      one.add_extension(extensions.create_extension("subjectAltName", "DNS:localhost"))
      one.sign(key, "SHA256")
    end
    File.write(file("key"), key.to_pem)
    File.write(file("cert"), certificate.to_pem)
    @port = Support.free_port
    server("--tls-port", @port.to_s, "--tls-cert-file", file("cert"), "--tls-key-file", file("key"), "--tls-ca-cert-file", file("cert"),
           "--tls-auth-clients", "no")
  end

  def teardown
    super
  ensure
    FileUtils.remove_entry(@folder)
  end

  def file(name) = File.join(@folder, name)
  def url(host) = "rediss://#{host}:#{@port}"

  def test_commands_long_ones_and_time_limits
    r = Oribi::Redis.new(url("localhost"), tls: { ca_file: file("cert") })
    big = Random.new(1).bytes(2 << 20)
    assert_equal ["OK", big, "PONG"], r.pipeline(["SET", "a", big], ["GET", "a"], "PING")
    assert_raises(Oribi::Redis::TimeoutError) { r.blocking(30, "BLPOP", "q", 0) }
    assert_equal "PONG", r.command("PING")
    id = r.command("CLIENT", "ID")
    Process.wait(fork { exit!(r.command("CLIENT", "ID") == id ? 1 : 0) })
    assert_predicate $?, :success?
    assert_equal id, r.command("CLIENT", "ID")
  end

  # What a server does to its first connection when it is asked something; the second is served.
  ENDS = {
    "a reset" => ->(plain) { plain.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii")) },
    "what is no TLS" => ->(plain) { plain.syswrite("-ERR no TLS here\r\n") },
    "an end without a word" => ->(_plain) {}
  }.freeze

  def against_tls(ends)
    context = OpenSSL::SSL::SSLContext.new
    context.cert = OpenSSL::X509::Certificate.new(File.read(file("cert")))
    context.key = OpenSSL::PKey.read(File.read(file("key")))
    scripted do |plain, number|
      socket = OpenSSL::SSL::SSLSocket.new(plain, context).tap(&:accept)
      while (words = read_command(socket))
        if words.first == "GET" && number.zero?
          ends.call(plain)
          break plain.close
        end
        socket.write(words.first == "GET" ? "$5\r\nvalue\r\n" : "+OK\r\n")
      end
    rescue OpenSSL::SSL::SSLError
      nil # the client has left
    end
  end

  ENDS.each do |name, ends|
    define_method(:"test_#{name.tr(" ", "_")}_is_the_connection_s_failure") do
      place = "rediss://localhost:#{against_tls(ends).port}"
      assert_raises(Oribi::Redis::ConnectionError) { Oribi::Redis.new(place, tls: { ca_file: file("cert") }, reconnect_attempts: 0).command("GET", "a") }
      assert_equal "value", Oribi::Redis.new("rediss://localhost:#{against_tls(ends).port}", tls: { ca_file: file("cert") }).command("GET", "a")
      require "oribi/redis/driver"
      driver = lambda do |attempts|
        RedisClient.config(driver: :oribi, url: "rediss://localhost:#{against_tls(ends).port}", ssl_params: { ca_file: file("cert") },
                           reconnect_attempts: attempts).new_client
      end
      assert_raises(RedisClient::ConnectionError) { driver.call(0).call("GET", "a") }
      assert_equal "value", driver.call(1).call("GET", "a")
    end
  end

  def test_certificates_are_verified
    error = assert_raises(Oribi::Redis::ConnectionError) { Oribi::Redis.new(url("localhost"), reconnect_attempts: 0).command("PING") }
    assert_match(/TLS: .*certificate/, error.message)
    error = assert_raises(Oribi::Redis::ConnectionError) do
      Oribi::Redis.new(url("127.0.0.1"), tls: { ca_file: file("cert") }, reconnect_attempts: 0).command("PING")
    end
    assert_match(/TLS: .*(hostname|mismatch|match)/i, error.message)
    plain = TCPServer.open("127.0.0.1", 0)
    Thread.new { loop { plain.accept } }
    limit = Oribi::Redis.new("rediss://localhost:#{plain.addr[1]}", tls: { verify_mode: 0 }, connect_timeout_ms: 50, reconnect_attempts: 0)
    assert_match(/handshake within 50 ms/, assert_raises(Oribi::Redis::TimeoutError) { limit.command("PING") }.message)
  end
end
