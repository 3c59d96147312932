# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/socket_client"

# Messages published from anywhere (doc/publish.md): none is lost without an error, whatever is reloaded, upgraded or
# killed meanwhile; who has subscribed at any frontend gets all of them in one order.
E2E.suite("publish", transports: %i[tcp]) do
  include FrontendServers

  ADDRESS = FrontendServers::PLAIN_ADDRESS
  TOKEN = "a token"

  def begin_server(*options, address: ADDRESS)
    serve("--workers", "1", "--status", "#{@dir}/status", "--status-token", TOKEN, *options, address: address,
                                                                                            app: "e2e/apps/publish.#{E2E::RUBY ? "ru" : "psgi"}")
  end

  def status(target, *words)
    out, = Open3.capture2(FrontendServers::PLAIN, "curl", "-sS", "-w", "%{http_code}", "--unix-socket", "#{@dir}/status", *words, "http://localhost#{target}")
    [out[-3..].to_i, out[..-4]]
  end

  def with_token = ["-H", "Authorization: Bearer #{TOKEN}"]
  def metric(name) = status("/metrics", *with_token).last[/^#{Regexp.escape(name)} (\d+)$/, 1].to_i
  def published = metric("oribi_published_total")
  def ask(target) = curl(target, scheme: "http")

  def command(*words, **how)
    out, ended = Open3.capture2e(E2E::Server.binary, "publish", "--control", "#{@dir}/control", *words, **how)
    [out, ended.exitstatus]
  end

  # The pid of frontend i.
  def frontend_pid(number) = ctl("status").first[/^frontend #{number}, pid (\d+)/, 1].to_i

  def await_published(count) = wait_until("#{count} published, there are #{published}") { published == count }

  # A program of the same user that belongs to no server.
  def elsewhere(ruby, perl, env = {})
    words = E2E::RUBY ? ["ruby", "-I#{E2E::ROOT}/ruby/lib", "-roribi", "-e", ruby] : ["perl", "-Mblib=#{E2E::ROOT}/perl/blib", "-MOribi", "-e", perl]
    Open3.capture2e(env, *words, chdir: @dir)
  end

  # --- from where ---

  def test_from_everywhere
    begin_server
    assert_equal "published", ask("/publish?channel=news&data=hello&event=note")
    assert_equal "published", ask("/thread?channel=news&data=hello")
    assert_equal "published", ask("/publish?channel=news&size=#{1 << 20}")
    ask("/job?channel=news&count=3")
    assert_equal ["", 0], command("news", "from the command", "--event", "note")
    assert_equal ["", 0], command("news", stdin_data: "from standard input\n" * 4000)
    assert_equal ["", 0], command("--binary", "news", stdin_data: "\xff\x00".b)
    out, ended = elsewhere('2.times { Oribi.publish("news", "from a console") }', "Oribi::publish(news => 'from a program') for 1, 2",
                           "ORIBI_CONTROL" => "#{@dir}/control")
    assert ended.success?, out
    assert_equal [200, "published\n"], status("/publish", *with_token, "-d", "channel=news", "--data-urlencode", "data=a form & more")
    assert_equal [200, "published\n"], status("/publish?channel=news&event=note", *with_token, "-H", "Content-Type: application/json", "-d", '{"a": 1}')
    await_published(13)
    assert_equal 0, metric("oribi_publish_refused_total")
  end

  def test_what_is_no_message
    begin_server
    too_long = /a message has at most 1048576 bytes/
    assert_match too_long, ask("/publish?channel=news&size=#{(1 << 20) + 1}")
    assert_match(/the name of a channel has 1 to 256 bytes/, ask("/publish?channel=#{"c" * 257}&data=x"))
    assert_match(/the name of a channel has 1 to 256 bytes/, ask("/publish?channel=&data=x"))
    code, text = status("/publish", *with_token, "-d", "channel=%ff&data=x")
    assert_equal [400, "the name of a channel"], [code, text[/the name of a channel/]]
    assert_match(/the name of an event has at most 64 bytes/, ask("/publish?channel=a&data=x&event=#{"e" * 65}"))
    assert_match(/the name of an event/, ask("/publish?channel=a&data=x&event=a%0Ab"))
    assert_equal [too_long, 1], command("news", stdin_data: "x" * ((1 << 20) + 1)).then { |out, code| [out[too_long] && too_long, code] }
    assert_match(/not valid UTF-8/, command("news", stdin_data: "\xff".b).first)
    assert_equal 1, command.last
    assert_equal 1, command("a", "b", "c").last
    assert_match(/Usage: \S+ publish/, Open3.capture2e(E2E::Server.binary, "publish", "--help").first)
    assert_equal 0, published
  end

  def test_the_status_listener
    begin_server
    form = ["-d", "channel=news&data=x"]
    assert_equal 401, status("/publish", *form).first
    assert_equal 401, status("/publish", "-H", "Authorization: Bearer other", *form).first
    assert_equal 405, status("/publish", *with_token).first
    assert_equal 405, status("/metrics", *with_token, *form).first
    assert_equal 400, status("/publish", *with_token, "-d", "data=x").first
    assert_equal 400, status("/publish", *with_token, "-d", "channel=a&data=x&other=y").first
    assert_equal 400, status("/publish", *with_token, "-d", "channel=a&data=%ff").first
    assert_equal 411, status("/publish", *with_token, "-H", "Transfer-Encoding: chunked", *form).first
    big = File.join(@dir, "big").tap { |path| File.binwrite(path, "x" * (1 << 20)) }
    octets = ["-H", "Content-Type: application/octet-stream", "-H", "Expect:", "--data-binary", "@#{big}"]
    assert_equal 200, status("/publish?channel=a", *with_token, *octets).first
    File.binwrite(big, "x" * ((1 << 20) + 1))
    assert_equal 413, status("/publish?channel=a", *with_token, *octets).first
    File.binwrite(big, "x" * ((4 << 20) + 1))
    assert_equal 413, status("/publish?channel=a", *with_token, *octets).first
    await_published(1)
    @one.cleanup
    serve("--status", "#{@dir}/status", address: ADDRESS)
    assert_equal 403, status("/publish", *form).first
  end

  def test_without_a_frontend
    begin_server(address: "tcp://127.0.0.1:%{port}")
    needs = /publishing needs tls:\/\/ or \?frontend=on in the line of `bind`/
    assert_match needs, ask("/publish?channel=news&data=x")
    out, code = command("news", "x")
    assert_match needs, out
    assert_equal 1, code
    assert_equal 503, status("/publish", *with_token, "-d", "channel=news&data=x").first
    ctl("stop")
    assert_equal 2, command("news", "x").last
  end

  # --- full, killed, replaced ---

  def test_a_full_inbox_is_an_error_and_what_it_has_is_kept
    begin_server
    leader = frontend_pid(0)
    Process.kill(:STOP, leader)
    ruby = "n = 0; begin; loop { Oribi.publish('a', 'x' * 20_000); n += 1 }; rescue Oribi::Error => e; puts n, e.message; end"
    perl = "my $n = 0; eval { while (1) { Oribi::publish(a => 'x' x 20_000); $n++ } }; print qq($n\\n$@)"
    out, = elsewhere(ruby, perl, "ORIBI_CONTROL" => "#{@dir}/control")
    sent = out.to_i
    assert_match(/the inbox of publications is full/, out)
    assert_operator sent, :>, 3
    assert_equal 503, status("/publish", *with_token, "-d", "channel=a&data=x").first
    Process.kill(:CONT, leader)
    await_published(sent)
  ensure
    Process.kill(:CONT, leader) if leader
  end

  def test_a_frontend_that_is_killed
    begin_server("--frontends", "2")
    ask("/job?channel=h:a&count=2000")
    wait_until("messages") { published > 100 }
    Process.kill(:KILL, frontend_pid(0))
    job = File.join(@one.dir, "job")
    wait_until("the end of the job") { File.size?(job) }
    assert_equal "2000", File.read(job), "none was refused"
    wait_until("all of them but what the frontend had in its hands") { published.between?(2000 - 64, 2000) }
    assert_equal "published", ask("/publish?channel=h:a&data=x")
  end

  def test_reloads_and_an_upgrade_lose_nothing
    begin_server("--frontends", "2")
    ask("/job?channel=h:a&count=10000")
    job = File.join(@one.dir, "job")
    wait_until("messages") { published > 100 }
    upgraded = false
    until File.size?(job)
      assert ctl("reload").last.success?
      upgraded ||= ctl("upgrade").last.success?
      sleep(0.2)
    end
    assert upgraded
    assert_equal "10000", File.read(job)
    await_published(10_000)
    assert_equal 0, metric("oribi_publish_refused_total")
  end

  # --- who has subscribed ---

  SOCKETS_MAX = 200
  AT_ONCE = 20

  # Sockets that have subscribed, at both of two frontends: one that is idle would take all that come one by one.
  def listeners(channel)
    ones = []
    wait_until("sockets at both frontends: #{ctl("status").first}") do
      ones.concat(Array.new(AT_ONCE) { Thread.new { listener(channel) } }.map(&:value)) if ones.size < SOCKETS_MAX
      ctl("status", "--json").first.scan(/"websockets":(\d+)/).flatten.count { |number| number != "0" } == 2
    end
    ones
  end

  def listener(channel)
    one = hold(E2E::SocketClient.new(@one.port))
    one.say("subscribe #{channel}")
    assert_match(/\Asubscribed/, one.message)
    one
  end

  def test_subscribers_of_all_frontends_get_all_messages_in_one_order
    begin_server("--frontends", "2")
    ones = listeners("n:a")
    ones[0].say("publish n:a from a socket")
    ones.each { |one| assert_equal "from a socket", one.message }
    2.times { |i| ask("/job?channel=n:a&count=#{100 + i}") }
    first = Array.new(201) { ones[0].message }
    assert_equal [*0...100, *0...101].sort, first.map(&:to_i).sort
    ones.drop(1).each { |one| assert_equal first, Array.new(201) { one.message } }
  end

  def test_subscribers_at_a_frontend_whose_leader_is_killed
    begin_server("--frontends", "2")
    ones = listeners("n:a")
    Process.kill(:KILL, frontend_pid(0))
    wait_until("another first frontend") { @one.stderr.include?("frontend 0") && @one.stderr.include?("serves again") }
    assert_equal "published", ask("/publish?channel=n:a&data=again")
    heard = ones.count { |one| one.message == "again" rescue false } # rubocop:disable Style/RescueModifier -- those of the killed one have ended
    assert_operator heard, :>, 0
  end
end
