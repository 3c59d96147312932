# frozen_string_literal: true

require "json"
require_relative "support"
require_relative "support/follower"

# The pages for users of other servers, followed as they stand there: doc/moving/*.md. Their servers are of Ruby, and
# so is the command.
E2E.suite("moving", transports: %i[tcp]) do
  def setup
    super
    @ports = { 9292 => E2E.free_port }
    @follower = E2E::Follower.new(ports: @ports)
    @follower.write("config.ru", %(run ->(_) { [200, { "content-type" => "text/plain" }, [Process.pid.to_s]] }\n))
  end

  def teardown
    @follower.end_all
    super
  end

  def worker = E2E::Client.new(["127.0.0.1", @ports[9292]]).get("/", { "Connection" => "close" }).body.to_i
  def supervisor = File.read(File.join(@follower.home, "server.pid")).to_i

  # That they are all up is part of the wait: the first answers before the second is there.
  def workers
    children = File.read("/proc/#{supervisor}/task/#{supervisor}/children").split
    children.count { |pid| File.read("/proc/#{pid}/cmdline").match?(/worker \d/) rescue false }
  end

  def gone?(pid) = File.read("/proc/#{pid}/stat")[/.*\) (\w)/m, 1] == "Z" rescue true

  def follow_import(page)
    @follower.follow(page.blocks("ruby", "console", "sh", under: "Import"))
    assert_operator worker, :>, 0
  end

  # More and fewer workers, new ones, and a graceful end, by the signals of the page's table.
  def assert_signals
    wait_until("the page's workers") { workers == 2 }
    Process.kill(:TTIN, supervisor)
    wait_until("one worker more") { workers == 3 }
    Process.kill(:TTOU, supervisor)
    wait_until("one worker less") { workers == 2 }
    old = worker
    Process.kill(:HUP, supervisor)
    wait_until("the old worker to leave") { !File.exist?("/proc/#{old}") }
    first = supervisor
    Process.kill(:USR2, first)
    wait_until("the successor's pid file") { supervisor != first rescue false }
    wait_until("the old server to leave") { gone?(first) }
    assert_operator worker, :>, 0
    last = supervisor
    Process.kill(:QUIT, last)
    wait_until("the graceful end") { gone?(last) }
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.open("127.0.0.1", @ports[9292]).close }
  end

  def assert_commands(page)
    lines = page.blocks("procfile").map { |block| block.text[/\Aweb: (.*)/, 1] } +
            page.blocks("dockerfile").map { |block| JSON.parse(block.text[/\ACMD (.*)/, 1]).join(" ") }
    refute_empty lines
    lines.each { |line| @follower.run(E2E::Page::Command.new(text: line.sub(/\Aoribi/, "oribi --print-config"))) }
  end

  %w[puma unicorn].each do |name|
    define_method("test_#{name}") do
      page = E2E::Page.new("doc/moving/#{name}.md")
      follow_import(page)
      assert_signals
      assert_commands(page)
    end
  end
end
