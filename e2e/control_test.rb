# frozen_string_literal: true

require_relative "support"
require_relative "support/workspace"

# The ctl command: what it does, what it says, how it ends.
E2E.suite("control", transports: %i[tcp]) do
  include E2E::InWorkspace

  # Up and serving: the control socket is opened after the others.
  def serve(*options, **more)
    start("--control", @space.control, *options, app: @space.app, **more).tap { |one| assert_serves("first", one) }
  end

  # Exit code, standard output, standard error.
  def ctl(*words, socket: @space.control)
    words = ["--control", socket, *words] if socket
    one = E2E::Server.new(argv: [E2E::Server.binary, "ctl", *words])
    @servers << one
    one.run_to_end
    [one.status.exitstatus, one.stdout, one.stderr]
  end

  def test_status
    one = serve("--workers", "2")
    wait_until("both workers") { ctl("status")[1].include?("2 of 2 workers") }
    code, text, errors = ctl("status")
    assert_equal [0, ""], [code, errors]
    assert_match(/\A#{E2E::COMMAND}, pid #{one.pid}, serving, generation 1, 2 of 2 workers/, text)
    assert_match(/^worker +pid +gen +state/, text)
    status = JSON.parse(ctl("status", "--json")[1])
    assert_equal [one.pid, "serving", 1, 2], status.values_at("pid", "state", "generation", "workers")
    assert_equal(status["processes"].map { |worker| worker["pid"] }.sort, one.descendants.sort & status["processes"].map { |worker| worker["pid"] })
  end

  def test_status_shows_a_call
    one = serve
    client = connect(one)
    client.request("GET", "/gate")
    wait_until("the call") { ctl("status")[1].match?(%r{busy.* ms GET /gate$}) }
    @space.open_gate
    assert_equal "passed", client.read_response.body
  end

  # No option names a socket: a name made of the folder does, over an upgrade too.
  def test_the_server_of_a_folder_is_found_by_itself
    here = ["--chdir", @space.dir]
    assert_match(/\A#{E2E::COMMAND}: ctl: no server of this user/, ctl(*here, "status", socket: nil)[2])
    one = start(*here, app: @space.app)
    wait_until("the socket") { ctl(*here, "status", socket: nil)[0].zero? }
    assert_match(/\A#{E2E::COMMAND}, pid #{one.pid}, /, ctl(*here, "status", socket: nil)[1])
    code, text, = ctl(*here, "upgrade", socket: nil)
    assert_equal 0, code, text
    successor = text[/\d+/].to_i
    wait_until("the old server's end") { one.ended? }
    assert_match(/\A#{E2E::COMMAND}, pid #{successor}, /, ctl(*here, "status", socket: nil)[1])
    two = start(*here, app: @space.app)
    wait_until("two servers") { ctl(*here, "status", socket: nil)[0] == 2 }
    names = ctl(*here, "status", socket: nil)[2].scan(%r{--control (/\S+)}).flatten
    assert_equal 2, names.size
    names.each { |name| assert_equal 0, ctl("stop", socket: name)[0] }
    wait_until("their end") { two.ended? && names.none? { |name| File.exist?(name) } }
  end

  def test_none_is_no_socket
    here = ["--chdir", @space.dir]
    assert_serves("first", start(*here, "--control", "none", app: @space.app))
    assert_equal 2, ctl(*here, "status", socket: nil)[0]
  end

  def test_reload_ends_when_the_new_code_serves
    one = serve
    @space.write_app("second")
    assert_equal [0, "generation 2, 1 worker\n", ""], ctl("reload")
    assert_serves("second", one)
  end

  # Workers, supervisor, neither of them: the table of options says which it is.
  def test_a_reload_takes_over_what_its_options_say
    @space.write_config({ control: @space.control, server_header: "one" })
    one = start("--config", @space.config, app: @space.app)
    assert_equal "one", connect(one).get("/")["server"]
    pid_file = "#{@space.dir}/pid"
    @space.write_config({ control: @space.control, server_header: "two", quiet: "on", pid_file: pid_file })
    assert_equal [0, "generation 2, 1 worker\n", ""], ctl("reload")
    assert_equal "two", connect(one).get("/")["server"]
    assert_match(/warn: reload: pid_file: #{pid_file} takes effect at a restart; until then it stays not set/, one.stderr)
    refute_path_exists pid_file
    refute_match(/reload done/, one.stderr, "the supervisor is quiet too")
  end

  def test_a_reload_that_fails_says_so
    one = serve
    @space.break_app("told not to load")
    code, text, errors = ctl("reload")
    assert_equal [1, ""], [code, text]
    assert_match(/\A#{E2E::COMMAND}: .*load: .*told not to load/, errors)
    assert_equal 1, errors.lines.size
    assert_serves("first", one)
  end

  def test_an_upgrade_that_fails_says_why
    one = serve(group: true)
    @space.break_app("told not to load")
    code, text, errors = ctl("upgrade")
    assert_equal [1, ""], [code, text]
    assert_match(/\A#{E2E::COMMAND}: the successor ended: exit code 1: .*load: .*told not to load/, errors)
    assert_equal 1, errors.lines.size
    assert_serves("first", one)
  end

  def test_a_reload_and_an_upgrade_with_a_broken_configuration_say_why
    config = "#{@space.dir}/conf#{E2E::RUBY ? ".rb" : ".pl"}"
    File.write(config, E2E::RUBY ? "" : "{}")
    one = serve("--config", config, group: true)
    File.write(config, E2E::RUBY ? "wrokers 3\n" : "{ wrokers => 3 }\n")
    %w[reload upgrade].each do |command|
      code, text, errors = ctl(command)
      assert_equal [1, ""], [code, text]
      assert_match(/wrokers/, errors)
      assert_serves("first", one)
    end
  end

  def test_a_reason_is_told_once
    config = "#{@space.dir}/conf#{E2E::RUBY ? ".rb" : ".pl"}"
    File.write(config, E2E::RUBY ? "" : "{}")
    one = serve("--config", config, "--workers", "2", group: true)
    File.write(config, E2E::RUBY ? "wrokers 3\n" : "{ wrokers => 3 }\n")
    ctl("reload")
    wait_until("the end of the reload") { one.stderr.match?(/reload failed/) }
    assert_equal 1, one.stderr.scan("unknown option wrokers").size, one.stderr
    File.write(config, E2E::RUBY ? "after_fork { raise 'no worker' }\n" : "{ after_fork => sub { kill 9, $$ } }\n")
    code, _, errors = ctl("upgrade")
    assert_equal [1, 1], [code, errors.lines.size]
    assert_operator errors.scan(/worker \d/).size, :<=, 1, errors
  end

  # The socket is that of a `control` in front of the mistake, else the folder's.
  def test_a_broken_configuration_keeps_nobody_from_a_stop
    one = serve
    broken = @space.config
    File.write(broken, E2E::RUBY ? "control #{@space.control.inspect}\nnonsense 1\n" : "control '#{@space.control}';\n{ nonsense => 1 };\n")
    code, text, errors = ctl("-C", broken, "status", socket: nil)
    assert_equal 0, code, errors
    assert_match(/pid #{one.pid}, serving/, text)
    assert_match(/\A#{E2E::COMMAND}: ctl: going on to #{@space.control}, since the configuration file cannot be read: .*nonsense.*\n\z/, errors)
    File.write(broken, E2E::RUBY ? "nonsense 1\n" : "{ nonsense => 1 };\n")
    assert_match(/going on to the server of this folder, .*nonsense/, ctl("-C", broken, "status", socket: nil)[2])
    File.write(broken, E2E::RUBY ? "control #{@space.control.inspect}\nnonsense 1\n" : "control '#{@space.control}';\n{ nonsense => 1 };\n")
    assert_equal [0, "stopped\n"], ctl("-C", broken, "stop", socket: nil).first(2)
    assert_equal 0, one.wait.exitstatus
  end

  def test_upgrade_ends_when_the_successor_serves
    one = serve("--pid-file", "#{@space.dir}/pid", group: true)
    @space.write_app("second")
    code, text, errors = ctl("upgrade")
    assert_equal [0, ""], [code, errors]
    successor = text[/\Apid (\d+) serves$/, 1].to_i
    assert_serves("second", one)
    assert_equal 0, one.wait.exitstatus
    assert_equal successor, File.read("#{@space.dir}/pid").to_i
    assert_equal [0, "stopped\n", ""], ctl("stop")
    wait_until("the successor to end") { one.group.empty? }
    pass
  end

  def test_status_tells_the_memory_of_a_worker
    skip_without "memory of workers"
    one = serve
    process = JSON.parse(ctl("status", "--json")[1])["processes"].first
    assert_equal one.worker_pid, process["pid"]
    assert_operator process["memory_own_bytes"], :>, 0
    assert_operator process["memory_shared_bytes"], :>, 0
    assert_includes process["memory_own_bytes"]..(process["memory_own_bytes"] + process["memory_shared_bytes"]), process["memory_bytes"]
    header, row = ctl("status")[1].lines.last(2).map(&:split)
    assert_equal %w[MB own shared], header[7, 3]
    [process["memory_own_bytes"], process["memory_shared_bytes"]].zip(row[8, 2]) { |bytes, mb| assert_in_delta bytes >> 20, mb.to_i, 1 }
  end

  def test_workers
    one = serve
    assert_equal [0, "3 workers, were 1\n", ""], ctl("workers", "+2")
    wait_until("three workers") { JSON.parse(ctl("status", "--json")[1])["workers"] == 3 }
    assert_equal [0, "2 workers, were 3\n", ""], ctl("workers", "-1")
    assert_equal [0, "1 worker, were 2\n", ""], ctl("workers", "1")
    wait_until("one worker") { JSON.parse(ctl("status", "--json")[1])["processes"].size == 1 }
    code, text, errors = ctl("workers", "0")
    assert_equal [1, ""], [code, text]
    assert_match(/from 1 to \d+/, errors)
    assert_serves("first", one)
  end

  # A deployment is a reload or an upgrade: neither forgets what was asked for.
  def test_the_number_of_workers_is_kept_by_a_reload_and_an_upgrade
    one = serve(group: true)
    assert_equal [0, "3 workers, were 1\n", ""], ctl("workers", "3")
    wait_until("three workers") { workers_of(1) == 3 }
    assert_equal 0, ctl("reload")[0]
    wait_until("three of the next generation") { workers_of(2) == 3 }
    code, text, = ctl("upgrade")
    assert_equal 0, code
    successor = text[/\Apid (\d+) serves$/, 1].to_i
    wait_until("the old server's end") { one.ended? }
    status = JSON.parse(ctl("status", "--json")[1])
    assert_equal [successor, 3, 3], status.values_at("pid", "workers", "workers_wanted")
    assert_match(/workers: 3 as asked for, not the 1 of the configuration/, one.stderr)
    assert_equal [0, "1 worker, were 3\n", ""], ctl("workers", "1")
    assert_equal 0, ctl("upgrade")[0]
    wait_until("one worker") { JSON.parse(ctl("status", "--json")[1])["workers"] == 1 }
    assert_equal [0, "stopped\n", ""], ctl("stop")
    wait_until("the last successor's end") { one.group.empty? }
  end

  def workers_of(generation)
    JSON.parse(ctl("status", "--json")[1])["processes"].count { |process| process["generation"] == generation && process["state"] != "starting" }
  end

  def test_stop_ends_when_everything_has_ended
    one = serve
    client = connect(one)
    client.request("GET", "/gate")
    wait_until("the call") { ctl("status")[1].include?("GET /gate") }
    below = one.descendants
    stopping = Thread.new { ctl("stop") }
    wait_until("the stop") { one.stderr.include?("stopping") }
    @space.open_gate
    assert_equal [0, "stopped\n", ""], stopping.value
    assert_equal "passed", client.read_response.body
    assert_empty(below.select { |pid| E2E::Processes.alive?(pid) })
    assert_equal 0, one.wait.exitstatus
    refute File.exist?(@space.control), "control socket left"
  end

  def test_stop_now
    one = serve("--shutdown-timeout", "60s")
    client = connect(one)
    client.request("GET", "/gate")
    wait_until("the call") { ctl("status")[1].include?("GET /gate") }
    assert_equal [0, "stopped\n", ""], ctl("stop", "--now")
    assert_raises(E2E::Client::Closed, Errno::ECONNRESET) { client.read_response }
  end

  def test_reopen
    log = "#{@space.dir}/log"
    one = serve("--access-log", log)
    one.get("/")
    wait_until("a line") { File.read(log).include?("GET /") }
    File.rename(log, "#{log}.1")
    assert_equal [0, "log files are reopened\n", ""], ctl("reopen")
    wait_until("a line in the new file") { one.get("/") && File.exist?(log) && File.read(log).include?("GET /") }
    pass
  end

  def test_nobody_answers
    code, text, errors = ctl("status")
    assert_equal [2, "", "#{E2E::COMMAND}: #{@space.control}: no such file or directory\n"], [code, text, errors]
    UNIXServer.new(@space.control).close
    assert_equal [2, "", "#{E2E::COMMAND}: #{@space.control}: connection refused\n"], ctl("status")
  end

  def test_the_config_file_names_the_socket
    @space.write_config({ "control" => @space.control, "workers" => 1 })
    serve
    code, text, = ctl("-C", @space.config, "status", socket: nil)
    assert_equal 0, code
    assert_match(/serving/, text)
    Dir.mkdir("#{@space.dir}/empty")
    assert_equal [2, ""], ctl("--chdir", "#{@space.dir}/empty", "status", socket: nil).first(2)
  end

  def test_mistakes
    assert_equal [1, "", "#{E2E::COMMAND}: ctl: no command relaod; did you mean reload?\n"], ctl("relaod")
    assert_equal [1, "", "#{E2E::COMMAND}: ctl: no command phased-restart: here it is ctl reload, which replaces worker after worker\n"], ctl("phased-restart")
    assert_equal [1, "", "#{E2E::COMMAND}: ctl: no command restart: here it is ctl reload, for new code and settings; " \
                         "upgrade, for a new version of the server too\n"], ctl("restart")
    assert_equal ctl("--help", socket: nil), ctl("help", socket: nil)
    assert_equal [2, "", "#{E2E::COMMAND}: /run/#{E2E::COMMAND}/no-such-server/control: no such file or directory\n"],
                 ctl("@no-such-server", "status", socket: nil)
    assert_equal [1, "", "#{E2E::COMMAND}: @../x: a server of the package is @NAME, as in oribi@NAME.service\n"], ctl("@../x", "status", socket: nil)
    assert_equal [1, "", "#{E2E::COMMAND}: ctl: --workers is not for this: --control, --config, --chdir, --help\n"], ctl("status", "--workers", "3")
    code, text, errors = ctl("--help", socket: nil)
    assert_equal [0, ""], [code, errors]
    assert_match(/\AUsage: #{E2E::COMMAND} ctl .*COMMAND$/, text)
    names = text.scan(/^  ([a-z]+) /).flatten
    help = E2E::Server.new(argv: [E2E::Server.binary, "--help"]).tap(&:run_to_end).stdout
    assert_equal names.sort, help[/ctl (\S+)$/, 1].split("|").sort
  end

  def assert_serves(text, one) = assert_equal(text, one.get("/").body)
end
