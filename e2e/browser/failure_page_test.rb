# frozen_string_literal: true

require_relative "../support"
require_relative "webdriver"

# The page of an error in a real browser: what it says is seen, nothing of it becomes markup, and a phone shows all. The
# error of a WebSocket's handler is in the reason of its close.
class FailurePageTest < Minitest::Test
  PHONE = 390
  APP = E2E::RUBY ? <<~'RUBY' : <<~'PERL'
    def buy(env)
      raise "<img src=x onerror=alert(1)> #{"long" * 100} out of <b>stock</b>" # line 2
    end
    class Room
      def self.on_message(ws, data) = buy(data) # line 5
      def self.buy(_) = raise(KeyError, "no room here")
    end
    run lambda { |env|
      env["PATH_INFO"] == "/cart" ? buy(env) : env["oribi.websocket"]&.accept(Room) || [200, { "content-type" => "text/html" }, ["<p>A room"]]
    }
  RUBY
    use strict; use warnings; sub buy {
        die '<img src=x onerror=alert(1)> ' . ('long' x 100) . " out of <b>stock</b>\n"; # line 2
    }
    sub Room::on_message { die "no room here\n" } # line 4
    sub {
        my ($env) = @_;
        return buy($env) if $env->{PATH_INFO} eq '/cart';
        return $env->{'oribi.websocket'} ? $env->{'oribi.websocket'}->accept('Room') : [200, ['Content-Type' => 'text/html'], ['<p>A room']];
    }
  PERL

  def setup
    skip "no chromedriver here" unless system("command -v chromedriver >/dev/null")
    @dir = Dir.mktmpdir("oribi-e2e")
    @name = "app#{E2E.differing(:app_extension)}"
    File.write("#{@dir}/#{@name}", APP)
    @port = E2E.free_port
    address = "tcp://127.0.0.1:#{@port}#{"?frontend=on" if E2E.frontend?}"
    @server = E2E::Server.new(options: ["--bind", address, "--env", "development"], app: "#{@dir}/#{@name}").start
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

  LISTEN = <<~JS
    const socket = new WebSocket(`ws://${location.host}/`);
    socket.onopen = () => socket.send("hello");
    socket.onclose = ({ code, reason }) => console.error(`${code} ${reason}`);
  JS

  def test_the_reason_of_a_close_in_the_console
    skip "no oribi-frontend here" unless E2E.frontend?
    E2E::Browser.open do |browser|
      browser.visit("http://127.0.0.1:#{@port}/")
      browser.script(LISTEN)
      told = nil
      E2E.wait_until("the close") { told = browser.console.map { |line| line["message"] }.grep(/1011/).first }
      assert_match(E2E::RUBY ? /1011 Room\.on_message: KeyError: no room here \(#{@name}:\d\)/ : /1011 Room->on_message: no room here \(#{@name}:\d\)/, told)
    end
  end
end
