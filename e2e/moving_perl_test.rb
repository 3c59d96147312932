# frozen_string_literal: true

require "net/http"
require "open3"
require "shellwords"
require_relative "support"
require_relative "support/deployments"
require_relative "support/follower"

# The pages for users of Perl's servers, followed as they stand there: doc/moving/*.md with oribi-psgi.
E2E.suite("moving_perl", transports: %i[tcp]) do
  def setup
    super
    @ports = { 9292 => E2E.free_port }
    @follower = E2E::Follower.new(ports: @ports)
    @follower.write("app.psgi", "sub { [200, ['Content-Type' => 'text/plain'], [$$]] };\n")
  end

  def teardown
    @follower.end_all
    super
  end

  def page(name) = E2E::Page.new("doc/moving/#{name}.md")
  # The other servers' answers are not held to the letter: no Date in uWSGI's.
  def answer = Net::HTTP.get_response("127.0.0.1", "/", @ports[9292]).tap { |response| assert_equal "200", response.code }
  def worker = answer.body.to_i
  def supervisor = File.read(File.join(@follower.home, "server.pid")).to_i
  def title(pid) = File.read("/proc/#{pid}/cmdline").tr("\0", " ")
  def gone?(pid) = File.read("/proc/#{pid}/stat")[/.*\) (\w)/m, 1] == "Z" rescue true

  def workers
    E2E::Processes.below(supervisor).count { |pid| E2E::Processes.title(pid).match?(/worker \d/) }
  end

  def follow(page, *languages, under:) = @follower.follow(page.blocks(*languages, under: under))

  # More and fewer workers, new ones, another server, and a graceful end, by the signals of the page's table.
  def assert_signals
    wait_until("the page's workers") { workers == 2 }
    Process.kill(:TTIN, supervisor)
    wait_until("one worker more") { workers == 3 }
    Process.kill(:TTOU, supervisor)
    wait_until("one worker less") { workers == 2 }
    old = worker
    Process.kill(:HUP, supervisor)
    wait_until("the old worker to leave") { !File.exist?("/proc/#{old}") }
    first = supervisor
    Process.kill(:USR2, first)
    wait_until("the successor's pid file") { supervisor != first rescue false }
    wait_until("the old server to leave") { gone?(first) }
    assert_match(/oribi-psgi worker/, title(worker))
    last = supervisor
    Process.kill(:QUIT, last)
    wait_until("the graceful end") { gone?(last) }
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.open("127.0.0.1", @ports[9292]).close }
  end

  # Each line of a deployment serves; where a check of health goes with it, that turns red before the end.
  def assert_deployment(page)
    lines = page.blocks("procfile", "dockerfile", "yaml", under: "Deployment").flat_map { |block| E2E::Deployments.lines_of(block) }
    assert_operator lines.size, :>, 1
    lines.each do |line|
      @follower.run(E2E::Page::Command.new(text: line.text.sub("oribi-psgi", "oribi-psgi --workers 1 --control none")))
      wait_until("an answer to #{line.text}") { answer rescue nil }
      assert_health(line) if line.path
    end
  end

  def assert_health(line)
    assert_equal 9292, line.port
    status = -> { Net::HTTP.get_response("127.0.0.1", line.path, @ports[9292]).code }
    assert_equal "200", status.call
    return unless (drain = line.text[/--drain-delay (\d+)s/, 1])

    assert_operator line.grace, :>, drain.to_i + 30
    Process.kill(:TERM, @follower.pid)
    wait_until("red") { status.call == "503" }
    answer
  end

  def import(command)
    paths = %w[lib arch].map { |dir| "-I#{E2E::ROOT}/perl/blib/#{dir}" }
    text, status = Open3.capture2e("perl", *paths, "#{E2E::ROOT}/perl/bin/oribi-psgi", "import", "--", *command.shellsplit)
    assert_predicate status, :success?, text
    text
  end

  # Each option of a table becomes the option beside it, or is left with a reason.
  def assert_options(page, heading, command)
    rows = page.text[/^## #{heading}\n(.*?)(?=^## )/m, 1].scan(/^\| (`--?.*?) \| (.*?) ?\| .*\|$/)
    refute_empty rows
    rows.each do |theirs, ours|
      names = ours.scan(/`(.*?)`/).flatten
      options = theirs.scan(/`(.*?)`/).flatten
      options.each_with_index do |option, i|
        text = import(format(command, option)).split(/^ +# default of/).first
        taken = text.scan(/^    (\w+) =>/).flatten
        wanted = names.size >= options.size && options.size > 1 ? [names[i]] : names
        wanted.empty? ? assert_match(/Not taken over/, text, option) : refute_empty(wanted & taken, "#{option}: #{text}")
      end
    end
  end

  # A page to its end: the old server, Oribi in its place, and back.
  def test_starman
    page = page("starman")
    follow(page, "sh", under: "Back")
    refute_match(/oribi/, title(worker))
    follow(page, "procfile", "console", "sh", under: "Import")
    assert_match(/oribi-psgi worker/, title(worker))
    assert_signals
    assert_deployment(page)
    follow(page, "sh", under: "Back")
    refute_match(/oribi/, title(worker))
    assert_options(page, "Options of Starman", "starman %s app.psgi")
    assert_options(page, "Options of Starlet", "plackup -s Starlet %s app.psgi")
    assert_options(page, "Options of start_server", "start_server --log-file x %s -- starman app.psgi")
  end

  def release(name, text = "sub { [200, [], ['#{name}']] };\n")
    @follower.write("/srv/app/releases/#{name}/app.psgi", text)
    @follower.run(E2E::Page::Command.new(text: "ln -sfn /srv/app/releases/#{name} /srv/app/current"))
  end

  # Releases behind a link, and one that does not load.
  def test_starmans_page_below_systemd
    release("one")
    follow(page("starman"), "ini", "sh", under: "systemd")
    assert_equal "one", answer.body
    rake = page("starman").blocks("ruby", under: "systemd").first.text
    release("two")
    E2E::Deployments::Task.new(@follower).instance_eval(rake)
    assert_equal "two", answer.body
    release("three", "no(")
    failed = assert_raises(E2E::Follower::Mismatch) { E2E::Deployments::Task.new(@follower).instance_eval(rake) }
    assert_match(/app\.psgi/, failed.message)
    assert_equal "two", answer.body
  end

  def test_hypnotoads_application
    @follower.write("script/my_app", "use Mojolicious::Lite -signatures;\nget '/' => sub ($c) { $c->render(text => 'mojo') };\napp->start;\n")
    follow(page("starman"), "sh", under: "hypnotoad")
    assert_equal "mojo", answer.body
  end

  def test_gazelle
    page = page("gazelle")
    follow(page, "console", "sh", under: "Import")
    assert_match(/oribi-psgi worker/, title(worker))
    assert_options(page, "Options", "plackup -s Gazelle %s app.psgi")
  end

  def test_uwsgi
    page = page("uwsgi")
    @follower.follow(page.blocks("ini", under: "Import"))
    follow(page, "sh", under: "Back")
    refute_match(/oribi/, title(worker))
    follow(page, "console", "sh", under: "Import")
    assert_match(/oribi-psgi worker/, title(worker))
    assert_signals
    follow(page, "sh", under: "Back")
    refute_match(/oribi/, title(worker))
    assert_options(page, "Options", "uwsgi --psgi app.psgi %s")
  end
end
