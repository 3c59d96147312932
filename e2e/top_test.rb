# frozen_string_literal: true

require_relative "support"
require_relative "support/terminal"
require_relative "support/workspace"

# ctl top: on a terminal it draws and listens to keys and signals, elsewhere it prints once; it says when its server has
# gone, and goes on when a successor takes over. What the screen shows is tested in core/test/command/top_test.c.
E2E.suite("top", transports: %i[tcp]) do
  include E2E::InWorkspace

  INTERVAL = "100ms"

  def setup
    super
    @terminals = []
  end

  def teardown
    @terminals.each(&:cleanup)
    super
  end

  def serve(*options, **more)
    start("--control", @space.control, *options, app: @space.app, **more).tap { |one| one.get("/") }
  end

  def words(*more) = [E2E::Server.binary, "ctl", "--control", @space.control, "top", "--interval", INTERVAL, *more]

  def top(*more, **options)
    E2E::Terminal.new(*words(*more), **options).tap { |terminal| @terminals << terminal }
  end

  def once(*more)
    one = E2E::Server.new(argv: words(*more))
    @servers << one
    one.run_to_end
    [one.status.exitstatus, one.stdout, one.stderr]
  end

  # A shell on a terminal that runs top as a job.
  def shell(script)
    E2E::Terminal.new("sh", "-c", "set -m; #{script}", "sh", *words).tap { |terminal| @terminals << terminal }
  end

  def assert_restored(terminal)
    assert terminal.bytes.end_with?("\e[?7h\e[?25h\e[?1049l"), terminal.bytes[-200..].inspect
  end

  def test_it_draws_listens_to_keys_and_ends
    one = serve("--workers", "2")
    gate = connect(one).tap { |client| client.send_raw("GET /gate?\x9b31m\u202e HTTP/1.1\r\nHost: a\r\n\r\n".b) } # C1's CSI
    terminal = top
    terminal.await(/\A#{E2E::COMMAND} [\d.]+  pid #{one.pid}  serving .*^WORKER +PID STATE +CALL .*REQUEST.*busy .*GET \/gate\?\?31m\?\?\?$/m)
    assert_operator terminal.lines.map(&:size).max, :<=, 80
    assert_match(/\A\e\[\?1049h\e\[\?25l\e\[\?7l\e\[H/, terminal.bytes)
    assert_match(/ -icanon .* -echo /m, terminal.modes)
    refute_match(/\e\[2J/, terminal.bytes, "clearing the screen flickers")
    terminal.type("m\e[Aw\eOQ")
    terminal.await(/by worker .*^ +0 .*^ +1 /m)
    terminal.type("\ei")
    terminal.await(/by worker, reversed.*^ +1 .*^ +0 /m)
    terminal.type("h")
    terminal.await(/^  q   quit/)
    terminal.type("h")
    terminal.await(/^WORKER/)
    terminal.resize(8, 40)
    terminal.await(/\A[^\n]{1,40}\n.*^WORKER STATE +CALL REQUEST\n/m)
    assert_operator terminal.lines.size, :<=, 8
    terminal.type("q")
    assert_equal 0, terminal.wait.exitstatus
    assert_restored(terminal)
    @space.open_gate
    assert_equal "passed", gate.read_response.body
  end

  # By a signal, by its window, and by its server.
  def test_its_ends
    one = serve
    ends = { INT: 0, TERM: 143, HUP: 129 }.map do |name, code|
      [top(env: { "NO_COLOR" => "1" }), name, code]
    end
    ends.each { |terminal,| terminal.await(/serving/) }
    ends.each { |terminal, name,| terminal.signal(name) }
    ends.each do |terminal, name, code|
      assert_equal code, terminal.wait.exitstatus, name
      assert_restored(terminal)
      refute_match(/\e\[3\dm/, terminal.bytes)
    end
    stopped = top.tap { |terminal| terminal.await(/serving/) }
    stopped.type("\x13") # Ctrl-S: the terminal takes nothing more
    stopped.await_stop
    stopped.signal(:TERM)
    assert_equal 143, stopped.wait.exitstatus
    assert_restored(stopped)
    closed = top.tap { |terminal| terminal.await(/serving/) }
    left = top.tap { |terminal| terminal.await(/serving/) }
    closed.hang_up
    assert_equal 129, closed.wait.exitstatus
    one.stop
    left.await(/trying again/)
    assert_equal 2, left.wait.exitstatus
    assert_match(/1049l#{E2E::COMMAND}: #{@space.control}: [^\r\n]+\r\n\z/, left.bytes)
  end

  def test_it_is_a_job_of_a_shell
    serve
    terminal = shell('"$@"; echo "stopped $?"; fg; echo "ended $?"')
    terminal.await(/serving/)
    terminal.type("\x1a")
    terminal.await_bytes(/\e\[\?1049lstopped \d+/)
    terminal.await_bytes(/stopped.*\e\[\?1049h.*\e\[J/m)
    assert_match(/ -icanon /, terminal.modes)
    terminal.type("q")
    terminal.await_bytes(/\e\[\?1049lended 0/)
    assert_equal 0, terminal.wait.exitstatus
    assert_match(/ icanon /, terminal.modes)
  end

  def test_elsewhere_it_prints_once
    one = serve("--workers", "2")
    code, text, errors = once
    assert_equal [0, ""], [code, errors]
    assert_match(/\A#{E2E::COMMAND} [\d.]+  pid #{one.pid}  serving  up .*\nWORKER +PID GEN STATE .*REQUEST\n( +[01] .*\n){2}\z/m, text)
    refute_match(/[^\x20-\x7e\n]/, text)
    assert_equal [1, "", "#{E2E::COMMAND}: ctl: --interval is a time from 100ms to 1h, not 'soon'\n"], once("--interval", "soon")
    one.stop
    assert_equal 2, once.first
  end

  # Everything that could make it wait: workers that are stopped, a supervisor that is.
  def test_it_answers_while_nothing_else_does
    one = serve("--workers", "2", group: true)
    terminal = top
    terminal.await(/2 of 2 serve/)
    workers = one.descendants
    workers.each { |pid| Process.kill(:STOP, pid) }
    seen = terminal.frames
    wait_until("frames") { terminal.frames > seen + 2 }
    one.signal(:STOP)
    terminal.await(/no answer for/)
    one.signal(:CONT)
    workers.each { |pid| Process.kill(:CONT, pid) }
    wait_until("the note to go") { !terminal.lines.join.include?("no answer") }
    one.get("/")
    upgraded = E2E::Server.new(argv: [E2E::Server.binary, "ctl", "--control", @space.control, "upgrade"])
    @servers << upgraded
    upgraded.run_to_end
    assert_equal 0, upgraded.status.exitstatus, upgraded.stderr
    wait_until("the successor") { terminal.lines.first.to_s[/pid (\d+)  serving/, 1].then { |pid| pid && pid.to_i != one.pid } }
    one.signal(:STOP) rescue nil
    terminal.type("q")
    assert_equal 0, terminal.wait.exitstatus
    Process.kill(:TERM, terminal.lines.first[/pid (\d+)/, 1].to_i)
    one.signal(:CONT) rescue nil # where it had not left yet
    wait_until("the end of all") { one.group.empty? }
  end
end
