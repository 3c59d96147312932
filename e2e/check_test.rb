# frozen_string_literal: true

require_relative "support"
require "json"
require "open3"

# `check` tells everything in one go, in text and in JSON, with exit codes for CI; it starts nothing and leaves nothing.
E2E.suite("check", transports: %i[tcp]) do
  include E2E::Home

  def setup
    super
    application(E2E::RUBY ? 'run ->(_) { [200, {}, ["app"]] }' : "sub { [200, [], ['app']] }")
  end

  def application(text) = file(E2E::RUBY ? "config.ru" : "app.psgi", text)

  def check(*words, bind: "127.0.0.1:0")
    perl = %w[lib arch].map { |dir| "#{E2E::ROOT}/perl/blib/#{dir}" }.join(":")
    variables = E2E::RUBY ? { "RUBYLIB" => "#{E2E::ROOT}/ruby/lib" } : { "PERL5LIB" => perl }
    unset = %w[RACK_ENV PLACK_ENV RAILS_ENV APP_ENV PORT].to_h { |name| [name, nil] }
    argv = [E2E::Server.binary, "check", "-w", "1", "-b", bind, *words]
    output, error, status = Open3.capture3({ **unset, **variables }, *argv, chdir: @home)
    [status.exitstatus, output, error]
  end

  def checked(*words, code:, **more)
    exit_code, output, error = check("--json", *words, **more)
    assert_equal code, exit_code, output + error
    assert_equal 1, output.lines.size
    JSON.parse(output)
  end

  def ids(report, level) = report["findings"].select { |finding| finding["level"] == level }.map { |finding| finding["id"] }

  def test_nothing_wrong
    before = Dir.glob("**/*", base: @home)
    code, output, error = check
    assert_equal [0, "", 1], [code, error, output.lines.size]
    assert_match(/\A#{E2E::COMMAND} 0\.1\.0, (ruby|perl) \d.*: 0 wrong, \d+ risks?\n\z/, output)
    report = checked(code: 0)
    assert_equal [true, 0, 0, E2E::COMMAND], report.values_at("ok", "wrong", "dropped", "command")
    assert_equal %w[command dropped findings ok risks versions wrong], report.keys.sort
    assert_equal before, Dir.glob("**/*", base: @home)
  end

  def test_everything_wrong_at_once
    taken = TCPServer.new("127.0.0.1", 0)
    application(E2E::RUBY ? 'puts "noise"; raise "no database"' : 'print "noise\n"; die "no database\n"')
    report = checked("--static", "nowhere", "--pid-file", "none/pid", "--access-log", "none/log", code: 1, bind: "127.0.0.1:#{taken.addr[1]}")
    assert_equal %w[address-in-use application files folder folder], ids(report, "wrong").sort
    assert_equal report["wrong"], ids(report, "wrong").size
    report["findings"].each { |finding| assert_equal %w[do id level what why], finding.keys.sort }
    assert_match(/no database/, report["findings"].find { |finding| finding["id"] == "application" }["what"])
  ensure
    taken&.close
  end

  def test_all_mistakes_of_the_configuration
    file("config/oribi#{E2E::RUBY ? ".rb" : ".pl"}", E2E::RUBY ? "wrokers 3\nworkers 'many'\n" : "{ wrokers => 3,\nworkers => 'many' }\n")
    report = checked(code: 1)
    assert_equal %w[configuration configuration], ids(report, "wrong")
    assert_match(/oribi\.\w+:1: .*did you mean workers/, report["findings"][0]["what"])
    assert_match(/oribi\.\w+:2: workers must be/, report["findings"][1]["what"])
  end

  def test_settings_that_exclude_each_other = assert_equal(["configuration"], ids(checked("--quiet", "--verbose", code: 1), "wrong"))

  def test_risks_alone_are_no_failure_but_in_strict
    risky = ["-E", "production", "--call-timeout", "0"]
    assert_includes ids(checked(*risky, code: 0), "risk"), "call-timeout"
    assert_equal false, checked(*risky, "--strict", code: 1)["ok"]
  end

  def test_limits_of_the_process
    script = %(ulimit -n 600; ulimit -f 100; exec "$@")
    argv = ["sh", "-c", script, "sh", E2E::Server.binary, "check", "--json", "-w", "1", "-b", "127.0.0.1:0", "--chdir", @home]
    output, error, = Open3.capture3(*argv)
    found = ids(JSON.parse(output), "risk")
    assert_equal %w[descriptors file-size], found & %w[descriptors file-size], error
  end

  def test_a_server_that_runs_is_no_mistake_of_its_own
    one = start_serving("--control", "#{@home}/ctl", "--pid-file", "#{@home}/pid")
    own = ["--control", "#{@home}/ctl", "--pid-file", "#{@home}/pid"]
    report = checked(*own, code: 0, bind: one.bind)
    assert_equal [[], ["address-in-use"]], [ids(report, "wrong"), ids(report, "note")]
    assert_equal ["address-in-use"], ids(checked(code: 1, bind: one.bind), "wrong")
    assert_alive(one)
  end

  # As a newcomer has it: neither a control socket nor a pid file is named.
  def test_a_server_that_ctl_finds_is_no_mistake_of_its_own
    one = start_serving("--chdir", @home)
    report = checked(code: 0, bind: one.bind)
    assert_equal [[], ["address-in-use"]], [ids(report, "wrong"), ids(report, "note")]
    code, output, = check(bind: one.bind)
    assert_equal 0, code
    assert_match(/^note   address-in-use: bind \S+: in use, while the server of this configuration runs$/, output)
    Dir.mktmpdir do |elsewhere|
      FileUtils.cp_r(Dir["#{@home}/*"], elsewhere)
      assert_equal ["address-in-use"], ids(checked("--chdir", elsewhere, code: 1, bind: one.bind), "wrong")
    end
    assert_alive(one)
  end

  # exit raises in Ruby, and cannot be caught in Perl; the others end the process in both.
  def test_an_application_that_ends_the_process
    ends = [["exit 0", /exit code 0|SystemExit/], [E2E::RUBY ? "exit! 3" : "require POSIX; POSIX::_exit(3)", /\(exit code 3\)/],
            [E2E::RUBY ? "Process.kill(:KILL, $$)" : "kill KILL => $$", /\(signal (SIG)?(KILL|9)\)/]]
    ends.each do |text, fate|
      application("print STDOUT \"noise\\n\";\n#{text}") unless E2E::RUBY
      application("puts 'noise'\n#{text}") if E2E::RUBY
      report = checked(code: 1)
      assert_equal ["application"], ids(report, "wrong")
      assert_match(fate, report["findings"].find { |finding| finding["id"] == "application" }["what"])
      short = short_check
      assert_equal 1, short[0]
      assert_match(fate, short[1])
    end
  end

  # --check, which is the short form.
  def short_check
    output, status = Open3.capture2e(E2E::Server.binary, "--check", "-w", "1", "-b", "127.0.0.1:0", chdir: @home)
    [status.exitstatus, output]
  end

  def test_its_own_command_line
    assert_match(/Usage: #{E2E::COMMAND} check \[--json\]/, check("--help")[1])
    code, output, error = check("--jsno")
    assert_equal [1, "", 1], [code, output, error.lines.size]
    assert_match(/--jsno/, error)
  end
end
