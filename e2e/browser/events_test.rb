# frozen_string_literal: true

require_relative "../support"
require_relative "../support/frontends"
require_relative "webdriver"

# EventSource of Chromium and streams that a frontend holds: events with and without a name, over HTTP/2, through
# reloads, and back by itself after an upgrade and after the frontend was killed.
class EventsBrowserTest < Minitest::Test
  include FrontendServers

  OPEN = <<~JS
    window.got = []; window.opened = 0;
    window.source = new EventSource('/retry?news');
    source.onopen = () => { opened++ };
    source.onmessage = (message) => got.push(message.data);
    source.addEventListener('note', (message) => got.push('note ' + message.data));
  JS

  def wait_until(...) = E2E.wait_until(...)

  def setup
    skip "no chromedriver here" unless system("command -v chromedriver >/dev/null")
    super
    serve("--workers", "2", "--history", "h:,1000,300s", app: "e2e/apps/events.#{E2E::RUBY ? "ru" : "psgi"}")
  end

  def test_an_event_source
    E2E::Browser.open(flags: %w[--ignore-certificate-errors]) do |browser|
      browser.visit("https://127.0.0.1:#{@one.port}/")
      browser.script(OPEN)
      wait_until("the stream") { browser.script("return opened") == 1 }
      publish("news", "hello")
      publish("news", "two\r\nlines \u{1F600}", "note")
      assert_got(browser, "hello", "note two\nlines \u{1F600}")
      assert ctl("reload").last.success?
      publish("news", "after the reload")
      assert_got(browser, "after the reload")
      assert_equal 1, browser.script("return opened"), "a reload ends no stream"
      protocol = browser.script("return performance.getEntriesByType('navigation')[0].nextHopProtocol")
      assert_equal "h2", protocol

      Process.kill(:KILL, frontend)
      wait_until("the browser to come back") { browser.script("return opened") == 2 }
      publish("news", "after the death")
      assert_got(browser, "after the death")

      assert ctl("upgrade").last.success?
      wait_until("the browser to come back") { browser.script("return opened") == 3 }
      publish("news", "after the upgrade")
      assert_got(browser, "after the upgrade")
    end
  ensure
    ctl("stop") if @one
  end

  # It sends the id of its last event when it comes back, and so has every number once; the frontend that was killed has
  # taken the history along, and it is told so.
  def test_resume
    E2E::Browser.open(flags: %w[--ignore-certificate-errors]) do |browser|
      browser.visit("https://127.0.0.1:#{@one.port}/")
      browser.script(OPEN.sub("news", "h:a") + "source.addEventListener('oribi.reset', (message) => got.push('reset ' + message.data));")
      wait_until("the stream") { browser.script("return opened") == 1 }
      numbers = (0...30).map(&:to_s)
      numbers.each_slice(10) do |some|
        some.first(5).each { |number| publish("h:a", number) }
        ctl("upgrade").then { |output, status| assert status.success?, output }
        some.last(5).each { |number| publish("h:a", number) }
      end
      assert_got(browser, numbers.last)
      assert_equal numbers, browser.script("return got")
      opened = browser.script("return opened")
      assert_operator opened, :>=, 2

      Process.kill(:KILL, ctl("status").first[/^frontend 0, pid (\d+)/, 1].to_i)
      wait_until("the browser to come back") { browser.script("return opened") > opened }
      publish("h:a", "after the death")
      assert_got(browser, "reset h:a", "after the death")
    end
  ensure
    ctl("stop") if @one
  end

  private

  def publish(channel, data, event = nil)
    curl("/publish?#{[channel, event].compact.join("&")}", "-k", "--data-binary", data, "-H", "Content-Type: application/octet-stream")
  end

  def assert_got(browser, *events)
    wait_until("#{events} in the browser") { browser.script("return got").last(events.size) == events }
    pass
  end
end
