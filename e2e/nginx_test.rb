# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/nginx"
require_relative "support/pages"
require_relative "support/socket_client"
require_relative "support/workspace"

# Every block for nginx that a page prints, and every file of examples/: nginx keeps its connections to the server, so
# that twenty requests one after the other take one, and tells the server who the client is.
E2E.suite("nginx", transports: %i[tcp]) do
  include E2E::InWorkspace

  const_set(:REQUESTS, 20)
  const_set(:PAGES, ["README.md", *Dir.glob("doc/**/*.md", base: E2E::ROOT)].sort)
  const_set(:FILES, Dir.glob("examples/**/*nginx*/*.conf", base: E2E::ROOT) + Dir.glob("examples/**/nginx.conf", base: E2E::ROOT))

  def setup
    super
    skip E2E::Nginx.missing if E2E::Nginx.missing
  end

  def blocks
    printed = self.class::PAGES.flat_map { |name| E2E::Page.new(name).blocks("nginx").map { |block| ["#{name}, line #{block.line}", block.text] } }
    printed + self.class::FILES.map { |name| [name, File.read(File.join(E2E::ROOT, name))] }
  end

  def read(name) = File.read(File.join(E2E::ROOT, name))

  # What stands in a `server` stands in that of the example, in place of its own locations.
  def in_the_example(text)
    read("examples/deploy/nginx/board.conf").sub(/^    location .*?^    \}\n/m) { text }
  end

  def before(bind, text)
    port = E2E.free_port
    text = E2E::Nginx.whole(text, port, around: method(:in_the_example))
    nginx = E2E::Nginx.new(text.gsub(%r{unix:/run/board/socket|\b10\.77\.0\.1\d:9292\b|\b127\.0\.0\.1:9292\b}, bind))
    nginx.wait_for(port)
    yield port
  ensure
    nginx&.stop
  end

  def through(text, *options)
    one = start("--workers", "1", "--control", @space.control, "--trusted-proxies", "127.0.0.1", *options, app: @space.app)
    before(one.bind, text) { |port| yield one, port }
  ensure
    one&.stop
  end

  def connections(text, path)
    through(text) do |one, port|
      one.get("/") # with what the start asked, all that is counted before
      before = control_status["connections"]
      client = E2E::Client.new(["127.0.0.1", port])
      answers = Array.new(self.class::REQUESTS) { client.get(path).status }
      [answers.uniq, control_status["connections"] - before]
    ensure
      client&.close
    end
  end

  # The client's address for the server, which nginx trusts, although the client says that it is another one.
  def address_of_a_liar(text, path)
    log = File.join(@space.dir, "access.log")
    through(text, "--access-log", log, "--access-log-format", "%h") do |_, port|
      Socket.tcp("127.0.0.1", port, "127.0.0.2") do |socket|
        socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.7\r\nConnection: close\r\n\r\n")
        socket.read
      end
      wait_until("the line") { File.size?(log) }
    end
    File.read(log).chomp
  ensure
    FileUtils.rm_f(log)
  end

  def control_status
    JSON.parse(UNIXSocket.open(@space.control) { |socket| socket.write("status json\n") && socket.read }.delete_prefix("ok\n"))
  end

  def test_connections_are_kept
    found = blocks
    assert_operator found.size, :>=, 6
    found.reject! { |_, text| text.include?("Upgrade $http_upgrade") } # that connection becomes the client's own
    kept = found.to_h { |name, text| [name, connections(text, "/")] }
    assert_equal(found.to_h { |name, _| [name, [[200], 1]] }, kept)
  end

  # The page's origin has a port, which is none of the server's.
  def test_a_websocket_of_a_page
    skip "no oribi-frontend here" unless FrontendServers.here?
    one = E2E::Server.new(transport: :frontend, app: "e2e/apps/websocket#{E2E.differing(:app_extension)}").start
    before("127.0.0.1:#{one.port}", E2E::Page.new("doc/streaming.md").blocks("nginx").first.text) do |port|
      socket = E2E::SocketClient.new(port, "/chat", fields: { "Origin" => "http://localhost:#{port}" })
      assert_equal 101, socket.status
      assert_equal "hello", socket.ask("hello")
    ensure
      socket&.close
    end
  ensure
    one&.cleanup
  end

  def test_the_client_is_who_nginx_says
    told = blocks.flat_map do |name, text|
      paths = text.scan(%r{^\s*location (/\S*) \{}).flatten
      (paths.empty? ? ["/"] : paths).map { |path| ["#{name}: #{path}", address_of_a_liar(text, path)] }
    end
    assert_equal(told.to_h { |name, _| [name, "127.0.0.2"] }, told.to_h)
  end
end
