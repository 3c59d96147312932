# frozen_string_literal: true

require "json"
require "net/http"
require "open3"
require "shellwords"
require_relative "support"
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
    children = File.read("/proc/#{supervisor}/task/#{supervisor}/children").split
    children.count { |pid| File.read("/proc/#{pid}/cmdline").match?(/worker \d/) rescue false }
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

  # Lines of a deployment are ones that the command takes.
  def assert_commands(page)
    lines = page.blocks("procfile", under: "Deployment").map { |block| block.text[/^web: (.*)/, 1] } +
            page.blocks("dockerfile").map { |block| JSON.parse(block.text[/\ACMD (.*)/, 1]).join(" ") }
    assert_equal 2, lines.size
    lines.each { |line| @follower.run(E2E::Page::Command.new(text: line.sub(/\Aoribi-psgi/, "oribi-psgi --print-config"))) }
  end

  def import(command)
    paths = %w[lib arch].map { |dir| "-I#{E2E::ROOT}/perl/blib/#{dir}" }
    text, status = Open3.capture2e("perl", *paths, "#{E2E::ROOT}/perl/bin/oribi-psgi", "import", "--", *command.shellsplit)
    assert_predicate status, :success?, text
    text
  end

  # Each option of a table becomes the option beside it, or is left with a reason.
  def assert_options(page, heading, command)
    rows = page.text[/^## #{heading}\n(.*?)(?=^## )/m, 1].scan(/^\| (`--?.*?) \| (.*?) \| .*\|$/)
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
    assert_commands(page)
    follow(page, "sh", under: "Back")
    refute_match(/oribi/, title(worker))
    assert_options(page, "Options of Starman", "starman %s app.psgi")
    assert_options(page, "Options of Starlet", "plackup -s Starlet %s app.psgi")
    assert_options(page, "Options of start_server", "start_server --log-file x %s -- starman app.psgi")
  end

  def test_starmans_page_below_systemd
    page = page("starman")
    FileUtils.mkdir_p("#{@follower.here("/srv/app")}")
    @follower.write("/srv/app/app.psgi", "sub { [200, [], ['unit']] };\n")
    follow(page, "ini", under: "Deployment")
    %w[daemon-reload start\ app reload\ app].each { |words| @follower.run(E2E::Page::Command.new(text: "systemctl #{words}")) }
    assert_equal "unit", answer.body
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
    assert_commands(page)
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
    assert_commands(page)
    follow(page, "sh", under: "Back")
    refute_match(/oribi/, title(worker))
    assert_options(page, "Options", "uwsgi --psgi app.psgi %s")
  end
end
