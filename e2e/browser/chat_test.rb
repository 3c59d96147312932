# frozen_string_literal: true

require_relative "example"

# Two people in a real browser: what one says the other sees, by WebSocket and by server-sent events, and also after the
# server was reloaded.
class ChatBrowserTest < Minitest::Test
  include E2E::BrowserExample

  def setup = serve_example("chat", "CHAT_JOURNAL", "journal")

  def test_two_people
    E2E::Browser.open do |browser|
      ann = enter(browser)
      bob = enter(browser, window: true)
      assert browser.script("return document.styleSheets[0].cssRules.length").positive?

      say(browser, ann, "Ann", "Hello <b>Bob</b> ✓")
      assert_heard(browser, bob, ["Ann", "Hello <b>Bob</b> ✓"])
      say(browser, bob, "Bob", "Hello Ann")
      assert_heard(browser, ann, ["Bob", "Hello Ann"])

      browser.switch(bob)
      browser.script("document.querySelector('[value=events]').click()")
      await_state(browser, "connected by server-sent events")
      say(browser, bob, "Bob", "now by events")
      assert_heard(browser, ann, ["Bob", "now by events"])
      say(browser, ann, "Ann", "I see")
      assert_heard(browser, bob, ["Ann", "I see"])

      reload
      [ann, bob].each { |window| browser.switch(window) && await_state(browser, "connected by") }
      say(browser, ann, "Ann", "still there")
      assert_heard(browser, bob, ["Ann", "still there"])
      assert_equal 5, browser.count("#messages li"), "nothing twice, nothing missed"
    end
    assert_equal 0, @server.stop.exitstatus, @server.stderr
    refute_match(/error/, @server.stderr)
  end

  private

  def enter(browser, window: false)
    browser.open_window if window
    browser.visit(@home)
    await_state(browser, "connected by WebSocket")
    browser.window
  end

  def await_state(browser, words)
    E2E.wait_until("\"#{words}\"") { browser.text_of("#state").include?(words) }
  end

  # Characters that key codes cannot say are set by script.
  def say(browser, window, nick, text)
    browser.switch(window)
    browser.script("document.querySelector('#nick').value = arguments[0]; document.querySelector('#text').value = arguments[1]", nick, text)
    browser.click("#send")
  end

  def assert_heard(browser, window, message)
    browser.switch(window)
    last = "const l = document.querySelector('#messages li:last-child'); return l && [...l.querySelectorAll('b, p')].map((e) => e.textContent)"
    E2E.wait_until("#{message} to be seen") { browser.script(last) == message }
    pass
  end

  # Both workers are replaced, so both connections end.
  def reload
    before = @server.stderr.scan(/generation 2/).size
    @server.signal(:HUP)
    E2E.wait_until("the new generation") { @server.stderr.scan(/generation 2/).size > before && old_workers.empty? }
  end

  def old_workers = @server.descendants.select { |pid| E2E::Processes.title(pid).match?(/ worker \d+, generation 1/) }
end
