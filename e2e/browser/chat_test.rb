# frozen_string_literal: true

require_relative "../support"
require_relative "../support/example_chat"
require_relative "webdriver"

# Two people in Chromium: whatever is reloaded, killed or cut, each sees all that was said, once and in one order.
class ChatBrowserTest < Minitest::Test
  include ExampleChat

  # A network between a browser and the server that can be cut, and stays cut until it is mended.
  class Line
    attr_reader :port

    def initialize(to)
      @to = to
      @server = TCPServer.new("127.0.0.1", 0)
      @port = @server.addr[1]
      @lock = Mutex.new
      @open = []
      @up = true
      @thread = Thread.new { accept }
    end

    def cut
      @lock.synchronize do
        @up = false
        @open.each { |io| io.close unless io.closed? }
        @open.clear
      end
    end

    def mend = @up = true

    def stop
      @server.close
      cut
      @thread.join
    end

    private

    def accept
      loop do
        client = @server.accept
        next client.close unless @up

        server = TCPSocket.new("127.0.0.1", @to)
        @lock.synchronize { @open.push(client, server) }
        [[client, server], [server, client]].each { |from, to| Thread.new { copy(from, to) } }
      end
    rescue IOError, Errno::EBADF
      nil # stop
    end

    def copy(from, to)
      loop { to.write(from.readpartial(65_536)) }
    rescue SystemCallError, IOError
      [from, to].each { |io| io.close unless io.closed? }
    end
  end

  def setup
    skip "no chromedriver here" unless system("command -v chromedriver >/dev/null")
    serve_chat(File.join(E2E::ROOT, "e2e/apps/chat#{E2E.differing(:app_extension)}"))
    E2E.wait_until("the server") { @one.get("/").status == 200 rescue false }
    @line = Line.new(@one.port)
  end

  def teardown
    @line&.stop
    end_chat
  end

  def test_nothing_is_lost_or_doubled
    E2E::Browser.open do |browser|
      @browser = browser
      @said = []
      ann = enter(@line.port)
      bob = enter(@one.port, window: true)
      @reader = enter(@one.port, "watch.html", state: "reading", window: true)
      assert browser.script("return document.styleSheets[0].cssRules.length").positive?

      say(ann, "Ann", "Hello <b>Bob</b> \u2713")
      say(bob, "Bob", "Hello Ann")
      assert_all_heard(ann, bob)

      # The page itself is loaded anew: it has all that it had, and its unsent words.
      browser.switch(ann)
      browser.visit(browser.url)
      await_state("connected")
      say(ann, "Ann", "I was away")
      assert_all_heard(ann, bob)

      # A reload of the server closes nothing.
      mark(ann, bob)
      output, status = ctl("reload")
      assert status.success?, output
      say(bob, "Bob", "new code")
      assert_all_heard(ann, bob)
      assert_equal [1, 1], [ann, bob].map { |window| sockets(window) }, "no new connection"

      kill_a_worker_in_a_call(ann, bob)
      cut(ann, bob)
      kill_the_frontend(ann, bob)
    end
    refute_match(/error: (?!worker|frontend \d|frontend: WS-MESSAGE)/, @one.stderr)
  end

  private

  # A call that its worker does not survive has published nothing: the page says it again.
  def kill_a_worker_in_a_call(ann, bob)
    hold, held = %w[hold held].map { |name| File.join(@one.dir, name) }
    File.write(hold, "")
    say(ann, "Ann", "to a worker that dies")
    E2E.wait_until("the call") { File.size?(held) }
    Process.kill(:KILL, File.read(held).to_i)
    File.delete(hold)
    assert_all_heard(ann, bob)
    assert_equal [2, 1], [ann, bob].map { |window| sockets(window) }, "no other socket is closed"
  end

  # What was said meanwhile comes once, also what the page without a network has said itself.
  def cut(ann, bob)
    before = sockets(ann)
    @line.cut
    @browser.switch(ann)
    await_state("connection lost")
    3.times { |i| say(bob, "Bob", "Ann? #{i}") }
    say(ann, "Ann", "nobody hears this")
    assert_heard(bob, @said[..-2])
    @line.mend
    assert_heard(ann, @said)
    assert_heard(bob, @said)
    assert_operator sockets(ann), :>, before
    4.times do |i|
      @line.cut
      say(bob, "Bob", "cut #{i}")
      @line.mend
    end
    assert_all_heard(ann, bob)
  end

  # With it goes the history: the pages say so, and go on.
  def kill_the_frontend(ann, bob)
    killed = FrontendServers.frontend_of(@one)
    Process.kill(:KILL, killed)
    E2E.wait_until("another frontend") { FrontendServers.frontend_of(@one).then { |pid| pid && pid != killed } }
    [ann, bob, @reader].each do |window|
      @browser.switch(window)
      E2E.wait_until("the note") { @browser.count("#messages li.note") == 1 }
    end
    say(ann, "Ann", "still there")
    assert_all_heard(ann, bob)
  end

  def enter(port, page = "", state: "connected", window: false)
    @browser.open_window if window
    @browser.visit("http://127.0.0.1:#{port}/#{page}")
    await_state(state)
    @browser.window
  end

  def await_state(words)
    E2E.wait_until("\"#{words}\"") { @browser.text_of("#state").include?(words) }
  end

  # Counts the page's WebSockets from now on; the one that is open is the first.
  def mark(*windows)
    windows.each do |window|
      @browser.switch(window)
      @browser.script("window.opened = 1; WebSocket = new Proxy(WebSocket, { construct: (Kind, words) => { opened++; return new Kind(...words); } })")
    end
  end

  def sockets(window)
    @browser.switch(window)
    @browser.script("return opened")
  end

  # Characters that key codes cannot say are set by script.
  def say(window, nick, text)
    @browser.switch(window)
    @browser.script("document.querySelector('#nick').value = arguments[0]; document.querySelector('#text').value = arguments[1]", nick, text)
    @browser.click("#send")
    @said << [nick, text]
  end

  def assert_all_heard(*windows) = [*windows, @reader].each { |window| assert_heard(window, @said) }

  SHOWN = <<~JS
    const words = (item) => [...item.querySelectorAll('b, p')].map((part) => part.textContent);
    return [...document.querySelectorAll('#messages li:not(.note)')].map(words);
  JS

  def assert_heard(window, messages)
    @browser.switch(window)
    shown = nil
    E2E.wait_until("#{messages.last} to be seen, not #{shown}") do
      shown = @browser.script(SHOWN)
      shown.size >= messages.size
    end
    assert_equal messages, shown
  end
end
