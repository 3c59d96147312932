# frozen_string_literal: true

require_relative "example"

# One pass through the message board in a real browser: read, post, a picture, what must not be taken for HTML, the
# stream, delete.
class BoardBrowserTest < Minitest::Test
  include E2E::BrowserExample

  # The smallest PNG: one red pixel.
  PIXEL = ["89504e470d0a1a0a0000000d49484452000000010000000108020000009077 53de0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082"
             .delete(" ")].pack("H*")

  def serve(**env) = serve_example("board", "BOARD_DB", "board.sqlite3", env.transform_keys(&:to_s))

  # Both workers meet a file that is not there yet: one of them fills it.
  def test_a_new_board_has_messages
    serve
    E2E::Browser.open do |browser|
      2.times do
        browser.visit(@home)
        assert_equal [4, "4 messages"], [browser.count("article"), browser.text_of(".count")]
      end
      assert_match(/\AEvening at the pier/, browser.text_of("article .body"))
      E2E.wait_until("the picture") { browser.script("const i = document.querySelector('article img'); return i.complete && i.naturalWidth") == 640 }
      browser.click("article .delete")
      E2E.wait_until("the message to go") { browser.count("article") == 3 }
    end
    assert_equal 0, @server.stop.exitstatus, @server.stderr
  end

  def test_the_board_in_a_browser
    serve(BOARD_SEEDS: "off")
    File.binwrite("#{@dir}/pixel.png", PIXEL)
    E2E::Browser.open do |browser|
      browser.visit(@home)
      assert_equal 0, browser.count("article")
      refute_equal "", browser.script("return getComputedStyle(document.body).backgroundColor"), "no style"
      assert(browser.script("return document.styleSheets[0].cssRules.length").positive?)

      post(browser, "Ann", "Hello from a browser")
      assert_equal "Hello from a browser", browser.text_of("article .body")

      post(browser, "<i>Bob</i>", "<script>document.title = 'owned'</script> & ünïcode ✓", picture: "#{@dir}/pixel.png")
      assert_equal 2, browser.count("article")
      assert_includes browser.text_of("article"), "<i>Bob</i>"
      assert_equal "<script>document.title = 'owned'</script> & ünïcode ✓", browser.text_of("article .body")
      refute_equal "owned", browser.title
      E2E.wait_until("the picture") { browser.script("const i = document.querySelector('article img'); return i.complete && i.naturalWidth") == 1 }

      browser.visit("#{@home}stream")
      assert_equal 2, browser.count("article")
      assert_match(/Hello from a browser/, browser.text_of("article"))

      browser.visit(@home)
      browser.click("article .delete")
      E2E.wait_until("the message to go") { browser.count("article") == 1 }
      assert_equal "Hello from a browser", browser.text_of("article .body")
    end
    assert_equal 0, @server.stop.exitstatus, @server.stderr
  end

  private

  def post(browser, nick, body, picture: nil)
    before = browser.count("article")
    browser.type("#nick", nick)
    # Typing goes by key codes; what they cannot say is set by script.
    browser.script("document.querySelector('#body').value = arguments[0]", body)
    browser.type("#picture", picture) if picture
    browser.click("#post")
    E2E.wait_until("the posted message") { browser.count("article") == before + 1 }
  end
end
