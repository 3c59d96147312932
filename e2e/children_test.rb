# frozen_string_literal: true

require_relative "support"

# Children that the application forks and does not end, at every place where the server runs its code: they end as
# programs of their language do, answer nothing and write nothing where a socket was.
module Children
  PLACES = %w[call each raise stream close after].freeze

  def notes = File.readlines(File.join(@dir, "forks"), chomp: true).map(&:split)

  def children(place) = notes.select { |what, where, _| what == "child" && where == place }.map(&:last)

  # The last words of the child: how many bytes are in its own files, and how it ended.
  def last_words(pid)
    wait_until("the child #{pid} to end") { !E2E::Processes.alive?(pid.to_i) }
    ends = notes.select { |what, who, _| what == "end" && who == pid }
    assert_equal 1, ends.size, "the end of a program, once: #{notes}"
    ends.first.drop(2)
  end

  def fork_at(server, place)
    client = connect(server)
    before = children(place).size
    2.times do |round|
      assert_equal "one two", client.get("/#{place}").body, place
      wait_until("the child") { children(place).size == before + round + 1 }
      bytes, *how = last_words(children(place).last)
      assert_equal "0", bytes, "#{place}: nothing was written where the sockets had been"
      yield how if block_given?
    end
    finished = notes.count { |what, _| what == "finished" }
    assert_equal "one two", client.get("/none").body, "the connection is as before"
    wait_until("the next request's end") { notes.count { |what, _| what == "finished" } > finished }
    others = notes.select { |what, who| what == "finished" && who != server.worker_pid.to_s }
    assert_empty others, "what comes after the answer is the server's"
  end

  def app = "e2e/apps/children#{E2E.differing(:app_extension)}"

  def start_forking(*options)
    FileUtils.touch(File.join(@dir = Dir.mktmpdir("oribi-children"), "forks"))
    config = File.join(@dir, "config")
    ruby = "before_worker_exit { Forks.note('hook', Process.pid) }"
    perl = "+{ before_worker_exit => sub { Forks::note(hook => $$) } }"
    File.write(config, E2E::RUBY ? ruby : perl)
    start("--config", config, *options, app: app, env: { "E2E_DIR" => @dir })
  end

  def teardown
    super
    FileUtils.remove_entry(@dir) if @dir
  end

  def check_places(*options)
    server = start_forking(*options)
    PLACES.each { |place| fork_at(server, place) }
    Process.kill(:URG, server.worker_pid) # while the worker waits
    wait_until("the child of a signal handler") { children("trap").any? }
    assert_equal "0", last_words(children("trap").last).first
    assert_equal "one two", connect(server).get("/none").body
    yield server if block_given?
    pid = server.worker_pid
    assert server.stop.success?, server.stderr
    assert_equal [pid.to_s], notes.filter_map { |what, who| who if what == "hook" }, "only the worker ends as a worker"
    assert_empty server.left_behind
  end
end

E2E.suite("children", transports: E2E::EITHER) do
  include Children

  def test_a_child_that_comes_back_ends
    check_places do |server|
      fork_at(server, "destroy") unless E2E::RUBY # Perl runs code where an object goes
      refute_match(/\[BUG\]|another thread/, server.stderr)
    end
  end

  def test_how_a_child_ends
    server = start_forking
    fork_at(server, "each") { |how| assert_equal E2E::RUBY ? "#<SystemExit:" : "0", how.first }
    fork_at(server, "raise") { |how| assert_equal E2E::RUBY ? "#<RuntimeError:" : "255", how.first }
    assert_match(/child/, server.stderr, "what it died of is on standard error")
  end

  # Its calls leave a child behind; a handler that was set while the application was loaded hears of its end.
  def write_reaping_app
    path = File.join(@dir = Dir.mktmpdir("oribi-children"), "app#{E2E.differing(:app_extension)}")
    File.write(path, E2E::RUBY ? <<~RUBY : <<~PERL)
      trap(:CHLD) { File.write("#{@dir}/forks", "heard \#{Process.pid}\n", mode: "a") }
      run lambda { |env| fork { exit!(0) } unless env["PATH_INFO"] == "/pid"; [200, {}, [Process.pid.to_s]] }
    RUBY
      use POSIX ();
      $SIG{CHLD} = sub { 1 while waitpid(-1, POSIX::WNOHANG()) > 0; open my $fh, '>>', '#{@dir}/forks' or die; print {$fh} "heard $$\n" };
      sub { $_[0]{PATH_INFO} eq '/pid' or fork or POSIX::_exit(0); return [200, [], [$$]] };
    PERL
    path
  end

  def test_a_handler_that_the_application_sets_while_it_loads
    server = start("--workers", "1", app: write_reaping_app)
    2.times do |round|
      pid = server.get("/").body
      wait_until("the handler") { File.exist?("#{@dir}/forks") && notes.include?(["heard", pid]) }
      next if round == 1

      server.signal(:HUP)
      wait_until("a worker of another mold") { server.worker_pid.to_s != pid }
    end
  end

  if E2E::RUBY
    def test_a_child_of_a_thread_ends
      check_places("--threads", "3")
    end
  end
end
