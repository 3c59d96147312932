# frozen_string_literal: true

require_relative "example"

# The site of script/site in a real browser, served by the server: nothing is missing, nothing scrolls sideways, on a
# desktop and on a phone; menu and search work.
class SiteBrowserTest < Minitest::Test
  DESKTOP = 1280
  PHONE = 390

  def setup
    skip "no chromedriver here" unless system("command -v chromedriver >/dev/null")
    skip "no commonmarker and rouge here" unless system("ruby", "-e", "require 'commonmarker'; require 'rouge'", err: File::NULL)
    @dir = File.realpath(Dir.mktmpdir("oribi-site"))
    assert system(File.join(E2E::ROOT, "script/site"), @dir, out: File::NULL)
    @server = E2E::Server.new(options: ["--static", "/site=#{@dir}?index=index.html"]).start
    @home = "http://127.0.0.1:#{@server.port}/site/"
  end

  def teardown
    @server&.cleanup
    FileUtils.remove_entry(@dir) if @dir
  end

  def test_the_site
    E2E::Browser.open(width: DESKTOP) do |browser|
      @browser = browser
      pages = Dir.glob("**/*.html", base: @dir).sort
      browser.emulate(width: DESKTOP, dark: false)
      %w[index.html doc/options.html doc/benchmarks.html].each { |path| looks_well(path, DESKTOP) }
      browser.emulate(width: PHONE, dark: true)
      pages.each { |path| looks_well(path, PHONE) }
      menu_on_a_phone
      finds_a_section
      assert_empty browser.console
    end
  end

  private

  # What the page loaded is all from here, and there.
  def looks_well(path, width)
    @browser.visit(@home + path)
    assert_equal width, @browser.script("return document.documentElement.scrollWidth"), "#{path} scrolls sideways at #{width}"
    loaded = @browser.script("return performance.getEntriesByType('resource').map((r) => [r.name, r.responseStatus])")
    assert_operator loaded.size, :>=, 2, path
    assert_empty loaded.reject { |name, status| name.start_with?(@home) && [200, 304].include?(status) }, path
    assert @browser.script("return [...document.images].every((i) => i.complete && i.naturalWidth)"), path
  end

  def menu_on_a_phone
    shown = "return getComputedStyle(document.querySelector('#menu')).display"
    @browser.visit(@home)
    assert_equal "none", @browser.script(shown)
    @browser.click("a.menu")
    assert_equal "block", @browser.script(shown)
    @browser.click("#menu a[href='doc/options.html']")
    E2E.wait_until("the page") { @browser.title.start_with?("Options") }
    assert_equal "none", @browser.script(shown)
  end

  def finds_a_section
    @browser.type("#search", "zzzz")
    E2E.wait_until("no section") { @browser.text_of("#found") == "Nothing found." }
    3.times { @browser.type("#search", "\uE003") }
    @browser.type("#search", "\uE003slow stuck calls")
    E2E.wait_until("a section") { @browser.text_of("#found li a").include?("Stuck and slow calls") }
    @browser.type("#search", "\uE007")
    E2E.wait_until("the section") { @browser.url.end_with?("/doc/monitoring.html#stuck-and-slow-calls") }
  end
end
