# frozen_string_literal: true

require_relative "example"

# A sound of three minutes from a mount, in a real browser: it seeks by ranges, in what it has not loaded yet.
class SeekBrowserTest < Minitest::Test
  SECONDS = 180
  BYTES = SECONDS * 44_100 * 4 # two channels of 16 bits

  def setup
    skip "no chromedriver here" unless system("command -v chromedriver >/dev/null")
    @dir = File.realpath(Dir.mktmpdir("oribi-seek"))
    head = ["RIFF", BYTES + 36, "WAVE", "fmt ", 16, 1, 2, 44_100, 44_100 * 4, 4, 16, "data", BYTES].pack("a4Va4a4VvvVVvva4V")
    FileUtils.mkdir("#{@dir}/public")
    File.binwrite("#{@dir}/public/silence.wav", head)
    File.truncate("#{@dir}/public/silence.wav", BYTES + head.bytesize)
    File.write("#{@dir}/public/page.html", "<!doctype html><title>seek</title><audio src=silence.wav preload=metadata controls></audio>")
    @server = E2E::Server.new(options: ["--static", "/s=#{@dir}/public", "--access-log", "#{@dir}/access", "--access-log-format", "json"]).start
  end

  def teardown
    @server&.cleanup
    FileUtils.remove_entry(@dir) if @dir
  end

  def test_seeking_by_ranges
    E2E::Browser.open do |browser|
      browser.visit("http://127.0.0.1:#{@server.port}/s/page.html")
      E2E.wait_until("the length") { browser.script("return document.querySelector('audio').duration") == SECONDS }
      [170, 10, 90].each do |second|
        browser.script("window.sought = false; const a = document.querySelector('audio');
                        a.onseeked = () => { window.sought = a.currentTime }; a.currentTime = arguments[0]", second)
        E2E.wait_until("second #{second}") { browser.script("return window.sought") == second }
      end
      assert_nil browser.script("return document.querySelector('audio').error")
    end
    lines = File.readlines("#{@dir}/access").map { |line| JSON.parse(line) }.select { |line| line["target"].end_with?("silence.wav") }
    assert_operator lines.count { |line| line["status"] == 206 }, :>=, 2, "it asked for ranges"
    assert_empty(lines.reject { |line| [206, 304].include?(line["status"]) && line["call_us"].zero? })
    assert_equal 0, @server.stop.exitstatus, @server.stderr
  end
end
