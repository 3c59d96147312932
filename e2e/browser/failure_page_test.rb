# frozen_string_literal: true

require_relative "../support"
require_relative "webdriver"

# The page of an error in a real browser: what it says is seen, nothing of it becomes markup, and a phone shows all.
class FailurePageTest < Minitest::Test
  PHONE = 390
  APP = E2E::RUBY ? <<~'RUBY' : <<~'PERL'
    def buy(env)
      raise "<img src=x onerror=alert(1)> #{"long" * 100} out of <b>stock</b>" # line 2
    end
    run ->(env) { buy(env) }
  RUBY
    use strict; use warnings; sub buy {
        die '<img src=x onerror=alert(1)> ' . ('long' x 100) . " out of <b>stock</b>\n"; # line 2
    }
    sub { buy($_[0]) }
  PERL

  def setup
    skip "no chromedriver here" unless system("command -v chromedriver >/dev/null")
    @dir = Dir.mktmpdir("oribi-e2e")
    @name = "app#{E2E.differing(:app_extension)}"
    File.write("#{@dir}/#{@name}", APP)
    @port = E2E.free_port
    @server = E2E::Server.new(options: ["--bind", "127.0.0.1:#{@port}", "--env", "development"], app: "#{@dir}/#{@name}").start
  end

  def teardown
    @server&.cleanup
    FileUtils.remove_entry(@dir) if @dir
  end

  def test_page
    E2E::Browser.open(width: 1000) do |browser|
      browser.visit("http://127.0.0.1:#{@port}/cart?page=2&token=geheim")
      text = browser.script("return document.body.innerText")
      assert_includes text, "<img src=x onerror=alert(1)>"
      assert_includes text, "out of <b>stock</b>"
      assert_match(/#{Regexp.escape(@name)}:2\b/, text)
      assert_match(/line 2$/, text, "the source, unfolded")
      refute_includes text, "geheim"
      assert_equal 0, browser.count("img") + browser.count("script")
      light = browser.script("return getComputedStyle(document.body).backgroundColor")
      browser.emulate(width: PHONE, dark: true)
      assert_equal [PHONE, PHONE], browser.script("return [document.documentElement.scrollWidth, innerWidth]")
      refute_equal light, browser.script("return getComputedStyle(document.body).backgroundColor")
    end
  end
end
