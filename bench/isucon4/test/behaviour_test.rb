# frozen_string_literal: true

require "json"
require "minitest/autorun"
require "net/http"
require "socket"
require "tmpdir"
require_relative "../stores"

# The bank's rules, asked of a running server. ISUCON4_APP=rack or psgi says which application, ISUCON4_STORE=sqlite or
# contest where it keeps things.
class BankTest < Minitest::Test
  ROOT = File.expand_path("../../..", __dir__)
  APP = ENV.fetch("ISUCON4_APP", "rack")
  STORE = ENV.fetch("ISUCON4_STORE", "sqlite")
  COMMANDS = {
    "rack" => [File.join(ROOT, "ruby/exe/oribi"), File.join(ROOT, "bench/isucon4/rack/config.ru")],
    "psgi" => [File.join(ROOT, "perl/bin/oribi-psgi"), File.join(ROOT, "bench/isucon4/psgi/app.psgi")],
  }.freeze
  START_SECONDS = 60
  USERS = 400

  # A browser with its own cookies and its own address.
  class Browser
    attr_reader :cookie

    def initialize(port, ip)
      @http = Net::HTTP.new("127.0.0.1", port)
      @ip = ip
    end

    def get(path) = keep(@http.get(path, headers))
    def post(path, form) = keep(@http.post(path, URI.encode_www_form(form), headers.merge("Content-Type" => "application/x-www-form-urlencoded")))

    # Logs in and follows the redirection; gives path and page.
    def login(login, password)
      response = post("/login", login: login, password: password)
      raise "not a redirection: #{response.code}" unless response.code == "302"

      path = URI(response["location"]).path
      [path, get(path).body]
    end

    private

    def headers = { "X-Forwarded-For" => @ip, "Cookie" => @cookie }.compact

    def keep(response)
      set = response.get_fields("set-cookie")
      @cookie = set.first[/\A[^;]+/] if set
      response
    end
  end

  def self.prepare
    @prepared ||= begin
      dir = Dir.mktmpdir("isucon4-test")
      Minitest.after_run { FileUtils.rm_rf(dir) }
      data = Isucon4::Data.new(dir, users: USERS).generate
      store = Isucon4.store(STORE, data, dir).start
      port = TCPServer.open("127.0.0.1", 0) { |socket| socket.addr[1] }
      command, app = COMMANDS.fetch(APP)
      env = store.env.merge("ISUCON4_PUBLIC" => data.public_dir, "PORT" => nil)
      options = ["--quiet", "--workers", "2", "--access-log", "off", "--bind", "127.0.0.1:#{port}"]
      pid = spawn(env, command, *options, app, out: File.join(dir, "out"), err: %i[child out])
      Minitest.after_run do
        Process.kill(:TERM, pid)
        Process.wait(pid)
        store.stop
      end
      await(port, pid, File.join(dir, "out"))
      [port, data, store]
    end
  end

  def self.await(port, pid, log)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + START_SECONDS
    begin
      TCPSocket.new("127.0.0.1", port).close
    rescue Errno::ECONNREFUSED
      raise "the server ended: #{File.read(log)}" if Process.waitpid(pid, Process::WNOHANG)
      raise "the server did not listen: #{File.read(log)}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      IO.select(nil, nil, nil, 0.02)
      retry
    end
  end

  def setup
    @port, @data, @store = self.class.prepare
    @store.reset
    @next_ip = 0
  end

  def browser(ip = "127.1.0.#{@next_ip += 1}") = Browser.new(@port, ip)
  def notice(page) = page[/id="notice-message"[^>]*>([^<]*)</, 1]&.gsub("&#39;", "'")
  def last_ip(page) = page[/id="last-logined-ip">([^<]*)</, 1]
  def report = JSON.parse(browser.get("/report").body)
  def all_users = @data.users.to_a

  def fail_times(count, login, ips: Array.new(count) { "127.2.0.#{@next_ip += 1}" })
    ips.first(count).map { |ip| notice(browser(ip).login(login, "wrong").last) }
  end

  def test_the_form_has_its_fields_and_no_notice
    response = browser.get("/")
    assert_equal "200", response.code
    assert_match(%r{\Atext/html}, response["content-type"])
    assert_match(/<input[^>]*name="login"/, response.body)
    assert_match(/<input[^>]*name="password"/, response.body)
    assert_match(/<button[^>]*type="submit"/, response.body)
    assert_nil notice(response.body)
  end

  def test_the_right_password_opens_the_page
    path, page = browser("127.1.9.9").login("isucon1", "isuconpass1")
    assert_equal "/mypage", path
    assert_equal "127.1.9.9", last_ip(page), "the first login shows itself"
    assert_match(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/, page[/id="last-logined-at">([^<]*)</, 1])
    assert_includes page, "isucon1"
  end

  def test_the_page_shows_the_login_before_this_one
    browser("127.1.9.1").login("isucon2", "isuconpass2")
    assert_equal "127.1.9.1", last_ip(browser("127.1.9.2").login("isucon2", "isuconpass2").last)
    assert_equal "127.1.9.2", last_ip(browser("127.1.9.3").login("isucon2", "isuconpass2").last)
  end

  def test_a_login_that_failed_is_no_last_login
    browser("127.1.9.1").login("isucon2", "isuconpass2")
    browser("127.1.9.4").login("isucon2", "wrong")
    assert_equal "127.1.9.1", last_ip(browser("127.1.9.2").login("isucon2", "isuconpass2").last)
  end

  def test_the_session_opens_the_page_again
    one = browser
    one.login("isucon3", "isuconpass3")
    response = one.get("/mypage")
    assert_equal "200", response.code
    assert_includes response.body, "isucon3"
  end

  def test_without_a_session_there_is_no_page
    one = browser
    response = one.get("/mypage")
    assert_equal "302", response.code
    assert_equal "/", URI(response["location"]).path
    assert_equal "You must be logged in", notice(one.get("/").body)
  end

  def test_a_forged_session_opens_nothing
    one = browser
    one.login("isucon3", "isuconpass3")
    other = browser
    forged = one.cookie.dup
    forged[forged.size / 2] = forged[forged.size / 2] == "A" ? "B" : "A"
    other.instance_variable_set(:@cookie, forged)
    assert_equal "302", other.get("/mypage").code
  end

  def test_a_notice_is_shown_once
    one = browser
    path, page = one.login("isucon4", "wrong")
    assert_equal "/", path
    assert_equal "Wrong username or password", notice(page)
    assert_nil notice(one.get("/").body)
  end

  def test_an_unknown_user_is_told_the_same
    assert_equal "Wrong username or password", notice(browser.login("nobody", "x").last)
    assert_equal "Wrong username or password", notice(browser.login("", "").last)
  end

  def test_three_failures_lock_a_user
    assert_equal ["Wrong username or password"] * 3, fail_times(3, "isucon5")
    assert_equal "This account is locked.", notice(browser.login("isucon5", "isuconpass5").last)
    assert_includes report["locked_users"], "isucon5"
  end

  def test_two_failures_and_a_success_count_from_zero
    fail_times(2, "isucon6")
    assert_equal "/mypage", browser.login("isucon6", "isuconpass6").first
    fail_times(2, "isucon6")
    assert_equal "/mypage", browser.login("isucon6", "isuconpass6").first
    refute_includes report["locked_users"], "isucon6"
  end

  def test_ten_failures_ban_an_address
    ip = "127.3.0.1"
    said = (1..10).map { |number| notice(browser(ip).login("nobody#{number}", "x").last) }
    assert_equal ["Wrong username or password"] * 10, said
    assert_equal "You're banned.", notice(browser(ip).login("isucon7", "isuconpass7").last)
    assert_equal "/mypage", browser.login("isucon7", "isuconpass7").first, "the user is only banned from there"
    assert_equal [ip], report["banned_ips"]
  end

  def test_nine_failures_and_a_success_count_from_zero
    ip = "127.3.0.2"
    2.times do
      9.times { |number| browser(ip).login("nobody#{number}", "x") }
      assert_equal "/mypage", browser(ip).login("isucon8", "isuconpass8").first
    end
    assert_empty report["banned_ips"]
  end

  def test_banned_is_said_before_locked
    fail_times(3, "isucon9")
    ip = "127.3.0.3"
    10.times { |number| browser(ip).login("nobody#{number}", "x") }
    assert_equal "You're banned.", notice(browser(ip).login("isucon9", "isuconpass9").last)
  end

  def test_an_attempt_from_a_banned_address_counts_against_the_user
    ip = "127.3.0.4"
    10.times { |number| browser(ip).login("nobody#{number}", "x") }
    3.times { browser(ip).login("isucon7", "isuconpass7") }
    assert_equal "This account is locked.", notice(browser.login("isucon7", "isuconpass7").last)
  end

  def test_an_attempt_at_a_locked_account_counts_against_the_address
    ip = "127.3.0.5"
    locked = all_users.find { |user| user.last == "1" }
    10.times { assert_equal "This account is locked.", notice(browser(ip).login(locked[1], locked[2]).last) }
    assert_equal "You're banned.", notice(browser(ip).login(locked[1], locked[2]).last)
  end

  def test_the_last_hop_is_the_client
    browser("10.9.9.9, 127.1.8.8").login("isucon1", "isuconpass1")
    assert_equal "127.1.8.8", last_ip(browser("127.1.8.9").login("isucon1", "isuconpass1").last)
  end

  def test_the_report_at_first
    response = browser.get("/report")
    assert_match(%r{\Aapplication/json}, response["content-type"])
    said = JSON.parse(response.body)
    assert_equal %w[banned_ips locked_users], said.keys.sort
    assert_empty said["banned_ips"]
    assert_equal all_users.select { |user| user.last == "1" }.map { |user| user[1] }.sort, said["locked_users"].sort
  end

  def test_the_preloaded_users_come_in
    user = all_users.reverse.find { |one| one.last == "0" }
    path, page = browser("127.1.7.7").login(user[1], user[2])
    assert_equal "/mypage", path
    assert_match(/\A127\.250\.0\./, last_ip(page), "what the log had before")
  end

  def test_names_are_text_and_not_markup
    _, page = browser.login("<b>'\"", "x")
    refute_includes page, "<b>'"
  end

  def test_two_attempts_at_once_are_both_counted
    20.times.map { |number| Thread.new { browser("127.4.0.1").login("none#{number}", "x") } }.each(&:join)
    assert_equal ["127.4.0.1"], report["banned_ips"]
  end

  def test_the_assets_are_the_files
    Isucon4::Data::ASSETS.each do |name, bytes|
      body = browser.get("/#{name}").body
      assert_equal bytes, body.bytesize
      assert_equal File.binread(File.join(@data.public_dir, name)), body.b
    end
    assert_equal "404", browser.get("/images/none.png").code
  end
end
