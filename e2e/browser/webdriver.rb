# frozen_string_literal: true

require "base64"
require "fileutils"
require "json"
require "net/http"
require "socket"
require "tmpdir"
require_relative "../support/free_port"
require_relative "../support/waiting"

module E2E
  # Headless Chromium by the WebDriver protocol (W3C), spoken directly: the few commands that the tests need.
  class Browser
    Failure = Class.new(StandardError)

    FLAGS = %w[--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
               --disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars].freeze
    ELEMENT = "element-6066-11e4-a52e-4f735466cecf"

    def self.open(...)
      browser = new(...)
      yield browser
    ensure
      browser&.quit
    end

    def initialize(width: 900, height: 1000, flags: [])
      @profile = Dir.mktmpdir("oribi-browser")
      port = E2E.free_port
      # TMPDIR inside the profile, so that what Chromium leaves there goes with it.
      @pid = spawn({ "TMPDIR" => @profile }, "chromedriver", "--port=#{port}", in: File::NULL, out: File::NULL, err: File::NULL)
      @http = Net::HTTP.new("127.0.0.1", port, nil)
      @http.read_timeout = 60
      E2E.wait_until("chromedriver") { ready? }
      flags = [*FLAGS, *flags, "--user-data-dir=#{@profile}/profile", "--window-size=#{width},#{height}"]
      @session = call(:post, "/session", capabilities: { alwaysMatch: { browserName: "chrome", "goog:chromeOptions" => { args: flags } } })["sessionId"]
    rescue StandardError
      quit
      raise
    end

    def visit(url) = command(:post, "/url", url: url)
    def title = command(:get, "/title")
    def url = command(:get, "/url")
    def script(text, *args) = command(:post, "/execute/sync", script: text, args: args)
    def text_of(selector) = command(:get, "/element/#{find(selector)}/text")
    def count(selector) = command(:post, "/elements", using: "css selector", value: selector).size
    def type(selector, text) = command(:post, "/element/#{find(selector)}/value", text: text)
    def click(selector) = command(:post, "/element/#{find(selector)}/click", {})
    def screenshot(path) = File.binwrite(path, Base64.decode64(command(:get, "/screenshot")))

    # A screen of this width, with the user's wish for dark or light pages (Chromium's own command).
    def emulate(width:, dark:, height: 800)
      chromium("Emulation.setDeviceMetricsOverride", width: width, height: height, deviceScaleFactor: 1, mobile: false)
      chromium("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }])
    end

    # Windows by their handles; what follows happens in the one switched to last.
    def window = command(:get, "/window")
    def open_window = switch(command(:post, "/window/new", type: "window")["handle"])
    def switch(handle) = command(:post, "/window", handle: handle) || true

    # Errors and warnings of the page's console.
    def console = command(:post, "/se/log", type: "browser")

    def quit
      call(:delete, "/session/#{@session}") if @session
    ensure
      if @pid
        Process.kill(:TERM, @pid)
        Process.wait(@pid)
        @pid = nil
      end
      # The browser's last processes write into their profile while they end.
      E2E.wait_until("the profile to be free") do
        FileUtils.rm_rf(@profile)
        !File.exist?(@profile)
      end
    end

    private

    def ready?
      call(:get, "/status")["ready"]
    rescue Errno::ECONNREFUSED, EOFError
      false
    end

    def chromium(name, **params) = command(:post, "/goog/cdp/execute", cmd: name, params: params)
    def find(selector) = command(:post, "/element", using: "css selector", value: selector).fetch(ELEMENT)
    def command(method, path, body = nil) = call(method, "/session/#{@session}#{path}", body)

    def call(method, path, body = nil)
      request = Net::HTTP.const_get(method.capitalize).new(path, "content-type" => "application/json")
      request.body = JSON.generate(body) if body
      value = JSON.parse(@http.request(request).body)["value"]
      raise Failure, "#{path}: #{value["error"]}: #{value["message"].to_s.lines.first}" if value.is_a?(Hash) && value["error"]

      value
    end
  end
end
