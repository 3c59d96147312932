# frozen_string_literal: true

require_relative "support"

# A server that starts as root and serves as another user: what that user puts in the place of the server's files.
E2E.suite("ownership", transports: E2E::EITHER) do
  const_set(:NOBODY, 65_534)

  def setup
    super
    @space = Dir.mktmpdir("oribi-e2e")
    File.chmod(0o755, @space)
  end

  def teardown
    super
    FileUtils.remove_entry(@space)
  end

  # A folder of the workers' user.
  def logs
    @logs ||= "#{@space}/logs".tap do |path|
      Dir.mkdir(path)
      File.chown(self.class::NOBODY, self.class::NOBODY, path)
    end
  end

  # A file of root's that nobody else may write.
  def precious
    @precious ||= "#{@space}/precious".tap { |path| File.write(path, "precious\n", perm: 0o600) }
  end

  def put_link(path, target = precious)
    File.symlink(target, path)
    File.lchown(self.class::NOBODY, self.class::NOBODY, path)
  end

  def serve(*options)
    one = start("--user", "nobody", "--access-log", "#{logs}/access.log", "--error-log", "#{logs}/error.log", *options)
    assert_alive(one)
    one
  end

  def owner(path) = File.lstat(path).uid
  def said?(pattern) = wait_until("#{pattern.inspect} in the log") { File.read("#{logs}/error.log").match?(pattern) }

  def assert_untouched
    assert_equal ["precious\n", 0, 0o600], [File.read(precious), owner(precious), File.stat(precious).mode & 0o777]
  end

  def skip_unless_root
    skip "only root serves as another user" unless Process.euid.zero?
  end

  def test_logs_belong_to_the_workers_and_rotate
    skip_unless_root
    one = serve
    assert_equal [self.class::NOBODY] * 2, [owner("#{logs}/access.log"), owner("#{logs}/error.log")]
    %w[access error].each { |name| File.rename("#{logs}/#{name}.log", "#{logs}/#{name}.log.1") }
    one.signal(:USR1)
    wait_until("lines in the new file") { one.get("/") && File.size?("#{logs}/access.log") }
    assert_equal [self.class::NOBODY] * 2, [owner("#{logs}/access.log"), owner("#{logs}/error.log")]
  end

  def test_a_link_in_the_place_of_a_log_at_a_rotation
    skip_unless_root
    one = serve
    File.rename("#{logs}/access.log", "#{logs}/access.log.1")
    File.rename("#{logs}/error.log", "#{logs}/error.log.1")
    put_link("#{logs}/access.log")
    put_link("#{logs}/error.log")
    one.signal(:USR1)
    old = "#{logs}/error.log.1"
    wait_until("both lines") { File.read(old).scan(/is a symbolic link of user #{self.class::NOBODY} in a folder of others, which is not followed/).size >= 2 }
    assert_untouched
    one.get("/after")
    wait_until("lines in the old file") { File.read("#{logs}/access.log.1").include?("/after") }
    assert_untouched
  end

  def test_a_second_name_in_the_place_of_a_log
    skip_unless_root
    one = serve
    File.rename("#{logs}/access.log", "#{logs}/access.log.1")
    File.link(precious, "#{logs}/access.log")
    one.signal(:USR1)
    assert said?(/access log .*has 2 names \(hard links\)|access log .*permission denied/)
    one.get("/after")
    wait_until("lines in the old file") { File.read("#{logs}/access.log.1").include?("/after") }
    assert_untouched
  end

  def test_a_link_at_the_start
    skip_unless_root
    put_link("#{logs}/access.log")
    failed = run_to_end("--user", "nobody", "--access-log", "#{logs}/access.log")
    assert_equal 1, failed.status.exitstatus
    assert_match(/cannot open the access log .*: it is a symbolic link of user #{self.class::NOBODY}/, failed.stderr)
    assert_untouched
  end

  # How images of containers send logs to the container's own output.
  def test_links_to_the_standard_streams
    skip_unless_root
    File.symlink("/dev/stdout", "#{@space}/access.log")
    one = start("--user", "nobody", "--access-log", "#{@space}/access.log", "--error-log", "/dev/stderr")
    assert_alive(one)
    one.signal(:USR1)
    one.get("/after")
    wait_until("the lines") { one.stdout.include?("GET /after") && one.stderr.include?("listening on") }
    assert_equal 0, owner("#{one.dir}/stdout")
  end

  def test_a_pid_file_in_a_folder_of_the_workers
    skip_unless_root
    put_link("#{logs}/pid")
    failed = run_to_end("--user", "nobody", "--pid-file", "#{logs}/pid")
    assert_equal 1, failed.status.exitstatus
    assert_match(/pid_file: .*is a symbolic link, which is not followed/, failed.stderr)
    assert_untouched
    File.unlink("#{logs}/pid")
    File.link(precious, "#{logs}/pid")
    failed = run_to_end("--user", "nobody", "--pid-file", "#{logs}/pid")
    assert_match(/pid_file: .*not replaced/, failed.stderr)
    assert_untouched
  end

  # An upgrade's other name.
  def test_a_link_in_the_place_of_the_old_pid_file
    skip_unless_root
    one = start("--user", "nobody", "--pid-file", "#{logs}/pid", group: true)
    assert_alive(one)
    put_link("#{logs}/pid.old")
    one.signal(:USR2)
    wait_until("the upgrade to fail") { one.stderr.match?(/upgrade.*fail|pid_file: cannot be renamed/) }
    assert_untouched
    assert_alive(one)
  end

  # A process of that group, which has a user of its own and reaches the folder as its working directory.
  def connects?(name)
    pid = fork do
      Dir.chdir(@space)
      Process::Sys.setgroups([]) if Process::Sys.respond_to?(:setgroups)
      Process::GID.change_privilege(65_533)
      Process::UID.change_privilege(65_532)
      UNIXSocket.new(name).close
      exit!(0)
    rescue SystemCallError
      exit!(1)
    end
    Process.wait2(pid).last.success?
  end

  def listen_on(*names)
    addresses = names.map { |name| "unix://#{@space}/#{name}?mode=660" }
    text = E2E::RUBY ? "bind #{addresses.map(&:inspect).join(", ")}\n" : "+{ bind => [qw(#{addresses.join(" ")})] };\n"
    File.write("#{@space}/config", text)
  end

  def assert_given(*names)
    names.each do |name|
      entry = File.lstat("#{@space}/#{name}")
      assert_equal [self.class::NOBODY, 65_533, 0o660], [entry.uid, entry.gid, entry.mode & 0o777], name
      assert connects?(name), name
    end
  end

  # nginx is in the group. A reload opens the second, an upgrade the third; those that are open stay as they are.
  def test_sockets_belong_to_the_user_and_group
    skip_unless_root
    listen_on("one")
    argv = [E2E::Server.binary, "--config", "#{@space}/config", "--no-dev", "--workers", "1", "--user", "nobody", "--group", "65533",
            "--control", "#{@space}/control", "--status", "#{@space}/status", "--agent", "#{@space}/agent?mode=660",
            File.expand_path(E2E.differing(:app), E2E::ROOT)]
    ctl = [E2E::Server.binary, "ctl", "--control", "#{@space}/control"]
    one = E2E::Server.new(argv: argv, group: true).launch
    @servers << one
    wait_until("the start") { one.stderr.include?("listening on ") }
    assert_given("one", "agent")
    %w[status control].each { |name| assert_equal [0, 0o600], [owner("#{@space}/#{name}"), File.stat("#{@space}/#{name}").mode & 0o777], name }
    refute connects?("status")
    first = File.stat("#{@space}/one").ino
    listen_on("one", "two")
    assert system(*ctl, "reload", out: File::NULL), one.stderr
    assert_given("one", "two")
    listen_on("one", "two", "three")
    assert system(*ctl, "upgrade", out: File::NULL), one.stderr
    assert_given("one", "two", "three")
    assert_equal first, File.stat("#{@space}/one").ino
  end

  def test_links_in_the_place_of_sockets
    skip_unless_root
    put_link("#{logs}/control")
    failed = run_to_end("--user", "nobody", "--control", "#{logs}/control")
    assert_match(/control: .*: there is a file that is not a socket/, failed.stderr)
    put_link("#{logs}/listen", "#{@space}/elsewhere")
    failed = run_to_end("--user", "nobody", "--bind", "unix://#{logs}/listen")
    assert_match(/there is a file that is not a socket/, failed.stderr)
    refute File.exist?("#{@space}/elsewhere")
    assert_untouched
  end
end
