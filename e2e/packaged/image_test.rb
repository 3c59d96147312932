# frozen_string_literal: true

require_relative "../support"
require_relative "../support/askers"
require_relative "../support/packaged"
require_relative "../../tools/userland"

# The image of the board that script/image builds for E2E_COMMAND, run by podman with runc: as an unprivileged user,
# with a read-only root, the server as process 1. In the host's network, since a network of its own is not the subject.
class ImageTest < Minitest::Test
  PROGRAMS = { "buildah" => "buildah", "podman" => "podman", "conmon" => "conmon", "runc" => "runc", "dh" => "debhelper" }.freeze
  REASON = Userland.missing || E2E::Packaged.missing(PROGRAMS)
  STORE = File.join(E2E::ROOT, "build/image")
  PODMAN = ["podman", "--root", "#{STORE}/store", "--runroot", "#{STORE}/run", "--storage-driver", "overlay", "--runtime", "runc",
            "--cgroup-manager", "cgroupfs", "--events-backend", "none"].freeze
  IMAGE = "localhost/#{E2E::RUBY ? "board" : "board-psgi"}"

  class << self
    def image = @image ||= Userland.must("script/image", E2E::COMMAND) && IMAGE
  end

  def setup
    skip REASON if REASON
    self.class.image
    @name = "oribi-#{Process.pid}-#{name.hash.abs}"
    @port = E2E.free_port
  end

  def teardown
    IO.popen([*PODMAN, "rm", "--force", "--time", "0", "--volumes", @name], err: %i[child out], &:read) if @started
  end

  # Without systemd podman says that it cannot start a timer for the check, on standard error.
  def podman(*words, code: 0)
    output = IO.popen([*PODMAN, *words], err: "#{STORE}/podman.err", &:read)
    assert_equal code, $?.exitstatus, "#{words.join(" ")}: #{output} #{File.read("#{STORE}/podman.err")}"
    output
  end

  def start
    @started = true
    podman("run", "--detach", "--name", @name, "--network", "host", "--env", "PORT=#{@port}",
           "--read-only", "--read-only-tmpfs=false", "--tmpfs", "/tmp", IMAGE)
    E2E.wait_until("the board; it wrote #{log}") { log.include?("listening on") }
  end

  def log = IO.popen([*PODMAN, "logs", @name], err: %i[child out], &:read)
  def inside(*words, code: 0) = podman("exec", @name, *words, code: code)

  def status = JSON.parse(inside(E2E::COMMAND, "ctl", "--control", "/tmp/control", "status", "--json"))

  def ask(method, target, body = nil)
    client = E2E::Client.new(["127.0.0.1", @port])
    type = body ? { "Content-Type" => "application/x-www-form-urlencoded" } : {}
    client.request(method, target, { "Connection" => "close", **type }, body).read_response
  ensure
    client&.close
  end

  def test_configuration
    image = JSON.parse(podman("image", "inspect", IMAGE)).first
    config = image["Config"]
    assert_equal ["oribi", "SIGTERM", [E2E::COMMAND, "ctl", "--control", "/tmp/control", "status"]],
                 [config["User"], config["StopSignal"], (config["Healthcheck"] || image["HealthCheck"] || image["Healthcheck"])["Test"].drop(1)]
    assert_equal E2E::COMMAND, config["Cmd"].first, "no shell before it"
  end

  def test_serves_with_a_read_only_root_as_a_user_without_privileges
    start
    assert_equal 200, ask("GET", "/").status
    assert_equal 303, ask("POST", "/messages", "nick=image&body=written+from+outside").status
    assert_includes ask("GET", "/").body, "written from outside"
    assert_match(/\Auid=[1-9]\d*\(oribi\)/, inside("id"))
    inside("sh", "-c", "for status in /proc/[0-9]*/status; do ! grep -q '^Uid:.0' $status || exit 1; done")
    inside("sh", "-c", "touch /srv/board/x 2>/dev/null", code: 1)
    assert_match(/\A#{E2E::COMMAND} supervisor/, inside("sh", "-c", "tr '\\0' ' ' </proc/1/cmdline"))
    podman("healthcheck", "run", @name)
  end

  def test_signals_reach_process_1_and_lose_no_request
    start
    askers = E2E::Askers.new(["127.0.0.1", @port])
    E2E.wait_until("answers") { askers.answered > 20 }
    podman("kill", "--signal", "HUP", @name)
    E2E.wait_until("the reload; it wrote #{log}") { status.values_at("generation", "state") == [2, "serving"] }
    assert_empty askers.stop, log
    assert_match(/process 1/, inside("sh", "-c", "#{E2E::COMMAND} ctl --control /tmp/control upgrade 2>&1; true"))
    podman("stop", "--time", "10", @name)
    assert_equal "exited 0", podman("inspect", @name, "--format", "{{.State.Status}} {{.State.ExitCode}}").chomp, log
  ensure
    askers&.stop
  end
end
