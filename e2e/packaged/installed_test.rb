# frozen_string_literal: true

require_relative "../support"
require_relative "../support/askers"
require_relative "../support/packaged"
require_relative "../../tools/userland"

# The package of E2E_COMMAND in a clean Debian: installed, its service's command run as its user, asked, upgraded while
# clients ask, upgraded with a broken application, its logs rotated, removed, purged. `make packages` runs it with both.
# The cases are one story, in the order of their names.
class InstalledTest < Minitest::Test
  REASON = Userland.missing || E2E::Packaged.missing("dh" => "debhelper", "dpkg-buildpackage" => "dpkg-dev")
  KIND = E2E::Packaged::KIND
  NAME = KIND.name

  def self.test_order = :alpha

  class << self
    def userland = @userland ||= Userland.new.tap { |one| Minitest.after_run { one.remove } }

    # Version 1 and version 2.
    def versions
      @versions ||= begin
        folder = FileUtils.mkdir_p("#{Userland::FOLDER}/debs").first
        first = E2E::Packaged.build
        second = E2E::Packaged.build("--version", "#{File.basename(first[NAME]).split("_")[1]}+next1", folder)
        [first, second].each_with_index.map do |packages, index|
          "/root/#{index + 1}.deb".tap { |inside| userland.take(packages.fetch(NAME), inside) }
        end
      end
    end

    attr_accessor :server
  end

  def setup = (skip REASON if REASON)

  def userland = self.class.userland
  def server = self.class.server
  def versions = self.class.versions
  def address = ["127.0.0.1", server.port]
  def control = "/run/#{NAME}/board/control"
  def ask = userland.run("curl -sS --fail --max-time 30 http://127.0.0.1:#{server.port}/")
  def status = JSON.parse(userland.run("#{NAME} ctl --control #{control} status --json"))
  def installed = userland.try("dpkg-query -W -f '${db:Status-Status} ${Version}' #{NAME}").first

  def unit = @unit ||= File.read(Dir["#{userland.dir}/{usr/,}lib/systemd/system/#{NAME}@.service"].first)
  def setting(key) = unit[/^#{key}=(.*)$/, 1].gsub("%i", "board")

  PROGRAMS = {
    "oribi" => { good: "run ->(_env) { [200, { \"content-type\" => \"text/plain\" }, [\"board\"]] }\n", bad: "run ->(_env) {\n", file: "config.ru" },
    "oribi-psgi" => { good: "sub { [200, ['Content-Type' => 'text/plain'], ['board']] };\n", bad: "sub {\n", file: "app.psgi" },
  }.freeze

  def program(which) = userland.write("/srv/board/#{PROGRAMS[NAME][:file]}", PROGRAMS[NAME][which])

  def test_1_install
    output = userland.run("apt-get install -y -qq --no-install-recommends #{versions[0]} logrotate")
    assert_match(/\Ainstalled /, installed, output)
    assert_equal "oribi", userland.run("stat -c %U /proc/self/exe >/dev/null; id -un oribi").chomp
    assert_match(%r{:/nonexistent:/usr/sbin/nologin$}, userland.run("getent passwd oribi"))
    assert_match(/\A#{NAME} /, userland.run("#{NAME} --version"))
    assert_equal "", userland.run("#{NAME} ctl --control #{control} status >/dev/null 2>&1 || test $? = 2")
    config = "--check --config /etc/#{NAME}/example.#{KIND.config_extension}"
    assert_match(/load/, userland.run("#{NAME} #{config}"))
    assert_equal "", userland.run("dpkg --verify #{NAME}")
  end

  # As systemd does: folders of the user, its environment, its command line.
  def test_2_serve
    port = E2E.free_port
    program(:good)
    config = File.read(userland.path(KIND.config("example")))
    { "/usr/share/#{NAME}/example" => "/srv/board", KIND.port => port.to_s, "# access_log" => "access_log", "log/#{NAME}/example" => "log/#{NAME}/board" }
      .each { |from, to| assert config.gsub!(from, to), "#{from} in #{config}" }
    userland.write(KIND.config("board"), config)
    { "RuntimeDirectory" => "/run", "StateDirectory" => "/var/lib", "LogsDirectory" => "/var/log" }.each do |key, above|
      userland.run("install -d -o #{setting("User")} -g #{setting("Group")} #{above}/#{setting(key)}")
    end
    checked = userland.run("#{NAME} check @board") # fails when something is wrong
    assert_match(/ 0 wrong/, checked)
    line = "cd #{setting("WorkingDirectory")} && exec env #{setting("Environment")} #{setting("ExecStart")}"
    ids = userland.run("id -u oribi; id -g oribi").split.join(":")
    one = E2E::Server.new(argv: ["chroot", "--userspec=#{ids}", userland.dir, "sh", "-c", line], env: { "PATH" => Userland::ENVIRONMENT["PATH"] }, group: true)
    one.instance_variable_set(:@address, ["127.0.0.1", port])
    self.class.server = one.start
    assert_equal "board", ask
    assert_equal status["pid"], JSON.parse(userland.run("#{NAME} ctl @board status --json"))["pid"]
    assert_equal [ids], userland.processes.map { |pid| File.stat("/proc/#{pid}").then { |owner| "#{owner.uid}:#{owner.gid}" } }.uniq
  end

  # Processes that still have the library of the version before.
  def outdated = userland.processes.select { |pid| File.read("/proc/#{pid}/maps").match?(/#{KIND.extension} \(deleted\)/) }

  def test_3_upgrade_while_clients_ask
    askers = E2E::Askers.new(address, address, address)
    E2E.wait_until("answers") { askers.answered > 100 }
    before = status["pid"]
    output = userland.run("apt-get install -y -qq #{versions[1]}")
    upgraded = E2E.clock
    assert_match(/^#{NAME}: board runs the new version$/, output)
    assert_match(/\Ainstalled .*\+next1\z/, installed)
    refute_equal before, status["pid"]
    E2E.wait_until("the old processes to end") { outdated.empty? }
    E2E.wait_until("answers of the new version") { askers.answered > 200 && E2E.clock > upgraded + 0.2 }
    assert_empty askers.stop
    assert_operator askers.answered_since(upgraded), :>, 10
    assert_equal 0, server.wait.exitstatus, server.stderr
  ensure
    askers&.stop
  end

  def test_4_upgrade_with_a_broken_application
    before = status["pid"]
    program(:bad)
    askers = E2E::Askers.new(address)
    output = userland.run("dpkg -i #{versions[0]}")
    assert_match(%r{^#{NAME}: board: upgrade failed, and the server goes on as before: .*/srv/board/#{PROGRAMS[NAME][:file]}}, output)
    line = output[/^#{NAME}: board serves with the old version until this is mended; then: (.*)$/, 1] or flunk(output)
    refute_match(/next1/, installed)
    assert_equal [before, "board"], [status["pid"], ask]
    program(:good)
    userland.run(line)
    E2E.wait_until("the old processes to end") { outdated.empty? }
    assert_empty askers.stop
    refute_equal before, status["pid"]
  ensure
    askers&.stop
  end

  def test_5_logs_are_rotated
    log = "/var/log/#{NAME}/board/access.log"
    ask
    E2E.wait_until("the log") { File.size?(userland.path(log)) }
    userland.run("logrotate --force /etc/logrotate.d/#{NAME}")
    assert File.size?(userland.path("#{log}.1"))
    ask
    E2E.wait_until("the new log") { File.size?(userland.path(log)) }
  end

  def test_6_remove
    output = userland.run("apt-get remove -y -qq #{NAME}")
    assert_match(/^#{NAME}: board has stopped$/, output)
    E2E.wait_until("all processes to end") { userland.processes.empty? }
    [KIND.config("example"), KIND.config("board"), "var/log/#{NAME}/board/access.log"].each { |path| assert File.exist?(userland.path(path)), path }
  end

  def test_7_purge
    userland.run("apt-get purge -y -qq #{NAME}")
    [KIND.config("example"), "etc/logrotate.d/#{NAME}", "var/log/#{NAME}", "var/lib/#{NAME}", "run/#{NAME}"].each do |path|
      refute File.exist?(userland.path(path)), path
    end
    assert File.exist?(userland.path(KIND.config("board"))), "files of the administrator stay"
    userland.run("getent passwd oribi")
    left = Dir.glob("{etc,usr,var/lib,lib}/**/*oribi*", base: userland.dir).grep_v(%r{\Aetc/#{NAME}(/board\.\w+)?\z|\Avar/lib/dpkg/})
    assert_empty left
  end
end
