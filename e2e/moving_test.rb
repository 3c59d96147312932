# frozen_string_literal: true

require "net/http"
require_relative "support"
require_relative "support/deployments"
require_relative "support/follower"
require_relative "support/nginx"

# The pages for users of other servers, followed as they stand there: doc/moving/*.md. From the other server to Oribi
# and back in one folder, on one port; the signals of the page's table; every block of its deployment. Their servers are
# of Ruby, and so is the command.
E2E.suite("moving", transports: %i[tcp]) do
  # The page, and what the application sees of the other server.
  const_set(:PAGES, { "puma" => %w[Puma], "unicorn" => %w[Unicorn Pitchfork], "passenger" => %w[PhusionPassenger] })
  const_set(:APP, <<~RUBY)
    SERVER = %w[Puma Unicorn Pitchfork PhusionPassenger Oribi].find { |name| Object.const_defined?(name) }
    run(lambda do |env|
      if env["PATH_INFO"] == "/slow"
        File.write("begun", "")
        sleep 0.01 until File.exist?("go")
      end
      [200, { "content-type" => "text/plain" }, ["\#{SERVER} \#{Process.pid} \#{Dir.pwd}"]]
    end)
  RUBY

  def setup
    super
    @ports = { 9292 => E2E.free_port }
    # Passenger 6.0.17 may abort at its end, and its handler then keeps the port while it writes a report.
    @follower = E2E::Follower.new(ports: @ports, env: { "PASSENGER_ABORT_HANDLER" => "false" })
    @follower.write("config.ru", self.class::APP)
  end

  def teardown
    @follower.end_all
    super
  end

  def page(name) = E2E::Page.new("doc/moving/#{name}.md")
  def command(text) = E2E::Page::Command.new(text: text)
  def in_home(name) = File.join(@follower.home, name)
  def client = E2E::Client.new(["127.0.0.1", @ports[9292]])
  def get(path = "/") = client.get(path, { "Connection" => "close" })
  # Puma sends no Date, which our client minds.
  def server = Net::HTTP.get("127.0.0.1", "/", @ports[9292])[/\A\w+/]
  def worker = get.body[/\d+/].to_i
  def supervisor = File.read(in_home("server.pid")).to_i
  def gone?(pid) = File.read("/proc/#{pid}/stat")[/.*\) (\w)/m, 1] == "Z" rescue true

  # That they are all up is part of the wait: the first answers before the second is there.
  def workers
    E2E::Processes.below(supervisor).count { |pid| E2E::Processes.title(pid).match?(/worker \d/) }
  end

  # --- there and back ---

  # @param old [Array<String>] what the application sees of the other servers
  def follow_there_and_back(name, old)
    old.each { |one| skip "no #{one} here" unless one == "PhusionPassenger" ? passenger? : Gem::Specification.any? { |spec| spec.name == one.downcase } }
    seen = page(name).blocks("ruby", "json", "console", "sh", under: "Import").flat_map { |block| servers_of(block) }
    assert_equal old.flat_map { |one| [one, "Oribi"] }, seen
    seen = page(name).blocks("console", "sh", under: "Back").flat_map { |block| servers_of(block) }
    assert_equal old, seen
  end

  def passenger? = system("command -v passenger >/dev/null")

  # @return [Array<String>] the server after each command that is one
  def servers_of(block)
    return write(block) && [] if file_of(block)

    block.commands.filter_map do |one|
      free_port if E2E::Follower::SERVER.match?(one.text)
      @follower.run(one)
      wait_until("an answer after #{one.text}") { server rescue nil } if E2E::Follower::SERVER.match?(one.text)
    end
  end

  self::PAGES.each do |name, old|
    define_method("test_#{name}_there_and_back") { follow_there_and_back(name, old) }
  end

  def free_port
    @follower.stop
    wait_until("the old server's port") { TCPSocket.open("127.0.0.1", @ports[9292]).close || false rescue true }
  end

  # JSON has no comments.
  def file_of(block) = block.language == "json" ? "Passengerfile.json" : block.file
  def write(block) = @follower.write(file_of(block), block.text)

  # --- signals: what the pages' tables say of Oribi ---

  def start_imported(name)
    page(name).blocks("ruby", "json", under: "Import").first(1).each { |block| write(block) }
    @follower.follow(page(name).blocks("console", under: "Import").first(1))
    @follower.run(command("oribi -E production --error-log err.log"))
    wait_until("both workers") { workers == 2 rescue false }
  end

  # @return [Array<String>] the signals in the last cell of the row that begins so
  def signals(name, row)
    line = page(name).text[/^## Signals$.*/m][/^\| #{Regexp.escape(row)}.*$/] or flunk "#{name} has no row #{row}"
    line.split("|").last.scan(/`([A-Z\d]+)`/).flatten.map(&:to_sym)
  end

  def log = File.read(in_home("err.log"))

  # A request that goes on until the file `go` is there.
  def slow
    %w[go begun].each { |name| FileUtils.rm_f(in_home(name)) }
    Thread.new { get("/slow").status rescue :cut }.tap { wait_until("the call") { File.exist?(in_home("begun")) } }
  end

  def assert_ends(pid, request, status)
    wait_until("the end") { gone?(pid) }
    assert_equal status, request.value
  end

  def assert_graceful(signal)
    pid, request = supervisor, slow
    Process.kill(signal, pid)
    wait_until("the stop") { log.include?("stopping") }
    FileUtils.touch(in_home("go"))
    assert_ends(pid, request, 200)
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.open("127.0.0.1", @ports[9292]).close }
  end

  def assert_at_once(*signals)
    pid, request = supervisor, slow
    signals.each_with_index do |signal, place|
      wait_until("the first one") { log.include?("stopping") } if place.positive?
      Process.kill(signal, pid)
    end
    assert_ends(pid, request, :cut)
  end

  def again
    File.unlink(in_home("err.log"))
    @follower.run(command("oribi -E production --error-log err.log"))
    wait_until("both workers") { workers == 2 rescue false }
  end

  # What each page says, and the tests below do.
  const_set(:ROWS, { "graceful stop" => %i[TERM QUIT], "stop at once" => %i[INT TERM], "new code" => %i[HUP], "another version" => %i[USR2],
           "log files" => %i[USR1], "a worker more" => %i[TTIN TTOU], "no workers until" => %i[WINCH] }.freeze)

  def test_signals_that_replace
    self.class::PAGES.each_key { |name| self.class::ROWS.each { |row, expected| assert_equal expected, signals(name, row), "#{name}: #{row}" } }
    start_imported("unicorn")
    { TTIN: 3, TTOU: 2 }.each do |signal, count|
      Process.kill(signal, supervisor)
      wait_until("#{count} workers") { workers == count }
    end
    old = worker
    Process.kill(:HUP, supervisor)
    wait_until("the old worker to leave") { !File.exist?("/proc/#{old}") }
    assert_reopens
    first = supervisor
    Process.kill(:USR2, first)
    wait_until("the successor's pid file") { supervisor != first rescue false }
    wait_until("the old server to leave") { gone?(first) }
    assert_operator worker, :>, 0
    assert_graceful(:QUIT)
  end

  def assert_reopens
    @follower.run(command("mv err.log err.log.1"))
    Process.kill(:USR1, supervisor)
    wait_until("the file anew") { File.exist?(in_home("err.log")) }
  end

  def test_signals_that_stop
    start_imported("puma")
    assert_graceful(:TERM)
    again
    assert_at_once(:INT)
    again
    assert_at_once(:TERM, :TERM)
    again
    Process.kill(:WINCH, supervisor)
    wait_until("no worker") { workers.zero? }
    Process.kill(:TTIN, supervisor)
    wait_until("one worker") { workers.positive? }
    assert_operator worker, :>, 0
  end

  # --- deployment: every block of it, on the page that the others link to ---

  def test_deployment
    lines = page("puma").blocks("procfile", "dockerfile", "yaml", under: "Deployment").flat_map { |block| E2E::Deployments.lines_of(block) }
    assert_operator lines.size, :>, 3
    lines.each do |line|
      @follower.run(command(line.text.sub(/(oribi\b.*)/, "\\1 --workers 1 --control none")))
      assert_equal "Oribi", server, line.text
      assert_draining(line) if line.path
    end
    (self.class::PAGES.keys - ["puma"]).each { |name| assert_includes page(name).text, "](puma.md#deployment)", name }
  end

  # Green; and red while the drain is announced and requests are served, where it is.
  def assert_draining(line)
    assert_equal 9292, line.port
    assert_equal 200, get(line.path).status
    return unless (drain = line.text[/--drain-delay (\d+)s/, 1])

    assert_operator line.grace, :>, drain.to_i + 30
    Process.kill(:TERM, @follower.pid)
    wait_until("red") { get(line.path).status == 503 }
    assert_equal "Oribi", server
  end

  def test_passenger_nginx
    skip E2E::Nginx.missing if E2E::Nginx.missing
    port = E2E.free_port
    @follower.run(command("oribi --trusted-proxies 127.0.0.1"))
    nginx = E2E::Nginx.new(E2E::Nginx.whole(page("passenger").blocks("nginx").first.text, port).gsub(":9292", ":#{@ports[9292]}"))
    nginx.wait_for(port)
    assert_match(/\AOribi/, E2E::Client.new(["127.0.0.1", port]).get("/").body)
  ensure
    nginx&.stop
  end

  # --- systemd and Capistrano ---

  def release(name)
    @follower.write("/srv/app/releases/#{name}/config.ru", self.class::APP)
    @follower.run(command("ln -sfn /srv/app/releases/#{name} /srv/app/current"))
  end

  def test_unit_and_capistrano
    release("one")
    @follower.follow(page("puma").blocks("ini", "sh", under: "systemd"))
    assert_includes get.body, "releases/one"
    rake = page("puma").blocks("ruby", under: "Capistrano")
    assert_equal 1, rake.size
    release("two")
    E2E::Deployments::Task.new(@follower).instance_eval(rake.first.text)
    assert_includes get.body, "releases/two"
    File.write(@follower.here("/srv/app/current/config.ru"), "no(")
    failed = assert_raises(E2E::Follower::Mismatch) { E2E::Deployments::Task.new(@follower).instance_eval(rake.first.text) }
    assert_match(/config.ru/, failed.message)
    assert_includes get.body, "releases/two"
  end
end
