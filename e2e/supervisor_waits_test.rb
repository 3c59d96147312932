# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"

# What the supervisor does while others keep it waiting: a command that prints a password, a frontend that stands still.
E2E.suite("supervisor_waits", transports: %i[tcp]) do
  include FrontendServers

  PASSWORD = "the password of a key"
  WORKER = /^ +\d+ +(\d+) +\d+  (?:idle|busy) / # a line of ctl status

  # A command that stays as long as there is a file "slow", and fails where there is a file "bad".
  def command
    File.write("#{@dir}/word", PASSWORD)
    "#{@dir}/password".tap do |path|
      File.write(path, <<~SHELL, perm: 0o700)
        #!/bin/sh
        echo asked >> #{@dir}/asked
        while [ -e #{@dir}/slow ]; do sleep 0.01; done
        [ ! -e #{@dir}/bad ] || exit 3
        cat #{@dir}/word
      SHELL
    end
  end

  def serve_with_password(*options)
    FrontendServers.certificate(@dir, "site", password: PASSWORD)
    serve("--certificate-password-command", command, "--workers", "2", *options)
  end

  def asked = File.exist?("#{@dir}/asked") ? File.readlines("#{@dir}/asked").size : 0

  # The supervisor answers, and replaces a worker.
  def assert_goes_on(server = @one)
    output, status = ctl("status")
    assert status.success?, output
    before = server.stderr.scan("replacing it").size
    killed = output[WORKER, 1] or flunk output
    Process.kill(:KILL, killed.to_i)
    wait_until("a worker in its place: #{server.stderr}") { server.stderr.scan("replacing it").size > before }
    wait_until("two workers") { ctl("status").first.scan(WORKER).size == 2 }
  end

  # Does what needs the password. Gives its thread when the command runs, and what lets that end.
  def slow(&block)
    FileUtils.touch("#{@dir}/slow")
    before = asked
    thread = Thread.new(&block)
    wait_until("the command: #{@one.stderr}") { asked > before }
    [thread, -> { FileUtils.rm_f("#{@dir}/slow") }]
  end

  def test_a_supervisor_serves_on_while_a_password_and_a_frontend_are_waited_for
    serve_with_password
    serial = FrontendServers.certificate(@dir, "site", password: PASSWORD).serial
    renewal, go_on = slow { ctl("certificates") }
    assert_goes_on
    Process.kill(:STOP, stopped = frontend)
    go_on.call
    assert_goes_on
    reload = Thread.new { ctl("reload") }
    wait_until("the reload: #{@one.stderr}") { @one.stderr.include?("reload done") }
    assert ctl("status").last.success?
    Process.kill(:CONT, stopped)
    [renewal, reload].each do |thread|
      output, status = thread.value
      assert status.success?, output
    end
    assert_equal serial, peer_certificate("localhost").serial
  ensure
    FileUtils.rm_f("#{@dir}/slow")
    stopped && Process.kill(:CONT, stopped)
    [renewal, reload].each { |thread| thread&.join }
  end

  # The status listener answers, ctl does, and another worker that dies is replaced, before any of the three goes on.
  def test_a_frontend_a_password_and_a_worker_that_answer_nothing_hold_up_nobody
    FrontendServers.certificate(@dir, "site", password: PASSWORD)
    status = "127.0.0.1:#{E2E.free_port}"
    serve("--certificate-password-command", command, "--workers", "3", "--status", status)
    wait_until("three workers") { ctl("status").first.scan(WORKER).size == 3 }
    renewal, go_on = slow { ctl("certificates") }
    stopped = [frontend, ctl("status").first[WORKER, 1].to_i]
    Process.kill(:STOP, *stopped)
    wait_until("two workers that run") { ctl("status").first.scan(WORKER).size == 2 }
    client = E2E::Client.new(status.split(":"))
    assert_equal 200, client.get("/healthz").status
    assert_goes_on
    assert renewal.alive?, "the command was not waited for"
  ensure
    client&.close
    Process.kill(:CONT, *stopped) if stopped
    go_on&.call
    renewal&.join
  end

  # A frontend that starts needs the password as well.
  def test_a_frontend_that_is_started_again_waits_for_its_password_alone
    serve_with_password
    old = frontend
    _, go_on = slow { Process.kill(:KILL, old) }
    assert_goes_on
    go_on.call
    wait_until("the frontend: #{@one.stderr}") { @one.stderr.include?("serves again") }
    assert_match(/\A\d+\z/, curl("/pid"))
  ensure
    FileUtils.rm_f("#{@dir}/slow")
  end

  def test_a_frontend_comes_back_while_no_password_can_be_had
    serve_with_password
    serial = peer_certificate("localhost").serial
    FileUtils.touch("#{@dir}/bad")
    output, status = ctl("certificates")
    refute status.success?
    assert_match(/no password for \S+site\.key: certificate_password_command ended with exit code 3: the current ones stay in use$/, output)
    2.times do |i|
      Process.kill(:KILL, frontend)
      wait_until("the frontend: #{@one.stderr}") { @one.stderr.scan("serves again").size == i + 1 }
      assert_equal serial, peer_certificate("localhost").serial
    end
    assert_match(/frontend 0 starts with the certificates that served last: no password for \S+site\.key/, @one.stderr)
  end

  # An answer that comes too late is none to the next question.
  def test_renewals_that_overlap_are_each_answered
    serve_with_password
    first, go_on = slow { ctl("certificates") }
    others = Array.new(2) { Thread.new { ctl("certificates") } }
    serial = FrontendServers.certificate(@dir, "site", password: PASSWORD).serial
    go_on.call
    [first, *others].each do |thread|
      output, status = thread.value
      assert status.success?, output
    end
    assert ctl("certificates").last.success?
    assert_equal serial, peer_certificate("localhost").serial
  ensure
    FileUtils.rm_f("#{@dir}/slow")
    [first, *others].each { |thread| thread&.join }
  end

  # Until its frontends are ready a server that starts hears commands and signals.
  def test_a_server_that_waits_for_its_first_frontend_is_asked_and_stopped
    real = File.join(E2E::ROOT, E2E::RUBY ? "ruby/lib/oribi/oribi-frontend" : "perl/blib/arch/auto/Oribi/oribi-frontend")
    File.write("#{@dir}/slow-frontend", "#!/bin/sh\necho x > #{@dir}/begun\nwhile [ -e #{@dir}/slow ]; do sleep 0.01; done\nexec #{real}\n", perm: 0o700)
    FileUtils.touch("#{@dir}/slow")
    argv = [E2E::Server.binary, "--bind", bind, "--no-dev", "--control", "#{@dir}/control", File.expand_path(E2E.differing(:app), E2E::ROOT)]
    2.times do |i|
      FileUtils.rm_f("#{@dir}/begun")
      @one = E2E::Server.new(argv: argv, env: { "ORIBI_FRONTEND_PROGRAM" => "#{@dir}/slow-frontend" }).start
      wait_until("the frontend to be started") { File.exist?("#{@dir}/begun") }
      output, status = ctl("status")
      assert status.success?, output
      assert_match(/^frontend 0, pid \d+, starting, /, output)
      if i.zero?
        @one.signal(:TERM)
        assert_equal 0, @one.wait.exitstatus
        @one.cleanup
      else
        FileUtils.rm_f("#{@dir}/slow")
        wait_until("the server to be up: #{@one.stderr}") { @one.stderr.include?("listening on") }
        assert_match(/\A\d+\z/, curl("/pid"))
      end
    end
  end

  def test_a_stop_ends_the_command
    serve_with_password
    renewal, = slow { ctl("certificates") }
    @one.signal(:TERM)
    assert_equal 0, @one.wait.exitstatus
    output, status = renewal.value
    refute status.success?
    assert_includes output, "the server stops"
  ensure
    FileUtils.rm_f("#{@dir}/slow")
  end
end
