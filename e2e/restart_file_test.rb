# frozen_string_literal: true

require_relative "support"
require_relative "support/status"
require_relative "support/workspace"

# restart_file: a file whose touch is a reload.
E2E.suite("restart_file", transports: %i[tcp]) do
  include E2E::InWorkspace

  def serve(*options, **more)
    start("--chdir", @space.dir, "--workers", "1", *options, app: @space.app, **more).tap { |one| one.get("/") } # it is up
  end

  def restart_file = File.join(@space.dir, "tmp/restart.txt")

  # At a time of its own, whatever the file system's clock. A file that is not there yet comes with its time, else it
  # would be touched twice: made, and given that.
  def touch
    at = Time.at(1_000_000_000 + (@touches = @touches.to_i + 1))
    return File.utime(at, at, restart_file) if File.exist?(restart_file)

    FileUtils.mkdir_p(File.dirname(restart_file))
    made = File.join(@space.dir, "made")
    FileUtils.touch(made, mtime: at)
    File.rename(made, restart_file)
  end

  def wait_for(one, text)
    wait_until("#{text} to be served; #{one.stderr}") { one.get("/").body == text }
  end

  def control(command)
    UNIXSocket.open(@space.control) do |socket|
      socket.write("#{command}\n")
      socket.read
    end
  end

  def watches(pid) = Dir["/proc/#{pid}/fd/*"].count { |fd| File.readlink(fd).include?("inotify") rescue false }
  def has_watches? = !E2E.portable? # else it looks once a second

  def test_a_touch_is_a_reload_and_a_broken_application_leaves_the_old_one
    one = serve("--restart-file", "tmp/restart.txt", "--env", "production", "--control", @space.control)
    kept = connect(one)
    assert_equal "first", kept.get("/").body
    @space.write_app("second")
    touch
    wait_for(one, "second")
    assert_match(/info: #{Regexp.escape(restart_file)} was touched: reloading$/, one.stderr)
    @space.break_app("told to fail")
    touch
    wait_until("the failure") { one.stderr.include?("reload failed, generation 2 goes on serving") }
    assert_equal "second", one.get("/").body
    FileUtils.rm_r(File.dirname(restart_file))
    @space.write_app("third")
    touch
    wait_for(one, "third")
    assert_equal 3, one.stderr.scan("was touched").size
    assert_equal 1, watches(one.pid) if has_watches?
    assert_includes control("status"), "a touch of #{restart_file} reloads\n"
    assert_includes control("status json"), "\"restart_file\":\"#{restart_file}\""
  end

  # What is touched while a reload runs, however often, makes one more.
  def test_touches_during_a_reload_are_one_more
    @space.write_app("slow", ruby: "IO.select(nil, nil, nil, 0.005) until File.exist?(#{@space.gate_path.inspect})",
                             perl: "select undef, undef, undef, 0.005 until -e '#{@space.gate_path}';")
    @space.open_gate
    one = serve("--restart-file", "tmp/restart.txt")
    File.delete(@space.gate_path)
    touch
    wait_until("the reload; #{one.stderr}") { one.stderr.include?("loading generation 2") }
    20.times { touch }
    @space.open_gate
    wait_until("the reload after it; #{one.stderr}") { one.stderr.include?("generation 3 serves") }
    wait_for(one, "slow")
    assert_equal 2, one.stderr.scan("was touched").size
    refute_match(/under way/, one.stderr)
  end

  def test_a_reload_takes_the_option_over
    @space.write_config({ "restart_file" => "tmp/restart.txt" })
    one = serve("--config", @space.config)
    assert_equal 1, watches(one.pid) if has_watches?
    @space.write_config
    touch
    wait_until("a reload without the option") { one.stderr.include?("generation 2 serves") }
    wait_until("the end of the watch") { watches(one.pid).zero? }
    @space.write_config({ "restart_file" => "again/restart.txt" })
    one.signal(:HUP)
    wait_until("a reload with another file") { one.stderr.include?("generation 3 serves") && (watches(one.pid) == 1 || !has_watches?) }
    @space.write_app("fourth")
    FileUtils.mkdir_p(File.join(@space.dir, "again"))
    FileUtils.touch(File.join(@space.dir, "again/restart.txt"))
    wait_for(one, "fourth")
  end

  # As Capistrano does: the new release has a file of its own behind the link.
  def test_the_file_of_the_release_that_the_link_leads_to
    releases = %w[one two].map { |release| File.join(@space.dir, release).tap { |folder| FileUtils.mkdir_p("#{folder}/tmp") } }
    FileUtils.cp(@space.app, releases.first)
    @space.write_app("second")
    FileUtils.cp(@space.app, releases.last)
    File.symlink(releases.first, "#{@space.dir}/current")
    one = start("--chdir", "#{@space.dir}/current", "--restart-file", "tmp/restart.txt", app: "#{@space.dir}/current/#{File.basename(@space.app)}")
    assert_equal "first", one.get("/").body
    File.symlink(releases.last, "#{@space.dir}/next")
    File.rename("#{@space.dir}/next", "#{@space.dir}/current")
    FileUtils.rm_r(releases.first)
    FileUtils.touch("#{@space.dir}/current/tmp/restart.txt")
    wait_for(one, "second")
  end

  def test_a_successor_goes_on_watching
    one = serve("--restart-file", "tmp/restart.txt", group: true)
    one.signal(:USR2)
    wait_until("the successor; #{one.stderr}") { one.ended? }
    @space.write_app("second")
    touch
    wait_for(one, "second")
    assert_equal 1, one.stderr.scan("was touched").size
  end
end
