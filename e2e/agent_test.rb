# frozen_string_literal: true

require_relative "support"
require_relative "support/askers"
require_relative "support/haproxy"

# `agent`: what a load balancer's agent check is told, and a real HAProxy that follows it.
E2E.suite("agent", transports: %i[tcp]) do
  include E2E::HAProxy

  const_set(:CONFIG, <<~TEXT)
    global
        stats socket %<dir>s/stats mode 600 level admin
    defaults
        mode http
        timeout connect 5s
        timeout client 30s
        timeout server 30s
        retries 0
    frontend front
        bind 127.0.0.1:%<port>d
        default_backend back
    backend back
        balance leastconn
        timeout check 5s
        option httpchk GET /up
        server one 127.0.0.1:%<one>d weight 100 check inter 200ms agent-check agent-port %<agent_one>d agent-inter 200ms
        server two 127.0.0.1:%<two>d weight 100 check inter 200ms agent-check agent-port %<agent_two>d agent-inter 200ms agent-send two\\n
  TEXT

  def told(port) = TCPSocket.open("127.0.0.1", port, &:read)
  def told_now(port) = (told(port) rescue "nothing")

  def app = File.join(@dir, E2E::RUBY ? "app.ru" : "app.psgi")

  # Loads when there is a file "go"; /sleep takes eight seconds.
  def write_app
    File.write(app, E2E::RUBY ? <<~RUBY : <<~PERL)
      sleep(0.05) until File.exist?("#{@dir}/go")
      run ->(env) { sleep(8) if env["PATH_INFO"] == "/sleep"; [200, { "content-type" => "text/plain" }, ["here"]] }
    RUBY
      select undef, undef, undef, 0.05 until -e "#{@dir}/go";
      sub { sleep 8 if $_[0]{PATH_INFO} eq "/sleep"; [200, ["Content-Type" => "text/plain"], ["here"]] };
    PERL
  end

  def go = FileUtils.touch("#{@dir}/go")

  def serve(*options, **more)
    port = E2E.free_port
    write_app
    go
    [start("--agent", "127.0.0.1:#{port}", "--health", "/up", *options, app: app, **more), port]
  end

  def test_the_life_of_a_server
    server, port = serve("--drain-delay", "2s")
    wait_until("a worker") { told_now(port) == "up ready 100%\n" }
    server.signal(:HUP)
    wait_until("the reload") { server.stderr.include?("reload done") }
    assert_equal "up ready 100%\n", told(port)
    server.signal(:TERM)
    wait_until("the stop to be announced") { told(port) == "drain\n" }
    assert_equal 200, server.get("/").status
    server.wait
    assert_equal "nothing", told_now(port)
  end

  def test_a_server_that_loads_its_application_says_so
    write_app
    port = E2E.free_port
    @servers << (server = E2E::Server.new(options: ["--agent", "127.0.0.1:#{port}"], app: app))
    server.launch
    wait_until("the agent") { told_now(port) == "maint\n" }
    go
    wait_until("a worker") { told_now(port) == "up ready 100%\n" }
    assert_equal "here", server.get("/").body
  end

  def test_an_upgrade_hands_the_address_over
    server, port = serve(group: true) # the successor ends with it
    wait_until("a worker") { told_now(port) == "up ready 100%\n" }
    server.signal(:USR2)
    wait_until("the successor") { server.stderr.scan(/agent on/).size == 2 }
    assert_equal "up ready 100%\n", told(port)
  end

  def haproxy(servers, agents)
    port = E2E.free_port
    values = { dir: @dir, port: port, one: servers[0].port, two: servers[1].port, agent_one: agents[0], agent_two: agents[1] }
    run_haproxy(format(self.class::CONFIG, values), port)
  end

  # { "one" => ["UP", 100], ... }
  def stats
    UNIXSocket.open("#{@dir}/stats") do |socket|
      socket.write("show stat\n")
      lines = socket.read.lines(chomp: true)
      names = lines.first.delete_prefix("# ").split(",")
      lines.drop(1).map { |line| names.zip(line.split(",")).to_h }.select { |row| %w[one two].include?(row["svname"]) }
           .to_h { |row| [row["svname"], [row["status"], row["weight"].to_i]] }
    end
  end

  def test_a_balancer_follows
    pairs = Array.new(2) { serve("--workers", "3", "--drain-delay", "3s") }
    servers, agents = pairs.transpose
    front = haproxy(servers, agents)
    wait_until("both: #{stats}") { stats == { "one" => ["UP", 100], "two" => ["UP", 100] } }
    busy = Array.new(2) { connect(servers.first).send_raw("GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n") }
    askers = E2E::Askers.new(front)
    wait_until("less for who is busy: #{stats}") { stats["one"].then { |status, weight| status == "UP" && weight < 90 } }
    assert_operator stats["two"].last, :>, stats["one"].last
    busy.each(&:close)
    servers.first.signal(:TERM)
    wait_until("the drain: #{stats}") { stats["one"].first.start_with?("DRAIN") }
    before = askers.answered
    wait_until("answers of the other one") { askers.answered > before + 50 }
    servers.first.wait
    assert_empty askers.stop
  end

  def test_addresses_that_cannot_be
    { "there:80" => "agent takes an address in numbers, or localhost: there is a name",
      "fd://3" => "agent takes host:port or the path of a unix socket" }.each do |address, words|
      server = run_to_end("--agent", address)
      assert_includes server.stderr, words
      assert_equal 1, server.status.exitstatus
    end
    taken = TCPServer.new("127.0.0.1", 0)
    server = run_to_end("--agent", "127.0.0.1:#{taken.addr[1]}")
    refute_predicate server.status, :success?
    assert_match(%r{agent: cannot listen on tcp://127\.0\.0\.1:\d+: address already in use}, server.stderr)
  ensure
    taken&.close
  end
end
