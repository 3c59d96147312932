# frozen_string_literal: true

require_relative "support"
require_relative "support/askers"
require_relative "support/load"
require_relative "support/unit"
require "json"
require "shellwords"
require "yaml"

# The examples of examples/deploy do what they promise: the very files are read, with only paths and ports put in place
# of others, and run.
E2E.suite("deploy", transports: %i[tcp]) do
  const_set(:DEPLOY, File.join(E2E::ROOT, "examples/deploy"))
  const_set(:NAME, E2E::RUBY ? "board" : "board-psgi")

  def setup
    super
    @dir = Dir.mktmpdir("oribi-e2e")
    @bin = File.join(@dir, "bin")
    Dir.mkdir(@bin)
    File.write(command, "#!/bin/sh\nexec '#{E2E::Server.binary}' \"$@\"\n")
    File.chmod(0o755, command)
  end

  def teardown
    super
    FileUtils.remove_entry(@dir)
  end

  # The command as if it were installed.
  def command = File.join(@bin, E2E::COMMAND)
  def file(path) = File.read(File.join(self.class::DEPLOY, path))
  def title = self.class::NAME
  def port = @port ||= E2E.free_port
  def address = ["127.0.0.1", port]
  def path = { "PATH" => "#{@bin}:#{ENV.fetch("PATH")}" }

  # The text with each of these replaced; all must be there.
  def adapted(text, replaced)
    replaced.each { |from, to| assert_includes text, from }
    replaced.reduce(text) { |result, (from, to)| result.gsub(from, to) }
  end

  def run_command(argv, env: {}, at: address, chdir: self.class::DEPLOY)
    one = E2E::Server.new(argv: argv, env: path.merge("E2E_CHDIR" => chdir, **env), group: true)
    one.instance_variable_set(:@address, at)
    @servers << one
    one.start
  end

  def answer(at = address, target = "/")
    client = E2E::Client.new(at)
    client.get(target, { "Connection" => "close" })
  ensure
    client&.close
  end

  def assert_serves(at = address) = assert_match(/\Aserved by \d+\n\z/, answer(at).body)

  def end_of(one, signal = :TERM)
    one.signal(signal)
    assert_equal 0, one.wait.exitstatus, one.stderr
    wait_until("all processes to end") { one.group.empty? }
  end

  def need(program)
    ENV.fetch("PATH").split(":").any? { |dir| File.executable?("#{dir}/#{program}") } || skip("no #{program} here")
  end

  # --- systemd ---

  def unit(kind) = file("systemd/#{title}.#{kind}")
  def setting(key, kind = "service") = unit(kind)[/^#{key}=(.*)$/, 1]

  # The words of an Exec line, for this machine.
  def exec_words(key, release: self.class::DEPLOY)
    text = adapted(setting(key), "/usr/local/bin/#{E2E::COMMAND}" => command, "/run/board/control" => "#{@dir}/control")
    text.gsub("--chdir /srv/board/current", "--chdir #{release}").split
  end

  def seconds_of(words, option) = words[words.index(option) + 1].delete_suffix("s").to_i

  def test_systemd_knows_every_line_of_the_units
    need("systemd-analyze")
    units = %w[service socket].map do |kind|
      text = unit(kind).gsub("/usr/local/bin/#{E2E::COMMAND}", command)
      "#{@dir}/#{title}.#{kind}".tap { |target| File.write(target, text) }
    end
    assert_equal "", E2E::Unit.findings(*units)
  end

  # A unit of another package, with mistakes of its own, is none of ours; a mistake of ours is seen beside it.
  def test_units_of_other_packages_are_left_to_them
    need("systemd-analyze")
    FileUtils.mkdir_p("#{@dir}/system/sysinit.target.wants")
    File.write("#{@dir}/system/stranger.service", "[Unit]\nMistake=1\n[Service]\nExecStart=/nonexistent\n")
    File.symlink("../stranger.service", "#{@dir}/system/sysinit.target.wants/stranger.service")
    ours = "#{@dir}/board.service"
    env = { "SYSTEMD_UNIT_PATH" => "#{@dir}/system:" }
    found = ["", "Mistake=2\n"].map do |mistake|
      File.write(ours, "[Unit]\nDescription=board\n[Service]\nExecStart=/bin/true\n#{mistake}")
      E2E::Unit.findings(ours, env: env)
    end
    assert_equal "", found.first
    assert_match(/\A\S*board\.service:5: [^\n]*Mistake[^\n]*\n\z/, found.last)
  end

  def test_the_service_has_time_to_drain
    words = exec_words("ExecStart")
    assert_operator setting("TimeoutStopSec").to_i, :>, seconds_of(words, "--drain-delay") + seconds_of(words, "--shutdown-timeout")
    assert_equal %w[notify mixed all], %w[Type KillMode NotifyAccess].map { |key| setting(key) }
  end

  # What systemd would hear, which reads all the time: the socket holds ten datagrams, and what finds it full is lost.
  class Manager
    def initialize(path)
      @socket = Socket.new(:UNIX, :DGRAM)
      @socket.bind(Addrinfo.unix(path))
      @said = Queue.new
      @reader = Thread.new { loop { @socket.recv(4096).each_line(chomp: true) { |line| @said << line } } }
    end

    # Waits for a line that matches, past others.
    def hear(pattern)
      passed = []
      deadline = E2E.deadline(E2E::DEADLINE)
      until pattern === passed.last
        raise E2E::Timeout, "waited for #{pattern.inspect}, heard #{passed.inspect}" if E2E.clock > deadline

        @said.empty? ? IO.select(nil, nil, nil, 0.005) : passed << @said.pop
      end
    end

    def close
      @reader.kill.join
      @socket.close
    end
  end

  # As Capistrano makes one.
  def release(name)
    FileUtils.cp_r(self.class::DEPLOY, "#{@dir}/#{name}")
    File.symlink(name, "#{@dir}/next")
    File.rename("#{@dir}/next", "#{@dir}/current")
  end

  def release_that_serves = File.readlink("/proc/#{answer.body[/\d+/]}/cwd")

  def test_the_service_starts_reloads_and_stops_as_systemd_does_it
    manager = Manager.new("#{@dir}/notify")
    env = { "NOTIFY_SOCKET" => "#{@dir}/notify", "WATCHDOG_USEC" => "300000", "PORT" => port.to_s }
    release("one")
    one = run_command(exec_words("ExecStart", release: "#{@dir}/current"), env: env, chdir: "/")
    manager.hear("READY=1")
    assert_equal "#{@dir}/one", release_that_serves
    manager.hear("WATCHDOG=1")
    release("two")
    assert system(*exec_words("ExecReload"), out: File::NULL), "ExecReload failed: #{one.stderr}"
    manager.hear("RELOADING=1")
    manager.hear(/\AMONOTONIC_USEC=\d+\z/)
    manager.hear("READY=1")
    assert_equal "#{@dir}/two", release_that_serves
    one.signal(:TERM)
    manager.hear("STOPPING=1")
    assert_equal 0, one.wait.exitstatus
  ensure
    manager&.close
  end

  def test_socket_activation_serves_all_sockets_of_the_unit
    need("systemd-socket-activate")
    assert_equal ["0.0.0.0:9292", "/run/board.sock"], unit("socket").scan(/^ListenStream=(.*)$/).flatten
    argv = ["systemd-socket-activate", "--listen", "127.0.0.1:#{port}", "--listen", "#{@dir}/socket"]
    argv += path.merge("PORT" => "").flat_map { |key, value| ["--setenv", "#{key}=#{value}"] }
    one = run_command([*argv, *exec_words("ExecStart")])
    [address, "#{@dir}/socket"].each { |at| assert_serves(at) }
    end_of(one)
    assert File.socket?("#{@dir}/socket"), "the socket file is systemd's"
  end

  # --- start_server ---

  def test_start_server_replaces_the_server_below_two_ports_and_a_path
    need("start_server")
    admin = E2E.free_port
    env = { "BOARD_PORT" => "127.0.0.1:#{port}", "BOARD_ADMIN" => "127.0.0.1:#{admin}", "BOARD_SOCKET" => "#{@dir}/socket",
            "BOARD_PID_FILE" => "#{@dir}/pid", "BOARD_INTERVAL" => "1", "BOARD_DIR" => self.class::DEPLOY, "KILL_OLD_DELAY" => "0" }
    one = run_command([File.join(self.class::DEPLOY, "start_server/run-#{E2E::COMMAND}")], env: env)
    everywhere = [address, ["127.0.0.1", admin], "#{@dir}/socket"]
    everywhere.each { |at| wait_until("an answer") { assert_serves(at) } }
    askers = E2E::Askers.new(*everywhere)
    before = supervisors(one)
    Process.kill(:HUP, File.read("#{@dir}/pid").to_i)
    wait_until("the new server alone: #{one.stderr}") { (now = supervisors(one)).size == 1 && now != before }
    wait_until("more answers") { askers.answered > 200 }
    assert_empty askers.stop
    end_of(one)
  ensure
    askers&.stop
  end

  def supervisors(one) = one.group.select { |pid| E2E::Processes.title(pid).include?(" supervisor, ") }

  # --- Procfile ---

  def test_the_line_of_the_procfile_listens_on_the_port_it_is_told
    lines = file("procfile/#{E2E::RUBY ? "rack" : "psgi"}/Procfile").lines(chomp: true)
    assert_equal ["web"], lines.map { |line| line[/\A([A-Za-z0-9_-]+): /, 1] }
    one = run_command(["sh", "-c", "exec #{lines.first.split(": ", 2).last}"], env: { "PORT" => port.to_s })
    assert_serves
    wait_until("the line of all workers; it wrote #{one.stderr}") { one.stderr.include?("listening on tcp://0.0.0.0:#{port}") }
    end_of(one)
  end

  # --- Docker ---

  # Instructions in order, continued lines joined: [word, rest].
  def dockerfile
    @dockerfile ||= file("docker/Dockerfile#{".psgi" unless E2E::RUBY}").gsub(/^#.*\n/, "").gsub("\\\n", " ").lines(chomp: true)
                                                                        .reject(&:empty?).map { |line| line.split(" ", 2) }
  end

  def all_of(word) = dockerfile.filter_map { |found, rest| rest if found == word }

  # [sources, target] of those that come from the repository.
  def copied = all_of("COPY").reject { |rest| rest.start_with?("--from") }.map { |rest| rest.split.then { |words| [words[0..-2], words.last] } }

  # e2e/packaged/packing_test.rb packs them.
  def test_the_image_has_its_sources
    known = %w[FROM RUN COPY ENV WORKDIR USER EXPOSE STOPSIGNAL CMD]
    assert_empty dockerfile.map(&:first) - known
    assert_equal 2, all_of("FROM").size
    copied.each { |sources, _| sources.each { |source| assert File.exist?(File.join(E2E::ROOT, source)), "COPY #{source}" } }
  end

  def test_the_command_of_the_image_starts
    words = JSON.parse(all_of("CMD").last) # the form without brackets would put a shell between
    bind = words[words.index("--bind") + 1]
    assert_equal [bind.split(":").last], all_of("EXPOSE")
    refute_includes ["root", "0", nil], all_of("USER").last
    app = copied.last
    assert_equal [all_of("WORKDIR").last, words.last], [app.last.chomp("/"), File.basename(app.first.first)]
    at = words.map { |word| word == bind ? "127.0.0.1:#{port}" : word }
    one = run_command(at, chdir: File.dirname(File.join(E2E::ROOT, app.first.first)))
    assert_serves
    end_of(one)
  end

  # --- Kubernetes ---

  def manifest = @manifest ||= YAML.load_stream(file("kubernetes/#{title}.yaml"))
  def pod = manifest[0]["spec"]["template"]["spec"]
  def container = pod["containers"].first

  # An option as the command itself understands it.
  def option(wanted)
    settings = IO.popen([*container["command"], *container["args"][0..-2], "--print-config", { err: %i[child out], chdir: self.class::DEPLOY }], &:read)
    settings[/^#{wanted} = (.*)$/, 1] or flunk(settings)
  end

  def seconds(wanted) = option(wanted).delete_suffix("s").to_i

  def test_the_numbers_of_the_manifest_agree
    container["command"] = [command]
    ready = container["readinessProbe"]
    red_after = ready["periodSeconds"] * ready["failureThreshold"] + (ready["timeoutSeconds"] || 1)
    assert_operator pod["terminationGracePeriodSeconds"], :>, seconds("drain_delay") + seconds("shutdown_timeout")
    assert_operator red_after * 2, :<, seconds("drain_delay"), "as long again for the endpoint's removal to get about"
    refute container.key?("lifecycle"), "no preStop"
    port_name, listening = container["ports"].first.values_at("name", "containerPort")
    assert_equal "0.0.0.0:#{listening}", option("bind")
    assert_equal [port_name] * 3, %w[startupProbe readinessProbe livenessProbe].map { |probe| container[probe]["httpGet"]["port"] }
    service = manifest[1]["spec"]
    assert_equal [port_name, manifest[0]["spec"]["selector"]["matchLabels"]], [service["ports"].first["targetPort"], service["selector"]]
    assert_equal service["selector"], manifest[0]["spec"]["template"]["metadata"]["labels"]
  end

  # kubelet sends TERM; the check turns red; for a while requests come as before, until the endpoint's removal has got
  # about.
  def test_a_pod_that_ends_loses_no_request
    drain_s = [2 * E2E.patience, 6].min.ceil # of a busy machine
    args = adapted(container["args"].shelljoin, "0.0.0.0:9292" => "127.0.0.1:#{port}", "15s" => "#{drain_s}s").shellsplit
    one = run_command([*container["command"], *args])
    assert_equal 200, answer(address, container["readinessProbe"]["httpGet"]["path"]).status
    askers = E2E::Askers.new(address, address)
    wait_until("answers") { askers.answered > 100 }
    told = E2E.clock
    one.signal(:TERM)
    wait_until("the check to turn red") { answer(address, "/ready").status == 503 }
    red = E2E.clock
    assert_equal 200, answer(address, container["livenessProbe"]["httpGet"]["path"]).status
    seen = askers.answered
    wait_until("answers after the check is red") { askers.answered > seen + 100 || E2E.clock > red + 1 }
    assert_empty askers.stop
    assert_operator askers.answered_since(red), :>, 0
    assert_equal 0, one.wait.exitstatus, one.stderr
    assert_operator E2E.clock - told, :>, drain_s, "accepting went on for drain_delay"
  ensure
    askers&.stop
  end

  # --- nginx ---

  def start_nginx(socket)
    site = adapted(file("nginx/board.conf"), "unix:/run/board/socket" => "unix:#{socket}", "listen 80;" => "listen 127.0.0.1:#{port};")
    File.write("#{@dir}/board.conf", site)
    temp = %w[client_body proxy fastcgi uwsgi scgi].map { |kind| "#{kind}_temp_path #{@dir}/#{kind};" }.join(" ")
    File.write("#{@dir}/nginx.conf", <<~CONF)
      daemon off; worker_processes 1; pid #{@dir}/nginx.pid; error_log #{@dir}/nginx.log; #{"user root;" if Process.uid.zero?}
      events { worker_connections 256; }
      http { access_log off; #{temp} include #{@dir}/board.conf; }
    CONF
    run_command(["nginx", "-e", "#{@dir}/nginx.log", "-p", @dir, "-c", "#{@dir}/nginx.conf"])
  end

  def status
    JSON.parse(UNIXSocket.open("#{@dir}/control") { |socket| socket.write("status json\n") && socket.read }.delete_prefix("ok\n"))
  end

  def test_nginx_keeps_connections_and_loses_nothing_in_a_reload
    need("nginx")
    socket = "#{@dir}/socket"
    app = File.join(E2E::ROOT, "e2e/apps/restarts#{E2E.differing(:app_extension)}")
    one = run_command([command, "--bind", "unix://#{socket}", "--trusted-proxies", "unix", "--workers", "2", "--access-log", "off",
                       "--control", "#{@dir}/control", app], at: socket)
    nginx = start_nginx(socket)
    load = E2E::Load.new(address, clients: 10, requests: 2500, rate: 800)
    reloads = 0
    reloads += 1 while !load.done_within?(0.8) && one.signal(:HUP)
    wait_until("the reload") { status["generation"] > 1 && status["state"] == "serving" }
    assert_operator reloads, :>=, 1
    assert_empty load.lost.map(&:to_a), "nginx wrote: #{File.read("#{@dir}/nginx.log")}; the server wrote: #{one.stderr}"
    assert_equal 2500, load.summary["answered"]
    now = status
    assert_operator now["requests"], :>=, 2500
    assert_operator now["connections"] * 5, :<, now["requests"], "connections are kept between nginx and the server"
    end_of(nginx, :QUIT)
    end_of(one)
  ensure
    load&.stop
  end
end
