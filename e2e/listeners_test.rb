# frozen_string_literal: true

require_relative "support"

# Several addresses at once, their spellings, and sockets handed down.
E2E.suite("listeners", transports: %i[tcp]) do
  def hello(address)
    client = E2E::Client.new(address)
    @clients << client
    client.get("/").body
  end

  def test_tcp_v4_v6_and_unix_at_once
    other = E2E.free_port
    six = E2E.free_port("::1")
    one = start_serving("--bind", "tcp://127.0.0.1:#{other}", "--bind", "tcp://[::1]:#{six}")
    [["127.0.0.1", other], ["::1", six], one.address].each { |address| assert_equal "Hello, World!", hello(address) }
  end

  def test_unix_beside_tcp_with_a_mode
    dir = Dir.mktmpdir("oribi-e2e")
    one = start_serving("--bind", "unix://#{dir}/a.sock?umask=077", "--bind", "#{dir}/b.sock")
    assert_equal ["Hello, World!"] * 3, [hello("#{dir}/a.sock"), hello("#{dir}/b.sock"), hello(one.address)]
    assert_equal 0, File.stat("#{dir}/a.sock").mode & 0o077
    one.stop
    assert_empty Dir.children(dir)
  ensure
    FileUtils.remove_entry(dir)
  end

  def test_server_port_is_that_of_the_listener
    other = E2E.free_port
    start_serving("--bind", "127.0.0.1:#{other}")
    client = E2E::Client.new(["127.0.0.1", other])
    @clients << client
    assert_equal other.to_s, JSON.parse(client.get("/env").body)["SERVER_PORT"]
  end

  def env_at(address)
    client = E2E::Client.new(address)
    @clients << client
    JSON.parse(client.get("/env").body)
  end

  def refused?(host, port)
    TCPSocket.new(host, port).close
    false
  rescue Errno::ECONNREFUSED
    true
  end

  def test_two_colons_are_every_address_also_after_a_reload
    port = E2E.free_port
    dir = Dir.mktmpdir("oribi-e2e")
    config = File.join(dir, E2E::RUBY ? "oribi.rb" : "oribi.pl")
    write = ->(host) { File.write(config, E2E::RUBY ? "bind '#{host}:#{port}'\n" : "+{ bind => '#{host}:#{port}' }\n") }
    write.call("0.0.0.0")
    one = E2E::Server.new(argv: [E2E::Server.binary, "-C", config, "--no-dev", "--workers", "1", File.join(E2E::ROOT, E2E.differing(:app))])
    @servers << one
    one.instance_variable_set(:@address, ["127.0.0.1", port])
    one.start
    hello(["127.0.0.1", port])
    assert refused?("::1", port)
    %w[[::] 0.0.0.0 [::]].each do |host|
      write.call(host)
      lines = one.stderr.scan("reload done").size
      one.signal(:HUP)
      wait_until("a reload to #{host}") { one.stderr.scan("reload done").size > lines }
      assert_equal "127.0.0.1", env_at(["127.0.0.1", port])["REMOTE_ADDR"]
      next wait_until("the end of the socket for IPv6") { refused?("::1", port) } if host == "0.0.0.0"

      assert_equal "::1", env_at(["::1", port])["REMOTE_ADDR"]
    end
  ensure
    FileUtils.remove_entry(dir)
  end

  # As systemd and other launchers open it.
  def test_an_ipv4_client_of_a_socket_for_both_families
    listener = TCPServer.new("::", 0)
    port = listener.addr[1]
    out, to = IO.pipe
    pid = spawn(E2E::Server.binary, "--workers", "1", "--quiet", "--bind", "fd://7", "--trusted-proxies", "127.0.0.2", "--access-log", "-",
                File.join(E2E::ROOT, E2E.differing(:app)), 7 => listener, in: File::NULL, out: to, chdir: E2E::ROOT)
    to.close
    assert_equal "127.0.0.1", env_at(["127.0.0.1", port])["REMOTE_ADDR"]
    assert_includes out.gets, "127.0.0.1"
    proxy = Socket.tcp("127.0.0.1", port, "127.0.0.2")
    proxy.write("GET /env HTTP/1.0\r\nX-Forwarded-For: ::ffff:192.0.2.9\r\n\r\n")
    assert_equal "192.0.2.9", JSON.parse(proxy.read.split("\r\n\r\n", 2).last)["REMOTE_ADDR"]
    assert_match(/\A192\.0\.2\.9 /, out.gets)
  ensure
    [listener, out, proxy].each { |io| io&.close }
    pid && Process.kill(:TERM, pid) && Process.wait(pid)
  end

  def spelled(*options)
    port = E2E.free_port
    words = options.map { |word| word.gsub("PORT", port.to_s) }
    one = E2E::Server.new(argv: [E2E::Server.binary, "--workers", "1", *words, E2E.differing(:app)])
    @servers << one
    one.instance_variable_set(:@address, ["127.0.0.1", port])
    one.start
    assert_equal "Hello, World!", hello(["127.0.0.1", port])
  end

  def test_port_alone = spelled("-p", "PORT")
  def test_host_and_port = spelled("-o", "127.0.0.1", "--port", "PORT")
  def test_host_colon_port = spelled("-b", "127.0.0.1:PORT")
  def test_colon_port = spelled("-b", ":PORT")
  def test_equals_sign = spelled("--bind=tcp://127.0.0.1:PORT")

  def test_a_descriptor
    listener = TCPServer.new("127.0.0.1", 0)
    port = listener.addr[1]
    pid = spawn(E2E::Server.binary, "--workers", "1", "--quiet", "--bind", "fd://7", File.join(E2E::ROOT, E2E.differing(:app)),
                7 => listener, in: File::NULL, chdir: E2E::ROOT)
    assert_equal "Hello, World!", hello(["127.0.0.1", port])
    Process.kill(:TERM, pid)
    Process.wait(pid)
    pid = nil
    # It was ours before and is ours still: nobody has shut it down.
    assert_kind_of TCPSocket, TCPSocket.new("127.0.0.1", port)
  ensure
    listener&.close
    pid && Process.kill(:KILL, pid) && Process.wait(pid)
  end

  def test_server_starter_sockets
    listener = TCPServer.new("127.0.0.1", 0)
    port = listener.addr[1]
    env = { "SERVER_STARTER_PORT" => "127.0.0.1:#{port}=8", "SERVER_STARTER_GENERATION" => "1", "PORT" => nil }
    pid = spawn(env, E2E::Server.binary, "--workers", "1", "--quiet", File.join(E2E::ROOT, E2E.differing(:app)),
                8 => listener, in: File::NULL, chdir: E2E::ROOT)
    client = E2E::Client.new(["127.0.0.1", port])
    @clients << client
    env = JSON.parse(client.get("/env").body)
    assert_equal port.to_s, env["SERVER_PORT"]
    assert_equal "localhost", env["SERVER_NAME"]
  ensure
    listener&.close
    pid && Process.kill(:TERM, pid) && Process.wait(pid)
  end
end
