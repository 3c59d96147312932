# frozen_string_literal: true

require_relative "support"
require_relative "support/nginx"
require_relative "support/pages"
require_relative "support/workspace"

# Every block for nginx that a page prints, and every file of examples/: nginx keeps its connections to the server, so
# that twenty requests one after the other take one.
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

  def connections(text, path)
    one = start("--workers", "1", "--control", @space.control, "--trusted-proxies", "127.0.0.1", app: @space.app)
    port = E2E.free_port
    one.get("/") # with what the start asked, all that is counted before
    before = control_status["connections"]
    text = E2E::Nginx.whole(text, port, around: method(:in_the_example))
    nginx = E2E::Nginx.new(text.gsub(%r{unix:/run/board/socket|\b10\.77\.0\.1\d:9292\b|\b127\.0\.0\.1:9292\b}, one.bind))
    nginx.wait_for(port)
    client = E2E::Client.new(["127.0.0.1", port])
    answers = Array.new(self.class::REQUESTS) { client.get(path).status }
    [answers.uniq, control_status["connections"] - before]
  ensure
    client&.close
    nginx&.stop
    one&.stop
  end

  def control_status
    JSON.parse(UNIXSocket.open(@space.control) { |socket| socket.write("status json\n") && socket.read }.delete_prefix("ok\n"))
  end

  def test_connections_are_kept
    found = blocks
    assert_operator found.size, :>=, 6
    kept = found.to_h do |name, text|
      text.include?("Upgrade $http_upgrade") && text = text.sub(%r{^location /chat \{.*?^\}\n}m, "") # that connection becomes the client's own
      path = text[/^location (\/\w+) \{/, 1] || "/"
      [name, connections(text, path)]
    end
    assert_equal(found.to_h { |name, _| [name, [[200], 1]] }, kept)
  end
end
